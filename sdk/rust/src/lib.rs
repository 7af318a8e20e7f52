//! What a Jackfield policy written in Rust links: the contract's types, one trait for each kind of policy, and one macro
//! that turns a type with that trait into a component.
//!
//! A policy is a configuration type and three functions:
//!
//! ```
//! use jackfield_sdk::{Description, Policy, Turn};
//! use jackfield_sdk::routing::{Decision, Request, Router, Target};
//!
//! #[derive(serde::Deserialize)]
//! struct Config {
//!     closed: bool,
//! }
//!
//! struct OpeningHours {
//!     config: Config,
//! }
//!
//! impl Policy for OpeningHours {
//!     type Config = Config;
//!
//!     fn describe() -> Description {
//!         Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
//!     }
//!
//!     fn configure(config: Config) -> Result<Self, String> {
//!         Ok(OpeningHours { config })
//!     }
//! }
//!
//! impl Router for OpeningHours {
//!     fn route(&self, _turn: &Turn, _request: &Request, fleet: &[Target]) -> Result<Decision, String> {
//!         if self.config.closed {
//!             return Ok(Decision::Answer("We are closed.".into()));
//!         }
//!         let target = fleet.first().ok_or("the fleet is empty")?;
//!         Ok(Decision::run_on(target))
//!     }
//! }
//!
//! jackfield_sdk::export_router!(OpeningHours);
//! ```
//!
//! Outside WebAssembly the macro expands to nothing, so the same type is tested with plain `cargo test`.
//!
//! What a policy must know:
//! - `configure` runs once and its result is frozen: every call starts from that memory, and nothing that a call writes
//!   is seen by the next. Compile tables there, not in the call.
//! - An error of a call is the `Err` of its result. A panic ends the call as a fault too, but without its message.
//! - Offsets are bytes of UTF-8, as in Rust's own strings. [`text::Folded`] maps matches in normalised text back.

pub mod bindings;
pub mod text;

mod describe;
mod export;
mod kinds;
mod state;

pub use bindings::imports::jackfield::policy::types::{
    Description, Edit, Field, Instant, Message, Role, Slot, Span, Turn, Value,
};
#[doc(hidden)]
pub use export::{__compressor, __output_filter, __router, __slot_extractor};
pub use kinds::{Policy, compression, imports, output_filtering, routing, slot_extraction};
#[doc(hidden)]
pub use state::Configured;
