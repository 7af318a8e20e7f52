//! The planes of a product, and the order in which they are gone through.

use std::ops::Range;

use crate::matrix::{Coded, GROUP};
use crate::quantized::{GroupMeta, Quantized};

/// Bytes of weights, and of activations, that are worked on while they are in the first cache.
const CACHED: usize = 12 << 10;

/// How far before its use a byte of weights is asked for, where they are read once.
pub(in crate::cpu) const AHEAD: usize = 4096;

/// The planes of a product as pointers: indexing checks in the innermost loop cost a third of the speed.
pub(in crate::cpu) struct View {
    pub(in crate::cpu) codes: *const u8,
    pub(in crate::cpu) tile_codes: usize,
    pub(in crate::cpu) scales: *const u16,
    pub(in crate::cpu) tile_scales: usize,
    pub(in crate::cpu) x: *const i8,
    pub(in crate::cpu) metas: *const GroupMeta,
    /// Groups of 32 in a row.
    pub(in crate::cpu) groups: usize,
    tokens: usize,
}

impl View {
    /// Panics unless the planes hold these tiles and all tokens: what the pointers rely on.
    pub(in crate::cpu) fn new(w: &Coded, x: &Quantized, tiles: &Range<usize>) -> Self {
        let groups = w.groups();
        assert_eq!(x.groups(), groups);
        assert!(tiles.end * w.tile_codes() <= w.codes().len());
        assert!(tiles.end * w.tile_scales() <= w.scales().len());
        assert_eq!(x.codes().len(), x.tokens() * groups * GROUP);
        assert_eq!(x.metas().len(), x.tokens() * groups);
        Self {
            codes: w.codes().as_ptr(),
            tile_codes: w.tile_codes(),
            scales: w.scales().as_ptr(),
            tile_scales: w.tile_scales(),
            x: x.codes().as_ptr(),
            metas: x.metas().as_ptr(),
            groups,
            tokens: x.tokens(),
        }
    }

    /// Calls `run` with ranges of tiles and tokens that cover `tiles × all tokens` once, in an order in which both stay
    /// in the first cache. But for the last ones, ranges are as many tiles and multiples of as many tokens as given.
    pub(in crate::cpu) fn blocks(
        &self,
        tiles: Range<usize>,
        (tile_step, token_step): (usize, usize),
        mut run: impl FnMut(Range<usize> /* tiles */, Range<usize> /* tokens */),
    ) {
        let tile_bytes = self.tile_codes + 2 * self.tile_scales;
        let tiles_at_once = (CACHED / (tile_step * tile_bytes)).max(1) * tile_step;
        let token_bytes = self.groups * (GROUP + size_of::<GroupMeta>());
        let tokens_at_once = (CACHED / (token_step * token_bytes)).max(1) * token_step;
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
