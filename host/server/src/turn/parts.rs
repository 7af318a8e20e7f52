//! Messages as a compressor is given them: what it must not touch, and what the engine holds already.

use jackfield_engine::Engine;
use jackfield_policy::{Part, Span};

use super::ask::for_policy;
use super::prompt::count;
use crate::openai::{Message, Role};

/// The messages with their protected spans: instructions and tools' results whole, and of the person's last words the
/// last sentence, where the question usually is. `cached` leading tokens of the prompt are held by the engine.
pub(crate) fn parts(engine: &Engine, messages: &[Message], prompt_tokens: usize, cached: usize) -> Vec<Part> {
    let last_user = messages.iter().rposition(|message| message.role == Role::User);
    let cached = cached_bytes(engine, messages, prompt_tokens, cached);
    let part = |(index, message): (usize, &Message)| Part {
        protected: protected(message, Some(index) == last_user),
        message: for_policy(message),
        cached_bytes: cached.get(index).copied().unwrap_or(0),
    };
    messages.iter().enumerate().map(part).collect()
}

/// The messages with their new texts. One without text (tool calls alone) stays without.
pub(crate) fn shown_messages(messages: &[Message], texts: Vec<String>) -> Vec<Message> {
    let with = |(message, text): (&Message, String)| Message {
        content: message.content.as_ref().map(|_| text),
        ..message.clone()
    };
    messages.iter().zip(texts).map(with).collect()
}

fn protected(message: &Message, is_last_user: bool) -> Vec<Span> {
    let text = message.text();
    let from = match message.role {
        Role::System | Role::Tool => 0,
        Role::User if is_last_user => last_sentence(text),
        Role::User | Role::Assistant => return Vec::new(),
    };
    if from < text.len() { vec![Span::new(from as u32, text.len() as u32)] } else { Vec::new() }
}

/// Where the last sentence or line begins.
fn last_sentence(text: &str) -> usize {
    const ENDS: [char; 8] = ['\n', '。', '！', '？', '!', '?', '.', '；'];
    let body = text.trim_end().trim_end_matches(ENDS);
    let ends_here = |&(at, end): &(usize, &str)| {
        // A full stop within a number or a name ends nothing.
        end != "." || body[at + 1..].starts_with(char::is_whitespace)
    };
    let last = body.rmatch_indices(ENDS).find(ends_here);
    last.map_or(0, |(at, end)| at + end.len())
}

/// How many bytes of each message the engine holds, as near as can be told without rendering every prefix: what the
/// template adds is taken to be the same for each message.
fn cached_bytes(engine: &Engine, messages: &[Message], prompt_tokens: usize, cached: usize) -> Vec<u32> {
    if cached == 0 {
        return Vec::new();
    }
    let tokens: Vec<usize> = messages.iter().map(|message| count(engine, message.text())).collect();
    let around = prompt_tokens.saturating_sub(tokens.iter().sum()) / messages.len().max(1);
    let mut left = cached;
    let of_message = |(message, tokens): (&Message, usize)| {
        left = left.saturating_sub(around);
        let held = left.min(tokens);
        left -= held;
        if held == tokens { message.text().len() as u32 } else { bytes_of(engine, message.text(), held) }
    };
    messages.iter().zip(tokens).map(of_message).collect()
}

fn bytes_of(engine: &Engine, text: &str, tokens: usize) -> u32 {
    let boundaries = engine.tokenizer().boundaries(text).unwrap_or_default();
    tokens.checked_sub(1).and_then(|last| boundaries.get(last).copied()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sentence_is_found_in_both_scripts() {
        for (text, kept) in [
            ("Hello! Where is my order?", " Where is my order?"),
            ("你好！请帮我查一下订单AB-1234。", "请帮我查一下订单AB-1234。"),
            ("one line", "one line"),
            ("code:\nlet x = 1.5;\n\nWhat is x?\n", "What is x?\n"),
            ("It costs 1.5 or 2.0", "It costs 1.5 or 2.0"),
            ("", ""),
            ("...", "..."),
        ] {
            assert_eq!(&text[last_sentence(text)..], kept, "{text}");
        }
    }

    #[test]
    fn instructions_and_results_are_protected_whole() {
        let whole = |role| protected(&Message::plain(role, "a. b"), false);
        assert_eq!(whole(Role::System), [Span::new(0, 4)]);
        assert_eq!(whole(Role::Tool), [Span::new(0, 4)]);
        assert_eq!(whole(Role::User), []);
        assert_eq!(protected(&Message::plain(Role::User, "a. b"), true), [Span::new(2, 4)]);
    }
}
