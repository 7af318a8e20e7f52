//! Paged attention against plain attention in 64 bits, on random block tables.

mod common;

use std::sync::Arc;

use common::Random;
use jackfield_kernels::{Cpu, Isa, KvArena, KvShape, KvSpan};

/// A sequence with its keys and values, and where its blocks are.
struct Sequence {
    table: Vec<u32>,
    /// `[positions, kv_heads, head_dim]`
    k: Vec<f32>,
    v: Vec<f32>,
}

struct World {
    shape: KvShape,
    heads: usize,
    layer: usize,
    arena: KvArena,
    sequences: Vec<Sequence>,
}

impl World {
    /// Sequences of these lengths, in shuffled blocks. Blocks nobody owns, and the ends of last blocks, hold NaN as a
    /// reused block might.
    fn new(random: &mut Random, cpu: &Cpu, shape: KvShape, heads: usize, lengths: &[usize]) -> World {
        let layer = random.below(shape.layers);
        let mut arena = KvArena::new(shape).unwrap();
        let row = shape.kv_heads * shape.head_dim;
        let all: Vec<u32> = (0..shape.blocks as u32).collect();
        let poison = vec![f32::NAN; shape.blocks * shape.block_size * row];
        let whole = KvSpan { table: &all, start: 0, len: shape.blocks * shape.block_size, row: 0 };
        arena.write(cpu, layer, &[whole], &poison, &poison);
        let mut free = all.clone();
        let mut sequences = Vec::new();
        for length in lengths {
            let blocks = length.div_ceil(shape.block_size);
            let table: Vec<u32> = (0..blocks).map(|_| free.swap_remove(random.below(free.len()))).collect();
            let (k, v) = (random.floats(length * row), random.floats(length * row));
            sequences.push(Sequence { table, k, v });
        }
        World { shape, heads, layer, arena, sequences }
    }

    fn row(&self) -> usize {
        self.shape.kv_heads * self.shape.head_dim
    }

    /// Spans for `chunks`: (sequence, start, length), rows in that order.
    fn spans(&self, chunks: &[(usize, usize, usize)]) -> Vec<KvSpan<'_>> {
        let mut row = 0;
        let span = |&(sequence, start, len): &(usize, usize, usize)| {
            row += len;
            KvSpan { table: &self.sequences[sequence].table, start, len, row: row - len }
        };
        chunks.iter().map(span).collect()
    }

    /// Writes the keys and values of the chunks in one call.
    fn write(&mut self, cpu: &Cpu, chunks: &[(usize, usize, usize)]) {
        let row = self.row();
        let gather = |of: fn(&Sequence) -> &[f32]| -> Vec<f32> {
            let rows = |&(s, start, len): &(usize, usize, usize)| {
                of(&self.sequences[s])[start * row..][..len * row].to_vec()
            };
            chunks.iter().flat_map(rows).collect()
        };
        let (k, v) = (gather(|s| &s.k), gather(|s| &s.v));
        let tables: Vec<Vec<u32>> = chunks.iter().map(|c| self.sequences[c.0].table.clone()).collect();
        let mut at = 0;
        let spans: Vec<KvSpan<'_>> = chunks
            .iter()
            .zip(&tables)
            .map(|(&(_, start, len), table)| {
                at += len;
                KvSpan { table, start, len, row: at - len }
            })
            .collect();
        self.arena.write(cpu, self.layer, &spans, &k, &v);
    }

    fn attend(&self, cpu: &Cpu, chunks: &[(usize, usize, usize)], q: &[f32]) -> Vec<f32> {
        let mut out = vec![f32::NAN; q.len()];
        let scale = 1.0 / (self.shape.head_dim as f32).sqrt();
        cpu.attention(&self.arena, self.layer, &self.spans(chunks), q, self.heads, scale, &mut out);
        out
    }

    /// What it should be, for one query head at one position.
    fn exact(&self, sequence: usize, position: usize, head: usize, q: &[f32]) -> Vec<f64> {
        let (dim, kv_head) = (self.shape.head_dim, head / (self.heads / self.shape.kv_heads));
        let sequence = &self.sequences[sequence];
        let at = |x: &[f32], p: usize, d: usize| {
            f64::from(half::f16::from_f32(x[p * self.row() + kv_head * dim + d]).to_f32())
        };
        let score =
            |p| (0..dim).map(|d| f64::from(q[d]) * at(&sequence.k, p, d)).sum::<f64>() / (dim as f64).sqrt();
        let weights: Vec<f64> = (0..=position).map(|p| score(p).exp()).collect();
        let total: f64 = weights.iter().sum();
        (0..dim)
            .map(|d| weights.iter().enumerate().map(|(p, w)| w * at(&sequence.v, p, d)).sum::<f64>() / total)
            .collect()
    }

    fn check(&self, chunks: &[(usize, usize, usize)], q: &[f32], out: &[f32], every: usize) {
        let dim = self.shape.head_dim;
        let mut row = 0;
        for &(sequence, start, len) in chunks {
            for i in (0..len).filter(|i| i % every == 0 || i + 1 == len) {
                for head in 0..self.heads {
                    let at = ((row + i) * self.heads + head) * dim;
                    let exact = self.exact(sequence, start + i, head, &q[at..at + dim]);
                    for (got, want) in out[at..at + dim].iter().zip(exact) {
                        assert!(
                            (f64::from(*got) - want).abs() < 2e-5,
                            "{chunks:?} row {i} head {head}: {got} {want}"
                        );
                    }
                }
            }
            row += len;
        }
    }
}

