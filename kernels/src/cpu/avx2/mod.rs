//! AVX2 with FMA and F16C. Everything that needs these instructions is in this folder.

mod attend;
mod coded;
mod exp;
mod float;
mod rows;
pub(super) mod series;

use std::ops::Range;

use self::attend::Eight;
use super::attend::attend;
use super::kernels::{Attend, Kernels, Keys};
use crate::Isa;
use crate::matrix::{Coded, FloatRows};
use crate::quantized::{Quantized, Row};
use crate::shared::OutMatrix;

/// Proof that the processor has AVX2, FMA and F16C: `detect` alone hands it out, and every call into this folder goes
/// through it. That is what the `SAFETY` notes below mean by "proved".
pub(super) struct Avx2(());

static FOUND: Avx2 = Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<&'static Self> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        found.then_some(&FOUND)
    }
}

impl Kernels for Avx2 {
    fn isa(&self) -> Isa {
        Isa::Avx2
    }

    fn quantize(&self, x: &[f32], out: &mut Row<'_>) {
        // SAFETY: proved.
        unsafe { rows::quantize(x, out) }
    }

    unsafe fn matmul_coded(&self, w: &Coded, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
        // SAFETY: proved; the caller's promise about `out` is passed on.
        unsafe { coded::matmul(w, x, tiles, out) }
    }

    unsafe fn matmul_float(&self, w: &FloatRows, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
        // SAFETY: as above.
        unsafe { float::matmul(w, x, tiles, out) }
    }

    fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        // SAFETY: proved.
        unsafe { rows::rms_norm(x, weight, eps, out) }
    }

    fn silu_mul(&self, gate: &mut [f32], up: &[f32]) {
        // SAFETY: proved.
        unsafe { rows::silu_mul(gate, up) }
    }

    fn exp_scaled(&self, x: &[f32], shift: f32, scale: f32, out: &mut [f32]) {
        // SAFETY: proved.
        unsafe { rows::exp_scaled(x, shift, scale, out) }
    }

    fn rotate_halves(&self, low: &mut [f32], high: &mut [f32], cos: &[f32], sin: &[f32]) {
        // SAFETY: proved.
        unsafe { rows::rotate_halves(low, high, cos, sin) }
    }

    fn rotate_pairs(&self, x: &mut [f32], cos: &[f32], sin: &[f32]) {
        // SAFETY: proved.
        unsafe { rows::rotate_pairs(x, cos, sin) }
    }

    fn attend(&self, keys: &Keys<'_, u16>, state: &mut Attend<'_>) {
        // SAFETY: proved.
        unsafe { attend::<Eight, _>(keys, state) }
    }

    fn attend_codes(&self, keys: &Keys<'_, i8>, state: &mut Attend<'_>) {
        // SAFETY: proved.
        unsafe { attend::<Eight, _>(keys, state) }
    }

    fn largest(&self, x: &[f32]) -> f32 {
        // SAFETY: proved.
        unsafe { rows::largest(x) }
    }

    fn to_codes(&self, x: &[f32], scale: f32, to: &mut [i8]) {
        // SAFETY: proved.
        unsafe { rows::to_codes(x, scale, to) }
    }

    fn to_half(&self, from: &[f32], to: &mut [u16]) {
        // SAFETY: proved.
        unsafe { rows::to_half(from, to) }
    }
}
