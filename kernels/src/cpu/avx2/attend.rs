//! Attention with vectors of eight.

use std::arch::x86_64::*;

use super::exp::{exp, max, sum};
use crate::cpu::attend::{Cell, Lanes, tile};
use crate::cpu::kernels::{Attend, Keys};

/// Vectors of AVX2, FMA and F16C.
pub(super) struct Eight;

impl Lanes for Eight {
    type Floats = __m256;
    type Ints = __m256i;
    type Codes = __m256i;
    const LANES: usize = 8;
    /// With two vectors each, 12 of the 16 registers are sums.
    const QUERIES: usize = 6;
    const RAISED: i32 = 0;

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn tile<T: Cell>(keys: &Keys<'_, T>, state: &mut Attend<'_>, first: usize) -> usize {
        // SAFETY: the caller's promises.
        unsafe {
            match state.visible.len() - first {
                Self::QUERIES.. => tile::<Self, T, { Self::QUERIES }, 2>(keys, state, first),
                3.. => tile::<Self, T, 3, 2>(keys, state, first),
                2.. => tile::<Self, T, 2, 2>(keys, state, first),
                _ => tile::<Self, T, 1, 2>(keys, state, first),
            }
        }
    }

    #[inline(always)]
    fn prefetch(at: *const u8) {
        // SAFETY: a prefetch of any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_set1_ps(value) }
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

    #[inline(always)]
    unsafe fn halves(from: *const u16) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn codes(from: *const i8) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast()))) }
    }

    #[inline(always)]
    unsafe fn fours(from: *const i8) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    /// The instruction takes one side without sign, so that side's goes over to the other. Pairs of products fit
    /// 16 bits: 2 · 127 · 127 = 32258.
    #[inline(always)]
    unsafe fn dot(sum: __m256i, k: __m256i, q: *const i8) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe {
            let q = _mm256_set1_epi32(q.cast::<i32>().read_unaligned());
            let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(q), _mm256_sign_epi8(k, q));
            _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
    }

    #[inline(always)]
    unsafe fn whole(value: i32) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn float(sums: __m256i) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtepi32_ps(sums) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_sub_ps(a, b) }
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
    unsafe fn max(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_max_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn exp(x: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { exp(x) }
    }

    #[inline(always)]
    unsafe fn sum(x: __m256) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { sum(x) }
    }

    #[inline(always)]
    unsafe fn largest(x: __m256) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { max(x) }
    }
}
