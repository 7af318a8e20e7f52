//! One request, as it went. All times count from the beginning of the phase.

use std::fmt;
use std::time::Duration;

/// What the server says it read and wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    /// Of the prompt's tokens, those that a cache had; 0 where the server does not say.
    pub(crate) cached_tokens: u64,
}

/// Why a request does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No connection.
    Connect(String),
    /// Not done within the client's limit.
    Timeout,
    /// A status other than 200, with the beginning of the body.
    Status(u16, String),
    /// An error object inside a stream that had begun.
    Stream(String),
    /// The stream ended without a finish reason.
    Cut(String),
    /// An answer without `usage`: its tokens cannot be counted.
    NoUsage,
}

impl Fault {
    /// What faults are counted by.
    pub(crate) fn kind(&self) -> String {
        match self {
            Fault::Connect(_) => "connect".into(),
            Fault::Timeout => "timeout".into(),
            Fault::Status(status, _) => format!("status {status}"),
            Fault::Stream(_) => "error in stream".into(),
            Fault::Cut(_) => "cut off".into(),
            Fault::NoUsage => "no usage".into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match self {
            Fault::Connect(why) | Fault::Status(_, why) | Fault::Stream(why) | Fault::Cut(why) => {
                write!(f, "{kind}: {why}")
            }
            Fault::Timeout | Fault::NoUsage => f.write_str(&kind),
        }
    }
}

/// One request of a lane.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    /// Which lane of the phase.
    pub(crate) lane: usize,
    pub(crate) started: Duration,
    /// When each piece of text arrived; the first one is the first token's time.
    pub(crate) deliveries: Vec<Duration>,
    pub(crate) ended: Duration,
    pub(crate) outcome: Result<Usage, Fault>,
}

impl Turn {
    /// Usage and the time of the first token, of a request that went well.
    pub(crate) fn served(&self) -> Option<(Usage, Duration)> {
        Some((self.outcome.as_ref().ok().copied()?, *self.deliveries.first()?))
    }

    /// Time to first token.
    pub(crate) fn ttft(&self) -> Option<Duration> {
        self.served().map(|(_, first)| first.saturating_sub(self.started))
    }

    /// Times between deliveries of text.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = Duration> {
        self.deliveries.windows(2).map(|pair| pair[1].saturating_sub(pair[0]))
    }

    /// How many tokens one delivery stands for: servers join tokens of one character, some join several steps.
    pub(crate) fn tokens_per_delivery(&self) -> f64 {
        let tokens = self.outcome.as_ref().map_or(0, |usage| usage.completion_tokens);
        tokens as f64 / self.deliveries.len().max(1) as f64
    }
}
