//! The face every instruction set has.

use std::ops::Range;

use crate::cpu::scalar;
use crate::matrix::{Coded, FloatRows};
use crate::quantized::{Quantized, Row};
use crate::shared::OutMatrix;
use crate::{Isa, codes};

/// The queries of a task: floats where keys are 16-bit floats, codes where keys are in codes, so that their products are
/// whole numbers. The other is empty.
#[derive(Clone, Copy, Default)]
pub(crate) struct Queries<'a> {
    /// Scaled, `[queries, dim]`.
    pub(crate) floats: &'a [f32],
    /// `[queries, dim]`
    pub(crate) codes: &'a [i8],
    pub(crate) metas: &'a [QueryMeta],
}

/// What a kernel needs to know of a query besides its codes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueryMeta {
    /// value ≈ scale · code
    pub(crate) scale: f32,
    /// sum of the codes
    pub(crate) sum: i32,
}

/// The keys and values of one layer and head in all blocks, as `kv.rs` lays them out: 16-bit floats (`u16`), or codes
/// (`i8`) with a scale for each position.
#[derive(Clone, Copy)]
pub(crate) struct Planes<'a, T> {
    /// Numbers, or codes, of the whole arena.
    pub(crate) cells: &'a [T],
    /// Scales of codes, 16-bit floats, of the whole arena.
    pub(crate) scales: &'a [u16],
    /// Number of the first plane, K of block 0; V follows K.
    pub(crate) first: usize,
    /// Planes from a block to the next.
    pub(crate) stride: usize,
    /// Positions in a plane: those of a block, rounded up to eight.
    pub(crate) pitch: usize,
    /// Positions in a block that count.
    pub(crate) block_size: usize,
    /// Dimensions of a head, rounded up to eight: the padding is zero.
    pub(crate) dim: usize,
}

impl<'a, T> Planes<'a, T> {
    /// Keys of a block: floats `[dim, pitch]`, codes `[dim / 4, pitch, 4]`.
    #[inline]
    pub(crate) fn k(&self, block: u32) -> &'a [T] {
        Self::part(self.cells, self.pitch * self.dim, self.number(block))
    }

    /// Values of a block, `[position, dim]`.
    #[inline]
    pub(crate) fn v(&self, block: u32) -> &'a [T] {
        Self::part(self.cells, self.pitch * self.dim, self.number(block) + 1)
    }

    /// Scales of a block's keys, one for each position.
    #[inline]
    pub(crate) fn k_scales(&self, block: u32) -> &'a [u16] {
        Self::part(self.scales, self.pitch, self.number(block))
    }

    /// Scales of a block's values.
    #[inline]
    pub(crate) fn v_scales(&self, block: u32) -> &'a [u16] {
        Self::part(self.scales, self.pitch, self.number(block) + 1)
    }

    #[inline]
    fn number(&self, block: u32) -> usize {
        self.first + block as usize * self.stride
    }

    #[inline]
    fn part<U>(all: &'a [U], len: usize, number: usize) -> &'a [U] {
        &all[number * len..][..len]
    }
}

/// The keys and values of some consecutive positions: whole blocks.
pub(crate) struct Keys<'a, T> {
    pub(crate) planes: Planes<'a, T>,
    /// Where the positions are.
    pub(crate) blocks: &'a [u32],
    /// The blocks of the call that follows, as far as they are known: worth asking memory for.
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]
    pub(crate) next: &'a [u32],
}

/// The running state of softmax-weighted sums, one for each query of a task.
pub(crate) struct Attend<'a> {
    pub(crate) q: Queries<'a>,
    /// For each query, how many of the positions of this call it sees: the first so many.
    pub(crate) visible: &'a [u32],
    /// Room for scores `[queries, blocks · pitch]`.
    pub(crate) scores: &'a mut [f32],
    /// Largest score so far, for each query.
    pub(crate) max: &'a mut [f32],
    /// Sum of weights so far.
    pub(crate) sum: &'a mut [f32],
    /// Weighted sum of values so far, `[queries, dim]`.
    pub(crate) acc: &'a mut [f32],
}

/// Makes scores that a query does not see minus infinity: positions from `visible` on, and the padding of each block.
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))] // the reference needs none
pub(super) fn hide(scores: &mut [f32], visible: usize, block_size: usize, pitch: usize) {
    let (block, at) = (visible / block_size, visible % block_size);
    if pitch > block_size {
        scores.chunks_exact_mut(pitch).for_each(|block| block[block_size..].fill(f32::NEG_INFINITY));
    }
    if let Some(rest) = scores.get_mut(block * pitch + at..) {
        rest.fill(f32::NEG_INFINITY);
    }
}

/// One implementation for each instruction set. What an instruction set does not define runs the scalar reference, so
/// that a new one can begin with what matters most.
///
/// Lengths are checked by the callers in this crate before they get here; implementations check again what their own
/// `unsafe` relies on.
pub(crate) trait Kernels: Send + Sync {
    fn isa(&self) -> Isa;

    /// Quantises one row, but for its outliers; `out` has a place for each group of 32, the last one perhaps filled up with
    /// zeros.
    fn quantize(&self, x: &[f32], out: &mut Row<'_>) {
        scalar::quantize(x, out);
    }

