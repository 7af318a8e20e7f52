//! Tiny model files for tests, and the shortest way to run one.

pub mod generate;
pub mod gguf_writer;
pub mod reciter;
pub mod tiny_model;
