//! Activations in 8 bits: made once for an input, read by every matrix that takes it.

use crate::Cpu;
use crate::aligned::Aligned;
use crate::matrix::GROUP;
use crate::outliers::{Outliers, RowOutliers};
use crate::shared::Parts;

/// Tokens that lie interleaved: as many as the largest register tile has, so that its addresses are one pointer and
/// constants.
pub(crate) const BLOCK: usize = 16;

/// What a kernel needs to know of one group of 32 activations besides its codes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GroupMeta {
    /// value ≈ scale · code
    pub(crate) scale: f32,
    /// Sums of the codes of columns 0..16 and 16..32.
    pub(crate) halves: [i32; 2],
}

/// The numbers kept for a group: places in its part of the plane.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(crate) enum Number {
    /// value ≈ scale · code
    Scale,
    /// scale · (sum of all codes): what a min is multiplied by
    Sum,
    /// The same for columns 0..16, and in the next place for 16..32.
    HalfSum,
    /// -16 · (sum of all codes), an integer: where sums begin if weights come with codes that are 16 too large.
    Less16 = 4,
    /// The same for 128.
    Less128,
    /// The same for 32 and columns 0..16, and in the next place for 16..32.
    HalfLess32,
}

/// How many there are.
pub(crate) const NUMBERS: usize = 8;

/// Activations `[tokens, cols]`, quantised in groups of 32 with a 32-bit scale, but for a few outliers of each token, which
/// stay floats (`outliers.rs`). A buffer to be used again and again: it grows to the largest input seen and allocates nothing
/// after that.
pub struct Quantized {
    tokens: usize,
    cols: usize,
    /// `[block, group, token of the block, 32]`; the last block has as many tokens as are left.
    codes: Aligned<i8>,
    /// `[block, group, number, token of the block]`: floats or integers, see [`Number`].
    numbers: Aligned<u32>,
    /// What is not in the codes: zero is there in its place.
    outliers: Outliers,
    /// `[block, col, token of the block]`, outliers among them.
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
        Self {
            tokens: 0,
            cols: 0,
            codes: Aligned::default(),
            numbers: Aligned::default(),
            outliers: Outliers::default(),
            floats: None,
        }
    }

    /// Tokens held.
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

    /// The plane of codes, each in -127..=127; the block that begins with token t begins at `t * groups * 32`.
    pub(crate) fn codes(&self) -> &[i8] {
        &self.codes[..self.tokens * self.groups() * GROUP]
    }

    /// The plane of numbers; the block that begins with token t begins at `t * groups * NUMBERS`.
    pub(crate) fn numbers(&self) -> &[u32] {
        &self.numbers[..self.tokens * self.groups() * NUMBERS]
    }

    /// The codes of one group of a token, and its entry in the plane of numbers.
    pub(crate) fn group(&self, token: usize, group: usize) -> (&[i8], impl Fn(Number, usize) -> u32) {
        let (block, at) = (token / BLOCK * BLOCK, token % BLOCK);
        let width = block_width(self.tokens, token);
        let first = block * self.groups() + group * width;
        let numbers = &self.numbers()[first * NUMBERS..][..width * NUMBERS];
        let number = move |number: Number, next: usize| numbers[(number as usize + next) * width + at];
        (&self.codes()[(first + at) * GROUP..][..GROUP], number)
    }

    /// What is not in the codes.
    pub(crate) fn outliers(&self) -> &Outliers {
        &self.outliers
    }

    /// The floats of the block that `token` is in, from that token's first on, and from one column to the next.
    /// Panics when they were not kept.
    pub(crate) fn floats_from(&self, token: usize) -> (&[f32], usize) {
        let floats = self.floats.as_ref().expect("a float matrix needs activations made by Quantized::new");
        let (block, width) = (token / BLOCK * BLOCK, block_width(self.tokens, token));
        (&floats[block * self.cols..][..width * self.cols][token % BLOCK..], width)
    }

    fn resize(&mut self, tokens: usize, cols: usize) {
        (self.tokens, self.cols) = (tokens, cols);
        self.outliers.resize(tokens, cols);
        let groups = self.tokens * self.groups();
        self.codes.reserve(groups * GROUP);
        self.numbers.reserve(groups * NUMBERS);
        if let Some(floats) = &mut self.floats {
            floats.reserve(tokens * cols);
        }
    }
}

