//! The loop: up to four tiles by up to sixteen tokens, all columns.

use std::ops::Range;

use super::{Activations, Column, Dot, Format, View, Visit, with_format};
use crate::cpu::scalar;
use crate::ggml::{Store, Zero};
use crate::matrix::{Coded, GROUP, TILE, group_codes, group_scales};
use crate::outliers::FOUR;
use crate::quantized::{Number, Quantized};
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
    view: View<'a>,
    tiles: Range<usize>,
    out: &'a OutMatrix<'a>,
    set: std::marker::PhantomData<D>,
}

impl<D: Dot> Visit for Blocks<'_, D> {
    fn visit<F: Format>(self) {
        self.view.blocks(self.tiles, (D::TILES, D::TOKENS), D::CACHED, |tiles, tokens| {
            // SAFETY: the promises of `matmul`'s caller, and the ranges are inside what `View::new` checked.
            unsafe { D::tokens::<F>(&self.view, tiles, tokens, self.out) }
        });
    }
}

/// All columns of some tiles for some tokens.
///
/// # Safety
/// The processor has the instructions of `D`; there are `D::TILES` tiles, or one where that is two; tiles and tokens are
/// inside the view, which is of format `F`; no other task uses these cells of `out` at the same time.
#[inline(always)]
pub(in crate::cpu) unsafe fn tokens<D: Dot, F: Format>(
    view: &View<'_>,
    tiles: Range<usize>,
    tokens: Range<usize>,
    out: &OutMatrix<'_>,
) {
    let mut token = tokens.start;
    // SAFETY: passed on. Ranges begin at multiples of the largest tile, so that none is in two blocks.
    unsafe {
        while token < tokens.end {
            token += match (tokens.end - token).min(D::TOKENS) {
                16.. if D::TILES > 2 => tile::<D, F, 16, 4>(view, &tiles, token, out),
                16.. => tile::<D, F, 16, 8>(view, &tiles, token, out),
                8.. if D::TILES > 2 => tile::<D, F, 8, 4>(view, &tiles, token, out),
                8.. => tile::<D, F, 8, 8>(view, &tiles, token, out),
                4.. => tile::<D, F, 4, 4>(view, &tiles, token, out),
                2.. => tile::<D, F, 2, 2>(view, &tiles, token, out),
                _ => tile::<D, F, 1, 1>(view, &tiles, token, out),
            }
        }
    }
}

/// The same for `T` tokens, of which `S` have their integer sums in registers at once; returns `T`.
///
/// Each cell is summed in the order of the columns, whatever `T` is and whichever tile is beside: a token's result does
/// not depend on its company.
///
/// # Safety
/// As for `tokens`; the `T` tokens from `token` are in one block.
#[inline(always)]
unsafe fn tile<D: Dot, F: Format, const T: usize, const S: usize>(
    view: &View<'_>,
    tiles: &Range<usize>,
    token: usize,
    out: &OutMatrix<'_>,
) -> usize {
    // A tile alone is its own neighbour.
    let next = usize::from(tiles.len() > 1);
    let (next_codes, next_scales) = (next * view.tile_codes, next * view.tile_scales);
    // SAFETY: all offsets stay inside the planes, by the contract and the sizes checked in `View::new`: `groups` groups
    // of weights for each tile and of activations for each token.
    unsafe {
        let mut sums = [D::splat(0.0); T];
        let mut codes = view.codes.add(tiles.start * view.tile_codes);
        let mut scales = view.scales.add(tiles.start * view.tile_scales);
        let mut x = view.activations::<T>(token);
        for _ in 0..view.groups {
            if token == 0 {
                // The first pass over the weights: they come from memory, so ask early.
                for tile in 0..D::TILES {
                    for line in (0..group_codes(F::CODING)).step_by(64) {
                        D::prefetch(codes.wrapping_add(D::AHEAD + tile * next_codes + line));
                    }
                }
                D::prefetch(scales.wrapping_add(D::AHEAD / 4).cast());
            }
            let steps = steps::<D, F>(scales, next_scales);
            // The codes are taken apart once: they stay in registers where there are enough.
            for (i, sums) in sums.as_chunks_mut::<S>().0.iter_mut().enumerate() {
                group::<D, F, S>(codes, next_codes, x.from(i * S), &steps, sums);
            }
            codes = codes.add(group_codes(F::CODING));
            scales = scales.add(group_scales(F::CODING));
            x.next_group();
        }
        for (i, sums) in sums.chunks_mut(FOUR).enumerate() {
            for (column, values) in view.outliers::<F>(tiles.start, token + i * FOUR) {
                let weights = weights::<D, F>(column, (next_codes, next_scales));
                for (t, sum) in sums.iter_mut().enumerate() {
                    *sum = D::mul_add(weights, D::splat(*values.add(t)), *sum);
                }
            }
        }
        for (t, sums) in sums.iter().enumerate() {
            let cells = out.some(token + t, tiles.start * TILE, tiles.len() * TILE);
            if cells.len() == D::TILES * TILE {
                let sums = if out.adds() { D::add(D::load(cells.as_ptr()), *sums) } else { *sums };
                D::store(sums, cells.as_mut_ptr());
            } else {
                let mut lanes = [0.0; 4 * TILE];
                D::store(*sums, lanes.as_mut_ptr());
                scalar::put(cells, &lanes, out.adds());
            }
        }
    }
    T
}

