//! AVX2 with an instruction for integer products (`vpdpbusd`), in 256 bits or in 512, where attention and products of
//! floats are in 512 bits, too.
//! Everything else is AVX2's.

mod attend;
mod avx;
mod avx512;
mod exp;
mod float;

use std::ops::Range;
use std::sync::LazyLock;

use super::attend::{attend, fits};
use super::avx2::Avx2;
use super::dot;
use super::kernels::{Attend, Kernels, Keys};
use crate::Isa;
use crate::matrix::{Coded, FloatRows};
use crate::quantized::{Quantized, Row};
use crate::shared::OutMatrix;

/// Integer products by one instruction set, the rest by AVX2. `avx` and `avx512` alone hand it out, and only where the
/// processor has both: that is what "proved" means below.
pub(super) struct Vnni {
    isa: Isa,
    rest: &'static Avx2,
    /// Writes the cells `tiles × all tokens`, with the promises of [`Kernels::matmul_coded`].
    products: unsafe fn(&Coded, &Quantized, Range<usize>, &OutMatrix<'_>),
}

impl Vnni {
    /// The 256-bit form of processors that may lack AVX-512.
    pub(super) fn detect_avx() -> Option<&'static Self> {
        static FOUND: LazyLock<Option<Vnni>> = LazyLock::new(|| {
            let products = avx::Avx::detect().then_some(dot::matmul::<avx::Avx> as _)?;
            Some(Vnni { isa: Isa::AvxVnni, rest: Avx2::detect()?, products })
        });
        FOUND.as_ref()
    }

    /// The 512-bit form.
    pub(super) fn detect_avx512() -> Option<&'static Self> {
        static FOUND: LazyLock<Option<Vnni>> = LazyLock::new(|| {
            let products = avx512::Avx512::detect().then_some(dot::matmul::<avx512::Avx512> as _)?;
            Some(Vnni { isa: Isa::Avx512Vnni, rest: Avx2::detect()?, products })
        });
        FOUND.as_ref()
    }
}

impl Kernels for Vnni {
    fn isa(&self) -> Isa {
        self.isa
    }

    unsafe fn matmul_coded(&self, w: &Coded, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
        // SAFETY: proved; the caller's promise about `out` is passed on.
        unsafe { (self.products)(w, x, tiles, out) }
    }

    unsafe fn matmul_float(&self, w: &FloatRows, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
        // SAFETY: proved; the caller's promise about `out` is passed on.
        unsafe {
            match self.isa {
                Isa::Avx512Vnni => float::matmul(w, x, tiles, out),
                _ => self.rest.matmul_float(w, x, tiles, out),
            }
        }
    }

    fn quantize(&self, x: &[f32], out: &mut Row<'_>) {
        self.rest.quantize(x, out);
    }

    fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        self.rest.rms_norm(x, weight, eps, out);
    }

    fn silu_mul(&self, gate: &mut [f32], up: &[f32]) {
        self.rest.silu_mul(gate, up);
    }

    fn exp_scaled(&self, x: &[f32], shift: f32, scale: f32, out: &mut [f32]) {
        self.rest.exp_scaled(x, shift, scale, out);
    }

    fn rotate_halves(&self, low: &mut [f32], high: &mut [f32], cos: &[f32], sin: &[f32]) {
        self.rest.rotate_halves(low, high, cos, sin);
    }

    fn rotate_pairs(&self, x: &mut [f32], cos: &[f32], sin: &[f32]) {
        self.rest.rotate_pairs(x, cos, sin);
    }

    fn attend(&self, keys: &Keys<'_, u16>, state: &mut Attend<'_>) {
        if self.isa == Isa::Avx512Vnni && fits::<avx512::Avx512, _>(keys) {
            // SAFETY: proved.
            return unsafe { attend::<avx512::Avx512, _>(keys, state) };
        }
        self.rest.attend(keys, state);
    }

    fn attend_codes(&self, keys: &Keys<'_, i8>, state: &mut Attend<'_>) {
        if self.isa == Isa::Avx512Vnni && fits::<avx512::Avx512, _>(keys) {
            // SAFETY: proved.
            return unsafe { attend::<avx512::Avx512, _>(keys, state) };
        }
        self.rest.attend_codes(keys, state);
    }

    fn largest(&self, x: &[f32]) -> f32 {
        self.rest.largest(x)
    }

    fn to_codes(&self, x: &[f32], scale: f32, to: &mut [i8]) {
        self.rest.to_codes(x, scale, to);
    }

    fn to_half(&self, from: &[f32], to: &mut [u16]) {
        self.rest.to_half(from, to);
    }
}
