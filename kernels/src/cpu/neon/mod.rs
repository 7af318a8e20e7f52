//! NEON, with integer products by `smmla` or `sdot` where the processor has them and in 16 bits where not. NEON itself is
//! part of every 64-bit ARM target.

mod attend;
mod eight;
mod float;
mod products;
mod rows;

use std::marker::PhantomData;
use std::ops::Range;

use super::attend::attend;
use super::dot;
use super::kernels::{Attend, Kernels, Keys};
use crate::Isa;
use crate::matrix::{Coded, FloatRows};
use crate::quantized::{Quantized, Row};
use crate::shared::OutMatrix;
use products::{Instruction, Sdot, Smmla, Widening};

/// NEON with one way of making integer products. Those that not every processor has are handed out by `detect` alone:
/// that is what "proved" means below.
pub(super) struct Neon<I>(PhantomData<I>);

/// What every 64-bit ARM has.
pub(super) const ANY: &dyn Kernels = &Neon::<Widening>(PhantomData);

/// The same with `sdot`.
pub(super) fn detect_dot() -> Option<&'static dyn Kernels> {
    std::arch::is_aarch64_feature_detected!("dotprod").then_some(&Neon::<Sdot>(PhantomData))
}

/// The same with `smmla`, and `sdot` for what comes alone.
pub(super) fn detect_i8mm() -> Option<&'static dyn Kernels> {
    let found =
        std::arch::is_aarch64_feature_detected!("i8mm") && std::arch::is_aarch64_feature_detected!("dotprod");
    found.then_some(&Neon::<Smmla>(PhantomData))
}

impl<I: Instruction> Kernels for Neon<I> {
    fn isa(&self) -> Isa {
        I::ISA
    }

    fn quantize(&self, x: &[f32], out: &mut Row<'_>) {
        rows::quantize(x, out);
    }

    unsafe fn matmul_coded(&self, w: &Coded, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
        // SAFETY: proved; the caller's promise about `out` is passed on.
        unsafe { dot::matmul::<products::Products<I>>(w, x, tiles, out) }
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
        unsafe { attend::<products::Products<I>, _>(keys, state) }
    }

    fn attend_codes(&self, keys: &Keys<'_, i8>, state: &mut Attend<'_>) {
        // SAFETY: proved.
        unsafe { attend::<products::Products<I>, _>(keys, state) }
    }

    fn to_half(&self, from: &[f32], to: &mut [u16]) {
        rows::to_half(from, to);
    }
}
