//! The 512-bit form: four tiles of eight rows side by side, by sixteen tokens.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::cpu::dot::{Dot, Format, View, tokens};
use crate::shared::OutMatrix;

/// Two registers: each broadcast of activations serves both. The loads are otherwise what the loop waits for.
pub(super) struct Avx512;

/// One register, for the tiles left over.
struct Single;

impl Avx512 {
    pub(super) fn detect() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
    }
}

impl Dot for Avx512 {
    type Ints = [__m512i; 2];
    type Floats = [__m512; 2];
    const TILES: usize = 4;
    const TOKENS: usize = 16;
    const CACHED: usize = 40 << 10;
    const AHEAD: usize = 16 << 10; // four tiles are read at a time
    const SIGNED: bool = false;

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn tokens<F: Format>(
        view: &View<'_>,
        tiles: Range<usize>,
        all: Range<usize>,
        out: &OutMatrix<'_>,
    ) {
        // SAFETY: the caller's promises.
        unsafe {
            if tiles.len() == Self::TILES {
                return tokens::<Self, F>(view, tiles, all, out);
            }
            for first in tiles.clone().step_by(Single::TILES) {
                let some = first..tiles.end.min(first + Single::TILES);
                tokens::<Single, F>(view, some, all.clone(), out);
            }
        }
    }

    #[inline(always)]
    fn prefetch(at: *const u8) {
        Single::prefetch(at);
    }

    #[inline(always)]
    unsafe fn zero() -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::zero(); 2] }
    }

    #[inline(always)]
    unsafe fn codes(from: *const u8, next: usize) -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::codes(from, next), Single::codes(from.add(2 * next), next)] }
    }

    #[inline(always)]
    unsafe fn low([a, b]: [__m512i; 2]) -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::low(a), Single::low(b)] }
    }

    #[inline(always)]
    unsafe fn high([a, b]: [__m512i; 2]) -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::high(a), Single::high(b)] }
    }

    #[inline(always)]
    unsafe fn raise([a, b]: [__m512i; 2]) -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::raise(a), Single::raise(b)] }
    }

    #[inline(always)]
    unsafe fn up([a, b]: [__m512i; 2], bits: u32) -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::up(a, bits), Single::up(b, bits)] }
    }

    #[inline(always)]
    unsafe fn byte([a, b]: [__m512i; 2], i: usize) -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::byte(a, i), Single::byte(b, i)] }
    }

    #[inline(always)]
    unsafe fn four(x: *const i8) -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::four(x); 2] }
    }

    #[inline(always)]
    unsafe fn dot(sum: [__m512i; 2], codes: [__m512i; 2], x: [__m512i; 2]) -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::dot(sum[0], codes[0], x[0]), Single::dot(sum[1], codes[1], x[1])] }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> [__m512; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::splat(value); 2] }
    }

    #[inline(always)]
    unsafe fn halves(from: *const u16, next: usize) -> [__m512; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::halves(from, next), Single::halves(from.add(2 * next), next)] }
    }

    #[inline(always)]
    unsafe fn float([a, b]: [__m512i; 2]) -> [__m512; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::float(a), Single::float(b)] }
    }

    #[inline(always)]
    unsafe fn mul(a: [__m512; 2], b: [__m512; 2]) -> [__m512; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::mul(a[0], b[0]), Single::mul(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn mul_add(a: [__m512; 2], b: [__m512; 2], c: [__m512; 2]) -> [__m512; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::mul_add(a[0], b[0], c[0]), Single::mul_add(a[1], b[1], c[1])] }
    }

    #[inline(always)]
    unsafe fn add(a: [__m512; 2], b: [__m512; 2]) -> [__m512; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::add(a[0], b[0]), Single::add(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> [__m512; 2] {
        // SAFETY: the caller's promise.
        unsafe { [Single::load(from), Single::load(from.add(16))] }
    }

    #[inline(always)]
    unsafe fn store([a, b]: [__m512; 2], to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe {
            Single::store(a, to);
            Single::store(b, to.add(16));
        }
    }
}

impl Dot for Single {
    type Ints = __m512i;
    type Floats = __m512;
    const TILES: usize = 2;
    const TOKENS: usize = 16;
    const SIGNED: bool = false;

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
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
    unsafe fn up(codes: __m512i, bits: u32) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_sll_epi16(codes, _mm_cvtsi32_si128(bits.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn byte(codes: __m512i, i: usize) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_srai_epi32::<24>(_mm512_sll_epi32(codes, _mm_cvtsi32_si128(24 - 8 * i as i32))) }
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
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_add_ps(a, b) }
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
}
