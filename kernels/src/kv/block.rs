//! One block as bytes, to be kept outside of an arena, and back.
//!
//! The bytes are little-endian and have the arena's own order (see [`KvArena`]), padding included, which is zero:
//! - 16-bit floats: all planes `[layer, kv_head, K or V]`.
//! - 8 bits: the codes of all planes in this order, one byte each, then their scales `[layer, kv_head, K or V, position]`, 16
//!   bits each.
//!
//! What an arena of 16-bit floats exports in 8 bits is what one of 8 bits would hold of the same numbers.

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

use super::{KvArena, KvShape, KvType, Store};
use crate::{Cpu, codes};

/// How a block is kept outside of an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KvStore {
    /// In 8 bits with a 16-bit scale for each position and head, whatever the arena has: of 16-bit floats half the bytes.
    /// What comes back is within half a step of what went out.
    #[default]
    Int8,
    /// As the arena has it: what comes back is what went out, bit for bit.
    Same,
}

impl KvStore {
    /// What blocks of an arena of this type are kept as.
    pub fn kv_type(self, arena: KvType) -> KvType {
        match self {
            KvStore::Int8 => KvType::Int8,
            KvStore::Same => arena,
        }
    }
}

impl KvArena {
    /// Bytes of a block outside of the arena.
    pub fn stored_bytes(&self, store: KvStore) -> usize {
        self.shape.block_bytes(store.kv_type(self.kv_type())).unwrap_or(usize::MAX) // an arena of such blocks exists
    }

    /// Writes a block, all layers, to `bytes`, `[stored_bytes]`. Panics on a block that is not there and on another length.
    pub fn export_block(&self, cpu: &Cpu, block: u32, store: KvStore, bytes: &mut [u8]) {
        self.check(block, store, bytes.len());
        let (cells, rows) = self.shape.ranges(block);
        match &self.store {
            Store::Halves(halves) => match store {
                KvStore::Same => put_words(&halves[cells], bytes),
                KvStore::Int8 => self.shape.quantise(cpu, &halves[cells], bytes),
            },
            Store::Codes { codes, scales } => {
                let (to_codes, to_scales) = bytes.split_at_mut(cells.len());
                put_codes(&codes[cells], to_codes);
                put_words(&scales[rows], to_scales);
            }
        }
    }

    /// Overwrites a block, all layers, by what [`export_block`](Self::export_block) gave for an arena of the same shape and
    /// type. Any bytes of the right length are keys and values: whether they are the right ones is the caller's to know.
    /// Panics on a block that is not there and on another length.
    pub fn import_block(&mut self, cpu: &Cpu, block: u32, store: KvStore, bytes: &[u8]) {
        self.check(block, store, bytes.len());
        let shape = self.shape;
        let (cells, rows) = shape.ranges(block);
        match &mut self.store {
            Store::Halves(halves) => match store {
                KvStore::Same => take_words(bytes, &mut halves[cells]),
                KvStore::Int8 => shape.dequantise(cpu, bytes, &mut halves[cells]),
            },
            Store::Codes { codes, scales } => {
                let (from_codes, from_scales) = bytes.split_at(cells.len());
                take_codes(from_codes, &mut codes[cells]);
                take_words(from_scales, &mut scales[rows]);
            }
        }
    }

    fn check(&self, block: u32, store: KvStore, bytes: usize) {
        assert!((block as usize) < self.shape.blocks, "block {block} of {}", self.shape.blocks);
        let expected = self.stored_bytes(store);
        assert_eq!(bytes, expected, "bytes of a stored block");
    }
}

