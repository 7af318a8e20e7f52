//! From messages to token ids.

use jackfield_engine::Engine;
use jackfield_model::{ChatMessage, Now, RenderOptions, TemplateError, TokenizeError};

use crate::error::ApiError;
use crate::openai::Message;
use crate::openai::request::Prompt;

/// The prompt of a conversation, ready for the assistant's turn.
pub(crate) fn of_chat(engine: &Engine, messages: &[Message], now: Now) -> Result<Vec<u32>, ApiError> {
    let messages: Vec<ChatMessage> = messages.iter().map(for_template).collect();
    let options = RenderOptions { add_generation_prompt: true, now: Some(now), ..RenderOptions::default() };
    let rendered = engine.template().render(&messages, &options).map_err(template_error)?;
    engine.tokenizer().encode_prompt(&rendered).map_err(tokenize_error)
}

/// The prompt of a raw completion. A BOS spelt out in the text is text; the real one is put before it.
pub(crate) fn of_raw(engine: &Engine, prompt: &Prompt) -> Result<Vec<u32>, ApiError> {
    match prompt {
        Prompt::Text(text) => engine.tokenizer().encode_completion(text).map_err(tokenize_error),
        Prompt::Tokens(ids) => Ok(ids.clone()),
    }
}

/// Tokens of a plain text; one that cannot be encoded counts as none.
pub(crate) fn count(engine: &Engine, text: &str) -> usize {
    engine.tokenizer().encode(text).map_or(0, |tokens| tokens.len())
}

fn for_template(message: &Message) -> ChatMessage {
    ChatMessage {
        role: message.role.as_str().to_owned(),
        content: message.content.clone(),
        name: message.name.clone(),
        tool_calls: message.tool_calls.clone(),
        tool_call_id: message.tool_call_id.clone(),
    }
}

pub(crate) fn template_error(error: TemplateError) -> ApiError {
    let code = match error {
        TemplateError::Unusable { .. } => "chat_template_unusable",
        TemplateError::Failed { .. } => "chat_template_failed",
        _ => "invalid_value",
    };
    ApiError::invalid("messages", code, error.to_string())
}

pub(crate) fn tokenize_error(error: TokenizeError) -> ApiError {
    ApiError::bad_request("untokenizable", format!("The text cannot be turned into tokens: {error}"))
}
