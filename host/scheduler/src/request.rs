//! Ids, and what a caller asks for.

use std::fmt;

use thiserror::Error;

/// One choice of a request while it is generated. Given out by [`Scheduler::add`](crate::Scheduler::add), never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub u64);

/// A request; chosen by the caller, unique among the requests that are not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A block of the KV arena: `block_size` positions in all layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// Milliseconds since any fixed origin. Time that runs backwards is taken as standing still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub u64);

/// `n` continuations of one prompt, or a prompt whose own tokens are to be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The caller's name for it.
    pub id: RequestId,
    /// Token ids; at least one.
    pub prompt: Vec<u32>,
    /// How many choices to generate, at least one.
    pub n: u32,
    /// The most tokens each choice may get, at least one. The context and the size of the pool bound it as well.
    pub max_new_tokens: usize,
    /// 0 is the most urgent.
    pub priority: u8,
    /// Requests share cached blocks only under the same salt.
    pub salt: [u8; 32],
    /// Nothing is generated: the logits of every row are wanted, once ([`Work::score`](crate::Work::score)). Such a request has
    /// one choice, goes after all others whatever its priority, and neither takes blocks from the prefix cache nor leaves any.
    pub score: bool,
}

impl Request {
    /// An empty request of one choice and priority 0, to fill in.
    pub fn new(id: RequestId) -> Self {
        Request { id, prompt: Vec::new(), n: 1, max_new_tokens: 1, priority: 0, salt: [0; 32], score: false }
    }
}

/// Why a request was not taken. Nothing is kept of it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AddError {
    /// Try again when something has started.
    #[error("{waiting} requests are waiting already; try again later")]
    QueueFull {
        /// Requests that wait for their first step.
        waiting: usize,
    },
    /// There is nothing to continue.
    #[error("the prompt has no tokens")]
    PromptEmpty,
    /// The prompt leaves no room for a token in the context.
    #[error("the prompt has {prompt} tokens, the longest possible is {max}")]
    TooLong {
        /// Tokens of the prompt.
        prompt: usize,
        /// The longest prompt the context takes, in tokens.
        max: usize,
    },
    /// The prompt alone is larger than the whole pool.
    #[error("the prompt needs {needed_blocks} blocks of KV memory, there are {blocks} in all")]
    NeverFits {
        /// Blocks for the prompt.
        needed_blocks: usize,
        /// Blocks of the pool.
        blocks: usize,
    },
    /// A request of this id is not done yet.
    #[error("request {0} is in flight already")]
    DuplicateId(RequestId),
    /// `n` is 0.
    #[error("n must be at least 1")]
    ZeroChoices,
    /// `n` is more than may ever run together.
    #[error("n is {n}, at most {max} sequences run at once")]
    TooManyChoices {
        /// Choices asked for.
        n: u32,
        /// Sequences that may run.
        max: usize,
    },
    /// `max_new_tokens` is 0.
    #[error("max_new_tokens must be at least 1")]
    ZeroNewTokens,
}

impl fmt::Display for SequenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

impl Millis {
    /// This moment, `ms` later.
    pub(crate) fn plus(self, ms: u64) -> Millis {
        Millis(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this moment, 0 when it lies before.
    pub(crate) fn since(self, earlier: Millis) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