impl KvShape {
    /// Where the cells, and the scales, of a block are.
    fn ranges(&self, block: u32) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let range = |each: usize| {
            let size = self.planes() * each;
            block as usize * size..(block as usize + 1) * size
        };
        (range(self.plane()), range(self.pitch()))
    }

    /// A block of 16-bit floats in 8 bits.
    fn quantise(&self, cpu: &Cpu, halves: &[u16], bytes: &mut [u8]) {
        let (plane, pitch) = (self.plane(), self.pitch());
        let (all_codes, all_scales) = bytes.split_at_mut(halves.len());
        let (mut floats, mut codes, mut scales) = (vec![0.0; plane], vec![0; plane], vec![0.0; pitch]);
        let targets = all_codes.chunks_exact_mut(plane).zip(all_scales.chunks_exact_mut(2 * pitch));
        for (number, (halves, (to, words))) in halves.chunks_exact(plane).zip(targets).enumerate() {
            halves.reinterpret_cast::<f16>().convert_to_f32_slice(&mut floats);
            match number % 2 {
                0 => self.quantise_keys(cpu, &floats, &mut scales, &mut codes),
                _ => self.quantise_values(cpu, &floats, &mut scales, &mut codes),
            }
            put_codes(&codes, to);
            let scales = words.chunks_exact_mut(2).zip(&scales);
            scales.for_each(|(word, scale)| word.copy_from_slice(&f16::from_f32(*scale).to_le_bytes()));
        }
    }

    /// From `[position, dim]`; each row has a scale, which 16 bits hold.
    fn quantise_values(&self, cpu: &Cpu, floats: &[f32], scales: &mut [f32], codes: &mut [i8]) {
        let rows = floats.chunks_exact(self.dim()).zip(codes.chunks_exact_mut(self.dim()));
        for ((row, codes), scale) in rows.zip(scales) {
            *scale = codes::half_scale(cpu.kernels().largest(row)).to_f32();
            cpu.kernels().to_codes(row, *scale, codes);
        }
    }

    /// From `[dim, position]` to `[dim / 4, position, 4]`; each column has a scale. A column is coded as a row is, in the
    /// order in which it lies.
    fn quantise_keys(&self, cpu: &Cpu, floats: &[f32], scales: &mut [f32], codes: &mut [i8]) {
        let (pitch, dim) = (self.pitch(), self.dim());
        let mut column = vec![0.0; dim];
        let mut coded = vec![0; dim];
        for (at, scale) in scales.iter_mut().enumerate() {
            column.iter_mut().zip(floats[at..].iter().step_by(pitch)).for_each(|(x, from)| *x = *from);
            *scale = codes::half_scale(cpu.kernels().largest(&column)).to_f32();
            cpu.kernels().to_codes(&column, *scale, &mut coded);
            let places = codes[4 * at..].chunks_mut(4 * pitch).zip(coded.chunks_exact(4));
            places.for_each(|(place, four)| place[..4].copy_from_slice(four));
        }
    }

    /// And back.
    fn dequantise(&self, cpu: &Cpu, bytes: &[u8], halves: &mut [u16]) {
        let (plane, pitch, dim) = (self.plane(), self.pitch(), self.dim());
        let (all_codes, all_scales) = bytes.split_at(halves.len());
        // A scale that was rounded up may lead beyond what 16 bits hold.
        let number = |code: u8, scale: f32| (f32::from(code as i8) * scale).clamp(-LARGEST, LARGEST);
        let mut scales = vec![0.0; pitch];
        let mut row = vec![0.0; pitch.max(dim)];
        let sources = all_codes.chunks_exact(plane).zip(all_scales.chunks_exact(2 * pitch));
        for (index, (halves, (codes, words))) in halves.chunks_exact_mut(plane).zip(sources).enumerate() {
            for (scale, word) in scales.iter_mut().zip(words.chunks_exact(2)) {
                *scale = f16::from_le_bytes([word[0], word[1]]).to_f32();
            }
            if index % 2 == 1 {
                let rows = halves.chunks_exact_mut(dim).zip(codes.chunks_exact(dim));
                for ((halves, codes), scale) in rows.zip(&scales) {
                    row.iter_mut().zip(codes).for_each(|(x, code)| *x = number(*code, *scale));
                    cpu.kernels().to_half(&row[..dim], halves);
                }
                continue;
            }
            for (d, halves) in halves.chunks_exact_mut(pitch).enumerate() {
                let fours = codes[d / 4 * 4 * pitch..][..4 * pitch].chunks_exact(4);
                let cells = fours.zip(&scales);
                row.iter_mut().zip(cells).for_each(|(x, (four, scale))| *x = number(four[d % 4], *scale));
                cpu.kernels().to_half(&row[..pitch], halves);
            }
        }
    }
}

/// The largest 16-bit float.
const LARGEST: f32 = 65504.0;

fn put_words(words: &[u16], bytes: &mut [u8]) {
    bytes.chunks_exact_mut(2).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
}

fn take_words(bytes: &[u8], words: &mut [u16]) {
    let pairs = words.iter_mut().zip(bytes.chunks_exact(2));
    pairs.for_each(|(word, from)| *word = u16::from_le_bytes([from[0], from[1]]));
}

fn put_codes(codes: &[i8], bytes: &mut [u8]) {
    bytes.iter_mut().zip(codes).for_each(|(to, code)| *to = *code as u8);
}

