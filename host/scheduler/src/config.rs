//! The scheduler's limits, checked once.

use std::num::NonZero;

use thiserror::Error;

/// For how many milliseconds a request that came while another was there is taken to be one of several.
pub const LINGER_MS: u64 = 5000;

/// Sizes and limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Positions of a block.
    pub block_size: usize,
    /// Blocks of the KV arena.
    pub blocks: usize,
    /// Tokens computed in one step, prefill and decode together. More than `max_running`, so that prefill moves even
    /// when everything else decodes.
    pub max_step_tokens: usize,
    /// The same for pieces of prompts alone, while another request is there or was within [`LINGER_MS`]: those who write wait
    /// for them, and who comes may wait for a layer of them. Prompts that end in the step count only where somebody writes.
    /// A smaller step costs some throughput, so it is for company only.
    pub busy_prefill_tokens: usize,
    /// Attention to this many positions takes as long as all else that a token takes. So deep in a long prompt a step has
    /// fewer tokens, and about the same length. `None` takes attention to be free.
    pub positions_per_token: Option<NonZero<usize>>,
    /// Sequences (choices, not requests) that hold blocks at once.
    pub max_running: usize,
    /// Requests that wait for their first step.
    pub max_waiting: usize,
    /// Tokens of prompt and continuation together.
    pub max_context: usize,
    /// How many milliseconds of waiting outweigh one step of priority. 0 makes all priorities equal.
    pub ageing_ms: u64,
    /// Whether computed blocks are kept and found again.
    pub prefix_cache: bool,
}

/// A configuration that cannot work, and what to change.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A size or limit is 0.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// Decoding alone could fill a step and starve prefill.
    #[error("max_step_tokens ({max_step_tokens}) must be more than max_running ({max_running})")]
    StepTooSmall {
        /// As configured.
        max_step_tokens: usize,
        /// As configured.
        max_running: usize,
    },
    /// A context of one token has no room for a prompt and a token.
    #[error("max_context must be at least 2")]
    ContextTooSmall,
    /// Block ids have 32 bits.
    #[error("{0} blocks are too many, at most {max} can be numbered", max = u32::MAX)]
    TooManyBlocks(usize),
}

impl Config {
    /// Checks what the scheduler relies on.
    ///
    /// # Errors
    /// Names the first field that is out of bounds.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let sizes = [
            ("block_size", self.block_size),
            ("blocks", self.blocks),
            ("busy_prefill_tokens", self.busy_prefill_tokens),
            ("max_running", self.max_running),
            ("max_waiting", self.max_waiting),
        ];
        if let Some((name, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
            return Err(ConfigError::Zero(name));
        }
        if self.max_step_tokens <= self.max_running {
            let (max_step_tokens, max_running) = (self.max_step_tokens, self.max_running);
            return Err(ConfigError::StepTooSmall { max_step_tokens, max_running });
        }
        if self.max_context < 2 {
            return Err(ConfigError::ContextTooSmall);
        }
        if u32::try_from(self.blocks).is_err() {
            return Err(ConfigError::TooManyBlocks(self.blocks));
        }
        Ok(())
    }

    /// Positions of the whole pool.
    pub(crate) fn pool_tokens(&self) -> usize {
        self.blocks.saturating_mul(self.block_size)
    }

    /// Blocks that hold this many positions.
    pub(crate) fn blocks_for(&self, tokens: usize) -> usize {
        tokens.div_ceil(self.block_size)
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            block_size: 16,
            blocks: 1024,
            max_step_tokens: 512,
            busy_prefill_tokens: 512,
            positions_per_token: None,
            max_running: 64,
            max_waiting: 256,
            max_context: 8192,
            ageing_ms: 2000,
            prefix_cache: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&mut Config), expected: Result<(), &str>) {
        let mut config = Config::default();
        change(&mut config);
        assert_eq!(config.validate().map_err(|e| e.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn says_which_field_to_change() {
        check(|_| (), Ok(()));
        check(|c| c.block_size = 0, Err("block_size must be at least 1"));
        check(|c| c.blocks = 0, Err("blocks must be at least 1"));
        check(|c| c.busy_prefill_tokens = 0, Err("busy_prefill_tokens must be at least 1"));
        check(|c| c.max_running = 0, Err("max_running must be at least 1"));
        check(|c| c.max_waiting = 0, Err("max_waiting must be at least 1"));
        check(|c| c.max_context = 1, Err("max_context must be at least 2"));
        check(|c| c.max_running = 512, Err("max_step_tokens (512) must be more than max_running (512)"));
        check(
            |c| c.blocks = 1 << 32,
            Err("4294967296 blocks are too many, at most 4294967295 can be numbered"),
        );
    }
}
