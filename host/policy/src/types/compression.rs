//! What a compressor is given and answers.

use serde::{Deserialize, Serialize};

use super::{Message, Span};

/// A message, and what is known of its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Part {
    /// The message. In JSON its fields stand beside the others.
    #[serde(flatten)]
    pub message: Message,
    /// Not to be touched. Rising, not overlapping.
    #[serde(default)]
    pub protected: Vec<Span>,
    /// Leading bytes whose KV the target already holds.
    #[serde(default)]
    pub cached_bytes: u32,
}

/// How much is wanted to be left.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Budget {
    /// What the plan wants to be left of the prompt, in tokens.
    pub keep_tokens: u32,
    /// What the prompt has now, in tokens.
    pub prompt_tokens: u32,
    /// What one token of prefill costs, in microseconds.
    pub us_per_token: f32,
}

impl Default for Budget {
    /// What a recorded case starts from: half of 1,000 tokens, 5 ms a token.
    fn default() -> Budget {
        Budget { keep_tokens: 500, prompt_tokens: 1000, us_per_token: 5000.0 }
    }
}

/// Replace the bytes `at` of message `message` by `replacement`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Index of the part.
    pub message: u32,
    /// Which bytes of its text.
    pub at: Span,
    /// What stands there instead.
    pub replacement: String,
}

/// The text of each part after the edits. The edits are checked ones: in order of message and start, not overlapping.
/// One that does not fit its text is skipped.
pub fn apply_edits(parts: &[Part], edits: &[Edit]) -> Vec<String> {
    let edited = |(index, part): (usize, &Part)| {
        let of_part = edits.iter().filter(|edit| edit.message as usize == index);
        edit_text(&part.message.text, of_part.map(|e| (e.at, e.replacement.as_str())))
    };
    parts.iter().enumerate().map(edited).collect()
}

/// `text` with each span, in rising order, replaced.
pub(crate) fn edit_text<'a>(text: &str, edits: impl Iterator<Item = (Span, &'a str)>) -> String {
    let mut edited = String::with_capacity(text.len());
    let mut done = 0;
    for (at, replacement) in edits {
        let at = at.range();
        let Some(kept) = text.get(done..at.start).filter(|_| text.get(at.clone()).is_some()) else {
            continue;
        };
        edited.push_str(kept);
        edited.push_str(replacement);
        done = at.end;
    }
    edited.push_str(&text[done..]);
    edited
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Role;

    #[test]
    fn edits_apply_to_their_own_message() {
        let part =
            |text: &str| Part { message: Message::new(Role::User, text), protected: vec![], cached_bytes: 0 };
        let edit = |message, start, end, replacement: &str| Edit {
            message,
            at: Span::new(start, end),
            replacement: replacement.into(),
        };
        let edits = [edit(0, 0, 9, ""), edit(0, 12, 12, "!"), edit(1, 1, 2, "-"), edit(1, 1, 90, "outside")];
        let after = apply_edits(&[part("你好，查单"), part("a b"), part("kept")], &edits);
        assert_eq!(after, ["查!单", "a-b", "kept"]);
    }
}
