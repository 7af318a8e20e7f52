//! Why a tokenizer cannot be built, or a text not be encoded.

use crate::gguf::GgufError;

/// The file's tokenizer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// A field is missing or malformed.
    #[error(transparent)]
    File(#[from] GgufError),
    /// `tokenizer.ggml.model` is neither of the two kinds that are known.
    #[error(
        "tokenizer.ggml.model: `{0}` is not supported; `gpt2` (byte-level BPE) and `llama` (SentencePiece) are"
    )]
    Model(String),
    /// `tokenizer.ggml.pre` names an unknown way to split text.
    #[error(
        "tokenizer.ggml.pre: `{found}` is not known, and guessing would give wrong tokens; known are {known}"
    )]
    PreTokeniser {
        /// What the file names.
        found: String,
        /// All names that are known.
        known: String,
    },
}

/// A text that this vocabulary cannot express.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenizeError {
    /// The vocabulary has no token for a byte and no unknown token.
    #[error("the model's vocabulary has no token for byte 0x{byte:02x}")]
    NoToken {
        /// The byte without a token.
        byte: u8,
    },
    /// Longer than positions are counted in.
    #[error("a text of {bytes} bytes is too long to tokenise; the limit is {limit}")]
    TooLong {
        /// Bytes of the text.
        bytes: usize,
        /// The most that is accepted.
        limit: usize,
    },
    /// A rendered prompt names a control token that is not in this vocabulary.
    #[error("control token `{0}` is not in this vocabulary")]
    NoControl(String),
}
