//! Paged attention against plain attention in 64 bits, on random block tables.

mod common;

use std::sync::Arc;

use common::{Random, few};
use jackfield_kernels::{Cpu, Isa, KvArena, KvShape, KvSpan, KvType};

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
    fn new(
        random: &mut Random,
        cpu: &Cpu,
        (shape, kv_type): (KvShape, KvType),
        heads: usize,
        lengths: &[usize],
    ) -> World {
        let layer = random.below(shape.layers);
        let mut arena = KvArena::with_type(shape, kv_type).unwrap();
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
        let rows = |x: &[f32]| -> Vec<Vec<f64>> {
            let row = |p: usize| &x[p * self.row() + kv_head * dim..][..dim];
            (0..=position).map(|p| kept(self.arena.kv_type(), row(p))).collect()
        };
        let q = if self.arena.kv_type() == KvType::F16 {
            q.iter().map(|q| f64::from(*q)).collect()
        } else {
            coded(q, |step| step)
        };
        let (k, v) = (rows(&sequence.k), rows(&sequence.v));
        let score = |k: &Vec<f64>| k.iter().zip(&q).map(|(k, q)| k * q).sum::<f64>() / (dim as f64).sqrt();
        let weights: Vec<f64> = k.iter().map(|k| score(k).exp()).collect();
        let total: f64 = weights.iter().sum();
        (0..dim).map(|d| weights.iter().zip(&v).map(|(w, v)| w * v[d]).sum::<f64>() / total).collect()
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

/// What a cache of this type makes of a row of a head.
fn kept(kv_type: KvType, x: &[f32]) -> Vec<f64> {
    let half = |x: f32| half::f16::from_f32(x).to_f32();
    match kv_type {
        KvType::F16 => x.iter().map(|x| f64::from(half(*x))).collect(),
        KvType::Int8 => coded(x, half),
    }
}

/// Numbers brought to 8 bits by the largest of them, with a rounded step.
fn coded(x: &[f32], rounded: impl Fn(f32) -> f32) -> Vec<f64> {
    let step = rounded(x.iter().fold(0.0f32, |m, x| m.max(x.abs())) / 127.0);
    let code = |x: &f32| (x * (1.0 / step)).clamp(-127.0, 127.0).round_ties_even();
    x.iter().map(|x| f64::from(step) * f64::from(code(x))).collect()
}

const TYPES: [KvType; 2] = [KvType::F16, KvType::Int8];

fn cpus() -> Vec<Arc<Cpu>> {
    Isa::ALL.into_iter().filter_map(|isa| Cpu::with_isa(3, isa).ok()).collect()
}

fn shape(blocks: usize, block_size: usize, kv_heads: usize, head_dim: usize) -> KvShape {
    KvShape { layers: 2, blocks, block_size, kv_heads, head_dim }
}

/// Everything in one step: long and short prompts from the start, chunks from the middle, single rows.
#[test]
fn agrees_with_plain_attention() {
    let mut random = Random(10);
    let shapes = [
        (shape(30, 8, 1, 8), 2),
        (shape(40, 16, 3, 64), 9),
        (shape(40, 16, 1, 24), 7),
        (shape(24, 32, 2, 80), 2),
        (shape(60, 8, 2, 16), 16),
        (shape(70, 5, 2, 6), 4),   // nothing a multiple of eight
        (shape(9, 100, 1, 40), 3), // blocks larger than a chunk
        (shape(300, 1, 1, 8), 1),
    ];
    for cpu in cpus() {
        for ((shape, heads), kv_type) in few(&shapes, 1).iter().flat_map(|s| TYPES.map(|ty| (*s, ty))) {
            let mut world = World::new(&mut random, &cpu, (shape, kv_type), heads, &[130, 61, 17, 1]);
            let chunks = [(0, 100, 30), (1, 60, 1), (2, 0, 17), (3, 0, 1)];
            world.write(&cpu, &[(0, 0, 100), (1, 0, 60)]);
            world.write(&cpu, &chunks);
            let q = random.floats(49 * heads * shape.head_dim);
            let every = if cfg!(miri) { 10 } else { 1 };
            world.check(&chunks, &q, &world.attend(&cpu, &chunks, &q), every);
        }
    }
}

/// Contexts of several segments, read by one row (split over the threads) and by many.
#[test]
#[cfg_attr(miri, ignore = "long by its nature")]
fn long_contexts() {
    let mut random = Random(11);
    for (cpu, kv_type) in cpus().iter().flat_map(|cpu| TYPES.map(|ty| (cpu, ty))) {
        let mut world = World::new(&mut random, cpu, (shape(110, 16, 2, 32), kv_type), 6, &[1600]);
        world.write(cpu, &[(0, 0, 1600)]);
        let chunk = (0, 1450, 150);
        let q = random.floats(150 * 6 * 32);
        world.check(&[chunk], &q, &world.attend(cpu, &[chunk], &q), 49);
        let last = &q[149 * 192..];
        world.check(&[(0, 1599, 1)], last, &world.attend(cpu, &[(0, 1599, 1)], last), 1);
    }
}

/// The same position gives the same bits: alone, in a chunk, in a whole prompt, with others, on one thread or several.
#[test]
#[cfg_attr(miri, ignore = "long by its nature")]
fn cuts_and_company_change_nothing() {
    let mut random = Random(12);
    for (isa, kv_type) in Isa::ALL.into_iter().flat_map(|isa| TYPES.map(|ty| (isa, ty))) {
        let Ok(cpu) = Cpu::with_isa(4, isa) else { continue };
        let alone = Cpu::with_isa(1, isa).unwrap();
        let (len, width) = (1300, 3 * 8);
        let mut world = World::new(&mut random, &cpu, (shape(200, 16, 1, 8), kv_type), 3, &[len, 700]);
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

/// Every number of rows, over heads of the sizes that models have, from starts inside a block.
#[test]
fn every_instruction_set_agrees_on_every_size() {
    let mut random = Random(14);
    let reference = Cpu::with_isa(1, Isa::Scalar).unwrap();
    for (dim, kv_type) in [64, 80, 96, 128].into_iter().flat_map(|dim| TYPES.map(|ty| (dim, ty))) {
        let (heads, kv_heads) = (6, 2);
        let shape = shape(12, 16, kv_heads, dim);
        let mut world = World::new(&mut random, &reference, (shape, kv_type), heads, &[150]);
        world.write(&reference, &[(0, 0, 83), (0, 83, 67)]);
        for rows in (1..68).step_by(if dim == 64 { 1 } else { 6 }) {
            let chunk = (0, random.below(150 - rows), rows);
            let q = random.floats(rows * heads * dim);
            let want = world.attend(&reference, &[chunk], &q);
            for cpu in cpus() {
                let got = world.attend(&cpu, &[chunk], &q);
                let near = |(got, want): (&f32, &f32)| (got - want).abs() < 2e-5;
                assert!(got.iter().zip(&want).all(near), "{} {kv_type:?} {dim} {chunk:?}", cpu.isa().name());
            }
        }
    }
}

/// A key or value that is no number spoils what sees it, nothing of another call, and stops nobody.
#[test]
fn not_a_number_is_not_hidden() {
    let mut random = Random(15);
    for (cpu, kv_type) in cpus().iter().flat_map(|cpu| TYPES.map(|ty| (cpu, ty))) {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut world = World::new(&mut random, cpu, (shape(6, 16, 1, 64), kv_type), 1, &[40]);
            world.sequences[0].v[30 * 64 + 3] = bad;
            world.write(cpu, &[(0, 0, 40)]);
            let q = random.floats(40 * 64);
            let before = world.attend(cpu, &[(0, 0, 30)], &q[..30 * 64]);
            assert!(before.iter().all(|x| x.is_finite()), "{} {kv_type:?}", cpu.isa().name());
            for row in 30..40 {
                let after = world.attend(cpu, &[(0, row, 1)], &q[row * 64..][..64]);
                assert!(!after[3].is_finite(), "{} {kv_type:?}", cpu.isa().name());
            }
            let mut queries = q[..64].to_vec();
            queries[7] = bad;
            world.attend(cpu, &[(0, 20, 1)], &queries);
            world.sequences[0].k[5] = bad;
            world.write(cpu, &[(0, 0, 40)]);
            world.attend(cpu, &[(0, 0, 40)], &q);
        }
    }
}

#[test]
fn a_copied_block_is_the_block() {
    let mut random = Random(13);
    let cpu = Cpu::new(2);
    for kv_type in TYPES {
        let mut world = World::new(&mut random, &cpu, (shape(6, 16, 2, 16), kv_type), 2, &[20]);
        world.write(&cpu, &[(0, 0, 20)]);
        let q = random.floats(2 * 16);
        let before = world.attend(&cpu, &[(0, 19, 1)], &q);
        let other = (0..6).find(|b| !world.sequences[0].table.contains(b)).unwrap();
        world.arena.copy_block(world.sequences[0].table[1], other);
        world.sequences[0].table[1] = other;
        assert_eq!(world.attend(&cpu, &[(0, 19, 1)], &q), before);
    }
}

#[test]
fn impossible_arenas_are_errors() {
    for bad in [shape(0, 16, 1, 8), shape(4, 0, 1, 8), shape(4, 16, 0, 8), shape(usize::MAX, 16, 1, 8)] {
        assert!(KvArena::new(bad).is_err());
    }
    assert!(KvArena::new(shape(4, usize::MAX, 1, 8)).is_err());
    let good = shape(4, 16, 3, 64);
    assert_eq!(good.block_bytes(KvType::F16), Some(2 * 16 * 3 * 64 * 2 * 2));
    assert_eq!(good.block_bytes(KvType::Int8), Some(2 * 16 * 3 * (64 + 2) * 2));
    for kv_type in TYPES {
        let arena = KvArena::with_type(good, kv_type).unwrap();
        assert_eq!(arena.bytes(), 4 * good.block_bytes(kv_type).unwrap());
    }
}

#[test]
#[should_panic(expected = "block 7 of 4")]
fn a_block_that_is_not_there() {
    let mut arena = KvArena::new(shape(4, 16, 1, 8)).unwrap();
    let span = KvSpan { table: &[7], start: 0, len: 1, row: 0 };
    arena.write(&Cpu::new(1), 0, &[span], &[0.0; 8], &[0.0; 8]);
}