fn take_codes(bytes: &[u8], codes: &mut [i8]) {
    codes.iter_mut().zip(bytes).for_each(|(code, from)| *code = *from as i8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KvSpan;

    /// Padded in both directions.
    const SHAPE: KvShape = KvShape { layers: 2, blocks: 3, block_size: 5, kv_heads: 2, head_dim: 10 };

    /// Block 1 is full, block 2 begun.
    fn arena(kv_type: KvType, number: impl Fn(usize) -> f32) -> KvArena {
        let mut arena = KvArena::with_type(SHAPE, kv_type).expect("a small one");
        let rows = 7;
        let spans = [KvSpan { table: &[1, 2], start: 0, len: rows, row: 0 }];
        for layer in 0..SHAPE.layers {
            let x = |side: usize| -> Vec<f32> {
                let count = rows * SHAPE.kv_heads * SHAPE.head_dim;
                (0..count).map(|i| number(i + 1000 * side + 5000 * layer)).collect()
            };
            arena.write(&Cpu::new(1), layer, &spans, &x(0), &x(1));
        }
        arena
    }

    fn wave(i: usize) -> f32 {
        f16::from_f32((i as f32 * 0.7).sin() * 3.0).to_f32()
    }

    fn exported(arena: &KvArena, block: u32, store: KvStore) -> Vec<u8> {
        // What was there before must not show.
        let mut bytes = vec![0xaa; arena.stored_bytes(store)];
        arena.export_block(&Cpu::new(1), block, store, &mut bytes);
        bytes
    }

    #[test]
    fn the_same_comes_back_bit_for_bit() {
        let cases =
            [(KvType::F16, KvStore::Same), (KvType::Int8, KvStore::Same), (KvType::Int8, KvStore::Int8)];
        for (kv_type, store) in cases {
            let from = arena(kv_type, wave);
            let mut to = arena(kv_type, |i| -wave(i));
            let untouched = exported(&to, 1, KvStore::Same);
            assert_ne!(exported(&from, 2, store), exported(&to, 2, store));
            to.import_block(&Cpu::new(1), 2, store, &exported(&from, 2, store));
            assert_eq!(
                exported(&from, 2, KvStore::Same),
                exported(&to, 2, KvStore::Same),
                "{kv_type:?} {store:?}"
            );
            assert_eq!(exported(&to, 1, KvStore::Same), untouched, "no other block is touched");
        }
    }

    #[test]
    fn floats_in_eight_bits_are_what_an_arena_of_eight_bits_holds() {
        let (halves, codes) = (arena(KvType::F16, wave), arena(KvType::Int8, wave));
        for block in 0..3 {
            assert_eq!(
                exported(&halves, block, KvStore::Int8),
                exported(&codes, block, KvStore::Same),
                "{block}"
            );
        }
        assert!(halves.stored_bytes(KvStore::Int8) < halves.stored_bytes(KvStore::Same));
    }

    #[test]
    fn what_comes_back_from_eight_bits_is_within_half_a_step() {
        let from = arena(KvType::F16, wave);
        let mut to = arena(KvType::F16, |_| 0.0);
        to.import_block(&Cpu::new(1), 1, KvStore::Int8, &exported(&from, 1, KvStore::Int8));
        let numbers = |arena: &KvArena| -> Vec<f32> {
            let bytes = exported(arena, 1, KvStore::Same);
            bytes.chunks_exact(2).map(|x| f16::from_le_bytes([x[0], x[1]]).to_f32()).collect()
        };
        let (before, after) = (numbers(&from), numbers(&to));
        assert!(before.iter().any(|x| *x != 0.0));
        for (x, y) in before.iter().zip(&after) {
            assert!((x - y).abs() <= 3.0 / 127.0 * 0.52, "{x} {y}");
        }
    }

    #[test]
    fn the_largest_float_stays_finite() {
        let from = arena(KvType::F16, |i| if i % 3 == 0 { 65504.0 } else { -65504.0 });
        let mut to = arena(KvType::F16, |_| 0.0);
        to.import_block(&Cpu::new(1), 1, KvStore::Int8, &exported(&from, 1, KvStore::Int8));
        let bytes = exported(&to, 1, KvStore::Same);
        assert!(bytes.chunks_exact(2).all(|x| f16::from_le_bytes([x[0], x[1]]).is_finite()));
    }

    #[test]
    #[should_panic(expected = "bytes of a stored block")]
    fn another_length_is_a_bug() {
        arena(KvType::F16, wave).import_block(&Cpu::new(1), 0, KvStore::Int8, &[0; 7]);
    }
}
