//! Attention with vectors of sixteen.

use std::arch::x86_64::*;

use super::avx512::Avx512;
use super::exp::exp;
use crate::cpu::attend::{Cell, Lanes, tile};
use crate::cpu::kernels::{Attend, Keys};

impl Lanes for Avx512 {
    type Floats = __m512;
    type Ints = __m512i;
    type Codes = __m512i;
    const LANES: usize = 16;
    /// With two vectors each, 24 of the 32 registers are sums.
    const QUERIES: usize = 12;
    const RAISED: i32 = 128;

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn tile<T: Cell>(keys: &Keys<'_, T>, state: &mut Attend<'_>, first: usize) -> usize {
        // SAFETY: the caller's promises.
        unsafe {
            match state.visible.len() - first {
                Self::QUERIES.. => tile::<Self, T, { Self::QUERIES }, 2>(keys, state, first),
                6.. => tile::<Self, T, 6, 4>(keys, state, first),
                3.. => tile::<Self, T, 3, 4>(keys, state, first),
                _ => tile::<Self, T, 1, 4>(keys, state, first),
            }
        }
    }

    #[inline(always)]
    fn prefetch(at: *const u8) {
        // SAFETY: a prefetch of any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(values: __m512, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_storeu_ps(to, values) }
    }

    #[inline(always)]
    unsafe fn halves(from: *const u16) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn codes(from: *const i8) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()))) }
    }

    #[inline(always)]
    unsafe fn fours(from: *const i8) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_xor_si512(_mm512_loadu_si512(from.cast()), _mm512_set1_epi8(i8::MIN)) }
    }

    #[inline(always)]
    unsafe fn dot(sum: __m512i, k: __m512i, q: *const i8) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_dpbusd_epi32(sum, k, _mm512_set1_epi32(q.cast::<i32>().read_unaligned())) }
    }

    #[inline(always)]
    unsafe fn whole(value: i32) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn float(sums: __m512i) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_cvtepi32_ps(sums) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_sub_ps(a, b) }
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
    unsafe fn max(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn exp(x: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { exp(x) }
    }

    #[inline(always)]
    unsafe fn sum(x: __m512) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_reduce_add_ps(x) }
    }

    #[inline(always)]
    unsafe fn largest(x: __m512) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_reduce_max_ps(x) }
    }
}
