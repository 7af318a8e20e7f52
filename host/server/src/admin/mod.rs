//! The admin API: policies put in, taken out and rolled back, on an address and under a key of its own.

mod rollout;
mod upload;
mod view;

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, patch, post, put};
use jackfield_policy::{Applied, Refusal, Registry, Upload};
use rollout::Wanted;
use serde_json::{Value, json};

use crate::api;
use crate::app::App;
use crate::error::ApiError;
use crate::http::body;

/// What the routes below are to others: a test holds the two together.
const OPENAPI: &str = include_str!("openapi.json");

/// Everything that is served on the admin address.
pub(crate) fn router(app: Arc<App>) -> Router {
    let routes = routes().into_iter();
    let router = routes.fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    api::finish(router.merge(api::health()), app)
}

fn routes() -> [(&'static str, MethodRouter<Arc<App>>); 8] {
    [
        ("/admin/policies", get(list)),
        ("/admin/policies/{name}", put(replace).get(show).delete(remove)),
        ("/admin/policies/{name}/config", patch(configure).put(configure)),
        ("/admin/policies/{name}/promote", post(promote)),
        ("/admin/policies/{name}/rollback", post(rollback)),
        ("/admin/policies/{name}/versions", get(versions)),
        ("/admin/generations", get(generations)),
        ("/admin/openapi.json", get(openapi)),
    ]
}

async fn openapi(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, ApiError> {
    app.admin(&headers)?;
    Ok(([(CONTENT_TYPE, "application/json")], OPENAPI).into_response())
}

async fn list(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Json<Value>, ApiError> {
    app.admin(&headers)?;
    let policies: Vec<Value> = app.registry.policies().iter().map(view::policy).collect();
    Ok(Json(json!({"generation": app.registry.current().generation(), "policies": policies})))
}

async fn show(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    app.admin(&headers)?;
    find(&app.registry, &name).map(Json)
}

async fn generations(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Json<Value>, ApiError> {
    app.admin(&headers)?;
    let generations: Vec<Value> = app.registry.generations().iter().map(view::generation).collect();
    Ok(Json(json!({"current": app.registry.current().generation(), "generations": generations})))
}

async fn versions(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    app.admin(&headers)?;
    let versions: Vec<Value> = app.registry.versions(&name).iter().map(view::held).collect();
    if versions.is_empty() {
        return Err(unknown(&name));
    }
    Ok(Json(json!({"versions": versions})))
}

/// The bytes of a component alone replace the code of a policy in force; a form brings the rest, too.
async fn replace(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    app.admin(&parts.headers)?;
    let rollout = Wanted::read(&parts.uri)?.rollout()?;
    let body = body::read(&parts.headers, body, app.upload_limits()).await?;
    let sent = upload::Sent::read(&parts.headers, body).await?;
    let keys = app.config.trust.keys();
    change(&app, "put", move |registry| {
        sent.check(&keys)?;
        let upload = sent.over(&name, in_force(registry, &name))?;
        registry.push(upload, rollout).map_err(refusal)
    })
    .await
}

async fn configure(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    app.admin(&parts.headers)?;
    let rollout = Wanted::read(&parts.uri)?.rollout()?;
    let body = body::read(&parts.headers, body, app.body_limits()).await?;
    let config = upload::config(&parts.headers, &body)?;
    change(&app, "config", move |registry| {
        registry.put_config(&name, config, rollout).map_err(|refused| view::config_refusal(&refused))
    })
    .await
}

async fn remove(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    app.admin(&headers)?;
    change(&app, "delete", move |registry| registry.delete(&name).map_err(refusal)).await
}

async fn promote(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    told(&app, request).await?;
    change(&app, "promote", move |registry| registry.promote(&name).map_err(refusal)).await
}

async fn rollback(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    told(&app, request).await?;
    change(&app, "rollback", move |registry| registry.rollback(&name).map_err(refusal)).await
}

/// A request whose path says everything: who may make it, and its body read to its end.
async fn told(app: &App, request: Request) -> Result<(), ApiError> {
    let (parts, body) = request.into_parts();
    app.admin(&parts.headers)?;
    body::read(&parts.headers, body, app.body_limits()).await.map(drop)
}

/// Compiling takes a while: off the async threads. The answer comes when the change is in force.
async fn change(
    app: &Arc<App>,
    what: &'static str,
    apply: impl FnOnce(&Registry) -> Result<Applied, ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    let registry = Arc::clone(&app.registry);
    let applied = api::blocking(move || apply(&registry)).await;
    let outcome = match &applied {
        Ok(applied) if applied.changed => "applied",
        Ok(_) => "unchanged",
        Err(_) => "refused",
    };
    app.metrics.swapped(what, outcome);
    let applied =
        applied.inspect_err(|error| tracing::warn!(what, %error, "a change of policies was refused"))?;
    Ok(Json(applied).into_response())
}

/// What an upload of bytes alone is put over. Its recorded cases belong to the bytes, and are not kept.
fn in_force(registry: &Registry, name: &str) -> Option<Upload> {
    let patch = registry.current();
    let policy = patch.get(name)?;
    Some(Upload {
        manifest: policy.manifest().clone(),
        component: Arc::clone(policy.component()),
        config: policy.config().clone(),
        cases: Vec::new(),
    })
}

fn find(registry: &Registry, name: &str) -> Result<Value, ApiError> {
    let policies = registry.policies();
    let found = policies.iter().map(view::policy).find(|policy| policy["name"] == name);
    found.ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> ApiError {
    let message = format!("There is no policy `{}`", crate::error::shorten(name));
    ApiError::new(StatusCode::NOT_FOUND, "invalid_request_error", "policy_not_found", message)
        .with_param("name")
}

/// A change that was refused as a whole. What is in force stays in force.
fn refusal(refusal: Refusal) -> ApiError {
    view::refusal(&refusal)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_path_is_described_and_no_other() {
        let described: Value = serde_json::from_str(OPENAPI).unwrap();
        let described: BTreeSet<&str> =
            described["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        let served: BTreeSet<&str> = routes().iter().map(|(path, _)| *path).collect();
        assert_eq!(described, served);
    }
}
