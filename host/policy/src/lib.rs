//! The Wasm runtime for policies: limits, freezing, registry, patch, swap.
mod manifest;
pub mod types;

pub use manifest::{Grant, Kind, Limits, MAX_MEMORY_BYTES, Manifest, ManifestError, OnFault};
pub use types::*;
