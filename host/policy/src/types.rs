//! The plain types of the contract, as the rest of the host sees them.
//!
//! They mirror `wit/policy.wit`, where each field is documented with its unit and with what is checked; serde names are
//! the contract's own (`kebab-case`), so that recorded cases read like the contract.

mod compression;
mod extraction;
mod filtering;
mod instant;
mod routing;

use serde::{Deserialize, Serialize};

pub(crate) use compression::edit_text;
pub use compression::{Budget, Edit, Part, apply_edits};
pub use extraction::{Next, Slot, Stamp, Transition};
pub use filtering::{Hit, Interest, Replacement, TokenProbability, Verdict, Watch, Window};
pub use instant::Instant;
pub use jackfield_dialog::{Dialog, Value};
pub use routing::{Bias, Decision, Grammar, Guidance, Mode, Plan, RefuseWith, RouteRequest, Target};

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The operator or developer.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The result of a tool.
    Tool,
}

/// A half-open range of UTF-8 bytes, between scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// From one byte to another.
    pub fn new(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    /// As indices into a text. Only a span that was checked against the text may be used to slice it.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Bytes covered.
    pub fn len(self) -> u32 {
        self.end.saturating_sub(self.start)
    }

    /// Whether it covers nothing: a place to insert.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// The text it covers, if it lies within `text` and on boundaries.
    pub fn of(self, text: &str) -> Option<&str> {
        text.get(self.range())
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Message {
    /// Who wrote it.
    pub role: Role,
    /// What it says.
    pub text: String,
}

impl Message {
    /// A message.
    pub fn new(role: Role, text: impl Into<String>) -> Message {
        Message { role, text: text.into() }
    }
}

/// A named text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its text.
    pub value: String,
}

/// What is known of a turn before anything ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Turn {
    /// Unique to the turn.
    pub id: String,
    /// Whose key made the request.
    pub tenant: String,
    /// The caller's name for the dialog.
    pub session: Option<String>,
    /// The task named by the caller.
    pub task: Option<String>,
    /// BCP 47; empty when not known.
    pub locale: String,
    /// When it is, where the user is.
    pub now: Instant,
    /// The same for the same turn, always.
    pub seed: u32,
    /// All the request's headers, names in lower case: each policy gets those its manifest asks for.
    pub headers: Vec<Field>,
    /// Room to grow.
    pub attributes: Vec<Field>,
}

impl Default for Turn {
    /// What a recorded case starts from: tenant `test`, noon of 2026-01-01 in UTC.
    fn default() -> Turn {
        Turn {
            id: "turn".into(),
            tenant: "test".into(),
            session: None,
            task: None,
            locale: String::new(),
            now: Instant { unix_ms: 1_767_268_800_000, utc_offset_minutes: 0 },
            seed: 0,
            headers: Vec::new(),
            attributes: Vec::new(),
        }
    }
}

/// What a policy says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Description {
    /// The author's name for it.
    pub name: String,
    /// Its semantic version.
    pub version: String,
    /// JSON Schema of its configuration.
    pub config_schema: String,
    /// The dialog schema it writes; 0 for none.
    pub dialog_schema: u32,
    /// Older dialog schemas it can read.
    pub reads_dialog_schemas: Vec<u32>,
    /// Room to grow.
    pub attributes: Vec<Field>,
}
