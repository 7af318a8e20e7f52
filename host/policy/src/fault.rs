//! The ways in which a call of a policy fails.

use crate::Kind;

/// Why a call gave no answer. The next call of the policy starts from a fresh instance and is not touched by it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The guest trapped: an exhausted stack, an unreachable instruction (which is how a Rust panic ends), a bad address.
    #[error("the policy trapped: {code}")]
    Trap {
        /// What the runtime calls it.
        code: String,
    },
    /// The call took longer than it may.
    #[error("the policy ran past its deadline of {limit_ms} ms")]
    Deadline {
        /// The limit.
        limit_ms: u32,
    },
    /// The guest wanted more memory than it may have, and could not go on without.
    #[error("the policy wanted more memory than its limit of {limit_bytes} bytes")]
    Memory {
        /// The limit.
        limit_bytes: usize,
    },
    /// The answer, or an argument of a host call, is larger than it may be.
    #[error("the policy's answer takes more than its limit of {limit_bytes} bytes")]
    OutputTooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// Too many host calls.
    #[error("the policy made more than {limit} host calls")]
    HostCalls {
        /// The limit.
        limit: u32,
    },
    /// The guest called an import that its manifest does not grant.
    #[error(
        "the policy called `{import}`, which is not granted: add \"{import}\" to `grants` in its manifest"
    )]
    NotGranted {
        /// The import's name, as written in a manifest.
        import: &'static str,
    },
    /// The guest called an import in `describe` or `configure`, where only `log` may be called.
    #[error("the policy called `{import}` in `describe` or `configure`, where only `log` may be called")]
    NotInSetup {
        /// The import's name.
        import: &'static str,
    },
    /// The answer breaks a rule of the contract.
    #[error("the policy's answer is invalid: {what}")]
    Invalid {
        /// Which rule, and where.
        what: String,
    },
    /// The guest answered with an error.
    #[error("the policy answered with an error: {message}")]
    Refused {
        /// Its message.
        message: String,
    },
    /// No instance could be made.
    #[error("no instance of the policy could be made: {what}")]
    Instantiate {
        /// Why.
        what: String,
    },
    /// Too many calls are running, and none ended within this call's deadline.
    #[error("no place for another policy call within {limit_ms} ms")]
    Busy {
        /// How long it waited.
        limit_ms: u32,
    },
    /// The policy went wrong too often lately, and is not called for a while.
    #[error(
        "the policy is out of the way after too many faults or slow calls; it is tried again before long"
    )]
    Tripped,
    /// The host asked a policy of one kind for the answer of another. A mistake of the host, never of the guest.
    #[error("a policy of kind {kind} cannot answer this")]
    WrongKind {
        /// What the policy is.
        kind: Kind,
    },
}

impl Fault {
    /// Labels of all faults, for metrics.
    pub const LABELS: [&'static str; 13] = [
        "trap",
        "deadline",
        "memory",
        "output-too-large",
        "host-calls",
        "not-granted",
        "not-in-setup",
        "invalid",
        "refused",
        "instantiate",
        "busy",
        "tripped",
        "wrong-kind",
    ];

    /// A short, stable name for metrics and logs: one of [`Fault::LABELS`].
    pub fn label(&self) -> &'static str {
        Fault::LABELS[self.index()]
    }

    pub(crate) fn index(&self) -> usize {
        match self {
            Fault::Trap { .. } => 0,
            Fault::Deadline { .. } => 1,
            Fault::Memory { .. } => 2,
            Fault::OutputTooLarge { .. } => 3,
            Fault::HostCalls { .. } => 4,
            Fault::NotGranted { .. } => 5,
            Fault::NotInSetup { .. } => 6,
            Fault::Invalid { .. } => 7,
            Fault::Refused { .. } => 8,
            Fault::Instantiate { .. } => 9,
            Fault::Busy { .. } => 10,
            Fault::Tripped => 11,
            Fault::WrongKind { .. } => 12,
        }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Fault {
        Fault::Invalid { what: what.into() }
    }
}
