//! Integer products of coded weights and 8-bit activations: a register tile of eight rows by up to four tokens.
//!
//! `vpmaddubsw` multiplies unsigned by signed bytes and adds pairs in 16 bits, where it saturates. It never does here,
//! and its results may be added in 16 bits for as long as
//! `2 · results · largest code · 127 <= 32767`:
//!
//! | store | largest code | results added | bound |
//! |---|---|---|---|
//! | nibble | 15 | 8: a group of 32 | 30480 |
//! | five bits | 31 | 4 | 31496 |
//! | six bits | 63 | 2 | 32004 |
//! | signed | 128 | 1 | 32512 |
//!
//! Signed weights are made unsigned by moving their sign to the activation: activations are never -128, so that is
//! exact, for a weight of -128 too.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::cpu::dot::{AHEAD, CACHED, Column, Format, View, Visit, with_format};
use crate::cpu::scalar;
use crate::ggml::{Store, Zero};
use crate::matrix::{Coded, GROUP, TILE, group_codes};
use crate::outliers::FOUR;
use crate::quantized::{Number, Quantized};
use crate::shared::OutMatrix;

/// Tokens in a register tile; none has some of two fours.
const TOKENS: usize = FOUR;

/// Writes the cells `tiles × all tokens`; codings without a kernel here go to the scalar one.
///
/// # Safety
/// The processor has AVX2, FMA and F16C. No other task may use these cells of `out` at the same time.
pub(super) unsafe fn matmul(w: &Coded, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
    let view = View::new(w, x, &tiles);
    if with_format(w.coding(), Blocks { view, tiles: tiles.clone(), out }).is_err() {
        // SAFETY: the caller's promise about `out`.
        unsafe { scalar::matmul_coded(w, x, tiles, out) }
    }
}

/// A product whose format is to be found. Made by `matmul` alone, whose promises hold for it.
struct Blocks<'a> {
    view: View<'a>,
    tiles: Range<usize>,
    out: &'a OutMatrix<'a>,
}

impl Visit for Blocks<'_> {
    fn visit<F: Format>(self) {
        self.view.blocks(self.tiles, (1, TOKENS), CACHED, |tiles, all| {
            // SAFETY: the promises of `matmul`'s caller, and the ranges are inside what `View::new` checked.
            unsafe { tokens::<F>(&self.view, tiles.start, all, self.out) }
        });
    }
}

/// # Safety
/// As for `tile`, for all the tokens.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn tokens<F: Format>(view: &View<'_>, at: usize, tokens: Range<usize>, out: &OutMatrix<'_>) {
    let mut token = tokens.start;
    while token + TOKENS <= tokens.end {
        // SAFETY: passed on.
        unsafe { tile::<F, TOKENS>(view, at, token, out) }
        token += TOKENS;
    }
    // SAFETY: passed on.
    unsafe {
        match tokens.end - token {
            3 => tile::<F, 3>(view, at, token, out),
            2 => tile::<F, 2>(view, at, token, out),
            1 => tile::<F, 1>(view, at, token, out),
            _ => {}
        }
    }
}

/// Eight rows by `T` tokens over all columns.
///
/// Each cell is summed in the order of the columns, whatever `T` is: a token's result does not depend on its company.
///
/// # Safety
/// The processor has AVX2, FMA and F16C; the tile and the `T` tokens from `token` are inside the view; no other task
/// uses these cells of `out` at the same time.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn tile<F: Format, const T: usize>(view: &View<'_>, at: usize, token: usize, out: &OutMatrix<'_>) {
    let subs = const { GROUP / F::CODING.group };
    let mut sums = [_mm256_setzero_ps(); T];
    // SAFETY: all offsets stay inside the planes, by the contract and the sizes checked in `View::new`: `groups` groups
    // of weights for the tile and of activations for each token.
    unsafe {
        let mut codes = view.codes.add(at * view.tile_codes);
        let mut scales = view.scales.add(at * view.tile_scales);
        let mut x = view.activations::<T>(token);
        for _ in 0..view.groups {
            if T == 1 {
                // One pass over the weights: they come from memory, so ask early.
                prefetch(codes.wrapping_add(AHEAD), group_codes(F::CODING));
                prefetch(scales.wrapping_add(AHEAD / 4).cast(), 64);
            }
            for sub in 0..subs {
                let products = products::<F, T>(codes, x.codes(0), sub);
                let (scale, min) = scale_and_min::<F>(&mut scales);
                for t in 0..T {
                    let step = _mm256_mul_ps(scale, _mm256_set1_ps(*x.number(Number::Scale, 0, t)));
                    sums[t] = _mm256_fmadd_ps(step, _mm256_cvtepi32_ps(products[t]), sums[t]);
                    if let Some(min) = min {
                        let number = if subs == 1 { Number::Sum } else { Number::HalfSum };
                        sums[t] = _mm256_fmadd_ps(min, _mm256_set1_ps(*x.number(number, sub, t)), sums[t]);
                    }
                }
            }
            codes = codes.add(group_codes(F::CODING));
            x.next_group();
        }
        for (column, values) in view.outliers::<F>(at, token) {
            let weights = weights::<F>(column);
            for (t, sum) in sums.iter_mut().enumerate() {
                *sum = _mm256_fmadd_ps(weights, _mm256_set1_ps(*values.add(t)), *sum);
            }
        }
        for (t, sums) in sums.into_iter().enumerate() {
            put(out.eight(token + t, at * TILE), sums, out.adds());
        }
    }
}

