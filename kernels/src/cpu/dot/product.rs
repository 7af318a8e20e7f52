//! The loop: one or two tiles by up to eight tokens, all columns.

use std::ops::Range;

use super::{AHEAD, Dot, Format, View, Visit, with_format};
use crate::cpu::scalar;
use crate::ggml::{Store, Zero};
use crate::matrix::{Coded, GROUP, TILE, group_codes};
use crate::quantized::Quantized;
use crate::shared::OutMatrix;

/// Writes the cells `tiles × all tokens`; codings without a kernel here go to the scalar one.
///
/// # Safety
/// The processor has the instructions of `D`. No other task may use these cells of `out` at the same time.
pub(in crate::cpu) unsafe fn matmul<D: Dot>(
    w: &Coded,
    x: &Quantized,
    tiles: Range<usize>,
    out: &OutMatrix<'_>,
) {
    let view = View::new(w, x, &tiles);
    if with_format(w.coding(), Blocks::<D> { view, tiles: tiles.clone(), out, set: Default::default() })
        .is_err()
    {
        // SAFETY: the caller's promise about `out`.
        unsafe { scalar::matmul_coded(w, x, tiles, out) }
    }
}

/// A product whose format is to be found. Made by `matmul` alone, whose promises hold for it.
struct Blocks<'a, D> {
    view: View,
    tiles: Range<usize>,
    out: &'a OutMatrix<'a>,
    set: std::marker::PhantomData<D>,
}

impl<D: Dot> Visit for Blocks<'_, D> {
    fn visit<F: Format>(self) {
        self.view.blocks(self.tiles, (D::TILES, D::TOKENS), |tiles, tokens| {
            // SAFETY: the promises of `matmul`'s caller, and the ranges are inside what `View::new` checked.
            unsafe { D::tokens::<F>(&self.view, tiles, tokens, self.out) }
        });
    }
}

/// All columns of one or two tiles for some tokens.
///
/// # Safety
/// The processor has the instructions of `D`; there is at least one tile, at most `D::TILES`; tiles and tokens are
/// inside the view, which is of format `F`; no other task uses these cells of `out` at the same time.
#[inline(always)]
pub(in crate::cpu) unsafe fn tokens<D: Dot, F: Format>(
    view: &View,
    tiles: Range<usize>,
    tokens: Range<usize>,
    out: &OutMatrix<'_>,
) {
    let mut token = tokens.start;
    // SAFETY: passed on.
    unsafe {
        while token < tokens.end {
            token += match (tokens.end - token).min(D::TOKENS) {
                8.. => tile::<D, F, 8>(view, &tiles, token, out),
                4.. => tile::<D, F, 4>(view, &tiles, token, out),
                2.. => tile::<D, F, 2>(view, &tiles, token, out),
                _ => tile::<D, F, 1>(view, &tiles, token, out),
            }
        }
    }
}

/// The same for `T` tokens; returns `T`.
///
/// Each cell is summed in the order of the columns, whatever `T` is and whichever tile is beside: a token's result does
/// not depend on its company.
///
/// # Safety
/// As for `tokens`.
#[inline(always)]
unsafe fn tile<D: Dot, F: Format, const T: usize>(
    view: &View,
    tiles: &Range<usize>,
    token: usize,
    out: &OutMatrix<'_>,
) -> usize {
    let subs = const { GROUP / F::CODING.group };
    // A tile alone is its own neighbour.
    let next = tiles.len() - 1;
    let (next_codes, next_scales) = (next * view.tile_codes, next * view.tile_scales);
    // SAFETY: all offsets stay inside the planes, by the contract and the sizes checked in `View::new`: `groups` groups
    // of weights for each tile and of activations for each token.
    unsafe {
        let mut sums = [D::splat(0.0); T];
        let mut codes = view.codes.add(tiles.start * view.tile_codes);
        let mut scales = view.scales.add(tiles.start * view.tile_scales);
        let mut x = view.x.add(token * view.groups * GROUP);
        let mut metas = view.metas.add(token * view.groups);
        for _ in 0..view.groups {
            if T == 1 {
                // One pass over the weights: they come from memory, so ask early.
                for from in [0, next_codes] {
                    (0..group_codes(F::CODING))
                        .step_by(64)
                        .for_each(|line| D::prefetch(codes.wrapping_add(AHEAD + from + line)));
                }
                D::prefetch(scales.wrapping_add(AHEAD / 4).cast());
            }
            for sub in 0..subs {
                let products = products::<D, F, T>(codes, next_codes, x, view.groups * GROUP, sub);
                let (scale, min) = scale_and_min::<D, F>(&mut scales, next_scales);
                for t in 0..T {
                    let meta = &*metas.add(t * view.groups);
                    let step = D::mul(scale, D::splat(meta.scale));
                    sums[t] = D::mul_add(step, D::float(products[t]), sums[t]);
                    if let Some(min) = min {
                        let x_sum = if subs == 1 { meta.sum } else { meta.halves[sub] };
                        sums[t] = D::mul_add(min, D::splat(x_sum), sums[t]);
                    }
                }
            }
            codes = codes.add(group_codes(F::CODING));
            x = x.add(GROUP);
            metas = metas.add(1);
        }
        for (t, sums) in sums.iter().enumerate() {
            let mut lanes = [[0.0; TILE]; 2];
            D::store(*sums, &mut lanes);
            for (tile, lanes) in tiles.clone().zip(&lanes) {
                scalar::put(out.eight(token + t, tile * TILE), lanes, out.adds());
            }
        }
    }
    T
}

