//! The engine: one thread that owns the KV cache and the scheduler and turns jobs into text.
//!
//! The way of a job: [`Engine::submit`] checks it and hands it to the engine thread, which loops
//! *drain inbox → schedule → run the step → sample → commit → deliver*. What comes back arrives on the
//! [`Ticket`]; dropping the ticket cancels the job and frees its blocks.
//!
//! Nothing here knows of HTTP, of policies or of sessions.

mod config;
mod engine;
mod job;
mod kv_check;
mod mover;
mod outbox;
mod runner;
mod sampler;
mod scoring;
mod shared;
mod text;
mod ticket;
mod tiers;
mod worker;

pub use config::{ConfigError, EngineConfig};
pub use engine::{Engine, EngineStats, ModelInfo, StartError, SubmitError};
pub use jackfield_kernels::KvStore;
pub use jackfield_model::KvType;
pub use job::{Delta, EngineFault, Finish, InvalidJob, Job, Output, Sampling, TokenInfo, Usage};
pub use scoring::{ScoreError, Scores};
pub use ticket::Ticket;
pub use tiers::{
    DiskTier, Fetch, Fetched, InvalidServer, KvStats, Rejection, RemoteServer, RemoteStats, RemoteTier,
    TierStats,
};
