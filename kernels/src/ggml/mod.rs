//! GGML's tensor types: names, sizes, and their meaning as plain numbers.

mod dequantize;
mod unpack;
mod unpack_k;

pub use dequantize::dequantize;
pub(crate) use unpack::{Coding, Store, Unpacked, Zero, unpacker};

/// A type of tensor data, as numbered in GGUF files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(non_camel_case_types)] // the names the format itself uses
#[allow(missing_docs)]
pub enum GgmlType {
    F32,
    F16,
    BF16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
}

use GgmlType::*;

impl GgmlType {
    /// Every type that can be read.
    pub const ALL: [GgmlType; 13] = [F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2K, Q3K, Q4K, Q5K, Q6K];

    /// The type with this number in a GGUF file; `None` for types that are not supported.
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.id() == id)
    }

    /// Its number in a GGUF file.
    pub const fn id(self) -> u32 {
        self.facts().0
    }

    /// Its name, as tools print it.
    pub const fn name(self) -> &'static str {
        self.facts().1
    }

    /// Values in one block.
    pub const fn block_elems(self) -> usize {
        self.facts().2
    }

    /// Bytes of one block.
    pub const fn block_bytes(self) -> usize {
        self.facts().3
    }

    /// Bytes of `elems` values: `None` when they are not whole blocks or the number does not fit.
    pub const fn bytes_for(self, elems: usize) -> Option<usize> {
        if !elems.is_multiple_of(self.block_elems()) {
            return None;
        }
        (elems / self.block_elems()).checked_mul(self.block_bytes())
    }

    /// Number, name, values in a block, bytes of a block.
    const fn facts(self) -> (u32, &'static str, usize, usize) {
        match self {
            F32 => (0, "F32", 1, 4),
            F16 => (1, "F16", 1, 2),
            BF16 => (30, "BF16", 1, 2),
            Q4_0 => (2, "Q4_0", 32, 18),
            Q4_1 => (3, "Q4_1", 32, 20),
            Q5_0 => (6, "Q5_0", 32, 22),
            Q5_1 => (7, "Q5_1", 32, 24),
            Q8_0 => (8, "Q8_0", 32, 34),
            Q2K => (10, "Q2_K", 256, 84),
            Q3K => (11, "Q3_K", 256, 110),
            Q4K => (12, "Q4_K", 256, 144),
            Q5K => (13, "Q5_K", 256, 176),
            Q6K => (14, "Q6_K", 256, 210),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_types() {
        for ty in GgmlType::ALL {
            assert_eq!(GgmlType::from_id(ty.id()), Some(ty));
        }
        assert_eq!(GgmlType::from_id(9), None); // Q8_1: never in files
        assert_eq!(GgmlType::from_id(u32::MAX), None);
    }

    #[test]
    fn sizes_are_whole_blocks() {
        assert_eq!(Q4_1.bytes_for(576), Some(18 * 20));
        assert_eq!(Q4K.bytes_for(576), None);
        assert_eq!(F32.bytes_for(usize::MAX), None);
        assert_eq!(Q6K.bytes_for(0), Some(0));
    }
}
