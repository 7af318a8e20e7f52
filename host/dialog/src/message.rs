//! What was said.

use serde::{Deserialize, Serialize};

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Instructions.
    System,
    /// The person.
    User,
    /// The model, or a policy in its place.
    Assistant,
    /// What a tool returned.
    Tool,
}

/// One message of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Message {
    /// Who wrote it.
    pub role: Role,
    /// Its text; none only for an assistant's message that consists of tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The author's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Calls that the assistant made, as a JSON array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<String>,
    /// Which call a tool's message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message of text alone.
    pub fn plain(role: Role, content: impl Into<String>) -> Message {
        Message { role, content: Some(content.into()), name: None, tool_calls: None, tool_call_id: None }
    }

    /// Roughly what it takes in memory, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        let texts = [&self.content, &self.name, &self.tool_calls, &self.tool_call_id];
        size_of::<Message>() + texts.into_iter().flatten().map(String::len).sum::<usize>()
    }
}
