//! Activations in 8 bits: made once for an input, read by every matrix that takes it.

use crate::Cpu;
use crate::aligned::{Aligned, Plain};
use crate::matrix::GROUP;
use crate::shared::Parts;

/// What a kernel needs to know of one group of 32 activations besides its codes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C)]
pub(crate) struct GroupMeta {
    /// value ≈ scale · code
    pub(crate) scale: f32,
    /// scale · (sum of all codes): what a min is multiplied by
    pub(crate) sum: f32,
    /// the same for columns 0..16 and 16..32
    pub(crate) halves: [f32; 2],
}

// SAFETY: four floats.
unsafe impl Plain for GroupMeta {}

/// Activations `[tokens, cols]`, quantised in groups of 32 with a 32-bit scale. A buffer to be used again and again:
/// it grows to the largest input seen and allocates nothing after that.
pub struct Quantized {
    tokens: usize,
    cols: usize,
    codes: Aligned<i8>,
    metas: Aligned<GroupMeta>,
    floats: Option<Aligned<f32>>,
}

impl Default for Quantized {
    fn default() -> Self {
        Self::new()
    }
}

impl Quantized {
    /// An empty buffer that also keeps the floats, which matrices of F32, F16 and BF16 are multiplied with.
    pub fn new() -> Self {
        Self { floats: Some(Aligned::default()), ..Self::without_floats() }
    }

    /// An empty buffer for quantised matrices only ([`Matrix::is_float`](crate::Matrix::is_float) is false): saves
    /// copying the floats.
    pub fn without_floats() -> Self {
        Self { tokens: 0, cols: 0, codes: Aligned::default(), metas: Aligned::default(), floats: None }
    }

    /// Rows held.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Values in a row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Groups of 32 in a row, the last one perhaps filled up with zeros.
    pub(crate) fn groups(&self) -> usize {
        self.cols.div_ceil(GROUP)
    }

    /// Codes of all tokens, `[tokens, groups, 32]`, each in -127..=127.
    pub(crate) fn codes(&self) -> &[i8] {
        &self.codes[..self.tokens * self.groups() * GROUP]
    }

    /// `[tokens, groups]`
    pub(crate) fn metas(&self) -> &[GroupMeta] {
        &self.metas[..self.tokens * self.groups()]
    }

    /// The floats themselves, `[tokens, cols]`. Panics when they were not kept.
    pub(crate) fn floats(&self) -> &[f32] {
        let floats = self.floats.as_ref().expect("a float matrix needs activations made by Quantized::new");
        &floats[..self.tokens * self.cols]
    }

    fn resize(&mut self, tokens: usize, cols: usize) {
        (self.tokens, self.cols) = (tokens, cols);
        let groups = tokens * self.groups();
        self.codes.reserve(groups * GROUP);
        self.metas.reserve(groups);
        if let Some(floats) = &mut self.floats {
            floats.reserve(tokens * cols);
        }
    }
}

impl Cpu {
    /// Quantises `x`, `[tokens, cols]`, into `out`. Panics when `x` is not whole rows.
    pub fn quantize(&self, x: &[f32], tokens: usize, out: &mut Quantized) {
        let cols = x.len().checked_div(tokens).unwrap_or(0);
        assert_eq!(x.len(), tokens * cols, "{} values are not {tokens} rows", x.len());
        out.resize(tokens, cols);
        let groups = out.groups();
        let codes = Parts::new(&mut out.codes);
        let metas = Parts::new(&mut out.metas);
        let floats = out.floats.as_deref_mut().map(Parts::new);
        self.for_rows(tokens, cols, &|rows| {
            for row in rows {
                let x = &x[row * cols..][..cols];
                // SAFETY: each row is visited by one task, and its parts of the buffers belong to it.
                unsafe {
                    let codes = codes.slice(row * groups * GROUP, groups * GROUP);
                    self.kernels().quantize(x, codes, metas.slice(row * groups, groups));
                    if let Some(floats) = &floats {
                        floats.slice(row * cols, cols).copy_from_slice(x);
                    }
                }
            }
        });
    }
}
