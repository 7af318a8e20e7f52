//! `/v1/sessions`: made, shown, branched off, forgotten.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use jackfield_dialog::{Found, PastTurn, Session, SessionKey, StoreError, Version};
use serde_json::{Value, json};

use super::open::{expired, store_error};
use super::request::{Branch, Create, List};
use super::view;
use crate::app::{App, unix_ms};
use crate::error::ApiError;
use crate::http::auth::Tenant;

/// The routes of sessions.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/sessions", get(list).post(create))
        .route("/v1/sessions/{id}", get(show).delete(delete))
        .route("/v1/sessions/{id}/slots", get(slots))
        .route("/v1/sessions/{id}/branch", post(branch))
}

async fn create(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let (_, Tenant(tenant), body) = crate::api::read(&app, request).await?;
    let Create { id, sent } = Create::read(&body)?;
    let key = new_key(&app, &tenant, id)?;
    let now = unix_ms();
    let mut session = Session::new(sent.instructions.unwrap_or_default(), now);
    if !sent.messages.is_empty() {
        let generation = app.registry.current().generation();
        session.push(PastTurn { messages: sent.messages, generation, unix_ms: now, ..PastTurn::default() });
    }
    keep(&app, &key, session).await
}

async fn branch(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let (_, Tenant(tenant), body) = crate::api::read(&app, request).await?;
    let Branch { id: new, turn } = Branch::read(&body)?;
    let (_, session, _) = load(&app, &tenant, &id).await?;
    let turns = session.dialog.turns;
    let turn = turn.unwrap_or(turns);
    let branch = session.branch(&id, turn, unix_ms()).ok_or_else(|| {
        let message = format!("`turn` is {turn}; the session has {turns} turns");
        ApiError::invalid("turn", "invalid_value", message)
    })?;
    keep(&app, &new_key(&app, &tenant, new)?, branch).await
}

async fn show(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    let Tenant(tenant) = app.tenant(&headers)?;
    let (key, session, version) = load(&app, &tenant, &id).await?;
    Ok(Json(shown(&app, &key, &session, version)))
}

async fn slots(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    let Tenant(tenant) = app.tenant(&headers)?;
    let (_, session, version) = load(&app, &tenant, &id).await?;
    Ok(Json(json!({
        "object": "list",
        "session": id,
        "state": session.dialog.state,
        "schema": session.dialog.schema,
        "version": version.0,
        "data": view::slots(&session),
    })))
}

/// Waits for a turn that runs: it is answered, and then nothing is left.
async fn delete(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    let Tenant(tenant) = app.tenant(&headers)?;
    let key = app.sessions.key(&tenant, &id)?;
    let _place = app.sessions.place(&key).await?;
    match app.sessions.store.delete(&key).await.map_err(store_error)? {
        true => Ok(Json(json!({"id": id, "object": "session.deleted", "deleted": true}))),
        false => Err(unknown(&id)),
    }
}

async fn list(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap) -> Result<Json<Value>, ApiError> {
    let Tenant(tenant) = app.tenant(&headers)?;
    let List { after, limit } = List::read(&uri)?;
    let one_more = app.sessions.store.list(&tenant, after.as_deref(), limit + 1).await;
    let mut lines = one_more.map_err(store_error)?;
    let has_more = lines.len() > limit;
    lines.truncate(limit);
    Ok(Json(json!({
        "object": "list",
        "data": lines.iter().map(view::listed).collect::<Vec<_>>(),
        "has_more": has_more,
        "last_id": lines.last().map(|line| &line.id),
    })))
}

/// The key of a session to be made: the client's id, or one that nobody can guess.
fn new_key(app: &App, tenant: &str, id: Option<String>) -> Result<SessionKey, ApiError> {
    let id = match id {
        Some(id) => id,
        None => random_id().map_err(|error| ApiError::internal("internal_error", error.to_string()))?,
    };
    let key = app.sessions.key(tenant, &id);
    key.map_err(|error| error.with_param("id"))
}

fn random_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().fold(String::from("sess_"), |id, byte| format!("{id}{byte:02x}")))
}

/// Commits a session that is not there yet.
async fn keep(app: &App, key: &SessionKey, session: Session) -> Result<Response, ApiError> {
    let committed = app.sessions.store.commit(key, Version::NEW, session.clone()).await;
    let version = committed.map_err(|error| match error {
        StoreError::Conflict { .. } => {
            let message = format!("There is a session `{}` already; delete it, or use another id", key.id());
            ApiError::new(StatusCode::CONFLICT, "invalid_request_error", "session_exists", message)
                .with_param("id")
        }
        other => store_error(other),
    })?;
    Ok((StatusCode::CREATED, Json(shown(app, key, &session, version))).into_response())
}

fn shown(app: &App, key: &SessionKey, session: &Session, version: Version) -> Value {
    view::session(key, session, version, app.sessions.store.ttl().as_secs())
}

async fn load(app: &App, tenant: &str, id: &str) -> Result<(SessionKey, Session, Version), ApiError> {
    let key = app.sessions.key(tenant, id)?;
    match app.sessions.store.load(&key).await.map_err(store_error)? {
        Found::Held(session, version) => Ok((key, session, version)),
        Found::Expired => Err(expired(id)),
        Found::New => Err(unknown(id)),
    }
}

fn unknown(id: &str) -> ApiError {
    let message = format!("There is no session `{id}`");
    ApiError::new(StatusCode::NOT_FOUND, "invalid_request_error", "session_not_found", message)
        .with_param("session")
}
