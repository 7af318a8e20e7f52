//! What a template is given.

use serde_json::{Map, Value};

/// One message of a conversation. All of it comes from outside.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatMessage {
    /// `system`, `developer`, `user`, `assistant` or `tool`; anything else is refused.
    pub role: String,
    /// The text; parts are joined by the caller. None reads as empty, for an assistant that only calls tools.
    pub content: Option<String>,
    /// Name of the speaker, or of the tool that answers.
    pub name: Option<String>,
    /// Calls as the API has them: a list of `{id, type, function: {name, arguments}}`.
    pub tool_calls: Option<Value>,
    /// The call that a `tool` message answers.
    pub tool_call_id: Option<String>,
}

impl ChatMessage {
    /// A message of text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: Some(content.into()), ..Self::default() }
    }

    /// The message as templates see it; a role that the template does not know is given in `role`.
    pub(super) fn to_json(&self, role: &str) -> Value {
        let mut out = Map::new();
        out.insert("role".into(), role.into());
        out.insert("content".into(), self.content.clone().unwrap_or_default().into());
        if let Some(name) = &self.name {
            out.insert("name".into(), name.clone().into());
        }
        if let Some(calls) = &self.tool_calls {
            out.insert("tool_calls".into(), with_parsed_arguments(calls));
        }
        if let Some(id) = &self.tool_call_id {
            out.insert("tool_call_id".into(), id.clone().into());
        }
        Value::Object(out)
    }
}

/// The API carries arguments as JSON in a string; published templates want the object.
fn with_parsed_arguments(calls: &Value) -> Value {
    let mut calls = calls.clone();
    for call in calls.as_array_mut().into_iter().flatten() {
        let Some(arguments) = call.pointer_mut("/function/arguments") else { continue };
        let parsed =
            arguments.as_str().and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
        if let Some(object) = parsed {
            *arguments = Value::Object(object);
        }
    }
    calls
}

/// A moment, for templates that write the date. The clock is the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub unix_s: i64,
    /// How far local time is ahead of UTC, in seconds.
    pub utc_offset_s: i32,
}

/// What else a template may look at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RenderOptions {
    /// End with the opening of the assistant's turn.
    pub add_generation_prompt: bool,
    /// Tools as the API has them: a list of `{type, function: {name, description, parameters}}`.
    pub tools: Option<Value>,
    /// The moment for `strftime_now`; without it that function is not defined.
    pub now: Option<Now>,
    /// Further variables by name (`enable_thinking`); they never replace those above.
    pub extra: Map<String, Value>,
}
