//! Weights in the layouts the kernels read: see `README.md` for a picture.
//!
//! Eight rows are interleaved into a *tile*, so that one vector holds the same column of eight rows and a dot product
//! needs no sum across lanes. A matrix whose rows are not a multiple of eight ends with a tile of zero rows.

mod coded;
mod float;

pub(crate) use coded::{Coded, code_of, group_codes, group_scales, scale_of};
pub(crate) use float::{Element, FloatRows};

use crate::{Cpu, GgmlType, KernelError};

/// Rows in a tile.
pub(crate) const TILE: usize = 8;
/// Columns in a group of activations.
pub(crate) const GROUP: usize = 32;

/// Weights `[rows, cols]`, repacked for the kernels.
///
/// | type | stored as | bytes a value | change to a value |
/// |---|---|---|---|
/// | F32, F16, BF16 | the same numbers, interleaved | 4, 2, 2 | none |
/// | Q4_0 | 4 bits, scale per 32 | 0.5625 | none |
/// | Q4_1 | 4 bits, scale and min per 32 | 0.625 | none |
/// | Q5_0, Q8_0 | 8 bits, scale per 32 | 1.0625 | none |
/// | Q5_1 | 8 bits, scale and min per 32 | 1.125 | none |
/// | Q4_K | 4 bits, scale and min per 32 | 0.625 | scale and min rounded to 16 bits |
/// | Q5_K | 8 bits, scale and min per 32 | 1.125 | scale and min rounded to 16 bits |
/// | Q2_K | 4 bits, scale and min per 16 | 0.75 | scale and min rounded to 16 bits |
/// | Q3_K | 4 bits, scale per 16 | 0.625 | scale rounded to 16 bits |
/// | Q6_K | 8 bits, scale per 16 | 1.125 | scale rounded to 16 bits |
///
/// Codes are never changed. Rounding a sub-block's scale (the file's 16-bit float times a 4 to 8 bit integer) to a
/// 16-bit float moves it by at most 2⁻¹¹ of itself, or 2⁻²⁵ for the very small.
pub struct Matrix {
    rows: usize,
    cols: usize,
    body: Body,
}

/// The two families of layouts.
pub(crate) enum Body {
    Coded(Coded),
    Float(FloatRows),
}

impl Matrix {
    /// Repacks `bytes`, which hold `[rows, cols]` values of type `ty`, on all threads of `cpu`.
    ///
    /// # Errors
    /// [`KernelError::RaggedRow`] when a row is not whole blocks, [`KernelError::WrongBytes`] when `bytes` has another
    /// length, [`KernelError::BadShape`] for an empty or impossible shape, [`KernelError::BadScale`] for a quantised
    /// scale that is not a finite 16-bit number, [`KernelError::OutOfMemory`].
    pub fn pack(
        cpu: &Cpu,
        ty: GgmlType,
        bytes: &[u8],
        rows: usize,
        cols: usize,
    ) -> Result<Matrix, KernelError> {
        let impossible = KernelError::BadShape { what: "a matrix" };
        let values = rows.checked_mul(cols).filter(|n| *n > 0).ok_or(impossible.clone())?;
        let ragged = KernelError::RaggedRow { ty, cols, block: ty.block_elems() };
        let row_bytes = ty.bytes_for(cols).ok_or(ragged)?;
        let expected = row_bytes.checked_mul(rows).ok_or(impossible)?;
        if bytes.len() != expected {
            return Err(KernelError::WrongBytes { ty, values, expected, found: bytes.len() });
        }
        let body = match Element::of(ty) {
            Some(element) => Body::Float(FloatRows::pack(cpu, element, bytes, rows, cols)?),
            None => Body::Coded(Coded::pack(cpu, ty, bytes, rows, cols)?),
        };
        Ok(Matrix { rows, cols, body })
    }

    /// Outputs of a matmul; entries of an embedding table.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Inputs of a matmul; width of an embedding.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Resident bytes, which are also the bytes one pass over the matrix reads.
    pub fn bytes(&self) -> usize {
        match &self.body {
            Body::Coded(coded) => coded.bytes(),
            Body::Float(float) => float.bytes(),
        }
    }

    /// Whether it holds floats, and so needs activations that kept theirs: see [`Quantized::without_floats`].
    ///
    /// [`Quantized::without_floats`]: crate::Quantized::without_floats
    pub fn is_float(&self) -> bool {
        matches!(self.body, Body::Float(_))
    }

    /// Writes row `row` to `out`, which is `cols` long. Panics on a row that is not there or another length.
    pub fn row(&self, row: usize, out: &mut [f32]) {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        assert_eq!(out.len(), self.cols, "a row has {} values", self.cols);
        match &self.body {
            Body::Coded(coded) => coded.row(row, out),
            Body::Float(float) => float.row(row, out),
        }
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// Tiles of eight rows, the last one perhaps partly empty.
    pub(crate) fn tiles(&self) -> usize {
        self.rows.div_ceil(TILE)
    }
}