/// Tokens of the block that `token` is in.
pub(crate) fn block_width(tokens: usize, token: usize) -> usize {
    (tokens - token / BLOCK * BLOCK).min(BLOCK)
}

/// One token's places in a block, to be filled group by group.
pub(crate) struct Row<'a> {
    codes: &'a mut [i8],
    numbers: &'a mut [u32],
    outliers: RowOutliers<'a>,
    width: usize,
    at: usize,
}

impl<'a> Row<'a> {
    /// The `at`th of the `width` tokens of a block.
    pub(crate) fn new(
        codes: &'a mut [i8],
        numbers: &'a mut [u32],
        outliers: RowOutliers<'a>,
        width: usize,
        at: usize,
    ) -> Self {
        Self { codes, numbers, outliers, width, at }
    }

    /// Writes one group by `write`, without what is above `limit`, which is kept as it is. Panics when it is not there.
    #[inline(always)]
    pub(crate) fn put(
        &mut self,
        group: usize,
        x: &[f32; GROUP],
        limit: f32,
        write: impl Fn(&[f32; GROUP], &mut [i8; GROUP]) -> GroupMeta,
    ) {
        let first = (group * self.width + self.at) * GROUP;
        let codes = self.codes[first..].first_chunk_mut().expect("a whole group");
        let mut meta = write(x, codes);
        if meta.scale * 127.0 > limit {
            let mut rest = *x;
            self.outliers.take(group * GROUP..(group + 1) * GROUP, &mut rest, limit);
            meta = write(&rest, codes);
        }
        let numbers = &mut self.numbers[group * self.width * NUMBERS..][..self.width * NUMBERS];
        let mut set = |number: Number, next: usize, bits: u32| {
            numbers[(number as usize + next) * self.width + self.at] = bits;
        };
        let sum = meta.halves[0] + meta.halves[1];
        set(Number::Scale, 0, meta.scale.to_bits());
        set(Number::Sum, 0, (meta.scale * sum as f32).to_bits());
        set(Number::Less16, 0, (-16 * sum).cast_unsigned());
        set(Number::Less128, 0, (-128 * sum).cast_unsigned());
        for (half, sum) in meta.halves.into_iter().enumerate() {
            set(Number::HalfSum, half, (meta.scale * sum as f32).to_bits());
            set(Number::HalfLess32, half, (-32 * sum).cast_unsigned());
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
        let numbers = Parts::new(&mut out.numbers);
        let outliers = out.outliers.shared();
        let floats = out.floats.as_deref_mut().map(Parts::new);
        self.for_rows(tokens.div_ceil(BLOCK), cols * BLOCK, &|blocks| {
            for block in blocks {
                let first = block * BLOCK;
                let width = block_width(tokens, first);
                // SAFETY: each block is visited by one task, and its parts of the buffers belong to it.
                let (codes, numbers, floats) = unsafe {
                    (
                        codes.slice(first * groups * GROUP, width * groups * GROUP),
                        numbers.slice(first * groups * NUMBERS, width * groups * NUMBERS),
                        floats.as_ref().map(|floats| floats.slice(first * cols, width * cols)),
                    )
                };
                let x = &x[first * cols..][..width * cols];
                for (at, x) in x.chunks_exact(cols).enumerate() {
                    // SAFETY: so does each token of the block.
                    let outliers = unsafe { outliers.row(first + at) };
                    self.kernels().quantize(x, &mut Row::new(codes, numbers, outliers, width, at));
                }
                if let Some(floats) = floats {
                    for (k, column) in floats.chunks_exact_mut(width).enumerate() {
                        column.iter_mut().enumerate().for_each(|(at, value)| *value = x[at * cols + k]);
                    }
                }
            }
        });
    }
}
