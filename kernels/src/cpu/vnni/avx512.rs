//! The 512-bit form: two tiles of eight rows side by side, by eight tokens.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::cpu::dot::{Dot, Format, View, tokens};
use crate::matrix::TILE;
use crate::shared::OutMatrix;

pub(super) struct Avx512;

impl Avx512 {
    pub(super) fn detect() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
    }
}

impl Dot for Avx512 {
    type Ints = __m512i;
    type Floats = __m512;
    const TILES: usize = 2;
    const TOKENS: usize = 8;
    const SIGNED: bool = false;

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn tokens<F: Format>(view: &View, tiles: Range<usize>, all: Range<usize>, out: &OutMatrix<'_>) {
        // SAFETY: the caller's promises.
        unsafe { tokens::<Self, F>(view, tiles, all, out) }
    }

    #[inline(always)]
    fn prefetch(at: *const u8) {
        // SAFETY: a prefetch of any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn codes(from: *const u8, next: usize) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe {
            let first = _mm512_castsi256_si512(_mm256_loadu_si256(from.cast()));
            _mm512_inserti64x4::<1>(first, _mm256_loadu_si256(from.add(next).cast()))
        }
    }

    #[inline(always)]
    unsafe fn low(both: __m512i) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_and_si512(both, _mm512_set1_epi8(15)) }
    }

    #[inline(always)]
    unsafe fn high(both: __m512i) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { Self::low(_mm512_srli_epi16::<4>(both)) }
    }

    #[inline(always)]
    unsafe fn raise(codes: __m512i) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_xor_si512(codes, _mm512_set1_epi8(i8::MIN)) }
    }

    #[inline(always)]
    unsafe fn four(x: *const i8) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_set1_epi32(x.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn dot(sum: __m512i, codes: __m512i, x: __m512i) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_dpbusd_epi32(sum, codes, x) }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn halves(from: *const u16, next: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            let first = _mm256_castsi128_si256(_mm_loadu_si128(from.cast()));
            _mm512_cvtph_ps(_mm256_inserti128_si256::<1>(first, _mm_loadu_si128(from.add(next).cast())))
        }
    }

    #[inline(always)]
    unsafe fn float(sums: __m512i) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_cvtepi32_ps(sums) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn store(values: __m512, to: &mut [[f32; TILE]; 2]) {
        // SAFETY: the caller's promise; there is room for sixteen.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr().cast(), values) }
    }
}
