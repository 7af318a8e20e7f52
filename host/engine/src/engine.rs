//! The handle that the rest of the host holds.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender, sync_channel};
use std::time::{Duration, Instant};

use jackfield_kernels::{Cpu, KvArena, KvStore, KvType};
use jackfield_model::{ChatTemplate, Model, Tokenizer};
use jackfield_scheduler::{BlockHash, Scheduler, Stats, block_hashes};
use tokio::sync::mpsc::unbounded_channel;

use crate::config::{ConfigError, EngineConfig};
use crate::job::{InvalidJob, Job};
use crate::kv_check;
use crate::runner::ModelRunner;
use crate::scoring::{self, Scores};
use crate::shared::Shared;
use crate::ticket::Ticket;
use crate::tiers::{Fetch, KvStats, Tiers};
use crate::worker::{Command, Submission, Worker};

/// A handle to a running engine; clones share it. The engine thread ends when the last one is dropped.
#[derive(Clone)]
pub struct Engine {
    model: Arc<Model>,
    info: Arc<ModelInfo>,
    shared: Arc<Shared>,
    inbox: Sender<Command>,
}

/// What the outside may know of the model that is served.
#[derive(Debug, Clone)]
pub struct ModelInfo {
    /// The name in the file.
    pub name: String,
    /// The architecture's name.
    pub architecture: &'static str,
    /// Tokens that a prompt and its answer may have together.
    pub context: usize,
    /// Token ids are below this.
    pub vocab: usize,
    /// Identity of weights, tokenizer and template.
    pub fingerprint: [u8; 32],
}

/// How the engine stands, at this instant.
#[derive(Debug, Clone)]
pub struct EngineStats {
    /// The scheduler's counts of requests, blocks and tokens.
    pub scheduler: Stats,
    /// Requests inside, running or waiting.
    pub in_flight: usize,
    /// How many may be.
    pub max_in_flight: usize,
    /// Texts being scored.
    pub scoring: usize,
    /// Counter: how long the engine thread has had something to do, the device's own time included.
    pub busy: Duration,
    /// The tiers below the device.
    pub kv: KvStats,
}

