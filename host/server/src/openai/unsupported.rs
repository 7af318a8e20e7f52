//! Fields that clients know from elsewhere and that are not done here: accepted while they ask for nothing.

use serde_json::Value;

use super::fields::{Fields, text};
use crate::error::ApiError;

/// When a known field asks for nothing beyond what is done anyway.
type Harmless = fn(&Value) -> bool;

/// Fields of both endpoints.
const COMMON: &[(&str, Harmless)] = &[
    ("use_beam_search", is_false),
    ("length_penalty", |v| v.as_f64() == Some(1.0)),
    ("early_stopping", is_false),
    ("min_tokens", is_zero),
    ("prompt_logprobs", is_zero),
    ("priority", is_zero),
    ("guided_json", never),
    ("guided_regex", never),
    ("guided_choice", never),
    ("guided_grammar", never),
    ("structured_outputs", never),
    ("grammar", is_empty),
    ("typical_p", |v| v.as_f64() == Some(1.0)),
    ("mirostat", is_zero),
    ("echo", is_false),
    ("skip_special_tokens", is_true),
    ("include_stop_str_in_output", is_false),
    ("truncate_prompt_tokens", never),
    ("logits_processors", is_empty),
];

const CHAT: &[(&str, Harmless)] = &[
    ("tools", is_empty),
    ("tool_choice", |v| v == "none" || v == "auto"),
    ("parallel_tool_calls", is_true),
    ("functions", is_empty),
    ("function_call", |v| v == "none" || v == "auto"),
    ("response_format", |v| v.get("type").is_some_and(|kind| kind == "text")),
    ("modalities", |v| *v == serde_json::json!(["text"])),
    ("audio", never),
    ("prediction", never),
    ("store", is_false),
    ("reasoning_effort", |v| v == "none"),
    ("verbosity", |v| v == "medium"),
    ("web_search_options", never),
    ("chat_template", never),
    ("chat_template_kwargs", is_empty),
    ("documents", is_empty),
    ("add_generation_prompt", is_true),
    ("continue_final_message", is_false),
    ("thinking", never),
];

/// A dialog's slots are read from messages, which a raw completion has none of.
const COMPLETION: &[(&str, Harmless)] = &[
    ("suffix", is_empty),
    ("response_format", never),
    ("prompt_embeds", never),
    ("session", never),
    ("recall", is_false),
];

fn never(_: &Value) -> bool {
    false
}

fn is_false(value: &Value) -> bool {
    *value == Value::Bool(false)
}

fn is_true(value: &Value) -> bool {
    *value == Value::Bool(true)
}

fn is_zero(value: &Value) -> bool {
    value.as_f64() == Some(0.0)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Refuses a chat request that asks for what is not done here.
pub(super) fn check_chat(fields: &Fields<'_>) -> Result<(), ApiError> {
    check(fields, &[COMMON, CHAT])?;
    check_tier(fields)
}

/// Refuses a raw completion that asks for what is not done here.
pub(super) fn check_completion(fields: &Fields<'_>) -> Result<(), ApiError> {
    check(fields, &[COMMON, COMPLETION])?;
    check_tier(fields)
}

fn check(fields: &Fields<'_>, tables: &[&[(&str, Harmless)]]) -> Result<(), ApiError> {
    for (name, harmless) in tables.iter().copied().flatten() {
        if fields.get(name).is_some_and(|value| !harmless(value)) {
            return Err(ApiError::unsupported(fields.path(name)));
        }
    }
    Ok(())
}

/// A tier is a wish about billing elsewhere; any known one is served alike.
fn check_tier(fields: &Fields<'_>) -> Result<(), ApiError> {
    let Some(value) = fields.get("service_tier") else { return Ok(()) };
    match text(value, "service_tier")? {
        "auto" | "default" | "flex" | "priority" | "scale" => Ok(()),
        _ => Err(super::fields::invalid("service_tier", "is not a known tier; use `auto`")),
    }
}
