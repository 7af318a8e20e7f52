//! The planes of a product, and the order in which they are gone through.

use std::ops::Range;

use super::Format;
use crate::matrix::{Coded, GROUP, group_codes, group_scales};
use crate::outliers::{FOUR, Outliers};
use crate::quantized::{BLOCK, NUMBERS, Number, Quantized, block_width};

/// Bytes of weights, and of activations, that are worked on while they are in the first cache. (Processors with AVX-512
/// have a larger one, and a second cache that is fast enough for half of it.)
pub(in crate::cpu) const CACHED: usize = 12 << 10;

/// How far before its use a byte of weights is asked for, where they are read once.
pub(in crate::cpu) const AHEAD: usize = 4096;

/// The planes of a product as pointers: indexing checks in the innermost loop cost a third of the speed.
pub(in crate::cpu) struct View<'a> {
    pub(in crate::cpu) codes: *const u8,
    pub(in crate::cpu) tile_codes: usize,
    pub(in crate::cpu) scales: *const u16,
    pub(in crate::cpu) tile_scales: usize,
    x: *const i8,
    numbers: *const f32,
    /// Groups of 32 in a row.
    pub(in crate::cpu) groups: usize,
    tokens: usize,
    outliers: &'a Outliers,
}

impl<'a> View<'a> {
    /// Panics unless the planes hold these tiles and all tokens: what the pointers rely on.
    pub(in crate::cpu) fn new(w: &Coded, x: &'a Quantized, tiles: &Range<usize>) -> Self {
        let groups = w.groups();
        assert_eq!(x.groups(), groups);
        assert!(tiles.end * w.tile_codes() <= w.codes().len());
        assert!(tiles.end * w.tile_scales() <= w.scales().len());
        assert_eq!(x.codes().len(), x.tokens() * groups * GROUP);
        assert_eq!(x.numbers().len(), x.tokens() * groups * NUMBERS);
        Self {
            codes: w.codes().as_ptr(),
            tile_codes: w.tile_codes(),
            scales: w.scales().as_ptr(),
            tile_scales: w.tile_scales(),
            x: x.codes().as_ptr(),
            numbers: x.numbers().as_ptr().cast(),
            groups,
            tokens: x.tokens(),
            outliers: x.outliers(),
        }
    }

    /// The outliers of a token and of its neighbours: where the weights of their columns are in a tile, and their values, of which
    /// the token's own is the first.
    ///
    /// # Safety
    /// The tile is inside the view, which is of format `F`.
    #[inline(always)]
    pub(in crate::cpu) unsafe fn outliers<F: Format>(
        &self,
        tile: usize,
        token: usize,
    ) -> impl Iterator<Item = (Column, *const f32)> {
        // SAFETY: the caller's promise.
        let (codes, scales) =
            unsafe { (self.codes.add(tile * self.tile_codes), self.scales.add(tile * self.tile_scales)) };
        self.outliers.around(token).map(move |(column, values)| {
            let (group, k) = (column / GROUP, column % GROUP);
            let (sub, subs) = (k / F::CODING.group, GROUP / F::CODING.group);
            // SAFETY: columns of outliers are below the columns of the activations, which are those of the weights.
            let (codes, scales) = unsafe {
                (
                    codes.add(group * group_codes(F::CODING)),
                    scales.add(group * group_scales(F::CODING) + sub * (group_scales(F::CODING) / subs)),
                )
            };
            (Column { codes, scales, k }, values[token % FOUR..].as_ptr())
        })
    }

    /// The activations of `T` tokens from `token` on, which are in one block.
    ///
    /// # Safety
    /// They are inside the view.
    #[inline(always)]
    pub(in crate::cpu) unsafe fn activations<const T: usize>(&self, token: usize) -> Activations {
        let width = if T == BLOCK { BLOCK } else { block_width(self.tokens, token) };
        let (block, at) = (token / BLOCK * BLOCK, token % BLOCK);
        debug_assert!(at + T <= width && token + T <= self.tokens);
        // SAFETY: the caller's promise.
        unsafe {
            Activations {
                x: self.x.add((block * self.groups) * GROUP + at * GROUP),
                numbers: self.numbers.add(block * self.groups * NUMBERS + at),
                width,
            }
        }
    }

    /// Calls `run` with ranges of tiles and tokens that cover `tiles × all tokens` once, in an order in which both stay
    /// in the first cache. But for the last ones, ranges are as many tiles and multiples of as many tokens as given.
    pub(in crate::cpu) fn blocks(
        &self,
        tiles: Range<usize>,
        (tile_step, token_step): (usize, usize),
        cached: usize,
        mut run: impl FnMut(Range<usize> /* tiles */, Range<usize> /* tokens */),
    ) {
        let tile_bytes = self.tile_codes + 2 * self.tile_scales;
        let tiles_at_once = (cached / (tile_step * tile_bytes)).max(1) * tile_step;
        let token_bytes = self.groups * (GROUP + 2 * size_of::<f32>()); // of the numbers, one or two are read
        let tokens_at_once = (cached / (token_step * token_bytes)).max(1) * token_step;
        for first_tile in tiles.clone().step_by(tiles_at_once) {
            let last_tile = tiles.end.min(first_tile + tiles_at_once);
            for first_token in (0..self.tokens).step_by(tokens_at_once) {
                let tokens = first_token..self.tokens.min(first_token + tokens_at_once);
                for tile in (first_tile..last_tile).step_by(tile_step) {
                    run(tile..last_tile.min(tile + tile_step), tokens.clone());
                }
            }
        }
    }
}

/// One column of a tile's weights.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Column {
    /// Of its group.
    pub(in crate::cpu) codes: *const u8,
    /// Of its sub-group.
    pub(in crate::cpu) scales: *const u16,
    /// Its place in the group.
    pub(in crate::cpu) k: usize,
}

/// One group of activations of neighbouring tokens of a block.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Activations {
    x: *const i8,
    numbers: *const f32,
    width: usize,
}

impl Activations {
    /// The codes of the `t`th token.
    ///
    /// # Safety
    /// The token is one of those that this was made for.
    #[inline(always)]
    pub(in crate::cpu) unsafe fn codes(self, t: usize) -> *const i8 {
        // SAFETY: the caller's promise.
        unsafe { self.x.add(t * GROUP) }
    }

    /// One of the numbers of the `t`th token.
    ///
    /// # Safety
    /// As for `codes`; a `next` is there.
    #[inline(always)]
    pub(in crate::cpu) unsafe fn number(self, number: Number, next: usize, t: usize) -> *const f32 {
        // SAFETY: the caller's promise.
        unsafe { self.numbers.add((number as usize + next) * self.width + t) }
    }

    /// The same from token `t` on.
    ///
    /// # Safety
    /// As for `codes`.
    #[inline(always)]
    pub(in crate::cpu) unsafe fn from(self, t: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self { x: self.x.add(t * GROUP), numbers: self.numbers.add(t), width: self.width } }
    }

    /// Goes to the next group of these tokens, or to the end.
    #[inline(always)]
    pub(in crate::cpu) fn next_group(&mut self) {
        // For a part of a block the end may be beyond the plane: nothing is read there.
        self.x = self.x.wrapping_add(self.width * GROUP);
        self.numbers = self.numbers.wrapping_add(self.width * NUMBERS);
    }
}
