//! A turn as the rest of the server sees it: plain data, decoded and checked.

use std::sync::Arc;

use axum::http::HeaderMap;
use jackfield_policy as policy;

use crate::config::MOST_OFFSET_MINUTES;
use crate::openai::request::{ChatRequest, CompletionRequest, Prompt};
use crate::openai::response::Dialect;
use crate::openai::{Common, Message, Role};

/// Tokens of a raw completion where the request does not say, and the context has room for them.
const COMPLETION_TOKENS: usize = 16;
/// Request headers that no policy is shown.
const SECRET_HEADERS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// What the client wants.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) common: Common,
    pub(crate) input: Input,
    /// The client's limit on tokens of an answer.
    pub(crate) max_tokens: Option<usize>,
    /// The limit where the client has none: a wish, never a reason to refuse. None leaves it to the context.
    pub(crate) usual_tokens: Option<usize>,
    /// The field the limit came from, for errors.
    pub(crate) max_tokens_field: &'static str,
    pub(crate) logprobs: Option<u8>,
}

#[derive(Debug)]
pub(crate) enum Input {
    Chat(Vec<Message>),
    Raw(Prompt),
}

/// Who wants it, and from where.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) tenant: Arc<str>,
    /// Unique to the turn.
    pub(crate) id: String,
    pub(crate) headers: HeaderMap,
    /// When the request came.
    pub(crate) unix_ms: i64,
}

impl From<ChatRequest> for Ask {
    fn from(request: ChatRequest) -> Self {
        Ask {
            common: request.common,
            input: Input::Chat(request.messages),
            max_tokens: request.max_tokens,
            usual_tokens: None,
            max_tokens_field: request.max_tokens_field,
            logprobs: request.logprobs,
        }
    }
}

impl From<CompletionRequest> for Ask {
    fn from(request: CompletionRequest) -> Self {
        Ask {
            common: request.common,
            input: Input::Raw(request.prompt),
            max_tokens: request.max_tokens,
            usual_tokens: Some(COMPLETION_TOKENS),
            max_tokens_field: "max_tokens",
            logprobs: request.logprobs,
        }
    }
}

impl Ask {
    /// The field that the prompt came from, for errors.
    pub(crate) fn prompt_field(&self) -> &'static str {
        match self.input {
            Input::Chat(_) => "messages",
            Input::Raw(_) => "prompt",
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self.input {
            Input::Chat(_) => Dialect::Chat,
            Input::Raw(_) => Dialect::Completion,
        }
    }

    /// The facts of the turn that policies are given. `metadata` may name `task`, `locale` and `utc_offset_minutes`.
    pub(crate) fn turn(&self, caller: &Caller, locale: &str, utc_offset_minutes: i16) -> policy::Turn {
        let named = |name: &str| self.common.metadata.get(name).cloned();
        let offset = named("utc_offset_minutes").and_then(|text| text.parse().ok());
        let language = named("locale").or_else(|| language(&caller.headers));
        policy::Turn {
            id: caller.id.clone(),
            tenant: caller.tenant.to_string(),
            session: self.common.session.clone(),
            task: named("task"),
            locale: language.unwrap_or_else(|| locale.to_owned()),
            now: policy::Instant {
                unix_ms: caller.unix_ms,
                utc_offset_minutes: offset
                    .filter(|minutes| (-MOST_OFFSET_MINUTES..=MOST_OFFSET_MINUTES).contains(minutes))
                    .unwrap_or(utc_offset_minutes),
            },
            seed: seed(&caller.id),
            headers: headers(&caller.headers),
            attributes: Vec::new(),
        }
    }
}

/// The same for the same turn, always.
fn seed(id: &str) -> u32 {
    let hash = blake3::hash(id.as_bytes());
    let bytes = hash.as_bytes();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// The first language of `Accept-Language`.
fn language(headers: &HeaderMap) -> Option<String> {
    let value = headers.get("accept-language")?.to_str().ok()?;
    let first = value.split([',', ';']).next()?.trim();
    let plain = !first.is_empty()
        && first.len() <= 35
        && first.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    plain.then(|| first.to_owned())
}

fn headers(headers: &HeaderMap) -> Vec<policy::Field> {
    let shown = headers.iter().filter(|(name, _)| !SECRET_HEADERS.contains(&name.as_str()));
    let field = |name: &str, value: &str| policy::Field { name: name.to_owned(), value: value.to_owned() };
    shown.filter_map(|(name, value)| Some(field(name.as_str(), value.to_str().ok()?))).collect()
}

/// A message as policies see it.
pub(crate) fn for_policy(message: &Message) -> policy::Message {
    let role = match message.role {
        Role::System => policy::Role::System,
        Role::User => policy::Role::User,
        Role::Assistant => policy::Role::Assistant,
        Role::Tool => policy::Role::Tool,
    };
    policy::Message::new(role, message.text())
}

/// A message that a policy wrote.
pub(crate) fn from_policy(message: &policy::Message) -> Message {
    let role = match message.role {
        policy::Role::System => Role::System,
        policy::Role::User => Role::User,
        policy::Role::Assistant => Role::Assistant,
        policy::Role::Tool => Role::Tool,
    };
    Message::plain(role, message.text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::{Bounds, request};

    fn turn(body: &str, extra: &[(&'static str, &str)]) -> policy::Turn {
        let ask = Ask::from(request::chat(body.as_bytes(), Bounds { vocab: 10 }).unwrap());
        let mut headers = HeaderMap::new();
        for (name, value) in extra {
            headers.append(*name, value.parse().unwrap());
        }
        let caller = Caller { tenant: "t".into(), id: "turn-1".into(), headers, unix_ms: 5 };
        ask.turn(&caller, "en", 60)
    }

    const PLAIN: &str = r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;

    #[test]
    fn facts_come_from_metadata_then_headers_then_config() {
        let plain = turn(PLAIN, &[]);
        assert_eq!((plain.locale.as_str(), plain.now.utc_offset_minutes, plain.task), ("en", 60, None));
        assert_eq!(turn(PLAIN, &[("accept-language", "zh-CN,zh;q=0.9")]).locale, "zh-CN");
        let body = r#"{"model":"m","messages":[{"role":"user","content":"x"}],
            "metadata":{"task":"faq","locale":"ja","utc_offset_minutes":"480"}}"#;
        let told = turn(body, &[("accept-language", "zh-CN")]);
        assert_eq!((told.locale.as_str(), told.now.utc_offset_minutes), ("ja", 480));
        assert_eq!(told.task.as_deref(), Some("faq"));
    }

    #[test]
    fn no_policy_sees_a_key() {
        let turn =
            turn(PLAIN, &[("authorization", "Bearer secret"), ("x-team", "blue"), ("cookie", "secret")]);
        let names: Vec<_> = turn.headers.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["x-team"]);
    }
}
