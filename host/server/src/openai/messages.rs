//! The messages of a chat request.

use serde_json::Value;

use super::fields::{Fields, array, invalid, text, wrong_type};
use crate::error::{ApiError, shorten};

/// Who wrote a message. `developer` is read as `System`: it is the same instruction under a newer name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Instructions.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// What a tool returned.
    Tool,
}

impl Role {
    /// The name that chat templates know.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// One message, its parts joined into one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who wrote it.
    pub role: Role,
    /// Its text; `None` only for an assistant's message that consists of tool calls.
    pub content: Option<String>,
    /// The author's name.
    pub name: Option<String>,
    /// Calls that the assistant made in an earlier turn, as given.
    pub tool_calls: Option<Value>,
    /// Which call a tool's message answers.
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message of text alone.
    pub fn plain(role: Role, content: impl Into<String>) -> Self {
        Message { role, content: Some(content.into()), name: None, tool_calls: None, tool_call_id: None }
    }

    /// The text, empty where there is none.
    pub fn text(&self) -> &str {
        self.content.as_deref().unwrap_or_default()
    }
}

/// Reads `messages`: at least one, each with a known role and the content its role needs.
pub(crate) fn messages(fields: &Fields<'_>) -> Result<Vec<Message>, ApiError> {
    let path = fields.path("messages");
    let values = array(fields.required("messages")?, &path)?;
    if values.is_empty() {
        return Err(invalid(&path, "is empty; send at least one message"));
    }
    values.iter().enumerate().map(|(index, value)| message(value, &format!("{path}[{index}]"))).collect()
}

fn message(value: &Value, path: &str) -> Result<Message, ApiError> {
    let fields = Fields::at(value, path)?;
    let role = role(&fields)?;
    for name in ["function_call", "audio"] {
        if fields.get(name).is_some() {
            return Err(ApiError::unsupported(fields.path(name)));
        }
    }
    let tool_calls = if role == Role::Assistant { tool_calls(&fields)? } else { None };
    let mut text = content(&fields, role)?;
    if text.is_none() && role == Role::Assistant {
        text = fields.text("refusal")?.map(str::to_owned);
    }
    if text.is_none() && tool_calls.is_none() {
        let path = fields.path("content");
        let message = format!("`{path}` must be a string or an array of parts");
        return Err(ApiError::invalid(path, "invalid_type", message));
    }
    let tool_call_id = match role {
        Role::Tool => {
            Some(self::text(fields.required("tool_call_id")?, &fields.path("tool_call_id"))?.to_owned())
        }
        _ => None,
    };
    Ok(Message {
        role,
        content: text,
        name: fields.text("name")?.map(str::to_owned),
        tool_calls,
        tool_call_id,
    })
}

fn role(fields: &Fields<'_>) -> Result<Role, ApiError> {
    let path = fields.path("role");
    match text(fields.required("role")?, &path)? {
        "system" | "developer" => Ok(Role::System),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "tool" => Ok(Role::Tool),
        "function" => Err(invalid(&path, "is `function`, which is not supported here; use `tool`")),
        other => Err(invalid(
            &path,
            format!("is `{}`; it must be one of system, developer, user, assistant, tool", shorten(other)),
        )),
    }
}

fn content(fields: &Fields<'_>, role: Role) -> Result<Option<String>, ApiError> {
    let path = fields.path("content");
    match fields.get("content") {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Array(parts)) => self::parts(parts, &path, role).map(Some),
        Some(other) => Err(wrong_type(&path, "a string or an array of parts", other)),
    }
}

/// Parts are joined as they are: a text split over two parts is the same text.
fn parts(parts: &[Value], path: &str, role: Role) -> Result<String, ApiError> {
    if parts.is_empty() {
        return Err(invalid(path, "is an empty array; send at least one part"));
    }
    let mut joined = String::new();
    for (index, part) in parts.iter().enumerate() {
        let fields = Fields::at(part, &format!("{path}[{index}]"))?;
        let kind_path = fields.path("type");
        let field = match text(fields.required("type")?, &kind_path)? {
            "text" => "text",
            "refusal" if role == Role::Assistant => "refusal",
            other => {
                let message = format!("`{kind_path}` is `{}`; only `text` is supported here", shorten(other));
                return Err(ApiError::invalid(kind_path, "unsupported_value", message));
            }
        };
        joined.push_str(text(fields.required(field)?, &fields.path(field))?);
    }
    Ok(joined)
}

/// Calls of an earlier turn: kept as given for the template, their shape checked.
fn tool_calls(fields: &Fields<'_>) -> Result<Option<Value>, ApiError> {
    let Some(value) = fields.get("tool_calls") else { return Ok(None) };
    let path = fields.path("tool_calls");
    let calls = array(value, &path)?;
    for (index, call) in calls.iter().enumerate() {
        let call = Fields::at(call, &format!("{path}[{index}]"))?;
        text(call.required("id")?, &call.path("id"))?;
        match text(call.required("type")?, &call.path("type"))? {
            "function" => {}
            _ => return Err(invalid(&call.path("type"), "must be `function`")),
        }
        let function = Fields::at(call.required("function")?, &call.path("function"))?;
        for name in ["name", "arguments"] {
            text(function.required(name)?, &function.path(name))?;
        }
    }
    Ok((!calls.is_empty()).then(|| value.clone()))
}