/// The weights of a column in the eight rows of a tile.
///
/// # Safety
/// The column is there, and of format `F`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn weights<F: Format>(Column { codes, mut scales, k }: Column) -> __m256 {
    let nibble = const { matches!(F::CODING.store, Store::Nibble) };
    let (chunk, high) = if nibble { (k / 4 % 4, k >= GROUP / 2) } else { (k / 4, false) };
    // SAFETY: the caller's promise.
    let (codes, (scale, min)) =
        unsafe { (_mm256_loadu_si256(codes.cast::<__m256i>().add(chunk)), scale_and_min::<F>(&mut scales)) };
    // The byte, or half of it, is shifted to the upper end and back down; with its sign where it may have one.
    let left = 24 - 8 * (k % 4) + if nibble && !high { 4 } else { 0 };
    let upper = _mm256_sll_epi32(codes, _mm_cvtsi32_si128(left as i32));
    let codes = match F::CODING.store {
        Store::Nibble => _mm256_srli_epi32::<28>(upper),
        _ => _mm256_srai_epi32::<24>(upper),
    };
    let codes = _mm256_cvtepi32_ps(codes);
    match min {
        Some(min) => _mm256_fmadd_ps(scale, codes, min),
        None => _mm256_mul_ps(scale, codes),
    }
}

/// Asks for the lines of `len` bytes from `at`, which need not be ours: nothing is read.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn prefetch(at: *const u8, len: usize) {
    for line in (0..len).step_by(64) {
        _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(line).cast());
    }
}

/// The scales of a sub-group's eight rows and what to multiply the activations' sum by; moves `scales` on.
///
/// # Safety
/// `scales` points to a sub-group.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn scale_and_min<F: Format>(scales: &mut *const u16) -> (__m256, Option<__m256>) {
    let mut eight = || {
        // SAFETY: eight numbers for scales and, where they are stored, eight for minima.
        unsafe {
            let halves = _mm_loadu_si128(scales.cast());
            *scales = scales.add(TILE);
            _mm256_cvtph_ps(halves)
        }
    };
    let scale = eight();
    let min = match F::CODING.zero {
        Zero::Stored => Some(eight()),
        Zero::Offset(0) => None,
        Zero::Offset(offset) => Some(_mm256_mul_ps(scale, _mm256_set1_ps(-f32::from(offset)))),
    };
    (scale, min)
}

/// For `T` tokens, the sums of code × activation over one sub-group, for eight rows in 32 bits.
///
/// # Safety
/// `codes` points to a group of a tile, `x` to the same group of the first of `T` tokens.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn products<F: Format, const T: usize>(codes: *const u8, x: *const i8, sub: usize) -> [__m256i; T] {
    let whole = const { F::CODING.group == GROUP };
    // SAFETY: the caller's promise; each function reads one group.
    unsafe {
        match (F::CODING.store, whole) {
            (Store::Nibble, true) => nibbles_whole::<T>(codes, x),
            (Store::Nibble, false) => nibbles_half::<T>(codes, x, sub),
            (Store::Five, true) => bytes::<T, 4, false>(codes, x, 0..8),
            (Store::Five, false) => bytes::<T, 4, false>(codes, x, 4 * sub..4 * sub + 4),
            (Store::Six, true) => bytes::<T, 2, false>(codes, x, 0..8),
            (Store::Six, false) => bytes::<T, 2, false>(codes, x, 4 * sub..4 * sub + 4),
            (Store::Signed, true) => bytes::<T, 1, true>(codes, x, 0..8),
            (Store::Signed, false) => bytes::<T, 1, true>(codes, x, 4 * sub..4 * sub + 4),
        }
    }
}

