//! Products with float weights: eight rows by up to eight tokens.

use std::ops::Range;

use super::eight::Eight;
use crate::cpu::scalar;
use crate::matrix::{Element, FloatRows, TILE};
use crate::quantized::Quantized;
use crate::shared::OutMatrix;

/// Writes the cells `tiles × all tokens`.
///
/// # Safety
/// No other task may use these cells of `out` at the same time.
pub(super) unsafe fn matmul(w: &FloatRows, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
    let tile = w.cols() * TILE;
    for at in tiles {
        let (first, end) = (at * tile, (at + 1) * tile);
        // SAFETY: the caller's promise.
        unsafe {
            match w.element() {
                Element::F32 => tokens(&w.long()[first..end], Eight::load, x, at, out),
                Element::F16 => tokens(&w.short()[first..end], Eight::widen, x, at, out),
                Element::BF16 => tokens(&w.short()[first..end], Eight::widen_upper, x, at, out),
            }
        }
    }
}

/// # Safety
/// As for `matmul`.
unsafe fn tokens<E>(
    w: &[E],
    widen: impl Fn(&[E; 8]) -> Eight + Copy,
    x: &Quantized,
    at: usize,
    out: &OutMatrix<'_>,
) {
    let mut token = 0;
    while token < x.tokens() {
        // SAFETY: the caller's promise.
        token += unsafe {
            match x.tokens() - token {
                8.. => tile::<E, 8>(w, widen, x, token, at, out),
                4.. => tile::<E, 4>(w, widen, x, token, at, out),
                2.. => tile::<E, 2>(w, widen, x, token, at, out),
                _ => tile::<E, 1>(w, widen, x, token, at, out),
            }
        };
    }
}

/// Eight rows by `T` tokens over all columns; each cell is summed in the order of the columns. Returns `T`.
///
/// # Safety
/// As for `matmul`.
unsafe fn tile<E, const T: usize>(
    w: &[E],
    widen: impl Fn(&[E; 8]) -> Eight,
    x: &Quantized,
    token: usize,
    at: usize,
    out: &OutMatrix<'_>,
) -> usize {
    let (columns, width) = x.floats_from(token);
    let mut sums = [Eight::splat(0.0); T];
    for (w, x) in w.as_chunks::<TILE>().0.iter().zip(columns.chunks(width)) {
        let w = widen(w);
        let x = x.first_chunk::<T>().expect("the tile's tokens are in one block");
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum = sum.add_scaled(w, *x);
        }
    }
    for (t, sums) in sums.iter().enumerate() {
        let mut eight = [0.0; TILE];
        sums.store(&mut eight);
        // SAFETY: the caller's promise.
        scalar::put(unsafe { out.eight(token + t, at * TILE) }, &eight, out.adds());
    }
    T
}
