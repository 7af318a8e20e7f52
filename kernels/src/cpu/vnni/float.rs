//! Products with float weights in 512 bits: two tiles of eight rows side by side in a register, by up to sixteen tokens.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::cpu::scalar;
use crate::matrix::{Element, FloatRows, TILE};
use crate::quantized::Quantized;
use crate::shared::OutMatrix;

/// Tiles that are worked on together.
const TILES: usize = 4;

/// Writes the cells `tiles × all tokens`.
///
/// # Safety
/// The processor has AVX-512F, BW and VL. No other task may use these cells of `out` at the same time.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn matmul(w: &FloatRows, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
    let tile_len = w.cols() * TILE;
    assert_eq!(x.cols(), w.cols());
    assert!(tiles.end * tile_len <= w.long().len().max(w.short().len()));
    for first in tiles.clone().step_by(TILES) {
        let some = first..tiles.end.min(first + TILES);
        // SAFETY: the caller's promises; the plane of this element has these tiles.
        unsafe {
            match w.element() {
                Element::F32 => all_tokens::<Long>(w.long().as_ptr(), &some, x, out),
                Element::F16 => all_tokens::<Half>(w.short().as_ptr(), &some, x, out),
                Element::BF16 => all_tokens::<Upper>(w.short().as_ptr(), &some, x, out),
            }
        }
    }
}

/// How weights become floats. Functions are inlined into `matmul`, which has the features.
///
/// # Safety
/// For `widen`: the processor has AVX-512F, and eight numbers are at `from` and `next` numbers on.
trait Weights {
    type Number;
    unsafe fn widen(from: *const Self::Number, next: usize) -> __m512;
}

struct Long;
struct Half;
struct Upper;

impl Weights for Long {
    type Number = f32;
    #[inline(always)]
    unsafe fn widen(from: *const f32, next: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            let first = _mm512_castpd256_pd512(_mm256_castps_pd(_mm256_loadu_ps(from)));
            let second = _mm256_castps_pd(_mm256_loadu_ps(from.add(next)));
            _mm512_castpd_ps(_mm512_insertf64x4::<1>(first, second))
        }
    }
}

impl Weights for Half {
    type Number = u16;
    #[inline(always)]
    unsafe fn widen(from: *const u16, next: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_cvtph_ps(two(from, next)) }
    }
}

impl Weights for Upper {
    type Number = u16;
    #[inline(always)]
    unsafe fn widen(from: *const u16, next: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(two(from, next)))) }
    }
}

/// Eight numbers from `from` and eight from `next` numbers on.
///
/// # Safety
/// They are there, and the processor has AVX2.
#[inline(always)]
unsafe fn two(from: *const u16, next: usize) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let first = _mm256_castsi128_si256(_mm_loadu_si128(from.cast()));
        _mm256_inserti128_si256::<1>(first, _mm_loadu_si128(from.add(next).cast()))
    }
}

/// # Safety
/// As for `matmul`; `plane` holds these tiles, at most `TILES`.
#[inline(always)]
unsafe fn all_tokens<W: Weights>(
    plane: *const W::Number,
    tiles: &Range<usize>,
    x: &Quantized,
    out: &OutMatrix<'_>,
) {
    let mut token = 0;
    // SAFETY: passed on. No register tile is in two blocks of activations.
    unsafe {
        while token < x.tokens() {
            token += match x.tokens() - token {
                16.. => pairs::<W, 16>(plane, tiles, x, token, out),
                8.. => rows::<W, 8>(plane, tiles, x, token, out),
                4.. => rows::<W, 4>(plane, tiles, x, token, out),
                2.. => rows::<W, 2>(plane, tiles, x, token, out),
                _ => rows::<W, 1>(plane, tiles, x, token, out),
            }
        }
    }
}

/// All four tiles at once where there are four: few tokens alone are too few sums to be worked on at a time.
///
/// # Safety
/// As for `tile`.
#[inline(always)]
unsafe fn rows<W: Weights, const T: usize>(
    plane: *const W::Number,
    tiles: &Range<usize>,
    x: &Quantized,
    token: usize,
    out: &OutMatrix<'_>,
) -> usize {
    // SAFETY: passed on.
    unsafe {
        if tiles.len() < TILES {
            return pairs::<W, T>(plane, tiles, x, token, out);
        }
        tile::<W, 2, T>(plane, tiles.clone(), x, token, out);
    }
    T
}

/// Two tiles at a time.
///
/// # Safety
/// As for `tile`.
#[inline(always)]
unsafe fn pairs<W: Weights, const T: usize>(
    plane: *const W::Number,
    tiles: &Range<usize>,
    x: &Quantized,
    token: usize,
    out: &OutMatrix<'_>,
) -> usize {
    for first in tiles.clone().step_by(2) {
        // SAFETY: passed on.
        unsafe { tile::<W, 1, T>(plane, first..tiles.end.min(first + 2), x, token, out) }
    }
    T
}

/// `R` pairs of tiles by `T` tokens over all columns; each cell is summed in the order of the columns.
///
/// # Safety
/// The processor has AVX-512F, BW and VL; `plane` holds these tiles, `2 · R` or, for one pair, perhaps one; the `T` tokens
/// from `token` exist and are in one block; no other task uses these cells of `out` at the same time.
#[inline(always)]
unsafe fn tile<W: Weights, const R: usize, const T: usize>(
    plane: *const W::Number,
    tiles: Range<usize>,
    x: &Quantized,
    token: usize,
    out: &OutMatrix<'_>,
) {
    let tile_len = x.cols() * TILE;
    // A tile alone is its own neighbour.
    let next = if tiles.len() > 1 { tile_len } else { 0 };
    let (columns, width) = x.floats_from(token);
    // SAFETY: the caller's promises: `cols · 8` numbers in each tile, `width` floats in each column.
    unsafe {
        let mut sums = [[_mm512_setzero_ps(); T]; R];
        let mut w = plane.add(tiles.start * tile_len);
        let mut x_column = columns.as_ptr();
        for _ in 0..x.cols() {
            for (pair, sums) in sums.iter_mut().enumerate() {
                let w = W::widen(w.add(2 * pair * next), next);
                for (t, sum) in sums.iter_mut().enumerate() {
                    *sum = _mm512_fmadd_ps(w, _mm512_set1_ps(*x_column.add(t)), *sum);
                }
            }
            w = w.add(TILE);
            x_column = x_column.wrapping_add(width);
        }
        for (pair, sums) in sums.iter().enumerate() {
            for (t, sums) in sums.iter().enumerate() {
                let first = tiles.start + 2 * pair;
                let cells = out.some(token + t, first * TILE, (tiles.end - first).min(2) * TILE);
                if cells.len() == 2 * TILE {
                    let sums = match out.adds() {
                        true => _mm512_add_ps(_mm512_loadu_ps(cells.as_ptr()), *sums),
                        false => *sums,
                    };
                    _mm512_storeu_ps(cells.as_mut_ptr(), sums);
                } else {
                    let mut lanes = [0.0; 2 * TILE];
                    _mm512_storeu_ps(lanes.as_mut_ptr(), *sums);
                    scalar::put(cells, &lanes, out.adds());
                }
            }
        }
    }
}
