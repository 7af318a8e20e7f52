//! Shared test support: tiny models, HTTP clients.

pub mod admin;
pub mod answer;
pub mod ask;
pub mod command;
pub mod host;
pub mod http;
pub mod sign;
pub mod store;
pub mod wire;

pub use jackfield_guests as guest;
pub use jackfield_tiny::{generate, gguf_writer, reciter, tiny_model};
