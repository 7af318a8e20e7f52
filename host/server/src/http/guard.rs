//! What every request passes before its handler: framing, origin, draining, counting.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::sniff::BothLengths;
use crate::app::App;
use crate::error::ApiError;

/// Refuses heads with two lengths, and pages of other sites that use an open API through a visitor's browser.
pub(crate) async fn framing(request: Request, next: Next) -> Response {
    let coded = request.headers().contains_key(header::TRANSFER_ENCODING);
    let both = request.extensions().get::<BothLengths>().is_some_and(BothLengths::seen);
    if coded && both {
        let message = "The request has both Content-Length and Transfer-Encoding; send one of them";
        let mut response = ApiError::bad_request("invalid_framing", message).into_response();
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    next.run(request).await
}

/// Without keys, the browser's word on where a request comes from is all there is to go by.
pub(crate) fn check_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    if origin.to_str().is_ok_and(is_local) {
        return Ok(());
    }
    let message = "Pages of other sites may not use this API while it has no keys";
    Err(ApiError::new(StatusCode::FORBIDDEN, "authentication_error", "forbidden_origin", message))
}

fn is_local(origin: &str) -> bool {
    let Ok(uri) = origin.parse::<Uri>() else { return false };
    matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// While the server drains, what is new is sent elsewhere.
pub(crate) async fn draining(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if !app.is_draining() {
        return next.run(request).await;
    }
    let mut response = ApiError::unavailable("draining", "The server is shutting down").into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Counts and times every answer, by the route's pattern so that the number of labels is bounded.
pub(crate) async fn counting(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let started = Instant::now();
    let response = next.run(request).await;
    app.metrics.answered(&route, response.status().as_u16(), started.elapsed());
    response
}

/// 404 in the API's shape.
pub(crate) async fn not_found(method: Method, uri: Uri) -> ApiError {
    let path = crate::error::shorten(uri.path());
    let message = format!("There is nothing at {method} {path}");
    ApiError::new(StatusCode::NOT_FOUND, "invalid_request_error", "unknown_url", message)
}

/// 405 in the API's shape.
pub(crate) async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let path = crate::error::shorten(uri.path());
    let message = format!("{method} is not allowed at {path}");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", "method_not_allowed", message)
}

/// A body that is said to be something else than JSON is not guessed at; one that is not said to be anything is read.
pub(crate) fn check_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let kind =
        value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json")) {
        return Ok(());
    }
    let message = format!(
        "The content type `{}` is not supported; send application/json",
        crate::error::shorten(&kind)
    );
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Err(ApiError::new(status, "invalid_request_error", "unsupported_content_type", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn only_local_pages_may_use_an_open_api() {
        for origin in ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:8080"] {
            assert!(check_origin(&with(header::ORIGIN, origin)).is_ok(), "{origin}");
        }
        for origin in ["http://evil.example", "null", "http://localhost.evil.example", ""] {
            assert!(check_origin(&with(header::ORIGIN, origin)).is_err(), "{origin}");
        }
        assert!(check_origin(&HeaderMap::new()).is_ok());
    }

    #[test]
    fn json_by_any_of_its_names() {
        for kind in ["application/json", "Application/JSON; charset=utf-8", "application/problem+json"] {
            assert!(check_json(&with(header::CONTENT_TYPE, kind)).is_ok(), "{kind}");
        }
        for kind in ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"] {
            assert_eq!(check_json(&with(header::CONTENT_TYPE, kind)).unwrap_err().status, 415, "{kind}");
        }
    }
}
