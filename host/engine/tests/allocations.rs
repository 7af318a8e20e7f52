//! A step of decodes allocates nothing but what leaves with its tokens.

mod support;

use dhat::HeapStats;
use jackfield_engine::{Engine, Job, Sampling, Ticket};
use jackfield_model::{Batch, Cpu, Gguf, KvArena, KvSpan, Model, Scratch};
use jackfield_tiny::tiny_model::TinyModel;
use support::{eventually, greedy, job, kv_bytes, long_engine, seeded};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Sequences that write at once.
const STREAMS: usize = 4;
/// Tokens of each before counting begins, and while it goes on.
const WARM: u64 = 400;
const COUNTED: u64 = 400;

/// Allocations for each token that leaves: its text, and a block of the channel for 32 of them.
const DELIVERED: f64 = 1.0 + 1.0 / 32.0;
/// Lists that grow with an answer do so at a few of its tokens.
const GROWTH: f64 = 0.1;

// All in one: what another test allocates would be counted as well. To see where allocations come from, make the profiler by
// `Profiler::new_heap()` and give the file that it leaves to dhat's viewer.
#[test]
fn nothing_but_what_leaves_is_new() {
    let _profiler = dhat::Profiler::builder().testing().build();
    forward_allocates_nothing();
    let cut = Sampling { top_k: 40, top_p: 0.9, min_p: 0.01, ..seeded(1) };
    let penalties = Sampling { presence_penalty: 0.1, repetition_penalty: 1.1, ..seeded(2) };
    let ways = [("greedy", greedy()), ("drawn", seeded(0)), ("cut", cut), ("penalties", penalties)];
    for (name, sampling) in ways {
        let each = each_token(sampling);
        assert!(each <= DELIVERED + GROWTH, "{name}: {each} allocations a token");
    }
}

/// The allocations so far, of all threads.
fn allocations() -> u64 {
    HeapStats::get().total_blocks
}

/// Steps of three decodes and a piece of a prompt.
fn forward_allocates_nothing() {
    let gguf = Gguf::from_bytes(TinyModel::default().bytes()).expect("a file");
    let model = Model::from_gguf(gguf, Cpu::new(2)).expect("a model");
    let mut kv = KvArena::new(model.kv_shape(64, 16)).expect("a small cache");
    let mut scratch = Scratch::new(&model, 35);
    let mut logits = Vec::new();
    let tables: Vec<Vec<u32>> = (0..4).map(|i| (16 * i..16 * (i + 1)).collect()).collect();
    let mut step = |at: u32| {
        let tokens = [70; 35];
        let position = |row: u32| if row < 3 { at } else { at + row - 3 };
        let positions: [u32; 35] = std::array::from_fn(|row| position(row as u32));
        let start = at as usize;
        let one = |i: usize| KvSpan { table: &tables[i], start, len: 1, row: i };
        let spans = [one(0), one(1), one(2), KvSpan { table: &tables[3], start, len: 32, row: 3 }];
        let batch =
            Batch { tokens: &tokens, positions: &positions, spans: &spans, logits_for: &[0, 1, 2, 34] };
        model.forward(&batch, &mut kv, &mut scratch, &mut logits).expect("a sound batch");
    };
    (0..100).for_each(&mut step);
    let before = allocations();
    (100..200).for_each(&mut step);
    assert_eq!(allocations() - before, 0, "in a hundred steps");
}

/// Allocations for each token of the engine's loop when nothing comes and nothing goes.
fn each_token(sampling: Sampling) -> f64 {
    let engine = long_engine(8192, |config| config.kv_bytes = kv_bytes(4 * 512));
    let ask = |i: usize| {
        let sampling = sampling.clone();
        engine.submit(Job { max_new_tokens: 8000, sampling, ..job(&engine, &format!("hello {i}")) })
    };
    let tickets: Vec<Ticket> = (0..STREAMS).map(|i| ask(i).expect("taken")).collect();
    let (at_first, before) = after(&engine, STREAMS as u64 * WARM);
    let (at_last, after) = after(&engine, at_first + STREAMS as u64 * COUNTED);
    drop(tickets);
    (after - before) as f64 / (at_last - at_first) as f64
}

/// Waits until so many tokens were computed: how many they are, and the allocations so far.
fn after(engine: &Engine, tokens: u64) -> (u64, u64) {
    eventually(engine, "tokens", |stats| stats.scheduler.computed_tokens >= tokens);
    (engine.stats().scheduler.computed_tokens, allocations())
}
