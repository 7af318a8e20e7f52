//! The 256-bit form, in AVX encoding: a tile of eight rows by four tokens.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::cpu::dot::{Dot, Format, View, tokens};
use crate::shared::OutMatrix;

pub(super) struct Avx;

impl Avx {
    pub(super) fn detect() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("avxvnni")
    }
}

impl Dot for Avx {
    type Ints = __m256i;
    type Floats = __m256;
    const TILES: usize = 1;
    const TOKENS: usize = 4;
    const SIGNED: bool = false;

    #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
    unsafe fn tokens<F: Format>(
        view: &View<'_>,
        tiles: Range<usize>,
        all: Range<usize>,
        out: &OutMatrix<'_>,
    ) {
        // SAFETY: the caller's promises.
        unsafe { tokens::<Self, F>(view, tiles, all, out) }
    }

    #[inline(always)]
    fn prefetch(at: *const u8) {
        // SAFETY: a prefetch of any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn zero() -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn codes(from: *const u8, _: usize) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn low(both: __m256i) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_and_si256(both, _mm256_set1_epi8(15)) }
    }

    #[inline(always)]
    unsafe fn high(both: __m256i) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { Self::low(_mm256_srli_epi16::<4>(both)) }
    }

    #[inline(always)]
    unsafe fn raise(codes: __m256i) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_xor_si256(codes, _mm256_set1_epi8(i8::MIN)) }
    }

    #[inline(always)]
    unsafe fn up(codes: __m256i, bits: u32) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_sll_epi16(codes, _mm_cvtsi32_si128(bits.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn byte(codes: __m256i, i: usize) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_srai_epi32::<24>(_mm256_sll_epi32(codes, _mm_cvtsi32_si128(24 - 8 * i as i32))) }
    }

    #[inline(always)]
    unsafe fn four(x: *const i8) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_set1_epi32(x.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn dot(sum: __m256i, codes: __m256i, x: __m256i) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_dpbusd_avx_epi32(sum, codes, x) }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn halves(from: *const u16, _: usize) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn float(sums: __m256i) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtepi32_ps(sums) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(values: __m256, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_ps(to, values) }
    }
}
