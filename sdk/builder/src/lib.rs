//! Builds a policy folder into a component, and reads what else the folder holds.
//!
//! A policy folder is `policy.toml` (the manifest), `rules.toml` (the configuration, optional), `cases/*.json`
//! (recorded cases) and the source, in the [`Language`] that its main file tells.
//!
//! - [`Builder`] finds or installs what compiles a language to a component without WASI, and compiles folders.
//! - [`read_policy_dir`] reads the data files beside the source.
//! - [`new_policy`] writes a folder that builds and passes its first case.
//!
//! A language is one row in each `match` on [`Language`], one module with its compiler, and one in `template`.
//!
//! Nothing here reads the environment: the cache folder is an argument, and programs are found by the operating system
//! when they are started.

mod apt;
mod builder;
mod c;
mod error;
mod folder;
mod inputs;
mod javascript;
mod language;
mod process;
mod python;
mod rust;
mod sdk;
mod template;

pub use builder::{Builder, Built};
pub use error::{BuildError, FolderError, ToolchainError};
pub use folder::{CaseFile, PolicyDir, read_cases, read_config, read_policy_dir};
pub use language::Language;
pub use template::{PolicyKind, new_policy};
