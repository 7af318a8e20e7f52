//! The API's routes and handlers.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::app::{App, unix_ms, unix_time};
use crate::error::ApiError;
use crate::http::auth::Tenant;
use crate::http::{body, guard};
use crate::openai::request::{self, TokenizeInput};
use crate::openai::response::{Dialect, Head};
use crate::respond::{self, Options};
use crate::session;
use crate::turn::ask::{Ask, Caller};
use crate::turn::{self, SESSION_HEADER, TRACE_HEADER, Trace, prompt};

/// Everything that is served on the API's address.
pub(crate) fn router(app: Arc<App>) -> Router {
    let work = Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completion))
        .route("/tokenize", post(tokenize))
        .route("/detokenize", post(detokenize))
        .layer(from_fn_with_state(Arc::clone(&app), guard::draining));
    let router = work
        .route("/v1/models", get(models))
        .route("/v1/models/{*id}", get(model))
        .merge(session::api::routes())
        .merge(health());
    finish(router, app)
}

/// Liveness, readiness and metrics, on both addresses and without a key.
pub(crate) fn health() -> Router<Arc<App>> {
    Router::new()
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .route("/metrics", get(metrics))
}

/// What every router ends with.
pub(crate) fn finish(router: Router<Arc<App>>, app: Arc<App>) -> Router {
    router
        .fallback(guard::not_found)
        .method_not_allowed_fallback(guard::wrong_method)
        .layer(tower_http::catch_panic::CatchPanicLayer::custom(panicked))
        .layer(from_fn(guard::framing))
        .layer(from_fn_with_state(Arc::clone(&app), guard::counting))
        .with_state(app)
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    ApiError::internal("internal_error", "The server failed on this request").into_response()
}

async fn chat(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(app, request, |body, app| request::chat(body, app.bounds()).map(Ask::from)).await
}

async fn completion(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(app, request, |body, app| request::completion(body, app.bounds()).map(Ask::from)).await
}

type Decode = fn(&[u8], &App) -> Result<Ask, ApiError>;

/// Decodes, runs the turn, and adds the headers that belong to every answer, errors included.
async fn answer(app: Arc<App>, request: Request, decode: Decode) -> Response {
    let id = app.new_id("");
    let mut trace = Trace::default();
    let wants_trace = Trace::is_wanted(request.headers());
    let mut response =
        run(&app, request, decode, &id, &mut trace).await.unwrap_or_else(IntoResponse::into_response);
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&format!("req-{id}")) {
        headers.insert("x-request-id", value);
    }
    if let Some(value) = trace.session.as_deref().and_then(|note| HeaderValue::from_str(note).ok()) {
        headers.insert(SESSION_HEADER, value);
    }
    if let Some(value) = trace.header().filter(|_| wants_trace) {
        headers.insert(TRACE_HEADER, value);
    }
    response
}

async fn run(
    app: &Arc<App>,
    request: Request,
    decode: Decode,
    id: &str,
    trace: &mut Trace,
) -> Result<Response, ApiError> {
    let (headers, Tenant(tenant), body) = read(app, request).await?;
    let ask = decode(&body, app)?;
    drop(body);
    let head = head(app, &ask, id);
    let (stream, include_usage, choices) = (ask.common.stream, ask.common.include_usage, ask.common.n);
    let wants_trace = Trace::is_wanted(&headers);
    let caller = Caller { tenant, id: format!("turn-{id}"), headers, unix_ms: unix_ms() };
    let events = turn::begin(app, caller, ask, trace).await?.into_events();
    if stream {
        let trace = wants_trace.then(|| trace.clone());
        let options = Options { include_usage, keep_alive: app.config.keep_alive(), trace };
        Ok(respond::streamed(head, choices, options, events))
    } else {
        respond::whole(&head, choices, events).await
    }
}

/// Whose request it is, and its body: JSON, whole.
pub(crate) async fn read(app: &App, request: Request) -> Result<(HeaderMap, Tenant, Bytes), ApiError> {
    let (parts, body) = request.into_parts();
    let tenant = app.tenant(&parts.headers)?;
    guard::check_json(&parts.headers)?;
    let body = body::read(&parts.headers, body, app.body_limits()).await?;
    Ok((parts.headers, tenant, body))
}

fn head(app: &App, ask: &Ask, id: &str) -> Head {
    let dialect = ask.dialect();
    let prefix = match dialect {
        Dialect::Chat => "chatcmpl-",
        Dialect::Completion => "cmpl-",
    };
    Head {
        dialect,
        id: format!("{prefix}{id}"),
        created_unix_s: unix_time().as_secs(),
        model: app.model_id.clone(),
        fingerprint: fingerprint(app),
        logprobs: ask.logprobs,
    }
}

/// The same for the same weights, tokenizer and template.
fn fingerprint(app: &App) -> String {
    let short = app.engine.model().fingerprint;
    format!("fp_{}", short.iter().take(6).map(|byte| format!("{byte:02x}")).collect::<String>())
}

async fn models(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Json<Value>, ApiError> {
    app.tenant(&headers)?;
    Ok(Json(json!({"object": "list", "data": [model_body(&app)]})))
}

async fn model(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    app.tenant(&headers)?;
    app.check_model(&id)?;
    Ok(Json(model_body(&app)))
}

fn model_body(app: &App) -> Value {
    json!({
        "id": app.model_id,
        "object": "model",
        "created": app.started_unix_s,
        "owned_by": "jackfield",
        "max_model_len": app.engine.model().context,
    })
}

async fn tokenize(State(app): State<Arc<App>>, request: Request) -> Result<Json<Value>, ApiError> {
    let (_, _, body) = read(&app, request).await?;
    let request = request::tokenize(&body)?;
    blocking(move || {
        let tokenizer = app.engine.tokenizer();
        let tokens = match &request.input {
            TokenizeInput::Text(text) if request.add_special_tokens => {
                tokenizer.encode_completion(text).map_err(prompt::tokenize_error)?
            }
            TokenizeInput::Text(text) => tokenizer.encode(text).map_err(prompt::tokenize_error)?,
            TokenizeInput::Messages(messages) => prompt::of_chat(&app.engine, messages, now())?,
        };
        let mut answer =
            json!({"count": tokens.len(), "max_model_len": app.engine.model().context, "tokens": tokens});
        if request.with_strings {
            let texts = tokens.iter().map(|id| tokenizer.token_text(*id)).collect::<Vec<_>>();
            answer["token_strs"] = json!(texts);
        }
        Ok(Json(answer))
    })
    .await
}

fn now() -> jackfield_model::Now {
    jackfield_model::Now { unix_s: i64::try_from(unix_time().as_secs()).unwrap_or(i64::MAX), utc_offset_s: 0 }
}

async fn detokenize(State(app): State<Arc<App>>, request: Request) -> Result<Json<Value>, ApiError> {
    let (_, _, body) = read(&app, request).await?;
    let tokens = request::detokenize(&body, app.bounds())?;
    blocking(move || Ok(Json(json!({"prompt": app.engine.tokenizer().decode(&tokens)})))).await
}

/// Tokenising a body of megabytes would keep an async thread from its streams.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let lost = |_| ApiError::internal("internal_error", "The server failed on this request");
    tokio::task::spawn_blocking(work).await.map_err(lost)?
}

async fn live() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

async fn ready(State(app): State<Arc<App>>) -> Response {
    let word = app.readiness();
    let status = if word == "ok" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({"status": word}))).into_response()
}

async fn metrics(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let text =
        app.metrics.render().map_err(|error| ApiError::internal("internal_error", error.to_string()))?;
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
