//! Errors at the HTTP edge: one shape, one mapping to status, type, param and code.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An error as an API client sees it: `{"error": {"message", "type", "param", "code"}}` under a status.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status.
    pub status: StatusCode,
    /// The family: `invalid_request_error`, `authentication_error`, `rate_limit_error`, `policy_error`, `server_error`.
    pub kind: &'static str,
    /// A stable word for programs.
    pub code: &'static str,
    /// The request field at fault, as a path such as `messages[2].content`.
    pub param: Option<String>,
    /// A sentence for people.
    pub message: String,
    /// Seconds after which trying again makes sense.
    pub retry_after_s: Option<u32>,
}

impl ApiError {
    /// An error without field or retry hint.
    pub fn new(
        status: StatusCode,
        kind: &'static str,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        ApiError { status, kind, code, param: None, message: message.into(), retry_after_s: None }
    }

    /// 400 that names a field.
    pub fn invalid(param: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        ApiError::bad_request(code, message).with_param(param)
    }

    /// 400 about the request as a whole.
    pub fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_request_error", code, message)
    }

    /// A field that is known and not done here.
    pub fn unsupported(param: impl Into<String>) -> Self {
        let param = param.into();
        let message = format!("`{param}` is not supported here; leave it out");
        ApiError::invalid(param, "unsupported_parameter", message)
    }

    /// 404 for a model that is not served.
    pub fn unknown_model(wanted: &str, served: &str) -> Self {
        let message = format!("The model `{}` does not exist here; `{served}` does", shorten(wanted));
        ApiError::new(StatusCode::NOT_FOUND, "invalid_request_error", "model_not_found", message)
            .with_param("model")
    }

    /// 400 for a prompt and an answer that do not fit the context.
    pub fn context_overflow(
        prompt_tokens: usize,
        wanted: usize,
        context: usize,
        param: &'static str,
    ) -> Self {
        let message = format!(
            "This model's context is {context} tokens; you asked for {} ({prompt_tokens} in the prompt, {wanted} for \
             the answer). Shorten the prompt or the answer.",
            prompt_tokens.saturating_add(wanted)
        );
        ApiError::invalid(param, "context_length_exceeded", message)
    }

    /// 429: as much is running or waiting as may.
    pub fn overloaded(what: &str) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        ApiError::new(status, "rate_limit_error", "overloaded", format!("{what}; try again shortly"))
            .with_retry(1)
    }

    /// 503: the server is going away or cannot run anything.
    pub fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", code, message).with_retry(5)
    }

    /// 500 through no fault of the client's.
    pub fn internal(code: &'static str, message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", code, message)
    }

    /// The same error, naming a field.
    pub fn with_param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// The same error, with a hint when to come back.
    pub fn with_retry(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// The body, also used as the last event of a stream that fails late.
    pub fn body(&self) -> Value {
        json!({"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}})
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// At most 64 characters of something a client sent, for a message.
pub(crate) fn shorten(text: &str) -> String {
    const MOST: usize = 64;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_has_the_four_fields_even_when_empty() {
        let error = ApiError::bad_request("invalid_json", "no");
        let expected = json!({"error": {
            "message": "no", "type": "invalid_request_error", "param": null, "code": "invalid_json"
        }});
        assert_eq!(error.body(), expected);
    }

    #[test]
    fn an_overload_says_when_to_come_back() {
        let response = ApiError::overloaded("All places are taken").into_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "1");
    }

    #[test]
    fn what_a_client_sent_is_shortened_at_a_character() {
        assert_eq!(shorten("é"), "é");
        assert_eq!(shorten(&"é".repeat(65)), format!("{}…", "é".repeat(64)));
    }
}
