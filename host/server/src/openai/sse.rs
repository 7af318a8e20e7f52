//! Server-sent events, as bytes.

use bytes::Bytes;
use serde_json::Value;

use crate::error::ApiError;

/// A comment: keeps proxies and clients from giving up on a quiet stream; no client sees an event.
pub(crate) const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");
/// The end of a stream that went well.
pub(crate) const DONE: Bytes = Bytes::from_static(b"data: [DONE]\n\n");

/// One `data:` event. JSON as written here has no line break, so one line is enough.
pub(crate) fn event(body: &Value) -> Bytes {
    Bytes::from(format!("data: {body}\n\n"))
}

/// A comment, of one line: no client sees an event.
pub(crate) fn comment(text: &str) -> Bytes {
    Bytes::from(format!(": {text}\n\n"))
}

/// The last event of a stream that failed after its 200 was sent. No `[DONE]` and no finish reason follow: what came
/// before is not a complete answer.
pub(crate) fn failure(error: &ApiError) -> Bytes {
    event(&error.body())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let bytes = event(&json!({"text": "a\r\nb\n\ndata: c\u{2028}"}));
        let text = std::str::from_utf8(&bytes).unwrap();
        assert!(text.starts_with("data: {") && text.ends_with("}\n\n"));
        assert_eq!(text.matches('\n').count(), 2);
        assert!(!text.contains('\r'));
    }

    #[test]
    fn a_late_error_is_an_error_object_without_done() {
        let bytes = failure(&ApiError::internal("policy_fault", "x"));
        assert!(bytes.starts_with(b"data: {\"error\":{"));
    }
}
