//! Reading a request's body: within its size, within its time, decoded.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use super::decode::{Codings, DecodeError};
use crate::error::ApiError;

/// A body may take this many idle times in all, so that one byte now and then does not hold a connection for ever.
const WHOLE_IN_IDLE_TIMES: u32 = 8;
/// How much of a body that is too large is read and dropped after the answer.
const MOST_DROPPED_BYTES: usize = 64 << 20;

/// How much a body may have and how long it may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    /// Bytes, on the wire and decoded alike.
    pub(crate) bytes: usize,
    /// Longest pause.
    pub(crate) idle: Duration,
}

/// The body, with its content codings undone.
///
/// # Errors
/// 413 too large, 408 too slow, 415 an unknown coding, 400 corrupt or cut off.
pub(crate) async fn read(headers: &HeaderMap, mut body: Body, limits: BodyLimits) -> Result<Bytes, ApiError> {
    // Both are refused before the first byte is asked for, so that `Expect: 100-continue` saves its sender the body.
    let codings = Codings::of(headers).map_err(|error| decode_error(error, limits))?;
    if announced(headers).is_some_and(|length| length > limits.bytes as u64) {
        if !headers.contains_key(header::EXPECT) {
            drop_rest(body, limits.idle);
        }
        return Err(too_large(limits.bytes));
    }
    let raw = match collect(&mut body, limits).await {
        Err(error) if error.status == StatusCode::PAYLOAD_TOO_LARGE => {
            drop_rest(body, limits.idle);
            return Err(error);
        }
        collected => collected?,
    };
    if codings.is_empty() {
        return Ok(raw);
    }
    let decoded = tokio::task::spawn_blocking(move || codings.decode(raw, limits.bytes)).await;
    let decoded =
        decoded.map_err(|_| ApiError::bad_request("invalid_body", "The body could not be decoded"))?;
    decoded.map_err(|error| decode_error(error, limits))
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Goes on reading beside the answer. A sender that writes all before it reads would otherwise see a broken connection,
/// and never the answer.
fn drop_rest(mut body: Body, idle: Duration) {
    tokio::spawn(async move {
        let end = Instant::now() + idle * WHOLE_IN_IDLE_TIMES;
        let mut dropped = 0;
        while let Ok(Some(Ok(frame))) = timeout_at(end.min(Instant::now() + idle), body.frame()).await {
            dropped += frame.data_ref().map_or(0, Bytes::len);
            if dropped > MOST_DROPPED_BYTES {
                return;
            }
        }
    });
}

async fn collect(body: &mut Body, limits: BodyLimits) -> Result<Bytes, ApiError> {
    let end = Instant::now() + limits.idle * WHOLE_IN_IDLE_TIMES;
    let mut collected = BytesMut::new();
    loop {
        let until = end.min(Instant::now() + limits.idle);
        let Ok(frame) = timeout_at(until, body.frame()).await else { return Err(too_slow()) };
        let Some(frame) = frame else { return Ok(collected.freeze()) };
        let frame = frame
            .map_err(|_| ApiError::bad_request("invalid_body", "The body was cut off or is malformed"))?;
        let Ok(data) = frame.into_data() else { continue };
        if collected.len() + data.len() > limits.bytes {
            return Err(too_large(limits.bytes));
        }
        collected.extend_from_slice(&data);
    }
}

fn decode_error(error: DecodeError, limits: BodyLimits) -> ApiError {
    let message = error.to_string();
    match error {
        DecodeError::TooLarge => too_large(limits.bytes),
        DecodeError::Unknown(_) | DecodeError::TooMany => ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "invalid_request_error",
            "unsupported_content_encoding",
            message,
        ),
        DecodeError::Corrupt(_) => ApiError::bad_request("invalid_body", message),
    }
}

fn too_large(most: usize) -> ApiError {
    let message = format!("The body is larger than the {most} bytes allowed here, decoded");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", "request_too_large", message)
}

fn too_slow() -> ApiError {
    let message = "The body did not arrive in time";
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", "request_timeout", message)
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    const LIMITS: BodyLimits = BodyLimits { bytes: 8, idle: Duration::from_secs(5) };

    async fn status(body: Body, headers: &[(&str, &str)]) -> Result<Bytes, u16> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(header::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        read(&map, body, LIMITS).await.map_err(|error| error.status.as_u16())
    }

    fn chunks(chunks: &'static [&'static str]) -> Body {
        Body::from_stream(stream::iter(chunks.iter().map(|chunk| Ok::<_, std::io::Error>(*chunk))))
    }

    #[tokio::test]
    async fn size_is_counted_on_bytes_read() {
        assert_eq!(status(chunks(&["12", "34", "5678"]), &[]).await, Ok(Bytes::from("12345678")));
        assert_eq!(status(chunks(&["1234", "5678", "9"]), &[]).await, Err(413));
        assert_eq!(status(Body::empty(), &[("content-length", "9")]).await, Err(413));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_is_given_up() {
        let stalled = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(status(stalled, &[]).await, Err(408));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_is_given_up() {
        let drip = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            Some((Ok::<_, std::io::Error>(Bytes::new()), ()))
        });
        assert_eq!(status(Body::from_stream(drip), &[]).await, Err(408));
    }

    #[tokio::test]
    async fn an_unknown_coding_is_named_before_the_body_is_read() {
        let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(status(never, &[("content-encoding", "lzma")]).await, Err(415));
    }
}