/// The scales of a sub-group's rows and what to multiply the activations' sum by; moves `scales` on.
///
/// # Safety
/// `scales` points to a sub-group, and `next` numbers on there is the neighbour's.
#[inline(always)]
unsafe fn scale_and_min<D: Dot, F: Format>(
    scales: &mut *const u16,
    next: usize,
) -> (D::Floats, Option<D::Floats>) {
    // SAFETY: eight numbers for scales and, where they are stored, eight for minima.
    unsafe {
        let scale = D::halves(*scales, next);
        *scales = scales.add(TILE);
        let min = match F::CODING.zero {
            Zero::Stored => {
                let min = D::halves(*scales, next);
                *scales = scales.add(TILE);
                Some(min)
            }
            Zero::Offset(offset) => match offset + raised::<D, F>() {
                0 => None,
                offset => Some(D::mul(scale, D::splat(-f32::from(offset)))),
            },
        };
        (scale, min)
    }
}

/// How much is added to each code before it is multiplied.
const fn raised<D: Dot, F: Format>() -> u8 {
    if matches!(F::CODING.store, Store::Signed) && !D::SIGNED { 128 } else { 0 }
}

/// For `T` tokens, the sums of code × activation over one sub-group, for all lanes.
///
/// # Safety
/// `codes` points to a group of a tile, and `next` bytes on there is the neighbour's; `x` points to the same group of
/// the first of `T` tokens, `stride` bytes apart; `sub` is a sub-group of the group.
#[inline(always)]
unsafe fn products<D: Dot, F: Format, const T: usize>(
    codes: *const u8,
    next: usize,
    x: *const i8,
    stride: usize,
    sub: usize,
) -> [D::Ints; T] {
    const CHUNK: usize = 4 * TILE;
    let whole = const { F::CODING.group == GROUP };
    // SAFETY: the caller's promise. A group of nibbles is four chunks, one of bytes eight.
    unsafe {
        let mut sums = [D::zero(); T];
        if matches!(F::CODING.store, Store::Nibble) {
            for chunk in 0..4 {
                let both = D::codes(codes.add(chunk * CHUNK), next);
                if whole || sub == 0 {
                    add::<D, T>(&mut sums, D::low(both), x.add(4 * chunk), stride);
                }
                if whole || sub == 1 {
                    add::<D, T>(&mut sums, D::high(both), x.add(4 * (chunk + 4)), stride);
                }
            }
        } else {
            let chunks = if whole { 0..8 } else { 4 * sub..4 * sub + 4 };
            for chunk in chunks {
                let mut codes = D::codes(codes.add(chunk * CHUNK), next);
                if raised::<D, F>() > 0 {
                    codes = D::raise(codes);
                }
                add::<D, T>(&mut sums, codes, x.add(4 * chunk), stride);
            }
        }
        sums
    }
}

/// Adds the products of one chunk with the four activations of each token.
///
/// # Safety
/// `x` points to four activations of the first of `T` tokens, `stride` bytes apart.
#[inline(always)]
unsafe fn add<D: Dot, const T: usize>(sums: &mut [D::Ints; T], codes: D::Ints, x: *const i8, stride: usize) {
    for (t, sum) in sums.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *sum = unsafe { D::dot(*sum, codes, D::four(x.add(t * stride))) };
    }
}
