//! NEON, with integer products by `sdot` where the processor has it and in 16 bits where not. NEON itself is part of
//! every 64-bit ARM target.

mod attend;
mod eight;
mod float;
mod products;
mod rows;

use std::ops::Range;

use super::attend::attend;
use super::dot;
use super::kernels::{Attend, Kernels, Keys};
use crate::Isa;
use crate::matrix::{Coded, FloatRows};
use crate::quantized::{Quantized, Row};
use crate::shared::OutMatrix;

/// NEON with or without `sdot`. The one with it is handed out by `detect_dot` alone: that is what "proved" means below.
pub(super) struct Neon<const SDOT: bool>(());

impl Neon<false> {
    /// What every 64-bit ARM has.
    pub(super) const ANY: &'static Self = &Neon(());
}

impl Neon<true> {
    pub(super) fn detect_dot() -> Option<&'static Self> {
        std::arch::is_aarch64_feature_detected!("dotprod").then_some(&Neon(()))
    }
}

impl<const SDOT: bool> Kernels for Neon<SDOT> {
    fn isa(&self) -> Isa {
        if SDOT { Isa::NeonDot } else { Isa::Neon }
    }

    fn quantize(&self, x: &[f32], out: &mut Row<'_>) {
        rows::quantize(x, out);
    }

    unsafe fn matmul_coded(&self, w: &Coded, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
        // SAFETY: proved; the caller's promise about `out` is passed on.
        unsafe { dot::matmul::<products::Products<SDOT>>(w, x, tiles, out) }
    }

    unsafe fn matmul_float(&self, w: &FloatRows, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
        // SAFETY: passed on.
        unsafe { float::matmul(w, x, tiles, out) }
    }

    fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        rows::rms_norm(x, weight, eps, out);
    }

    fn silu_mul(&self, gate: &mut [f32], up: &[f32]) {
        rows::silu_mul(gate, up);
    }

    fn rotate_halves(&self, low: &mut [f32], high: &mut [f32], cos: &[f32], sin: &[f32]) {
        rows::rotate_halves(low, high, cos, sin);
    }

    fn rotate_pairs(&self, x: &mut [f32], cos: &[f32], sin: &[f32]) {
        rows::rotate_pairs(x, cos, sin);
    }

    fn attend(&self, keys: &Keys<'_, u16>, state: &mut Attend<'_>) {
        // SAFETY: proved.
        unsafe { attend::<products::Products<SDOT>, _>(keys, state) }
    }

    fn attend_codes(&self, keys: &Keys<'_, i8>, state: &mut Attend<'_>) {
        // SAFETY: proved.
        unsafe { attend::<products::Products<SDOT>, _>(keys, state) }
    }

    fn to_half(&self, from: &[f32], to: &mut [u16]) {
        rows::to_half(from, to);
    }
}
