//! What the engine hands back, what it is told, and what is counted.

use std::fmt;

use crate::request::{RequestId, SequenceId};

/// A token drawn for one sequence. A sequence may appear more than once, in order, up to one more than the drafted rows
/// its work had; without drafts that is once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    /// For whom; one of its work's `sample`.
    pub sequence: SequenceId,
    /// The token id.
    pub token: u32,
    /// The sequence ends here: end of sequence, stop token or stop string.
    pub stop: bool,
}

/// What a committed step brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// One more token; also for the one that stops its sequence.
    Token {
        /// Whose.
        sequence: SequenceId,
        /// The token id.
        token: u32,
    },
    /// A sequence is complete and its blocks are free.
    Finished {
        /// Which.
        sequence: SequenceId,
        /// Why.
        reason: FinishReason,
        /// Tokens it generated.
        tokens: usize,
    },
    /// The last choice of a request is complete. Never comes for a request that was cancelled as a whole.
    RequestDone {
        /// Which.
        request: RequestId,
        /// What it used.
        usage: Usage,
    },
}

/// Why a sequence ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// The sampler said so.
    Stop,
    /// `max_new_tokens`, the context, or the pool is used up.
    Length,
    /// All its rows have been computed, and nothing was to be generated.
    Scored,
}

/// Tokens of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the prompt, counted once whatever `n` is.
    pub prompt_tokens: usize,
    /// Tokens generated, over all choices, cancelled ones included.
    pub completion_tokens: usize,
    /// Tokens of the prompt that were found in the prefix cache when it was first computed.
    pub cached_tokens: usize,
}

/// Gauges (now) and counters (since the start).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Requests that wait for their first step.
    pub waiting: usize,
    /// Sequences that were preempted and wait to come back.
    pub preempted: usize,
    /// Sequences that hold blocks; a request counts as `n` from its first step.
    pub running: usize,
    /// The longest anything in the queue has waited since it arrived.
    pub oldest_wait_ms: u64,
    /// Blocks that sequences hold.
    pub used_blocks: usize,
    /// The other blocks; `used_blocks + free_blocks` is the pool.
    pub free_blocks: usize,
    /// Those of the free blocks that hold a cached prefix.
    pub cached_blocks: usize,
    /// Counter: tokens taken from the prefix cache instead of computed.
    pub hit_tokens: u64,
    /// Counter: tokens of sequences that were admitted or came back, hits or not.
    pub looked_up_tokens: u64,
    /// Counter: tokens computed.
    pub computed_tokens: u64,
    /// Counter: those of `computed_tokens` whose logits alone were wanted.
    pub scored_tokens: u64,
    /// Counter: those of `computed_tokens` that had been computed before a preemption.
    pub recomputed_tokens: u64,
    /// Counter: sequences that lost their blocks.
    pub preemptions: u64,
    /// Counter: cached blocks given to something else.
    pub evicted_blocks: u64,
    /// Counter: steps that ran in the middle of another.
    pub interposed_steps: u64,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Token { sequence, token } => write!(f, "{sequence} token {token}"),
            Event::Finished { sequence, reason, tokens } => {
                write!(f, "{sequence} finished {reason} after {tokens}")
            }
            Event::RequestDone { request, usage } => write!(f, "{request} done {usage}"),
        }
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::Scored => "scored",
        })
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Usage { prompt_tokens, completion_tokens, cached_tokens } = self;
        write!(f, "prompt={prompt_tokens} completion={completion_tokens} cached={cached_tokens}")
    }
}

/// Everything but what is 0.
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "used={} free={}", self.used_blocks, self.free_blocks)?;
        let rest = [
            ("cached", self.cached_blocks as u64),
            ("running", self.running as u64),
            ("waiting", self.waiting as u64),
            ("preempted", self.preempted as u64),
            ("oldest_wait_ms", self.oldest_wait_ms),
            ("looked_up", self.looked_up_tokens),
            ("hit", self.hit_tokens),
            ("computed", self.computed_tokens),
            ("scored", self.scored_tokens),
            ("recomputed", self.recomputed_tokens),
            ("preemptions", self.preemptions),
            ("evicted", self.evicted_blocks),
            ("interposed", self.interposed_steps),
        ];
        rest.iter().filter(|(_, count)| *count > 0).try_for_each(|(name, count)| write!(f, " {name}={count}"))
    }
}
