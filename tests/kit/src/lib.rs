//! Shared test support: tiny models, HTTP clients.

pub mod generate;
pub mod gguf_writer;
pub mod host;
pub mod http;
pub mod tiny_model;
