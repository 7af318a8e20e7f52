//! What the rest of the host does for policies that are granted it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Grant;

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// For the author.
    Debug,
    /// For whoever reads logs.
    Info,
    /// Something is odd.
    Warn,
    /// Something failed.
    Error,
}

/// How surprising a token is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    /// Where it ends, in bytes.
    pub end: u32,
    /// -log2 of its probability.
    pub surprisal_bits: f32,
}

/// The imports of the contract, done by the rest of the host. Called on the thread of the policy's call, whose deadline
/// runs meanwhile; the guest cannot be stopped inside of one, so each must be quick and bounded. Those that wait for others are
/// told how much of the deadline is left, and answer before it is over.
pub trait HostServices: Send + Sync {
    /// A policy that is granted this is about to be set up: what takes long to load is loaded now. Where it cannot be, the import
    /// says so when it is called.
    fn prepare(&self, grant: Grant) {
        let _ = grant;
    }

    /// Number of tokens of a text, read as plain text. At most 256 KiB come here, as to the next.
    fn count_tokens(&self, text: &str) -> u32;

    /// End offset in bytes of each token.
    fn token_boundaries(&self, text: &str) -> Vec<u32>;

    /// Id of each token, as many as there are boundaries.
    fn encode_tokens(&self, text: &str) -> Vec<u32>;

    /// A line of a policy, 4 KiB at most.
    fn log(&self, policy: &str, level: LogLevel, text: &str);

    /// Add to a counter of a policy. The name and the amount were checked.
    fn count(&self, policy: &str, counter: &str, amount: f64) {
        let _ = (policy, counter, amount);
    }

    /// Surprisal per token.
    ///
    /// # Errors
    /// A sentence for the policy, where there is no model for it, it is busy, or the text is too long for it.
    fn score(&self, text: &str, left: Duration) -> Result<Vec<Scored>, String> {
        let _ = (text, left);
        Err("this host has no model that scores".into())
    }

    /// A unit vector.
    ///
    /// # Errors
    /// A sentence for the policy, where there is no model for it, it is busy, or the text is too long for it.
    fn embed(&self, text: &str, left: Duration) -> Result<Vec<f32>, String> {
        let _ = (text, left);
        Err("this host has no model that embeds".into())
    }
}

/// Services of a host without a model: a token is a scalar, log lines are dropped. For tests and for checking policies
/// offline.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoServices;

impl HostServices for NoServices {
    fn count_tokens(&self, text: &str) -> u32 {
        u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
    }

    fn token_boundaries(&self, text: &str) -> Vec<u32> {
        let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
        ends.filter_map(|end| u32::try_from(end).ok()).collect()
    }

    fn encode_tokens(&self, text: &str) -> Vec<u32> {
        text.chars().map(u32::from).collect()
    }

    fn log(&self, _policy: &str, _level: LogLevel, _text: &str) {}
}
