//! Quantised weights: codes in one plane, scales in another, both in the order the kernels read them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use half::f16;

use super::{GROUP, TILE};
use crate::aligned::Aligned;
use crate::ggml::{Coding, Store, Unpacked, Zero, unpacker};
use crate::shared::Parts;
use crate::{Cpu, GgmlType, KernelError};

/// Codes and scales of a matrix.
///
/// Codes are `[tile, group of 32, chunk, row of 8, 4]` bytes. With one byte a code there are eight chunks: chunk c,
/// row r, byte i is column 4c+i. With nibbles there are four: the low nibble is column 4c+i, the high one 16+4c+i.
/// Scales are `[tile, sub-group, 8]` 16-bit floats, or `[tile, sub-group, 2, 8]` where minima are stored, scales first;
/// a sub-group is 16 or 32 columns.
pub(crate) struct Coded {
    coding: Coding,
    /// Groups of 32 in a row.
    groups: usize,
    codes: Aligned<u8>,
    scales: Aligned<u16>,
}

/// What `pack` needs to know of one matrix.
struct Source<'a> {
    ty: GgmlType,
    bytes: &'a [u8],
    rows: usize,
    cols: usize,
}

impl Coded {
    pub(super) fn pack(
        cpu: &Cpu,
        ty: GgmlType,
        bytes: &[u8],
        rows: usize,
        cols: usize,
    ) -> Result<Self, KernelError> {
        let coding = Coding::of(ty).ok_or(KernelError::BadShape { what: "a quantised matrix of floats" })?;
        let (tiles, groups) = (rows.div_ceil(TILE), cols / GROUP);
        let mut empty = Self { coding, groups, codes: Aligned::default(), scales: Aligned::default() };
        let (tile_codes, tile_scales) = (empty.tile_codes(), empty.tile_scales());
        let mut codes = Aligned::try_zeroed(tiles * tile_codes)?;
        let mut scales = Aligned::try_zeroed(tiles * tile_scales)?;
        let (code_parts, scale_parts) = (Parts::new(&mut codes), Parts::new(&mut scales));
        let source = Source { ty, bytes, rows, cols };
        let bad_row = AtomicUsize::new(usize::MAX);
        cpu.parallel(tiles, &|tile| {
            // SAFETY: a tile's codes and scales belong to its task alone.
            let (codes, scales) = unsafe {
                (
                    code_parts.slice(tile * tile_codes, tile_codes),
                    scale_parts.slice(tile * tile_scales, tile_scales),
                )
            };
            if let Err(row) = pack_tile(&source, coding, tile, codes, scales) {
                bad_row.fetch_min(row, Relaxed);
            }
        });
        match bad_row.into_inner() {
            usize::MAX => {
                (empty.codes, empty.scales) = (codes, scales);
                Ok(empty)
            }
            row => Err(KernelError::BadScale { row }),
        }
    }

    pub(crate) fn coding(&self) -> Coding {
        self.coding
    }

    /// Groups of 32 columns.
    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    pub(crate) fn bytes(&self) -> usize {
        self.codes.len() + 2 * self.scales.len()
    }

    /// All codes; tile t begins at `t * tile_codes()`.
    pub(crate) fn codes(&self) -> &[u8] {
        &self.codes
    }

    /// All scales; tile t begins at `t * tile_scales()`.
    pub(crate) fn scales(&self) -> &[u16] {
        &self.scales
    }

    /// Bytes of codes in a tile.
    pub(crate) fn tile_codes(&self) -> usize {
        self.groups * group_codes(self.coding)
    }

    /// Numbers in the scale plane of a tile.
    pub(crate) fn tile_scales(&self) -> usize {
        self.groups * group_scales(self.coding)
    }

    pub(super) fn row(&self, row: usize, out: &mut [f32]) {
        for (column, value) in out.iter_mut().enumerate() {
            *value = self.value(row / TILE, row % TILE, column);
        }
    }

    /// The weight of a row of a tile.
    pub(crate) fn value(&self, tile: usize, lane: usize, column: usize) -> f32 {
        let (group, k) = (tile * self.groups + column / GROUP, column % GROUP);
        let codes = &self.codes[group * group_codes(self.coding)..][..group_codes(self.coding)];
        let scales = &self.scales[group * group_scales(self.coding)..][..group_scales(self.coding)];
        let (scale, min) = scale_of(self.coding, scales, lane, k);
        self.coding.value(code_of(self.coding.store, codes, lane, k), scale, min)
    }
}

