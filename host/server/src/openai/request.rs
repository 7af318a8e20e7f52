//! From the bytes of a request to a validated, plain job description.
//!
//! Nothing here reads a clock, touches the network or knows the engine: the same bytes always give the same answer.

use serde_json::Value;

use super::fields::{Fields, Range, array, invalid, text};
use super::messages::{Message, messages};
use super::sampling::{Bounds, Common, MOST_ALTERNATIVES, Recall, common, token_ids};
use super::{json, unsupported};
use crate::error::ApiError;

/// No context is larger, so a larger wish is a mistake.
const MOST_TOKENS: i64 = i32::MAX as i64;

/// A validated request for `/v1/chat/completions`.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// What both endpoints share.
    pub common: Common,
    /// At least one.
    pub messages: Vec<Message>,
    /// Tokens an answer may have; none leaves it to the context.
    pub max_tokens: Option<usize>,
    /// The field that `max_tokens` came from, for errors found later.
    pub max_tokens_field: &'static str,
    /// Report log-probabilities, with this many alternatives per token.
    pub logprobs: Option<u8>,
}

/// A validated request for `/v1/completions`.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionRequest {
    /// What both endpoints share.
    pub common: Common,
    /// One prompt.
    pub prompt: Prompt,
    /// Tokens an answer may have; none leaves it to the endpoint's usual few.
    pub max_tokens: Option<usize>,
    /// Report log-probabilities, with this many alternatives per token.
    pub logprobs: Option<u8>,
}

/// What a raw completion goes on from.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompt {
    /// Text; control tokens in it are text. The model's beginning-of-text token is put before it where the file asks.
    Text(String),
    /// Token ids, used exactly as given.
    Tokens(Vec<u32>),
}

/// A validated request for `/tokenize`.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenizeRequest {
    /// What to turn into tokens.
    pub input: TokenizeInput,
    /// Whether a text gets the beginning-of-text token that the file asks for.
    pub add_special_tokens: bool,
    /// Whether the answer has the tokens' texts, too.
    pub with_strings: bool,
}

/// What `/tokenize` is given.
#[derive(Debug, Clone, PartialEq)]
pub enum TokenizeInput {
    /// Plain text.
    Text(String),
    /// A conversation, rendered by the model's template.
    Messages(Vec<Message>),
}

/// Reads the body of a chat request.
///
/// # Errors
/// 400 that names the field.
pub fn chat(body: &[u8], bounds: Bounds) -> Result<ChatRequest, ApiError> {
    let map = json::object(body)?;
    let fields = Fields::root(&map);
    unsupported::check_chat(&fields)?;
    check_best_of(&fields)?;
    let common = common(&fields, bounds)?;
    if common.session.is_some() && common.n > 1 {
        return Err(invalid(
            "n",
            "must be 1 with `session`: a dialog goes on in one way; branch it for others",
        ));
    }
    if common.session.is_none() && matches!(common.recall, Some(Recall::Said | Recall::About(_))) {
        return Err(invalid("recall", "needs `session`: without one nothing was said before"));
    }
    let messages = messages(&fields)?;
    let newer = max_tokens(&fields, "max_completion_tokens")?;
    let older = max_tokens(&fields, "max_tokens")?;
    Ok(ChatRequest {
        common,
        messages,
        max_tokens: newer.or(older),
        max_tokens_field: if newer.is_some() { "max_completion_tokens" } else { "max_tokens" },
        logprobs: chat_logprobs(&fields)?,
    })
}

/// Reads the body of a raw completion.
///
/// # Errors
/// 400 that names the field.
pub fn completion(body: &[u8], bounds: Bounds) -> Result<CompletionRequest, ApiError> {
    let map = json::object(body)?;
    let fields = Fields::root(&map);
    unsupported::check_completion(&fields)?;
    check_best_of(&fields)?;
    Ok(CompletionRequest {
        common: common(&fields, bounds)?,
        prompt: prompt(fields.required("prompt")?, bounds)?,
        max_tokens: max_tokens(&fields, "max_tokens")?,
        logprobs: fields.integer("logprobs", 0..=i64::from(MOST_ALTERNATIVES))?.map(|most| most as u8),
    })
}