/// Four activations of a token, in every lane.
///
/// # Safety
/// `x` points to a group; `chunk` is below 8.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn four(x: *const i8, chunk: usize) -> __m256i {
    // SAFETY: inside the group.
    _mm256_set1_epi32(unsafe { x.cast::<i32>().add(chunk).read_unaligned() })
}

/// # Safety
/// As for `products`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn nibbles_whole<const T: usize>(codes: *const u8, x: *const i8) -> [__m256i; T] {
    let low = _mm256_set1_epi8(15);
    let mut sums = [_mm256_setzero_si256(); T];
    for chunk in 0..4 {
        // SAFETY: a group of nibbles is four chunks of 32 bytes.
        let both = unsafe { _mm256_loadu_si256(codes.cast::<__m256i>().add(chunk)) };
        let first = _mm256_and_si256(both, low);
        let second = _mm256_and_si256(_mm256_srli_epi16::<4>(both), low);
        for (t, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            let (a, b) = unsafe { (four(x.add(t * GROUP), chunk), four(x.add(t * GROUP), chunk + 4)) };
            let pair = _mm256_add_epi16(_mm256_maddubs_epi16(first, a), _mm256_maddubs_epi16(second, b));
            *sum = _mm256_add_epi16(*sum, pair);
        }
    }
    sums.map(|sum| _mm256_madd_epi16(sum, _mm256_set1_epi16(1)))
}

/// # Safety
/// As for `products`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn nibbles_half<const T: usize>(codes: *const u8, x: *const i8, sub: usize) -> [__m256i; T] {
    let low = _mm256_set1_epi8(15);
    let mut sums = [_mm256_setzero_si256(); T];
    for chunk in 0..4 {
        // SAFETY: a group of nibbles is four chunks of 32 bytes.
        let both = unsafe { _mm256_loadu_si256(codes.cast::<__m256i>().add(chunk)) };
        let half = if sub == 0 { both } else { _mm256_srli_epi16::<4>(both) };
        let half = _mm256_and_si256(half, low);
        for (t, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            let x = unsafe { four(x.add(t * GROUP), chunk + 4 * sub) };
            *sum = _mm256_add_epi16(*sum, _mm256_maddubs_epi16(half, x));
        }
    }
    sums.map(|sum| _mm256_madd_epi16(sum, _mm256_set1_epi16(1)))
}

/// One byte a code. `ADDED` products are added in 16 bits before they go to 32.
///
/// # Safety
/// As for `products`; `chunks` is inside 0..8 and a multiple of `ADDED` long.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn bytes<const T: usize, const ADDED: usize, const SIGNED: bool>(
    codes: *const u8,
    x: *const i8,
    chunks: Range<usize>,
) -> [__m256i; T] {
    let ones = _mm256_set1_epi16(1);
    let mut sums = [_mm256_setzero_si256(); T];
    for first in chunks.step_by(ADDED) {
        let mut short = [_mm256_setzero_si256(); T];
        for chunk in first..first + ADDED {
            // SAFETY: a group of bytes is eight chunks of 32.
            let w = unsafe { _mm256_loadu_si256(codes.cast::<__m256i>().add(chunk)) };
            let size = if SIGNED { _mm256_abs_epi8(w) } else { w };
            let negative = _mm256_cmpgt_epi8(_mm256_setzero_si256(), w);
            for (t, short) in short.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                let x = unsafe { four(x.add(t * GROUP), chunk) };
                let x = match (SIGNED, T) {
                    (false, _) => x,
                    (true, 1) => _mm256_sign_epi8(x, w),
                    // The same in two steps: `vpsignb` would compete with the multiplications for their ports.
                    (true, _) => _mm256_sub_epi8(_mm256_xor_si256(x, negative), negative),
                };
                *short = _mm256_add_epi16(*short, _mm256_maddubs_epi16(size, x));
            }
        }
        for (sum, short) in sums.iter_mut().zip(short) {
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(short, ones));
        }
    }
    sums
}

/// Writes or adds as many sums as there are cells.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn put(cells: &mut [f32], sums: __m256, add: bool) {
    if let Ok(cells) = <&mut [f32; TILE]>::try_from(&mut *cells) {
        let sums = if add { _mm256_add_ps(super::exp::load(cells), sums) } else { sums };
        return super::exp::store(cells, sums);
    }
    let mut eight = [0.0; TILE];
    super::exp::store(&mut eight, sums);
    scalar::put(cells, &eight, add);
}