/// The engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration does not fit the model.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The KV cache could not be made.
    #[error("cannot make the KV cache: {0}; give a smaller `kv_bytes`")]
    Kv(#[source] jackfield_kernels::KernelError),
    /// The folder for stored blocks cannot be used.
    #[error(
        "cannot keep KV blocks in {}: {source}; make it a folder that this user may write to, or set no `kv_disk`",
        folder.display()
    )]
    KvDisk {
        /// As configured.
        folder: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The system refused a thread.
    #[error("cannot start the engine thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// A job was not taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SubmitError {
    /// As many requests are inside as may be; try again later.
    #[error("the queue is full: {in_flight} requests are running or waiting")]
    QueueFull {
        /// Requests inside.
        in_flight: usize,
    },
    /// Prompt and at least one token of answer do not fit.
    #[error("the prompt has {prompt_tokens} tokens; the context holds {limit}, the answer included")]
    TooLong {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Tokens that fit, prompt and answer together.
        limit: usize,
    },
    /// A field is out of its range.
    #[error(transparent)]
    Invalid(#[from] InvalidJob),
    /// The engine has stopped after a failure.
    #[error("the engine is down")]
    Down,
}

impl Engine {
    /// Starts the engine thread with its KV cache.
    pub fn start(model: Model, cpu: &Cpu, config: &EngineConfig) -> Result<Engine, StartError> {
        let plan = config.plan_for(&model)?;
        let shape = model.kv_shape(plan.blocks, plan.block_size);
        let kv = KvArena::with_type(shape, config.kv_type).map_err(StartError::Kv)?;
        let store = store_for(&model, config);
        let model = Arc::new(model);
        let info = ModelInfo {
            name: model.config.name.clone(),
            architecture: model.config.architecture,
            context: plan.max_context.min(plan.blocks * plan.block_size),
            vocab: model.config.vocab,
            fingerprint: model.fingerprint,
        };
        tracing::info!(
            model = info.name,
            isa = ?cpu.isa(),
            threads = cpu.threads(),
            kv_type = ?config.kv_type,
            kv_blocks = plan.blocks,
            block_tokens = plan.block_size,
            "engine ready"
        );
        if info.context < plan.max_context {
            tracing::warn!(
                context = info.context,
                wanted = plan.max_context,
                "the memory for KV holds less than the context: prompts are limited to what it holds"
            );
        }
        let tiers = config.tiers_for(&model.fingerprint, &kv, store)?;
        let scheduler = Scheduler::new(plan).map_err(ConfigError::from)?;
        let shared = Arc::new(Shared::new(scheduler, tiers, config));
        let (inbox, commands) = mpsc::channel();
        let runner = ModelRunner::new(Arc::clone(&model), kv, config);
        let worker = Worker::new(Arc::clone(&model), Arc::clone(&shared), commands, runner);
        std::thread::Builder::new().name("engine".into()).spawn(move || worker.run())?;
        Ok(Engine { model, info: Arc::new(info), shared, inbox })
    }

    /// Hands a job to the engine thread.
    ///
    /// # Errors
    /// The job is refused at once, before it costs anything, when it is out of range, too long, or one too many.
    pub fn submit(&self, job: Job) -> Result<Ticket, SubmitError> {
        job.check(self.info.vocab, self.shared.max_choices)?;
        if job.prompt.len() >= self.info.context {
            return Err(SubmitError::TooLong { prompt_tokens: job.prompt.len(), limit: self.info.context });
        }
        if !self.is_ready() {
            return Err(SubmitError::Down);
        }
        // The pool alone would allow one more: the last token's keys and values are never needed.
        let room = self.info.context - job.prompt.len();
        let job = Job { max_new_tokens: job.max_new_tokens.min(room), ..job };
        let admission = self.shared.in_flight.take()?;
        let id = self.shared.next_id();
        let seed = job.sampling.seed.map_or_else(fresh_seed, Ok).map_err(|_| SubmitError::Down)?;
        let (responder, outputs) = unbounded_channel();
        let chain = self.chain(&job.prompt, &job.salt);
        let submission = Submission { id, job, chain, seed, responder, admission };
        let sent = self.inbox.send(Command::Submit(Box::new(submission)));
        sent.map_err(|_| SubmitError::Down)?;
        Ok(Ticket { id, inbox: self.inbox.clone(), outputs, done: false })
    }

    /// Has a text scored: how likely each of its tokens is after those before it. Behind all jobs, and in steps with other
    /// texts.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn score(&self, tokens: Vec<u32>) -> Result<Scores, SubmitError> {
        scoring::check(&tokens, self.info.vocab)?;
        if tokens.len() > self.info.context {
            return Err(SubmitError::TooLong { prompt_tokens: tokens.len(), limit: self.info.context });
        }
        if !self.is_ready() {
            return Err(SubmitError::Down);
        }
        let admission = self.shared.scoring.take()?;
        let id = self.shared.next_id();
        let (text, scores) = scoring::channel(id, tokens, admission, self.inbox.clone());
        self.inbox.send(Command::Score(Box::new(text))).map_err(|_| SubmitError::Down)?;
        Ok(scores)
    }

    /// Has what is stored of a prompt below memory read there, so that a [`submit`](Self::submit) of it that comes after finds it
    /// there. To be called as soon as the prompt is known, before whatever else its turn waits for. Costs some microseconds:
    /// the reading is done by threads of its own. A server that does not answer costs who waits for it twice its timeout at most,
    /// and seldom.
    pub fn fetch(&self, prompt: &[u32], salt: &[u8; 32]) -> Fetch {
        let Some(tiers) = self.shared.tiers() else { return Fetch::nothing() };
        let chain = self.chain(prompt, salt);
        let on_device: Vec<bool> = {
            let scheduler = self.shared.scheduler();
            chain.iter().map(|prefix| scheduler.find(prefix).is_some()).collect()
        };
        tiers.fetch(&chain, &on_device, self.shared.block_size)
    }

    /// Has the whole blocks of these tokens stored, as far as they are on the device or in memory: in memory, and below it, so
    /// that a host that starts again finds them, or another one. To be called when a turn has ended whose session is
    /// likely to go on. Does not wait: the copies are made between the next steps, a few before each, and written behind.
    ///
    /// For `keep_for` from now they are given up after all that is to be kept for less; 0 makes them like any others.
    pub fn keep(&self, tokens: &[u32], salt: &[u8; 32], keep_for: Duration) {
        let blocks = self.shared.not_kept(tokens, salt, keep_for);
        if !blocks.is_empty() {
            // An engine that is gone has nothing left to copy.
            let _ = self.inbox.send(Command::Keep(blocks));
        }
    }

    /// Waits until everything that was [to be kept](Self::keep) by now is written or has failed to be, for at most `patience`;
    /// true when it is.
    /// To be called before an orderly end. Blocks the calling thread.
    pub fn flush(&self, patience: Duration) -> bool {
        let Some(tiers) = self.shared.tiers() else { return true };
        let begun = Instant::now();
        let (sender, copied) = sync_channel(1);
        // An engine that is gone copies nothing more; what it has copied is still to be written.
        let asked = self.inbox.send(Command::KeepAll(sender)).is_ok();
        if asked && copied.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            return false;
        }
        tiers.flush(patience.saturating_sub(begun.elapsed()))
    }

    /// The blocks of a prompt that need not be computed, by name; none where there are no tiers to look in.
    fn chain(&self, prompt: &[u32], salt: &[u8; 32]) -> Vec<BlockHash> {
        if self.shared.tiers().is_none() {
            return Vec::new();
        }
        block_hashes(&prompt[..prompt.len().saturating_sub(1)], salt, self.shared.block_size)
    }

    /// False once the engine has failed.
    pub fn is_ready(&self) -> bool {
        !self.shared.is_closed()
    }

    /// Counts of requests, blocks and tokens.
    pub fn stats(&self) -> EngineStats {
        EngineStats {
            scheduler: self.shared.scheduler().stats(),
            in_flight: self.shared.in_flight.taken(),
            max_in_flight: self.shared.in_flight.most,
            scoring: self.shared.scoring.taken(),
            busy: self.shared.busy(),
            kv: self.shared.tiers().map(Tiers::stats).unwrap_or_default(),
        }
    }

    /// Tokens at the front of `prompt` whose KV is held under `salt`.
    pub fn cached_prefix(&self, prompt: &[u32], salt: &[u8; 32]) -> usize {
        self.shared.scheduler().cached_prefix(prompt, salt)
    }

    /// The model that is served.
    pub fn model(&self) -> &ModelInfo {
        &self.info
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.model.tokenizer
    }

    /// The model's chat template.
    pub fn template(&self) -> &Arc<ChatTemplate> {
        &self.model.template
    }
}

