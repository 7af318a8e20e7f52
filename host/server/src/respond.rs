//! An answer on its way to the client: as one body or as a stream.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use serde_json::Value;
use tokio::time::timeout;

use crate::error::ApiError;
use crate::openai::response::{Choice, Head, Usage};
use crate::openai::sse;
use crate::turn::{Event, Trace};

/// The whole answer in one body. A turn that fails half way is an error, not half an answer.
pub(crate) async fn whole(
    head: &Head,
    choices: u32,
    events: impl Stream<Item = Event>,
) -> Result<Response, ApiError> {
    let mut events = pin!(events);
    let mut all: Vec<Choice> = (0..choices).map(|_| Choice::default()).collect();
    while let Some(event) = events.next().await {
        match event {
            Event::Text { choice, text, tokens } => {
                if let Some(choice) = all.get_mut(choice as usize) {
                    choice.text.push_str(&text);
                    choice.tokens.extend(tokens);
                }
            }
            Event::Finished { choice, reason } => {
                if let Some(choice) = all.get_mut(choice as usize) {
                    choice.reason = Some(reason);
                }
            }
            Event::Done(usage) => return Ok(Json(head.whole(&all, usage)).into_response()),
            Event::Failed(error) => return Err(error),
        }
    }
    Err(ApiError::internal("internal_error", "The answer ended without an end"))
}

