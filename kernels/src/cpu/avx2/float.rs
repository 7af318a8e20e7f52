//! Products with float weights: eight rows by up to eight tokens.

use std::arch::x86_64::*;
use std::ops::Range;

use super::coded::put;
use crate::matrix::{Element, FloatRows, TILE};
use crate::quantized::Quantized;
use crate::shared::OutMatrix;

/// Tokens in a register tile.
const TOKENS: usize = 8;

/// Writes the cells `tiles × all tokens`.
///
/// # Safety
/// The processor has AVX2, FMA and F16C. No other task may use these cells of `out` at the same time.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn matmul(w: &FloatRows, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
    let tile = w.cols() * TILE;
    for at in tiles {
        let (first, end) = (at * tile, (at + 1) * tile);
        // SAFETY: the caller's promises; eight numbers are where eight are read.
        unsafe {
            match w.element() {
                Element::F32 => tokens(&w.long()[first..end], |w| _mm256_loadu_ps(w.as_ptr()), x, at, out),
                Element::F16 => tokens(
                    &w.short()[first..end],
                    |w| _mm256_cvtph_ps(_mm_loadu_si128(w.as_ptr().cast())),
                    x,
                    at,
                    out,
                ),
                Element::BF16 => tokens(
                    &w.short()[first..end],
                    |w| {
                        let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(w.as_ptr().cast()));
                        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
                    },
                    x,
                    at,
                    out,
                ),
            }
        }
    }
}

/// # Safety
/// As for `matmul`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn tokens<E>(
    w: &[E],
    widen: impl Fn(&[E; 8]) -> __m256 + Copy,
    x: &Quantized,
    at: usize,
    out: &OutMatrix<'_>,
) {
    for token in (0..x.tokens()).step_by(TOKENS) {
        // SAFETY: the caller's promises.
        unsafe {
            match x.tokens() - token {
                1 => tile::<E, 1>(w, widen, x, token, at, out),
                2 | 3 => {
                    tile::<E, 2>(w, widen, x, token, at, out);
                    if x.tokens() - token == 3 {
                        tile::<E, 1>(w, widen, x, token + 2, at, out);
                    }
                }
                n @ 4..TOKENS => {
                    tile::<E, 4>(w, widen, x, token, at, out);
                    for token in token + 4..token + n {
                        tile::<E, 1>(w, widen, x, token, at, out);
                    }
                }
                _ => tile::<E, TOKENS>(w, widen, x, token, at, out),
            }
        }
    }
}

/// Eight rows by `T` tokens over all columns; each cell is summed in the order of the columns.
///
/// # Safety
/// As for `matmul`; `T` tokens from `token` exist.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn tile<E, const T: usize>(
    w: &[E],
    widen: impl Fn(&[E; 8]) -> __m256,
    x: &Quantized,
    token: usize,
    at: usize,
    out: &OutMatrix<'_>,
) {
    let (columns, width) = x.floats_from(token);
    let mut sums = [_mm256_setzero_ps(); T];
    for (w, x) in w.as_chunks::<TILE>().0.iter().zip(columns.chunks(width)) {
        let w = widen(w);
        let x = x.first_chunk::<T>().expect("the tile's tokens are in one block");
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum = _mm256_fmadd_ps(w, _mm256_set1_ps(*x), *sum);
        }
    }
    for (t, sums) in sums.into_iter().enumerate() {
        // SAFETY: the caller's promise.
        put(unsafe { out.eight(token + t, at * TILE) }, sums, out.adds());
    }
}