/// Bytes of codes in one group of 32 columns of a tile.
pub(crate) const fn group_codes(coding: Coding) -> usize {
    match coding.store {
        Store::Nibble => GROUP * TILE / 2,
        _ => GROUP * TILE,
    }
}

/// Numbers in the scale plane for one group of 32 columns of a tile.
pub(crate) const fn group_scales(coding: Coding) -> usize {
    let stored = if matches!(coding.zero, Zero::Stored) { 2 } else { 1 };
    GROUP / coding.group * stored * TILE
}

/// The code of column `k` of row `lane` in one group of a tile.
pub(crate) fn code_of(store: Store, codes: &[u8], lane: usize, k: usize) -> u8 {
    let (byte, shift) = place(store, lane, k);
    match store {
        Store::Nibble => codes[byte] >> shift & 15,
        _ => codes[byte],
    }
}

/// The scale and min for column `k` of row `lane` in one group of a tile; no min stored means none.
pub(crate) fn scale_of(coding: Coding, scales: &[u16], lane: usize, k: usize) -> (f32, f32) {
    let number = |at: usize| f16::from_bits(scales[at]).to_f32();
    let sub = k / coding.group;
    match coding.zero {
        Zero::Offset(_) => (number(sub * TILE + lane), 0.0),
        Zero::Stored => (number(2 * sub * TILE + lane), number((2 * sub + 1) * TILE + lane)),
    }
}

/// Where a code is in its group: byte and shift.
fn place(store: Store, lane: usize, k: usize) -> (usize, u32) {
    let at = |k: usize| k / 4 * (4 * TILE) + 4 * lane + k % 4;
    match store {
        Store::Nibble if k >= GROUP / 2 => (at(k - GROUP / 2), 4),
        _ => (at(k), 0),
    }
}

/// Repacks the rows of one tile; the error is a row with an impossible scale.
fn pack_tile(
    source: &Source<'_>,
    coding: Coding,
    tile: usize,
    codes: &mut [u8],
    scales: &mut [u16],
) -> Result<(), usize> {
    let Some(unpack) = unpacker(source.ty) else { return Ok(()) };
    let (block_elems, block_bytes) = (source.ty.block_elems(), source.ty.block_bytes());
    let row_bytes = source.cols / block_elems * block_bytes;
    let mut block = Unpacked::new();
    for row in tile * TILE..source.rows.min((tile + 1) * TILE) {
        let lane = row % TILE;
        let bytes = &source.bytes[row * row_bytes..][..row_bytes];
        for (index, bytes) in bytes.chunks_exact(block_bytes).enumerate() {
            unpack(bytes, &mut block);
            let groups = block_elems / GROUP;
            for group in 0..groups {
                let at = index * groups + group;
                let codes = &mut codes[at * group_codes(coding)..][..group_codes(coding)];
                let scales = &mut scales[at * group_scales(coding)..][..group_scales(coding)];
                put_codes(coding.store, &block.codes[group * GROUP..][..GROUP], lane, codes);
                put_scales(coding, &block, group, lane, scales).ok_or(row)?;
            }
        }
    }
    Ok(())
}

fn put_codes(store: Store, values: &[u8], lane: usize, codes: &mut [u8]) {
    if store == Store::Nibble {
        let (low, high) = values.split_at(GROUP / 2);
        for (chunk, (low, high)) in low.as_chunks::<4>().0.iter().zip(high.as_chunks::<4>().0).enumerate() {
            let both = std::array::from_fn::<u8, 4, _>(|i| low[i] | high[i] << 4);
            codes[chunk * 4 * TILE + 4 * lane..][..4].copy_from_slice(&both);
        }
    } else {
        for (chunk, four) in values.as_chunks::<4>().0.iter().enumerate() {
            codes[chunk * 4 * TILE + 4 * lane..][..4].copy_from_slice(four);
        }
    }
}

/// `None` when a scale or min is not finite in 16 bits.
fn put_scales(coding: Coding, block: &Unpacked, group: usize, lane: usize, scales: &mut [u16]) -> Option<()> {
    let stored = if coding.zero == Zero::Stored { 2 } else { 1 };
    let subs = GROUP / coding.group;
    for sub in 0..subs {
        let from = group * subs + sub;
        scales[sub * stored * TILE + lane] = finite(block.scales[from])?;
        if stored == 2 {
            scales[(2 * sub + 1) * TILE + lane] = finite(block.mins[from])?;
        }
    }
    Some(())
}

fn finite(value: f32) -> Option<u16> {
    let half = f16::from_f32(value);
    half.is_finite().then(|| half.to_bits())
}
