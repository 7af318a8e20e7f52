//! Attention with vectors of sixteen.

use std::arch::x86_64::*;

use super::avx512::Avx512;
use super::exp::exp;
use crate::cpu::attend::{Lanes, tile};
use crate::cpu::kernels::{Attend, Keys};

impl Lanes for Avx512 {
    type Floats = __m512;
    const LANES: usize = 16;
    /// With two vectors each, 24 of the 32 registers are sums.
    const QUERIES: usize = 12;

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn tile(keys: &Keys<'_>, state: &mut Attend<'_>, first: usize) -> usize {
        // SAFETY: the caller's promises.
        unsafe {
            match state.visible.len() - first {
                Self::QUERIES.. => tile::<Self, { Self::QUERIES }, 2>(keys, state, first),
                6.. => tile::<Self, 6, 4>(keys, state, first),
                3.. => tile::<Self, 3, 4>(keys, state, first),
                _ => tile::<Self, 1, 4>(keys, state, first),
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
