//! What an operator may set of the engine, checked once.

use std::num::NonZero;

use jackfield_kernels::{KvArena, KvStore};
use jackfield_model::{KvType, Model, ModelConfig};
use jackfield_scheduler as scheduler;

use crate::engine::StartError;
use crate::tiers::{DiskTier, Kept, RemoteTier, Tiers};

/// Sizes and limits of one engine.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Tokens in one KV block.
    pub block_size: usize,
    /// Memory for K and V of all layers, in bytes.
    pub kv_bytes: usize,
    /// How K and V are kept. In 8 bits nearly twice as many tokens fit; some models bear it badly, of which a start warns.
    pub kv_type: KvType,
    /// Memory for blocks that the cache above gave up, in bytes; 0 for none. Without `prefix_cache` there are none anyway.
    pub kv_memory_bytes: usize,
    /// Where blocks are kept that memory gave up, or that are to outlive the process; needs `kv_memory_bytes`.
    pub kv_disk: Option<DiskTier>,
    /// The same on a server that several hosts share, beside the disk or without one; needs `kv_memory_bytes`.
    pub kv_remote: Option<RemoteTier>,
    /// How blocks are kept outside of the cache. In 8 bits, the half of 16-bit floats, what comes back is not quite what was
    /// given up, and an answer may be another where two tokens were nearly as likely. For a model that bears 8 bits badly, which
    /// a start finds out, they are kept as the cache has them all the same.
    pub kv_store: KvStore,
    /// Rows (tokens) in one step, prefill and decode together.
    pub max_step_tokens: usize,
    /// Rows of pieces of prompts in one step while several requests are there, since those that write wait for them; prompts
    /// that end in the step count only where somebody writes. Smaller steps cost some throughput.
    pub busy_prefill_tokens: usize,
    /// Sequences that may hold blocks at once.
    pub max_running: usize,
    /// Requests that may wait beyond those that run; one more is refused as [`SubmitError::QueueFull`].
    ///
    /// [`SubmitError::QueueFull`]: crate::SubmitError::QueueFull
    pub max_waiting: usize,
    /// Texts that may be scored at once; one more is refused as [`SubmitError::QueueFull`].
    ///
    /// [`SubmitError::QueueFull`]: crate::SubmitError::QueueFull
    pub max_scoring: usize,
    /// Waiting this long lifts a request by one priority level.
    pub ageing_ms: u64,
    /// Whether finished blocks are found again by later prompts.
    pub prefix_cache: bool,
    /// A cap on the context below the model's own, in tokens.
    pub max_context: Option<usize>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            block_size: 16,
            kv_bytes: 1 << 30,
            kv_type: KvType::F16,
            kv_memory_bytes: 256 << 20,
            kv_disk: None,
            kv_remote: None,
            kv_store: KvStore::Int8,
            max_step_tokens: 128,
            busy_prefill_tokens: 32,
            max_running: 64,
            max_waiting: 256,
            max_scoring: 16,
            ageing_ms: 2_000,
            prefix_cache: true,
            max_context: None,
        }
    }
}

/// A configuration that cannot serve this model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The memory given to KV holds no useful number of blocks.
    #[error(
        "`kv_bytes` is {kv_bytes}, which holds {blocks} blocks of {block_size} tokens ({block_bytes} bytes each); \
         give at least {} bytes", block_bytes.saturating_mul(2)
    )]
    TooFewBlocks {
        /// What was given.
        kv_bytes: usize,
        /// What it holds.
        blocks: usize,
        /// Tokens per block.
        block_size: usize,
        /// Bytes per block, all layers.
        block_bytes: usize,
    },
    /// The memory given to KV holds more blocks than have numbers.
    #[error(
        "`kv_bytes` is {kv_bytes}, which holds {blocks} blocks; at most {most} can be numbered, so give less"
    )]
    TooManyBlocks {
        /// What was given.
        kv_bytes: usize,
        /// What it holds.
        blocks: usize,
        /// What can be numbered.
        most: u32,
    },
    /// The memory for stored blocks holds none, or less than the tiers below it need.
    #[error(
        "`kv_memory_bytes` is {kv_memory_bytes}, and a stored block takes {block_bytes}; give at least {} bytes, or 0 and no \
         `kv_disk` and `kv_remote`", block_bytes.saturating_mul(2)
    )]
    StoreTooSmall {
        /// What was given.
        kv_memory_bytes: usize,
        /// Bytes of a stored block, all layers.
        block_bytes: usize,
    },
    /// The scheduler refused what was left.
    #[error(transparent)]
    Scheduler(#[from] scheduler::ConfigError),
}

