//! Messages of the API and messages of a session.

use jackfield_dialog as dialog;

use crate::openai::{Message, Role};

/// What a request adds to a session.
#[derive(Debug, PartialEq)]
pub(crate) struct Sent {
    /// Its leading system messages, which replace those in force; none leaves them.
    pub(crate) instructions: Option<Vec<dialog::Message>>,
    /// All others.
    pub(crate) messages: Vec<dialog::Message>,
}

impl Sent {
    /// Divides the messages of a request.
    pub(crate) fn of(messages: &[Message]) -> Sent {
        let leading = messages.iter().take_while(|message| message.role == Role::System).count();
        let (system, others) = messages.split_at(leading);
        Sent {
            instructions: (!system.is_empty()).then(|| system.iter().map(kept).collect()),
            messages: others.iter().map(kept).collect(),
        }
    }
}

/// As it is kept.
pub(crate) fn kept(message: &Message) -> dialog::Message {
    dialog::Message {
        role: match message.role {
            Role::System => dialog::Role::System,
            Role::User => dialog::Role::User,
            Role::Assistant => dialog::Role::Assistant,
            Role::Tool => dialog::Role::Tool,
        },
        content: message.content.clone(),
        name: message.name.clone(),
        tool_calls: message.tool_calls.as_ref().map(ToString::to_string),
        tool_call_id: message.tool_call_id.clone(),
    }
}

/// As it was sent.
pub(crate) fn sent(message: &dialog::Message) -> Message {
    Message {
        role: match message.role {
            dialog::Role::System => Role::System,
            dialog::Role::User => Role::User,
            dialog::Role::Assistant => Role::Assistant,
            dialog::Role::Tool => Role::Tool,
        },
        content: message.content.clone(),
        name: message.name.clone(),
        // It was JSON when it was kept.
        tool_calls: message.tool_calls.as_deref().and_then(|calls| serde_json::from_str(calls).ok()),
        tool_call_id: message.tool_call_id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn leading_system_messages_are_instructions() {
        let system = Message::plain(Role::System, "be brief");
        let user = Message::plain(Role::User, "hello");
        let later = Message::plain(Role::System, "now in French");
        let divided = Sent::of(&[system.clone(), user.clone(), later.clone()]);
        assert_eq!(divided.instructions, Some(vec![kept(&system)]));
        assert_eq!(divided.messages, [kept(&user), kept(&later)]);
        assert_eq!(Sent::of(&[user]).instructions, None);
    }

    #[test]
    fn a_message_comes_back_as_it_was() {
        let called = Message {
            content: None,
            tool_calls: Some(
                json!([{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]),
            ),
            name: Some("n".into()),
            ..Message::plain(Role::Assistant, "")
        };
        let answered = Message { tool_call_id: Some("1".into()), ..Message::plain(Role::Tool, "42") };
        for message in [called, answered] {
            assert_eq!(sent(&kept(&message)), message);
        }
    }
}
