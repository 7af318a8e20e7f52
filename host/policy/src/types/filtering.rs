//! What an output filter is given and answers.

use serde::{Deserialize, Serialize};

use super::{Field, Span};

/// A pattern that the host looks for by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// For logs and counters.
    pub name: String,
    /// In the syntax of the `regex` crate.
    pub regex: String,
}

/// What an output filter wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Interest {
    /// Empty: every window comes. Otherwise those with a hit.
    pub watches: Vec<Watch>,
    /// Already sent text that each window should carry, in bytes.
    pub sent_tail_bytes: u16,
    /// Whether windows should carry the probabilities of their tokens.
    pub token_probabilities: bool,
    /// Room to grow.
    pub attributes: Vec<Field>,
}

/// A match of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hit {
    /// Index of the watch.
    pub watch: u32,
    /// Where, in the pending text.
    pub at: Span,
    /// Still open when it reached the bound on held text.
    #[serde(default)]
    pub cut: bool,
}

/// A token of the pending text, and how likely the model found it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenProbability {
    /// Where it ends, in bytes of the pending text.
    pub end: u32,
    /// 0 to 1.
    pub probability: f32,
}

/// Text of one stream that waits for a verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Window {
    /// Stable for the life of the stream.
    pub stream_id: u32,
    /// The end of what was sent, as the client saw it.
    pub sent_tail: String,
    /// Text not yet sent, without what the host holds by itself.
    pub pending: String,
    /// In order of their start.
    pub hits: Vec<Hit>,
    /// Empty unless asked for.
    pub tokens: Vec<TokenProbability>,
    /// No more text will follow.
    #[serde(rename = "final")]
    pub is_final: bool,
}

/// Bytes of the pending text to replace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// Which.
    pub at: Span,
    /// By what.
    pub text: String,
}

/// What happens to a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Verdict {
    /// Index of the window.
    pub window: u32,
    /// Rising, not overlapping.
    #[serde(default)]
    pub replace: Vec<Replacement>,
    /// Trailing bytes of the pending text not to be sent yet.
    #[serde(default)]
    pub hold_bytes: u32,
    /// End the stream here, with this reason.
    #[serde(default)]
    pub stop: Option<String>,
}
