//! Blocks taken apart into codes, scales and minima. Both dequantising and repacking start here.

use half::f16;

use super::{GgmlType, unpack_k};

/// How many bits a code really uses, which decides how it is stored and which kernel reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    /// 0..=15, two to a byte.
    Nibble,
    /// 0..=31, one to a byte.
    Five,
    /// 0..=63, one to a byte.
    Six,
    /// -128..=127, one to a byte.
    Signed,
}

/// What code means zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zero {
    /// value = scale · (code − offset)
    Offset(u8),
    /// value = scale · code + min, with a min for each group
    Stored,
}

/// How a type's values are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coding {
    pub(crate) store: Store,
    /// Values that share a scale: 16 or 32.
    pub(crate) group: usize,
    pub(crate) zero: Zero,
}

impl Coding {
    /// The coding of a quantised type; `None` for floats.
    pub(crate) const fn of(ty: GgmlType) -> Option<Coding> {
        use GgmlType::*;
        let (store, group, zero) = match ty {
            F32 | F16 | BF16 => return None,
            Q4_0 => (Store::Nibble, 32, Zero::Offset(8)),
            Q4_1 | Q4K => (Store::Nibble, 32, Zero::Stored),
            Q5_0 => (Store::Five, 32, Zero::Offset(16)),
            Q5_1 | Q5K => (Store::Five, 32, Zero::Stored),
            Q8_0 => (Store::Signed, 32, Zero::Offset(0)),
            Q2K => (Store::Nibble, 16, Zero::Stored),
            Q3K => (Store::Nibble, 16, Zero::Offset(4)),
            Q6K => (Store::Six, 16, Zero::Offset(32)),
        };
        Some(Coding { store, group, zero })
    }

    /// The value of one code.
    pub(crate) fn value(self, code: u8, scale: f32, min: f32) -> f32 {
        let code = match self.store {
            Store::Signed => i32::from(code.cast_signed()),
            _ => i32::from(code),
        };
        match self.zero {
            Zero::Offset(offset) => scale * (code - i32::from(offset)) as f32,
            Zero::Stored => scale * code as f32 + min,
        }
    }
}

/// One block, taken apart. Blocks of 32 use the first 32 codes and the first scale.
pub(crate) struct Unpacked {
    pub(crate) codes: [u8; 256],
    pub(crate) scales: [f32; 16],
    pub(crate) mins: [f32; 16],
}

impl Unpacked {
    pub(crate) fn new() -> Self {
        Self { codes: [0; 256], scales: [0.0; 16], mins: [0.0; 16] }
    }
}

/// Takes one block's bytes apart; the bytes are exactly one block.
pub(crate) type Unpack = fn(&[u8], &mut Unpacked);

/// The function for a quantised type; `None` for floats.
pub(crate) fn unpacker(ty: GgmlType) -> Option<Unpack> {
    use GgmlType::*;
    Some(match ty {
        F32 | F16 | BF16 => return None,
        Q4_0 => q4_0,
        Q4_1 => q4_1,
        Q5_0 => q5_0,
        Q5_1 => q5_1,
        Q8_0 => q8_0,
        Q2K => unpack_k::q2,
        Q3K => unpack_k::q3,
        Q4K => unpack_k::q4,
        Q5K => unpack_k::q5,
        Q6K => unpack_k::q6,
    })
}

/// The 16-bit float at `at`.
pub(super) fn float(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

fn q4_0(block: &[u8], out: &mut Unpacked) {
    out.scales[0] = float(block, 0);
    nibbles(&block[2..18], &mut out.codes);
}

fn q4_1(block: &[u8], out: &mut Unpacked) {
    out.scales[0] = float(block, 0);
    out.mins[0] = float(block, 2);
    nibbles(&block[4..20], &mut out.codes);
}

fn q5_0(block: &[u8], out: &mut Unpacked) {
    out.scales[0] = float(block, 0);
    nibbles(&block[6..22], &mut out.codes);
    fifth_bits(&block[2..6], &mut out.codes);
}

fn q5_1(block: &[u8], out: &mut Unpacked) {
    out.scales[0] = float(block, 0);
    out.mins[0] = float(block, 2);
    nibbles(&block[8..24], &mut out.codes);
    fifth_bits(&block[4..8], &mut out.codes);
}

fn q8_0(block: &[u8], out: &mut Unpacked) {
    out.scales[0] = float(block, 0);
    out.codes[..32].copy_from_slice(&block[2..34]);
}

/// Low nibbles are values 0..16, high nibbles 16..32.
fn nibbles(packed: &[u8], codes: &mut [u8; 256]) {
    for (j, byte) in packed.iter().enumerate() {
        codes[j] = byte & 15;
        codes[16 + j] = byte >> 4;
    }
}

/// Bit j of the little-endian word is bit 4 of value j.
fn fifth_bits(packed: &[u8], codes: &mut [u8; 256]) {
    for (j, code) in codes[..32].iter_mut().enumerate() {
        *code |= (packed[j / 8] >> (j % 8) & 1) << 4;
    }
}
