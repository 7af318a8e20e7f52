//! What is written down of a call, so that it can be made again exactly: its arguments, what it came to, and what its
//! imports answered.

mod log;
mod mask;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

pub(crate) use log::Recorder;
pub use log::{LogError, RecordSettings, read_log};

use serde::{Deserialize, Serialize};

use crate::{HostServices, LogLevel, Outcome, PolicyVersion, Scored, call::Call, types::Turn};

/// A call of a policy, as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// The generation in force.
    pub generation: u64,
    /// The version that was called.
    pub policy: PolicyVersion,
    /// The turn.
    pub turn: Turn,
    /// Its arguments.
    pub call: Call,
    /// What it came to.
    pub outcome: Outcome,
    /// What its imports answered, in the order of the calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<Answered>,
    /// How long it took, in microseconds.
    pub micros: u32,
}

/// What an import answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "import")]
pub enum Answered {
    /// `tokens.count`
    Count {
        /// Of what.
        text: String,
        /// The answer.
        tokens: u32,
    },
    /// `tokens.boundaries`
    Boundaries {
        /// Of what.
        text: String,
        /// The answer.
        ends: Vec<u32>,
    },
    /// `tokens.encode`
    Encode {
        /// Of what.
        text: String,
        /// The answer.
        ids: Vec<u32>,
    },
    /// `saliency.score`
    Score {
        /// Of what.
        text: String,
        /// The answer, or the sentence given instead.
        scored: Result<Vec<Scored>, String>,
    },
    /// `embeddings.embed`
    Embed {
        /// Of what.
        text: String,
        /// The answer, or the sentence given instead.
        vector: Result<Vec<f32>, String>,
    },
}

/// Serves imports by other services and notes what they answered. Log lines and counters are not notes: nothing a policy
/// says depends on them.
pub(crate) struct Noting {
    inner: Arc<dyn HostServices>,
    notes: Mutex<Vec<Answered>>,
}

impl Noting {
    pub(crate) fn new(inner: Arc<dyn HostServices>) -> Noting {
        Noting { inner, notes: Mutex::default() }
    }

    pub(crate) fn take(&self) -> Vec<Answered> {
        std::mem::take(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, answered: Answered) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(answered);
    }
}

impl HostServices for Noting {
    fn count_tokens(&self, text: &str) -> u32 {
        let tokens = self.inner.count_tokens(text);
        self.note(Answered::Count { text: text.into(), tokens });
        tokens
    }

    fn token_boundaries(&self, text: &str) -> Vec<u32> {
        let ends = self.inner.token_boundaries(text);
        self.note(Answered::Boundaries { text: text.into(), ends: ends.clone() });
        ends
    }

    fn encode_tokens(&self, text: &str) -> Vec<u32> {
        let ids = self.inner.encode_tokens(text);
        self.note(Answered::Encode { text: text.into(), ids: ids.clone() });
        ids
    }

    fn log(&self, policy: &str, level: LogLevel, text: &str) {
        self.inner.log(policy, level, text);
    }

    fn count(&self, policy: &str, counter: &str, amount: f64) {
        self.inner.count(policy, counter, amount);
    }

    fn score(&self, text: &str, left: Duration) -> Result<Vec<Scored>, String> {
        let scored = self.inner.score(text, left);
        self.note(Answered::Score { text: text.into(), scored: scored.clone() });
        scored
    }

    fn embed(&self, text: &str, left: Duration) -> Result<Vec<f32>, String> {
        let vector = self.inner.embed(text, left);
        self.note(Answered::Embed { text: text.into(), vector: vector.clone() });
        vector
    }
}
