//! Weights that are floats: kept as they are, eight rows interleaved.

use half::{bf16, f16};

use super::TILE;
use crate::aligned::Aligned;
use crate::shared::Parts;
use crate::{Cpu, GgmlType, KernelError};

/// How one number is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    F32,
    F16,
    BF16,
}

impl Element {
    pub(crate) fn of(ty: GgmlType) -> Option<Self> {
        match ty {
            GgmlType::F32 => Some(Self::F32),
            GgmlType::F16 => Some(Self::F16),
            GgmlType::BF16 => Some(Self::BF16),
            _ => None,
        }
    }

    /// The number stored in 16 bits. Not for `F32`.
    pub(crate) fn short(self, bits: u16) -> f32 {
        match self {
            Self::BF16 => bf16::from_bits(bits).to_f32(),
            _ => f16::from_bits(bits).to_f32(),
        }
    }
}

/// Numbers as `[tile, column, row of 8]`, in the width they came in. One of the two planes is empty.
pub(crate) struct FloatRows {
    element: Element,
    cols: usize,
    short: Aligned<u16>,
    long: Aligned<f32>,
}

impl FloatRows {
    pub(super) fn pack(
        cpu: &Cpu,
        element: Element,
        bytes: &[u8],
        rows: usize,
        cols: usize,
    ) -> Result<Self, KernelError> {
        let mut made = Self { element, cols, short: Aligned::default(), long: Aligned::default() };
        let shape = (rows, cols);
        match element {
            Element::F32 => made.long = interleave(cpu, bytes.as_chunks::<4>().0, shape, f32::from_le_bytes)?,
            _ => made.short = interleave(cpu, bytes.as_chunks::<2>().0, shape, u16::from_le_bytes)?,
        }
        Ok(made)
    }

    pub(crate) fn element(&self) -> Element {
        self.element
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    pub(crate) fn bytes(&self) -> usize {
        2 * self.short.len() + 4 * self.long.len()
    }

    /// The plane of 16-bit numbers; tile t begins at `t * cols * 8`.
    pub(crate) fn short(&self) -> &[u16] {
        &self.short
    }

    /// The plane of 32-bit numbers; tile t begins at `t * cols * 8`.
    pub(crate) fn long(&self) -> &[f32] {
        &self.long
    }

    pub(super) fn row(&self, row: usize, out: &mut [f32]) {
        let first = row / TILE * self.cols * TILE + row % TILE;
        for (k, value) in out.iter_mut().enumerate() {
            *value = self.at(first + k * TILE);
        }
    }

    /// The number at a place of the plane in use.
    pub(crate) fn at(&self, place: usize) -> f32 {
        match self.element {
            Element::F32 => self.long[place],
            _ => self.element.short(self.short[place]),
        }
    }
}

fn interleave<T: crate::aligned::Plain, const N: usize>(
    cpu: &Cpu,
    numbers: &[[u8; N]],
    (rows, cols): (usize, usize),
    read: fn([u8; N]) -> T,
) -> Result<Aligned<T>, KernelError> {
    let (tiles, tile_len) = (rows.div_ceil(TILE), cols.saturating_mul(TILE));
    let mut plane = Aligned::try_zeroed(tiles.saturating_mul(tile_len))?;
    let parts = Parts::new(&mut plane);
    cpu.parallel(tiles, &|tile| {
        // SAFETY: a tile's numbers belong to its task alone.
        let out = unsafe { parts.slice(tile * tile_len, tile_len) };
        for row in tile * TILE..rows.min((tile + 1) * TILE) {
            for (k, bytes) in numbers[row * cols..][..cols].iter().enumerate() {
                out[k * TILE + row % TILE] = read(*bytes);
            }
        }
    });
    Ok(plane)
}
