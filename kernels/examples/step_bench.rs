//! Speed of whole steps with the shapes of a 135M llama, random weights; four of the 576 inputs of most products are outliers:
//! `cargo run --release -p jackfield-kernels --example step_bench [THREADS [TYPE [f16|int8 [ISA]]]]`.
//!
//! Prints tokens/s for prompts and for one new token at several depths; what they would be if every operation took as
//! long as its shortest run in any layer (other processes disturb that less); and those shortest times.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jackfield_kernels::{
    Angles, Cpu, GgmlType, Isa, KvArena, KvShape, KvSpan, KvType, Matrix, Projection, Quantized, Rope,
    RopeStyle,
};

const LAYERS: usize = 30;
const WIDTH: usize = 576;
const FFN: usize = 1536;
const HEADS: usize = 9;
const KV_HEADS: usize = 3;
const HEAD_DIM: usize = 64;
const VOCAB: usize = 49152;
const BLOCK: usize = 16;
const LONGEST: usize = 4096 + BLOCK;

struct Layer {
    q: Matrix,
    k: Matrix,
    v: Matrix,
    o: Matrix,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

/// The operations of a layer, and the head.
const OPS: [&str; 11] =
    ["norm", "qkv", "rope+write", "attention", "quantise", "o", "norm 2", "gate+up", "silu", "down", "head"];
const HEAD: usize = OPS.len() - 1;

/// The shortest time of each operation in any layer.
type Shortest = [Duration; OPS.len()];

struct Bench {
    cpu: Arc<Cpu>,
    layers: Vec<Layer>,
    head: Matrix,
    kv: KvArena,
    rope: Rope,
    norm: Vec<f32>,
    table: Vec<u32>,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let threads = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(2);
    let name = arguments.next().unwrap_or("Q4_1".into());
    let ty = GgmlType::ALL.into_iter().find(|ty| ty.name() == name).expect("a type, such as Q4_1");
    let kv_type = match arguments.next().as_deref() {
        None | Some("f16") => KvType::F16,
        Some("int8") => KvType::Int8,
        Some(other) => panic!("{other}: a cache is f16 or int8"),
    };
    let cpu = match arguments.next() {
        None => Cpu::new(threads),
        Some(name) => {
            let isa = Isa::ALL
                .into_iter()
                .find(|isa| isa.name() == name)
                .expect("an instruction set, such as avx2");
            Cpu::with_isa(threads, isa).expect("one that this processor has")
        }
    };
    let start = Instant::now();
    let mut bench = Bench::new(cpu, ty, kv_type);
    println!("weights made up and packed in {} ms", start.elapsed().as_millis());
    println!(
        "{} threads, {}, layers in {name}, head in Q8_0, cache {kv_type:?}",
        bench.cpu.threads(),
        bench.cpu.isa().name()
    );
    for (depth, tokens) in [(0, 128), (0, 512), (0, 2048), (0, 16), (496, 16), (0, 1), (512, 1), (4096, 1)] {
        bench.report(depth, tokens);
    }
}

impl Bench {
    fn new(cpu: Arc<Cpu>, ty: GgmlType, kv_type: KvType) -> Bench {
        let pack = |ty: GgmlType, rows: usize, cols: usize| {
            let len = ty.bytes_for(rows * cols).expect("whole blocks");
            let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + i / 255) as u8 & 0x17).collect();
            Matrix::pack(&cpu, ty, &bytes, rows, cols).expect("sound weights")
        };
        let layer = |_| Layer {
            q: pack(ty, HEADS * HEAD_DIM, WIDTH),
            k: pack(ty, KV_HEADS * HEAD_DIM, WIDTH),
            v: pack(ty, KV_HEADS * HEAD_DIM, WIDTH),
            o: pack(ty, WIDTH, HEADS * HEAD_DIM),
            gate: pack(ty, FFN, WIDTH),
            up: pack(ty, FFN, WIDTH),
            down: pack(ty, WIDTH, FFN),
        };
        let blocks = LONGEST.div_ceil(BLOCK);
        let shape =
            KvShape { layers: LAYERS, blocks, block_size: BLOCK, kv_heads: KV_HEADS, head_dim: HEAD_DIM };
        Bench {
            layers: (0..LAYERS).map(layer).collect(),
            head: pack(GgmlType::Q8_0, VOCAB, WIDTH),
            kv: KvArena::with_type(shape, kv_type).expect("memory for the cache"),
            rope: Rope::new(RopeStyle::Interleaved, HEAD_DIM, 1e5, 1.0, None).expect("sound"),
            norm: (0..WIDTH).map(|i| if i % 150 == 60 { 40.0 } else { 1.0 }).collect(),
            table: (0..blocks as u32).rev().collect(),
            cpu,
        }
    }

    fn report(&mut self, depth: usize, tokens: usize) {
        let mut best = f64::INFINITY;
        let mut shortest = [Duration::MAX; OPS.len()];
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(700) {
            let start = Instant::now();
            self.step(depth, tokens, &mut shortest);
            best = best.min(start.elapsed().as_secs_f64());
        }
        let micros =
            |op: usize| shortest[op].as_secs_f64() * 1e6 * if op == HEAD { 1.0 } else { LAYERS as f64 };
        let sum: f64 = (0..OPS.len()).map(micros).sum();
        let (measured, undisturbed) = (tokens as f64 / best, tokens as f64 * 1e6 / sum);
        print!("{tokens:>5} tokens at {depth:>5}: {measured:>7.1} t/s, undisturbed {undisturbed:>7.1};");
        for (op, name) in OPS.iter().enumerate() {
            print!(" {name} {:.0} µs", micros(op) / if op == HEAD { 1.0 } else { LAYERS as f64 });
        }
        println!();
    }

    /// One step of a sequence: `tokens` rows from position `depth`, logits for the last.
    fn step(&mut self, depth: usize, tokens: usize, shortest: &mut Shortest) {
        let mut last = Instant::now();
        let mut lap = |op: usize| {
            let now = Instant::now();
            shortest[op] = shortest[op].min(now - std::mem::replace(&mut last, now));
        };
        let cpu = &self.cpu;
        let positions: Vec<u32> = (0..tokens).map(|i| (depth + i) as u32).collect();
        let mut angles = Angles::default();
        angles.set(&self.rope, &positions);
        let spans = [KvSpan { table: &self.table, start: depth, len: tokens, row: 0 }];
        let mut x: Vec<f32> = (0..tokens * WIDTH).map(|i| (i % 13) as f32 / 13.0).collect();
        let rows = |width: usize| vec![0.0f32; tokens * width];
        let (mut normed, mut attended) = (rows(WIDTH), rows(HEADS * HEAD_DIM));
        let (mut q, mut k, mut v) =
            (rows(HEADS * HEAD_DIM), rows(KV_HEADS * HEAD_DIM), rows(KV_HEADS * HEAD_DIM));
        let (mut gate, mut up) = (rows(FFN), rows(FFN));
        let mut a = Quantized::without_floats();
        for (index, layer) in self.layers.iter().enumerate() {
            cpu.rms_norm(&x, &self.norm, 1e-5, &mut normed);
            cpu.quantize(&normed, tokens, &mut a);
            lap(0);
            cpu.matmul_three(
                &a,
                [
                    Projection { weights: &layer.q, out: &mut q },
                    Projection { weights: &layer.k, out: &mut k },
                    Projection { weights: &layer.v, out: &mut v },
                ],
            );
            lap(1);
            cpu.rope_with(&mut q, HEADS, HEAD_DIM, &self.rope, &angles);
            cpu.rope_with(&mut k, KV_HEADS, HEAD_DIM, &self.rope, &angles);
            self.kv.write(cpu, index, &spans, &k, &v);
            lap(2);
            cpu.attention(&self.kv, index, &spans, &q, HEADS, 0.125, &mut attended);
            lap(3);
            cpu.quantize(&attended, tokens, &mut a);
            lap(4);
            cpu.matmul_add(&layer.o, &a, &mut x);
            lap(5);
            cpu.rms_norm(&x, &self.norm, 1e-5, &mut normed);
            cpu.quantize(&normed, tokens, &mut a);
            lap(6);
            let both = [
                Projection { weights: &layer.gate, out: &mut gate },
                Projection { weights: &layer.up, out: &mut up },
            ];
            cpu.matmul_two(&a, both);
            lap(7);
            cpu.silu_mul(&mut gate, &up);
            cpu.quantize(&gate, tokens, &mut a);
            lap(8);
            cpu.matmul_add(&layer.down, &a, &mut x);
            lap(9);
        }
        let mut logits = vec![0.0; VOCAB];
        cpu.quantize(&x[(tokens - 1) * WIDTH..], 1, &mut a);
        cpu.matmul(&self.head, &a, &mut logits);
        lap(HEAD);
    }
}