/// Reads the body of `/tokenize`: `{"prompt": "…"}` (or `content`), or `{"messages": […]}`.
///
/// # Errors
/// 400 that names the field.
pub fn tokenize(body: &[u8]) -> Result<TokenizeRequest, ApiError> {
    let map = json::object(body)?;
    let fields = Fields::root(&map);
    let prompt = fields.text("prompt")?.or(fields.text("content")?);
    let input = match (prompt, fields.get("messages")) {
        (Some(_), Some(_)) => return Err(invalid("messages", "cannot go with `prompt`; send one of them")),
        (Some(text), None) => TokenizeInput::Text(text.to_owned()),
        (None, Some(_)) => TokenizeInput::Messages(messages(&fields)?),
        (None, None) => {
            return Err(ApiError::invalid(
                "prompt",
                "missing_required_parameter",
                "`prompt` or `messages` is required",
            ));
        }
    };
    Ok(TokenizeRequest {
        input,
        add_special_tokens: fields.flag("add_special_tokens")?.unwrap_or(true),
        with_strings: fields.flag("return_token_strs")?.unwrap_or(false),
    })
}

/// Reads the body of `/detokenize`: `{"tokens": [ids]}`.
///
/// # Errors
/// 400 that names the field.
pub fn detokenize(body: &[u8], bounds: Bounds) -> Result<Vec<u32>, ApiError> {
    let map = json::object(body)?;
    let fields = Fields::root(&map);
    token_ids(array(fields.required("tokens")?, "tokens")?, "tokens", bounds)
}

fn max_tokens(fields: &Fields<'_>, name: &str) -> Result<Option<usize>, ApiError> {
    Ok(fields.integer(name, 1..=MOST_TOKENS)?.and_then(|most| usize::try_from(most).ok()))
}

fn chat_logprobs(fields: &Fields<'_>) -> Result<Option<u8>, ApiError> {
    let wanted = fields.flag("logprobs")?.unwrap_or(false);
    let top = fields.integer("top_logprobs", 0..=i64::from(MOST_ALTERNATIVES))?.map(|most| most as u8);
    match (wanted, top) {
        (false, Some(1..)) => Err(invalid("top_logprobs", "needs `logprobs: true`")),
        (false, _) => Ok(None),
        (true, top) => Ok(Some(top.unwrap_or(0))),
    }
}

/// `best_of` equal to `n` asks for nothing more than `n` does.
fn check_best_of(fields: &Fields<'_>) -> Result<(), ApiError> {
    let best_of = fields.number("best_of", &Range::closed(0.0, f64::from(u32::MAX)))?;
    let n = fields.number("n", &Range::closed(f64::MIN, f64::MAX))?.unwrap_or(1.0);
    if best_of.is_some_and(|best_of| best_of != n) {
        return Err(ApiError::unsupported("best_of"));
    }
    Ok(())
}

/// A string, an array of one string, an array of ids, or an array of one such array.
fn prompt(value: &Value, bounds: Bounds) -> Result<Prompt, ApiError> {
    let prompt = match value {
        Value::String(text) => Prompt::Text(text.clone()),
        Value::Array(items) => match items.as_slice() {
            [Value::String(text)] => Prompt::Text(text.clone()),
            [Value::Array(ids)] => Prompt::Tokens(token_ids(ids, "prompt[0]", bounds)?),
            [Value::String(_) | Value::Array(_), ..] => {
                return Err(invalid("prompt", "has several prompts; send one request for each"));
            }
            ids => Prompt::Tokens(token_ids(ids, "prompt", bounds)?),
        },
        other => Prompt::Text(text(other, "prompt")?.to_owned()),
    };
    match &prompt {
        Prompt::Text(text) if text.is_empty() => {
            Err(invalid("prompt", "is empty; there is nothing to go on from"))
        }
        Prompt::Tokens(ids) if ids.is_empty() => {
            Err(invalid("prompt", "is empty; there is nothing to go on from"))
        }
        _ => Ok(prompt),
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