fn cpus() -> Vec<Arc<Cpu>> {
    Isa::ALL.into_iter().filter_map(|isa| Cpu::with_isa(3, isa)).collect()
}

fn shape(blocks: usize, block_size: usize, kv_heads: usize, head_dim: usize) -> KvShape {
    KvShape { layers: 2, blocks, block_size, kv_heads, head_dim }
}

/// Everything in one step: long and short prompts from the start, chunks from the middle, single rows.
#[test]
fn agrees_with_plain_attention() {
    let mut random = Random(10);
    let shapes = [
        (shape(40, 16, 3, 64), 9),
        (shape(40, 16, 1, 24), 7),
        (shape(24, 32, 2, 80), 2),
        (shape(60, 8, 2, 16), 16),
        (shape(70, 5, 2, 6), 4),   // nothing a multiple of eight
        (shape(9, 100, 1, 40), 3), // blocks larger than a chunk
        (shape(300, 1, 1, 8), 1),
    ];
    for cpu in cpus() {
        for (shape, heads) in shapes {
            let mut world = World::new(&mut random, &cpu, shape, heads, &[130, 61, 17, 1]);
            let chunks = [(0, 100, 30), (1, 60, 1), (2, 0, 17), (3, 0, 1)];
            world.write(&cpu, &[(0, 0, 100), (1, 0, 60)]);
            world.write(&cpu, &chunks);
            let q = random.floats(49 * heads * shape.head_dim);
            world.check(&chunks, &q, &world.attend(&cpu, &chunks, &q), 1);
        }
    }
}

/// Contexts of several segments, read by one row (split over the threads) and by many.
#[test]
fn long_contexts() {
    let mut random = Random(11);
    for cpu in cpus() {
        let mut world = World::new(&mut random, &cpu, shape(110, 16, 2, 32), 6, &[1600]);
        world.write(&cpu, &[(0, 0, 1600)]);
        let chunk = (0, 1450, 150);
        let q = random.floats(150 * 6 * 32);
        world.check(&[chunk], &q, &world.attend(&cpu, &[chunk], &q), 49);
        let last = &q[149 * 192..];
        world.check(&[(0, 1599, 1)], last, &world.attend(&cpu, &[(0, 1599, 1)], last), 1);
    }
}

/// The same position gives the same bits: alone, in a chunk, in a whole prompt, with others, on one thread or several.
#[test]
fn cuts_and_company_change_nothing() {
    let mut random = Random(12);
    for isa in Isa::ALL {
        let Some(cpu) = Cpu::with_isa(4, isa) else { continue };
        let alone = Cpu::with_isa(1, isa).unwrap();
        let (len, width) = (1300, 3 * 8);
        let mut world = World::new(&mut random, &cpu, shape(200, 16, 1, 8), 3, &[len, 700]);
        world.write(&cpu, &[(0, 0, len), (1, 0, 700)]);
        let q = random.floats((len + 700) * width);
        let together = world.attend(&cpu, &[(0, 0, len), (1, 0, 700)], &q);
        for (start, rows) in
            [(0, 1), (5, 40), (511, 2), (512, 1), (513, 500), (1024, 1), (1298, 1), (1299, 1)]
        {
            let q = &q[start * width..][..rows * width];
            for cpu in [&cpu, &alone] {
                let part = world.attend(cpu, &[(0, start, rows)], q);
                let whole = &together[start * width..][..rows * width];
                assert!(
                    part.iter().zip(whole).all(|(a, b)| a.to_bits() == b.to_bits()),
                    "{isa:?} {start}+{rows}"
                );
            }
        }
    }
}

#[test]
fn a_copied_block_is_the_block() {
    let mut random = Random(13);
    let cpu = Cpu::new(2);
    let mut world = World::new(&mut random, &cpu, shape(6, 16, 2, 16), 2, &[20]);
    world.write(&cpu, &[(0, 0, 20)]);
    let q = random.floats(2 * 16);
    let before = world.attend(&cpu, &[(0, 19, 1)], &q);
    let other = (0..6).find(|b| !world.sequences[0].table.contains(b)).unwrap();
    world.arena.copy_block(world.sequences[0].table[1], other);
    world.sequences[0].table[1] = other;
    assert_eq!(world.attend(&cpu, &[(0, 19, 1)], &q), before);
}

#[test]
fn impossible_arenas_are_errors() {
    for bad in [shape(0, 16, 1, 8), shape(4, 0, 1, 8), shape(4, 16, 0, 8), shape(usize::MAX, 16, 1, 8)] {
        assert!(KvArena::new(bad).is_err());
    }
    assert!(KvArena::new(shape(4, usize::MAX, 1, 8)).is_err());
    let good = shape(4, 16, 3, 64);
    assert_eq!(good.block_bytes(), Some(2 * 16 * 3 * 64 * 2 * 2));
    assert_eq!(KvArena::new(good).unwrap().bytes(), 4 * good.block_bytes().unwrap());
}

#[test]
#[should_panic(expected = "block 7 of 4")]
fn a_block_that_is_not_there() {
    let mut arena = KvArena::new(shape(4, 16, 1, 8)).unwrap();
    let span = KvSpan { table: &[7], start: 0, len: 1, row: 0 };
    arena.write(&Cpu::new(1), 0, &[span], &[0.0; 8], &[0.0; 8]);
}