/// Adds one group of columns to the sums of `S` tokens.
///
/// # Safety
/// `codes` points to a group of a tile, and `next` bytes on there is the neighbour's; `x` is the same group of `S` tokens.
#[inline(always)]
unsafe fn group<D: Dot, F: Format, const S: usize>(
    codes: *const u8,
    next: usize,
    x: Activations,
    steps: &[Step<D::Floats>; 2],
    sums: &mut [D::Floats; S],
) {
    let subs = const { GROUP / F::CODING.group };
    // SAFETY: the caller's promise.
    unsafe {
        let mut products = [D::splat(0.0); S];
        for (sub, step) in steps[..subs].iter().enumerate() {
            let whole = D::whole_products::<F, S>(codes, next, x, sub);
            for (product, whole) in products.iter_mut().zip(whole) {
                let whole = D::float(whole);
                *product = match sub {
                    0 => D::mul(step.scale, whole),
                    _ => D::mul_add(step.scale, whole, *product),
                };
            }
        }
        for (t, sum) in sums.iter_mut().enumerate() {
            *sum = D::mul_add(products[t], D::splat(*x.number(Number::Scale, 0, t)), *sum);
            for (sub, step) in steps[..subs].iter().enumerate() {
                if let Some(min) = step.min {
                    let number = if subs == 1 { Number::Sum } else { Number::HalfSum };
                    *sum = D::mul_add(min, D::splat(*x.number(number, sub, t)), *sum);
                }
            }
        }
    }
}

/// The weights of a column.
///
/// # Safety
/// The column is there, of format `F`, and its neighbour's is `next` bytes of codes and numbers of scales on.
#[inline(always)]
unsafe fn weights<D: Dot, F: Format>(Column { codes, scales, k }: Column, next: (usize, usize)) -> D::Floats {
    // SAFETY: the caller's promise.
    unsafe {
        let codes = D::float(D::byte(stored_codes::<D, F>(codes, next.0, k / 4), k % 4));
        let scale = D::halves(scales, next.1);
        match F::CODING.zero {
            Zero::Stored => D::mul_add(scale, codes, D::halves(scales.add(TILE), next.1)),
            Zero::Offset(0) => D::mul(scale, codes),
            Zero::Offset(offset) => D::mul(scale, D::add(codes, D::splat(-f32::from(offset)))),
        }
    }
}

/// What the products of a sub-group's rows are multiplied by, and the activations' sum.
#[derive(Clone, Copy)]
struct Step<V> {
    scale: V,
    min: Option<V>,
}

/// Those of a group; the second is the first where there is one.
///
/// # Safety
/// `scales` points to a group, and `next` numbers on there is the neighbour's.
#[inline(always)]
unsafe fn steps<D: Dot, F: Format>(scales: *const u16, next: usize) -> [Step<D::Floats>; 2] {
    // SAFETY: the caller's promise.
    unsafe {
        let first = step::<D, F>(scales, next);
        if const { F::CODING.group == GROUP } {
            return [first, first];
        }
        [first, step::<D, F>(scales.add(const { group_scales(F::CODING) / 2 }), next)]
    }
}

