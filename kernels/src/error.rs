//! What can be wrong with data that comes from outside.

use crate::{GgmlType, Isa};

/// Why weights or a cache cannot be built. Nothing here is reachable after loading.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// Rows of this type are whole blocks; these are not.
    #[error("{} stores blocks of {block} values, so a row of {cols} cannot be stored: the file is damaged or mislabelled", ty.name())]
    RaggedRow {
        /// Type of the tensor.
        ty: GgmlType,
        /// Values in one row.
        cols: usize,
        /// Values in one block.
        block: usize,
    },
    /// The bytes do not hold the number of values asked for.
    #[error("{} values of type {} take {expected} bytes, found {found}: the tensor is cut short or mislabelled", values, ty.name())]
    WrongBytes {
        /// Type of the tensor.
        ty: GgmlType,
        /// Values asked for.
        values: usize,
        /// Bytes that many values take.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// A dimension is zero, or the product of dimensions does not fit the address space.
    #[error("{what} has an impossible size")]
    BadShape {
        /// What was being built.
        what: &'static str,
    },
    /// A scale is infinite, not a number, or beyond what 16 bits hold.
    #[error("row {row} has a scale that is not a finite 16-bit number: the file is damaged")]
    BadScale {
        /// First row found with it (of several bad rows, any may be named).
        row: usize,
    },
    /// A thread cannot be tied to this core.
    #[error("there is no core {core} for this process; there are {cores:?}")]
    NoCore {
        /// Asked for.
        core: usize,
        /// Those that the system lets this process have.
        cores: Vec<usize>,
    },
    /// The processor lacks an instruction set.
    #[error("this processor has no {}; it has {}", isa.name(), here.iter().map(|isa| isa.name()).collect::<Vec<_>>().join(", "))]
    NoIsa {
        /// Asked for.
        isa: Isa,
        /// Those that it has, best first.
        here: Vec<Isa>,
    },
    /// The allocator has no room.
    #[error("no memory for {bytes} bytes: use a smaller model, context or cache")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
    },
}
