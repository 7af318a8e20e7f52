//! What can be wrong with a GGUF file, and where.

use std::path::PathBuf;

use super::ValueType;

/// A file that cannot be used. Everything malformed names the field and the byte where it was found.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// The file could not be opened or mapped.
    #[error("cannot open {path}: {source}", path = path.display())]
    Open {
        /// The file asked for.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file was read and something in it is wrong.
    #[error("{field} at byte {offset}: {fault}")]
    Bad {
        /// The field, as a path: `header.version`, `tokenizer.ggml.tokens[7]`, `tensor blk.0.attn_q.weight`.
        field: String,
        /// Where the field starts in the file.
        offset: u64,
        /// What is wrong with it.
        fault: Fault,
    },
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The field claims more bytes than the file has left.
    #[error("needs {needed} bytes, the file has {available} left; it is truncated or its lengths are wrong")]
    Truncated {
        /// Bytes the field needs.
        needed: u64,
        /// Bytes between the field and the end of the file.
        available: u64,
    },
    /// The first four bytes are not `GGUF`.
    #[error("not a GGUF file: the first bytes are {0:02x?}")]
    Magic([u8; 4]),
    /// The version is one of a file written for big-endian machines.
    #[error("a big-endian file; convert it to little-endian")]
    BigEndian,
    /// Neither version 2 nor 3.
    #[error("GGUF version {0} is not supported; versions 2 and 3 are")]
    Version(u32),
    /// A count beyond what any real file has.
    #[error("{found} is more than the limit of {limit}")]
    TooMany {
        /// The count in the file.
        found: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// Text that is not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// A metadata value of an unknown type.
    #[error("unknown value type {0}")]
    ValueType(u32),
    /// An array of arrays.
    #[error("arrays inside arrays are not supported")]
    NestedArray,
    /// A name that was there before.
    #[error("appears twice")]
    Duplicate,
    /// A required field that is not in the file.
    #[error("is missing")]
    Missing,
    /// A field of another type than it must have.
    #[error("must be {wanted}, is {found}")]
    WrongType {
        /// What is accepted.
        wanted: &'static str,
        /// What the file holds.
        found: ValueType,
    },
    /// A field of the right type with an impossible value.
    #[error("{0}")]
    Value(String),
    /// Not a power of two, zero, or too large.
    #[error("alignment {0} is not a power of two from 1 to {max}", max = super::MAX_ALIGNMENT)]
    Alignment(u64),
    /// Zero or more than four dimensions.
    #[error("{0} dimensions; 1 to 4 are supported")]
    DimensionCount(u32),
    /// A dimension of length zero.
    #[error("dimension {0} is zero")]
    ZeroDimension(usize),
    /// The dimensions multiply to more than fits.
    #[error("dimensions {0:?} overflow")]
    DimensionOverflow(Vec<u64>),
    /// A quantisation that the kernels do not know.
    #[error(
        "unknown or unsupported quantisation id {0}; supported are F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and Q2_K to Q6_K"
    )]
    Quantisation(u32),
    /// Rows that are not whole blocks.
    #[error("rows of {columns} elements are not whole blocks of {block} ({quantisation})")]
    PartialBlock {
        /// Elements in a row.
        columns: u64,
        /// Elements in a block.
        block: u64,
        /// The quantisation's name.
        quantisation: &'static str,
    },
    /// A tensor's offset is not a multiple of the alignment.
    #[error("data offset {offset} is not a multiple of the alignment {alignment}")]
    Misaligned {
        /// Offset from the start of the data section.
        offset: u64,
        /// The file's alignment.
        alignment: u64,
    },
    /// Two tensors share bytes.
    #[error("its data overlaps that of {0}")]
    Overlap(String),
    /// A tensor's data goes past the end of the file.
    #[error("needs {needed} bytes of data from byte {start}, the file ends at {file}; it is truncated")]
    TensorTruncated {
        /// Bytes of the tensor.
        needed: u64,
        /// Absolute byte where its data starts.
        start: u64,
        /// Actual size of the file.
        file: u64,
    },
}

impl GgufError {
    pub(crate) fn bad(field: impl Into<String>, offset: u64, fault: Fault) -> Self {
        Self::Bad { field: field.into(), offset, fault }
    }

    /// The field that is wrong, when the file could be read at all.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Open { .. } => None,
            Self::Bad { field, .. } => Some(field),
        }
    }

    /// What is wrong with that field.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Open { .. } => None,
            Self::Bad { fault, .. } => Some(fault),
        }
    }
}
