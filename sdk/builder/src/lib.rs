//! Builds a policy folder into a component, and reads what else the folder holds.
//!
//! A policy folder is `policy.toml` (the manifest), `rules.toml` (the configuration, optional), `cases/*.json`
//! (recorded cases) and a Rust crate (`Cargo.toml`, `src/lib.rs`) that depends on `jackfield-sdk`.
//!
//! - [`Toolchain::find`] finds or installs what compiles Rust to a component without WASI.
//! - [`Toolchain::build`] compiles one folder.
//! - [`read_policy_dir`] reads the data files beside the source.
//! - [`new_policy`] writes a folder that builds and passes its first case.
//!
//! Nothing here reads the environment: the cache folder is an argument, and programs are found by the operating system
//! when they are started.

mod build;
mod debian;
mod error;
mod folder;
mod memory;
mod process;
mod rust;
mod template;
mod toolchain;

pub use build::Built;
pub use error::{BuildError, FolderError, ToolchainError};
pub use folder::{CaseFile, PolicyDir, read_policy_dir};
pub use template::{PolicyKind, new_policy};
pub use toolchain::{Toolchain, Way};