    /// Writes the cells `tiles × all tokens` of `x · wᵀ`.
    ///
    /// # Safety
    /// No other task may use these cells of `out` at the same time.
    unsafe fn matmul_coded(&self, w: &Coded, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
        // SAFETY: passed on.
        unsafe { scalar::matmul_coded(w, x, tiles, out) }
    }

    /// The same for float weights.
    ///
    /// # Safety
    /// As for `matmul_coded`.
    unsafe fn matmul_float(&self, w: &FloatRows, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
        // SAFETY: passed on.
        unsafe { scalar::matmul_float(w, x, tiles, out) }
    }

    /// Normalises one row.
    fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        scalar::rms_norm(x, weight, eps, out);
    }

    /// gate = silu(gate) · up
    fn silu_mul(&self, gate: &mut [f32], up: &[f32]) {
        scalar::silu_mul(gate, up);
    }

    /// out = e^((x - shift) · scale)
    fn exp_scaled(&self, x: &[f32], shift: f32, scale: f32, out: &mut [f32]) {
        scalar::exp_scaled(x, shift, scale, out);
    }

    /// Turns pairs (x[i], x[half+i]) by the angles with these cosines and sines; all of them `half` long.
    fn rotate_halves(&self, low: &mut [f32], high: &mut [f32], cos: &[f32], sin: &[f32]) {
        scalar::rotate_halves(low, high, cos, sin);
    }

    /// Turns pairs (x[2i], x[2i+1]); `x` is twice as long as `cos` and `sin`.
    fn rotate_pairs(&self, x: &mut [f32], cos: &[f32], sin: &[f32]) {
        scalar::rotate_pairs(x, cos, sin);
    }

    /// Brings `keys` into the running sums of `state`.
    fn attend(&self, keys: &Keys<'_, u16>, state: &mut Attend<'_>) {
        scalar::attend(keys, state);
    }

    /// The same for keys and values in codes.
    fn attend_codes(&self, keys: &Keys<'_, i8>, state: &mut Attend<'_>) {
        scalar::attend_codes(keys, state);
    }

    /// The largest magnitude; NaN where there is one.
    fn largest(&self, x: &[f32]) -> f32 {
        codes::largest(x)
    }

    /// Codes of `x` by a scale, see `codes.rs`.
    fn to_codes(&self, x: &[f32], scale: f32, to: &mut [i8]) {
        codes::put(x, scale, to);
    }

    /// 16-bit floats of `from`, rounded to nearest.
    fn to_half(&self, from: &[f32], to: &mut [u16]) {
        scalar::to_half(from, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cpu;
    use crate::outliers::Outliers;
    use crate::quantized::NUMBERS;

    /// Numbers of both signs over many powers of two, and some at the ends of what 16-bit floats hold.
    fn numbers(len: usize) -> Vec<f32> {
        let ends =
            [0.0, -0.0, 65504.0, 65519.9, 65520.0, 1e9, 5.9e-8, 2.9e-8, 6.1e-5, 1.000_488_3, f32::INFINITY];
        let number = |i: usize| match i % 13 {
            12 => ends[i / 13 % ends.len()],
            k => ((i * 2_654_435_761) as u32 as f32 / 2e9 - 1.0) * 2f32.powi(k as i32 * 3 - 24),
        };
        (0..len).map(number).collect()
    }

    /// Every length; a few of them under an interpreter.
    fn lengths(all: Range<usize>) -> impl Iterator<Item = usize> {
        all.step_by(if cfg!(miri) { 37 } else { 1 })
    }

    fn every() -> impl Iterator<Item = &'static dyn Kernels> {
        Isa::ALL.into_iter().filter_map(|isa| Cpu::with_isa(1, isa).ok()).map(|cpu| cpu.kernels())
    }

    #[test]
    fn quantised_rows_are_the_references_to_the_bit() {
        let quantized = |kernels: &dyn Kernels, x: &[f32]| {
            let groups = x.len().div_ceil(32);
            // The second of three tokens: its neighbours' places stay as they are.
            let (mut codes, mut numbers) = (vec![99; 3 * groups * 32], vec![99; 3 * groups * NUMBERS]);
            let mut outliers = Outliers::default();
            outliers.resize(3, x.len());
            let shared = outliers.shared();
            // SAFETY: nothing else uses them.
            let places = unsafe {
                let _ = shared.row(0); // begins the four
                shared.row(1)
            };
            kernels.quantize(x, &mut Row::new(&mut codes, &mut numbers, places, 3, 1));
            let outliers: Vec<(usize, [f32; 4])> = outliers.around(1).map(|(c, v)| (c, *v)).collect();
            (codes, numbers, outliers)
        };
        for kernels in every() {
            for len in lengths(1..130) {
                let x: Vec<f32> = numbers(3 * len).into_iter().filter(|x| x.is_finite()).take(len).collect();
                for x in [x, vec![0.0; len], vec![-1e-40; len], vec![127.0; len]] {
                    let same = quantized(kernels, &x) == quantized(&scalar::Scalar, &x);
                    assert!(same, "{} {x:?}", kernels.isa().name());
                }
            }
        }
    }

    #[test]
    fn halves_are_the_references_to_the_bit() {
        for kernels in every() {
            for len in lengths(0..300) {
                let x = numbers(len);
                let (mut got, mut want) = (vec![7; len], vec![9; len]);
                kernels.to_half(&x, &mut got);
                scalar::to_half(&x, &mut want);
                assert_eq!(got, want, "{}", kernels.isa().name());
            }
        }
    }
}