/// The answer as server-sent events. Dropping the response's body drops `events`.
pub(crate) fn streamed(
    head: Head,
    choices: u32,
    options: Options,
    events: impl Stream<Item = Event> + Send + 'static,
) -> Response {
    let Options { include_usage, keep_alive, trace } = options;
    let opening = (0..choices).filter_map(|index| head.opening(index, include_usage));
    let waiting = opening.map(|chunk| sse::event(&chunk)).collect();
    let events = Box::pin(events);
    let writer = Writer { head, include_usage, keep_alive, trace, events, waiting, ended: false };
    let frames = stream::unfold(writer, |mut writer| async move {
        writer.next().await.map(|bytes| (Ok::<_, std::convert::Infallible>(bytes), writer))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// How a stream is written.
#[derive(Debug)]
pub(crate) struct Options {
    /// End with a chunk of usage.
    pub(crate) include_usage: bool,
    /// A pause of this length gets a comment.
    pub(crate) keep_alive: Duration,
    /// Tell it at the end, when it is complete: headers have left long before.
    pub(crate) trace: Option<Trace>,
}

struct Writer {
    head: Head,
    include_usage: bool,
    keep_alive: Duration,
    trace: Option<Trace>,
    /// As a stream, it keeps the step that is under way when waiting for it is given up.
    events: Pin<Box<dyn Stream<Item = Event> + Send>>,
    waiting: VecDeque<Bytes>,
    ended: bool,
}

impl Writer {
    /// The next bytes: an event, or a comment when there was none for a while.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.waiting.pop_front() {
                return Some(bytes);
            }
            if self.ended {
                return None;
            }
            match timeout(self.keep_alive, self.events.next()).await {
                Ok(Some(event)) => self.write(event),
                Ok(None) => self.ended = true,
                Err(_) => return Some(sse::KEEP_ALIVE),
            }
        }
    }

    fn write(&mut self, event: Event) {
        let with_usage = self.include_usage;
        match event {
            Event::Text { choice, text, tokens } => {
                self.push(&self.head.delta(choice, &text, &tokens, with_usage));
            }
            Event::Finished { choice, reason } => self.push(&self.head.finish(choice, reason, with_usage)),
            Event::Done(usage) => self.finish(usage),
            Event::Failed(error) => {
                self.waiting.push_back(sse::failure(&error));
                self.ended = true;
            }
        }
    }

    fn finish(&mut self, usage: Usage) {
        if self.include_usage {
            self.push(&self.head.usage(usage));
        }
        let trace = self.trace.take().map(|trace| sse::comment(&format!("trace {}", trace.text())));
        self.waiting.extend(trace);
        self.waiting.push_back(sse::DONE);
        self.ended = true;
    }

    fn push(&mut self, chunk: &Value) {
        self.waiting.push_back(sse::event(chunk));
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use http_body_util::BodyExt;

    use super::*;
    use crate::openai::response::{Dialect, Reason};

    fn head() -> Head {
        Head {
            dialect: Dialect::Chat,
            id: "chatcmpl-1".into(),
            created_unix_s: 7,
            model: "m".into(),
            fingerprint: "fp".into(),
            logprobs: None,
        }
    }

    fn text(choice: u32, text: &str) -> Event {
        Event::Text { choice, text: text.into(), tokens: Vec::new() }
    }

    fn good() -> Vec<Event> {
        vec![
            text(0, "Hel"),
            text(1, "A"),
            text(0, "lo"),
            Event::Finished { choice: 1, reason: Reason::Length },
            Event::Finished { choice: 0, reason: Reason::Stop },
            Event::Done(Usage { prompt_tokens: 3, completion_tokens: 4, cached_tokens: 0 }),
        ]
    }

    async fn body(response: Response) -> String {
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    async fn frames(include_usage: bool, events: impl Stream<Item = Event> + Send + 'static) -> Vec<String> {
        let options = Options { include_usage, keep_alive: Duration::from_secs(10), trace: None };
        let text = body(streamed(head(), 2, options, events)).await;
        assert!(text.ends_with("\n\n"));
        text.trim_end().split("\n\n").map(str::to_owned).collect()
    }

    fn chunk(frame: &str) -> Value {
        serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_stream_says_the_same_as_a_whole_body() {
        let frames = frames(true, stream::iter(good())).await;
        assert_eq!(frames.last().unwrap(), "data: [DONE]");
        let chunks: Vec<Value> = frames[..frames.len() - 1].iter().map(|frame| chunk(frame)).collect();
        let whole = body(whole(&head(), 2, stream::iter(good())).await.unwrap()).await;
        let whole: Value = serde_json::from_str(&whole).unwrap();
        for index in 0..2 {
            let of_choice =
                chunks.iter().flat_map(|c| c["choices"].as_array().unwrap()).filter(|c| c["index"] == index);
            let text: String = of_choice.clone().filter_map(|c| c["delta"]["content"].as_str()).collect();
            assert_eq!(whole["choices"][index]["message"]["content"], text);
            let reasons: Vec<_> =
                of_choice.map(|c| &c["finish_reason"]).filter(|reason| !reason.is_null()).collect();
            assert_eq!(reasons, [&whole["choices"][index]["finish_reason"]]);
        }
        assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(chunks.last().unwrap()["usage"], whole["usage"]);
    }

    #[tokio::test]
    async fn a_trace_that_was_asked_for_is_the_last_thing_before_the_end() {
        let mut trace = Trace::default();
        trace.note("p@1", "router", "x\ny 城", 1);
        let options =
            Options { include_usage: true, keep_alive: Duration::from_secs(10), trace: Some(trace) };
        let text = body(streamed(head(), 2, options, stream::iter(good()))).await;
        let frames: Vec<&str> = text.trim_end().split("\n\n").collect();
        let [.., usage, trace, "data: [DONE]"] = frames.as_slice() else { panic!("{text}") };
        assert!(chunk(usage)["usage"].is_object());
        let trace: Value = serde_json::from_str(trace.strip_prefix(": trace ").unwrap()).unwrap();
        assert_eq!(trace["policies"][0]["did"], "x\ny 城");
    }

    #[tokio::test]
    async fn without_usage_there_is_no_usage_anywhere() {
        let frames = frames(false, stream::iter(good())).await;
        assert!(frames.iter().all(|frame| !frame.contains("\"usage\"")));
    }

    #[tokio::test]
    async fn a_late_failure_is_the_last_thing_and_no_success() {
        let failing = || vec![text(0, "Hel"), Event::Failed(ApiError::internal("policy_fault", "x"))];
        let frames = frames(true, stream::iter(failing())).await;
        assert_eq!(chunk(frames.last().unwrap())["error"]["code"], "policy_fault");
        let all = frames.concat();
        assert!(!all.contains("[DONE]") && !all.contains("\"finish_reason\":\"stop\""));
        let error = whole(&head(), 2, stream::iter(failing())).await.unwrap_err();
        assert_eq!(error.status, StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_gets_comments_and_loses_nothing() {
        let slow = stream::iter(good()).then(|event| async {
            tokio::time::sleep(Duration::from_secs(25)).await;
            event
        });
        let frames = frames(false, slow).await;
        let comments = frames.iter().filter(|frame| *frame == ": keep-alive").count();
        assert_eq!(comments, 2 * good().len());
        assert_eq!(frames.len() - comments, 2 + 5 + 1, "two openings, five chunks, the end");
    }
}