/// How blocks are kept outside of the cache. Where anything is to be kept in 8 bits, says how well the model bears it; the cache
/// itself is as configured, but what is stored beside a cache of floats stays as it is where that would show.
fn store_for(model: &Model, config: &EngineConfig) -> KvStore {
    let in_cache = config.kv_type == KvType::Int8;
    let in_store = !in_cache && config.has_tiers() && config.kv_store == KvStore::Int8;
    if !in_cache && !in_store {
        return config.kv_store;
    }
    match kv_check::check(model) {
        Ok(found) => {
            let (divergence, agreement, positions) = (found.divergence, found.agreement, found.positions);
            if found.is_good() {
                tracing::info!(divergence, agreement, positions, "the model bears KV in 8 bits");
                return config.kv_store;
            }
            let what = if in_cache {
                "a KV cache in 8 bits changes what this model says; `f16` does not"
            } else {
                "KV blocks in 8 bits would change what this model says: they are stored as the cache has them"
            };
            tracing::warn!(divergence, agreement, positions, "{what}");
        }
        Err(error) => tracing::warn!(%error, "what KV in 8 bits does to this model is not known"),
    }
    if in_store { KvStore::Same } else { config.kv_store }
}

fn fresh_seed() -> Result<u64, getrandom::Error> {
    getrandom::u64()
}
