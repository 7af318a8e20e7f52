//! The Wasm runtime for policies: limits, freezing, watching, registry, patch, swap.
//!
//! A policy is a component of the contract in `wit/`. A [`Runtime`] compiles it, holds it to the contract, has it configure
//! itself, freezes that state, and gives each call a fresh instance that starts from it, within the limits of its
//! [`Manifest`]. A [`Registry`] holds the policies in force as a [`Patch`], which a turn takes once and keeps.
//!
//! What is not here: wasmtime's types in any public signature; the contract's generated types outside of `convert.rs` and
//! `runtime/`; an answer of a guest that was not checked; WASI.

mod background;
mod bindings;
mod breaker;
mod call;
mod cases;
mod check;
mod convert;
mod dialog_rules;
mod fault;
mod host;
mod inspect;
mod manifest;
mod meter;
mod policy;
mod record;
mod refusal;
mod registry;
mod replay;
mod runtime;
mod schema;
mod scope;
mod signature;
mod stats;
pub mod stream;
pub mod types;
pub mod watch;
mod work;

pub use background::step_aside;
pub use breaker::{BreakerSettings, BreakerState, Trip};
pub use call::{Call, Outcome};
pub use cases::{Case, CaseFailure, Difference};
pub use dialog_rules::{DialogRules, Migration, OnOtherSchema};
pub use fault::Fault;
pub use host::{HostServices, LogLevel, NoServices, Scored};
pub use inspect::{ConfigProblem, Inspection, config_problems, inspect};
pub use manifest::{Grant, Kind, Limits, MAX_MEMORY_BYTES, Manifest, ManifestError, OnFault};
pub use meter::ImportStats;
pub use policy::{Called, Policy, PolicyVersion, Upload};
pub use record::{Answered, LogError, Record, RecordSettings, read_log};
pub use refusal::Refusal;
pub use registry::{
    Applied, BreakerStatus, CandidateStatus, Change, Compared, Example, Fitted, GenerationInfo, Lineup,
    Member, Patch, PolicyStatus, Registry, RegistryError, RegistryOptions, Rollout, Share, Stage, StateError,
    VersionStatus,
};
pub use replay::{Changed, Group, Replay, Replayed};
pub use runtime::{Allocation, Runtime, RuntimeConfig, RuntimeError, Strategy};
pub use scope::Scope;
pub use signature::{SignatureError, Trust, TrustedKeys};
pub use stats::{BUCKET_MICROS, Stats};
pub use types::*;