/// # Safety
/// `scales` points to a sub-group: eight numbers for scales and, where they are stored, eight for minima.
#[inline(always)]
unsafe fn step<D: Dot, F: Format>(scales: *const u16, next: usize) -> Step<D::Floats> {
    // SAFETY: the caller's promise.
    unsafe {
        let scale = D::halves(scales, next);
        match (const { lifted::<D, F>() }, F::CODING.zero) {
            (Some(lifted), _) if lifted.shift > 0 => {
                let factor = D::splat(1.0 / (1 << lifted.shift) as f32);
                Step { scale: D::mul(scale, factor), min: None }
            }
            (None, Zero::Stored) => Step { scale, min: Some(D::halves(scales.add(TILE), next)) },
            (None, Zero::Offset(offset @ 1..)) => {
                Step { scale, min: Some(D::mul(scale, D::splat(-f32::from(offset)))) }
            }
            _ => Step { scale, min: None },
        }
    }
}

/// Codes brought to a zero for which it is kept where sums begin.
#[derive(Clone, Copy)]
struct Lifted {
    /// By how many bits codes are shifted: their scale is smaller for it.
    shift: u32,
    begin: Number,
}

/// How codes with an offset are lifted; `None` where there is none, or where codes are signed and have less room.
const fn lifted<D: Dot, F: Format>() -> Option<Lifted> {
    let offset = match F::CODING.zero {
        Zero::Offset(offset) => offset as u32 + raised::<D, F>(),
        Zero::Stored => 0,
    };
    if D::SIGNED || offset == 0 {
        return None;
    }
    let (zero, begin) = match offset {
        _ if F::CODING.group < GROUP => (32, Number::HalfLess32),
        16 => (16, Number::Less16),
        _ => (128u32, Number::Less128),
    };
    assert!(zero.is_multiple_of(offset) && (zero / offset).is_power_of_two());
    Some(Lifted { shift: (zero / offset).ilog2(), begin })
}

/// How much is added to each code before it is multiplied.
const fn raised<D: Dot, F: Format>() -> u32 {
    if matches!(F::CODING.store, Store::Signed) && !D::SIGNED { 128 } else { 0 }
}

/// For `S` tokens, the sums of code × activation over one sub-group, for all lanes: the way of most sets.
///
/// # Safety
/// As for `group`; `sub` is a sub-group of the group.
#[inline(always)]
pub(in crate::cpu) unsafe fn whole_products<D: Dot, F: Format, const S: usize>(
    codes: *const u8,
    next: usize,
    x: Activations,
    sub: usize,
) -> [D::Ints; S] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [D::zero(); S];
        if let Some(lifted) = const { lifted::<D, F>() } {
            for (t, sum) in sums.iter_mut().enumerate() {
                *sum = D::four(x.number(lifted.begin, sub, t).cast());
            }
        }
        let chunks = const { F::CODING.group / 4 };
        for place in 0..chunks {
            // Low and high nibbles of the same bytes follow one another.
            let chunk = if chunks == 8 { place / 2 + place % 2 * 4 } else { 4 * sub + place };
            let codes = chunk_codes::<D, F>(codes, next, chunk);
            for (t, sum) in sums.iter_mut().enumerate() {
                *sum = D::dot(*sum, codes, D::four(x.codes(t).add(4 * chunk)));
            }
        }
        sums
    }
}

/// The codes of four columns, ready to be multiplied.
///
/// # Safety
/// As for `group`; `chunk` is below 8.
#[inline(always)]
pub(in crate::cpu) unsafe fn chunk_codes<D: Dot, F: Format>(
    codes: *const u8,
    next: usize,
    chunk: usize,
) -> D::Ints {
    // SAFETY: the caller's promise.
    unsafe {
        let codes = stored_codes::<D, F>(codes, next, chunk);
        if const { raised::<D, F>() } > 0 {
            return D::raise(codes);
        }
        match const { lifted::<D, F>() } {
            Some(lifted) if lifted.shift > 0 => D::up(codes, lifted.shift),
            _ => codes,
        }
    }
}

/// The same as they are stored.
///
/// # Safety
/// As for `chunk_codes`.
#[inline(always)]
unsafe fn stored_codes<D: Dot, F: Format>(codes: *const u8, next: usize, chunk: usize) -> D::Ints {
    const CHUNK: usize = 4 * TILE;
    // SAFETY: the caller's promise. A group of nibbles is four chunks, one of bytes eight.
    unsafe {
        match F::CODING.store {
            Store::Nibble if chunk < 4 => D::low(D::codes(codes.add(chunk * CHUNK), next)),
            Store::Nibble => D::high(D::codes(codes.add((chunk - 4) * CHUNK), next)),
            _ => D::codes(codes.add(chunk * CHUNK), next),
        }
    }
}