impl EngineConfig {
    /// Blocks that fit, and the scheduler's share of the configuration.
    pub(crate) fn plan_for(&self, model: &Model) -> Result<scheduler::Config, ConfigError> {
        if self.block_size == 0 {
            return Err(scheduler::ConfigError::Zero("block_size").into());
        }
        let block_bytes = model.kv_shape(1, self.block_size).block_bytes(self.kv_type);
        let block_bytes = block_bytes.unwrap_or(usize::MAX);
        let blocks = self.kv_bytes / block_bytes;
        if blocks < 2 {
            return Err(ConfigError::TooFewBlocks {
                kv_bytes: self.kv_bytes,
                blocks,
                block_size: self.block_size,
                block_bytes,
            });
        }
        if u32::try_from(blocks).is_err() {
            return Err(ConfigError::TooManyBlocks { kv_bytes: self.kv_bytes, blocks, most: u32::MAX });
        }
        Ok(scheduler::Config {
            block_size: self.block_size,
            blocks,
            max_step_tokens: self.max_step_tokens,
            busy_prefill_tokens: self.busy_prefill_tokens,
            positions_per_token: positions_per_token(&model.config),
            max_running: self.max_running,
            max_waiting: self.max_in_flight().saturating_add(self.max_scoring),
            max_context: self.context(&model.config),
            ageing_ms: self.ageing_ms,
            prefix_cache: self.prefix_cache,
        })
    }

    /// Whether there is anything below the cache.
    pub(crate) fn has_tiers(&self) -> bool {
        self.prefix_cache && (self.kv_memory_bytes > 0 || self.kv_disk.is_some() || self.kv_remote.is_some())
    }

    /// The tiers below this cache, where some are wanted.
    pub(crate) fn tiers_for(
        &self,
        model: &[u8; 32],
        kv: &KvArena,
        store: KvStore,
    ) -> Result<Option<Tiers>, StartError> {
        if !self.has_tiers() {
            return Ok(None);
        }
        let (memory, block_bytes) = (self.kv_memory_bytes, kv.stored_bytes(store));
        if memory < block_bytes.saturating_mul(2) {
            return Err(ConfigError::StoreTooSmall { kv_memory_bytes: memory, block_bytes }.into());
        }
        let kept = Kept { shape: *kv.shape(), kv_type: kv.kv_type(), store, bytes: block_bytes };
        let tiers = Tiers::start(memory, self.kv_disk.as_ref(), self.kv_remote.as_ref(), *model, kept);
        let tiers = tiers.map_err(|source| match &self.kv_disk {
            Some(disk) => StartError::KvDisk { folder: disk.folder.clone(), source },
            None => StartError::Thread(source),
        });
        tiers.map(Some)
    }

    /// Requests that may be inside at once, running or waiting.
    pub(crate) fn max_in_flight(&self) -> usize {
        self.max_running.saturating_add(self.max_waiting)
    }

    /// Tokens a sequence may hold, prompt and answer together.
    pub(crate) fn context(&self, model: &ModelConfig) -> usize {
        self.max_context.unwrap_or(usize::MAX).min(model.context)
    }
}

/// Attention to how many positions takes about as long as the products of one token. A multiplication of attention, in
/// floats, took twice as long as one of the quantised products on the processors that were measured.
fn positions_per_token(model: &ModelConfig) -> Option<NonZero<usize>> {
    let attention = model.heads * model.head_dim;
    let projections = model.width * 2 * (attention + model.kv_heads * model.head_dim);
    let products = projections + 3 * model.width * model.ffn;
    NonZero::new(products / (2 * attention).max(1) / 2)
}
