//! HTTP: the OpenAI API, the admin API, metrics.
//!
//! The way of a request: [`http`](self) reads it within its bounds, `openai` decodes it into plain data, `turn` takes it
//! through policies, engine and filters, `respond` writes the answer. JSON types stop in this crate; what engine and
//! policies are given is plain data.
//!
//! Nothing here reads the environment, owns a thread, or knows what a tensor or a Wasm module is.

mod admin;
mod api;
mod app;
mod config;
mod error;
mod http;
mod metrics;
pub mod openai;
mod respond;
mod serve;
mod session;
mod turn;

pub use app::Host;
pub use config::{
    ApiKey, ConfigError, OnConflict, OnExpired, RecallBy, ServerConfig, SessionConfig, VerifyConfig,
};
pub use error::ApiError;
pub use jackfield_dialog::Embedding;
pub use metrics::Swaps;
pub use serve::{ServeError, serve};
pub use session::{Embed, NoVector};
#[doc(hidden)]
pub use turn::measure;
