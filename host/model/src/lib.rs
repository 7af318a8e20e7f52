//! Model files: what is in them, and how to run it.
//!
//! [`Model::load`] reads a GGUF file: its numbers ([`ModelConfig`]), its tokenizer ([`Tokenizer`]), its chat template
//! ([`ChatTemplate`]) and its weights, repacked by the kernels. [`Model::forward`] runs one step over the rows of many
//! sequences; which rows those are is decided elsewhere. [`Embedder`] is another model, for vectors of texts.
//!
//! What is not here: no clock (a template's date is an argument), no environment, no sampling, no threads of its own but
//! for hashing the file, and no `unsafe` but the one mapping in `gguf/map.rs`.

mod arch;
mod config;
mod embedder;
mod error;
mod forward;
pub mod gguf;
mod model;
pub mod template;
mod tokenizer;
mod weights;

pub use config::ModelConfig;
pub use embedder::{EmbedError, Embedder};
pub use error::{ForwardError, LoadError};
pub use forward::{Batch, Pass, Scratch};
pub use gguf::{Gguf, GgufError};
pub use model::Model;
pub use template::{
    ChatMessage, ChatTemplate, Now, RenderOptions, Rendered, Segment, SpecialTokens, TemplateError,
    TemplateSource,
};
pub use tokenizer::{TokenKind, TokenizeError, Tokenizer, TokenizerError};

// What a caller needs to make a batch and a cache.
pub use jackfield_kernels::{Cpu, KvArena, KvShape, KvSpan, KvStore, KvType};
