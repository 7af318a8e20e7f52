//! Why a model cannot be loaded, or a step not be run.

use jackfield_kernels::KernelError;

use crate::gguf::GgufError;
use crate::tokenizer::TokenizerError;

/// A model file that cannot be served. Nothing is half-loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is damaged, or a field is missing.
    #[error(transparent)]
    File(#[from] GgufError),
    /// The tokenizer cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// An architecture that has no row in the table.
    #[error("general.architecture: `{found}` is not supported; supported are {known}")]
    Architecture {
        /// What the file says.
        found: String,
        /// The architectures in the table.
        known: String,
    },
    /// A feature of the model that the decoder does not have: running without it would give wrong text.
    #[error("{field}: {value} is not supported; {hint}")]
    Unsupported {
        /// The metadata key.
        field: String,
        /// Its value.
        value: String,
        /// What would do.
        hint: &'static str,
    },
    /// A tensor whose shape is not what the metadata asks for.
    #[error("tensor {name}: shape {found:?} does not fit, {wanted:?} is needed ({from})")]
    Shape {
        /// The tensor.
        name: String,
        /// Its shape, fastest axis first.
        found: Vec<u64>,
        /// The shape needed, fastest axis first.
        wanted: Vec<u64>,
        /// Where the needed shape comes from.
        from: &'static str,
    },
    /// A tensor that the architecture does not use: leaving it out would give wrong text.
    #[error(
        "tensor {name}: not part of architecture `{architecture}` as it is known here; the model needs something more"
    )]
    UnknownTensor {
        /// The tensor.
        name: String,
        /// The architecture of the file.
        architecture: &'static str,
    },
    /// A tensor whose content cannot be used.
    #[error("tensor {name}: {source}")]
    Tensor {
        /// The tensor.
        name: String,
        /// What the kernels say.
        source: KernelError,
    },
}

/// A step that cannot be run: a mistake of the caller, found before anything is computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    /// Tokens, positions and spans do not describe the same rows.
    #[error("the batch has {tokens} tokens, {positions} positions and spans of {rows} rows")]
    Lengths {
        /// Tokens in the batch.
        tokens: usize,
        /// Positions in the batch.
        positions: usize,
        /// Rows of all spans.
        rows: usize,
    },
    /// A token outside the vocabulary.
    #[error("row {row}: token {token} is outside the vocabulary of {vocab}")]
    Token {
        /// Row of the batch.
        row: usize,
        /// The token.
        token: u32,
        /// Size of the vocabulary.
        vocab: usize,
    },
    /// A span that does not follow the one before, or leaves its block table or the cache.
    #[error(
        "span {span}: its rows do not follow the span before, or its blocks are outside the table or the cache"
    )]
    Span {
        /// Which span.
        span: usize,
    },
    /// Logits asked for a row that is not there.
    #[error("logits asked for row {row} of {rows}")]
    LogitsRow {
        /// The row asked for.
        row: usize,
        /// Rows of the batch.
        rows: usize,
    },
    /// A cache made for another model.
    #[error("the cache's shape is not this model's")]
    Cache,
}
