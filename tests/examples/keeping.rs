//! Which blocks of a dialog's KV are worth their full precision, when the others are stored in 8 bits?
//!
//!     cargo run --release -p jackfield-tests --example keeping
//!
//! Each dialog of `tests/dialogs` is read up to its last question over a 16-bit cache. Then its whole blocks are stored and brought
//! back, some as they are, the others in 8 bits, and the next tokens are read over them. Choices of as many precise blocks take as
//! many bytes, so what counts is the divergence from the cache that was never stored.

#[path = "../golden/runner.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod runner;
#[path = "../golden/support.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use jackfield_model::{ChatMessage, Cpu, KvStore, Model, RenderOptions};
use runner::{BLOCK, Runner, argmax};
use serde_json::Value;

/// Tokens after the question at which distributions are compared.
const NEXT: usize = 24;
/// Draws of blocks at random.
const DRAWS: u64 = 3;

/// A prompt, and which of its whole blocks have something in it that must not be lost.
struct Case {
    tokens: Vec<u32>,
    pinned: BTreeSet<usize>,
}

#[derive(Default)]
struct Sum {
    divergence: f64,
    agreed: usize,
    rows: usize,
}

fn main() {
    let model = Model::load(&support::model_file(), Cpu::new(2)).expect("the default model loads");
    let dialogs = dialogs();
    let cases: Vec<_> = dialogs.iter().map(|dialog| case(&model, std::slice::from_ref(dialog))).collect();
    report("each dialog by itself", &model, &cases);
    let joined: Vec<_> = dialogs.chunks(8).map(|some| case(&model, some)).collect();
    report("eight dialogs, one after the other", &model, &joined);
}

fn report(name: &str, model: &Model, cases: &[Case]) {
    let blocks: usize = cases.iter().map(Case::whole).sum();
    let pinned: usize = cases.iter().map(|case| case.pinned.len()).sum();
    println!("{name}: {} prompts, {blocks} blocks, {pinned} of them with what must not be lost", cases.len());
    let ways = [
        "none",
        "what must not be lost",
        "as many at random",
        "as many from the front",
        "as many from the end",
    ];
    let mut sums: [Sum; 5] = Default::default();
    for case in cases {
        measure(model, case, &mut sums);
    }
    println!("| precise | mean divergence | most likely token the same |\n|---|---|---|");
    for (way, sum) in ways.iter().zip(&sums) {
        let rows = sum.rows as f64;
        println!("| {way} | {:.3e} | {:.2} % |", sum.divergence / rows, 100.0 * sum.agreed as f64 / rows);
    }
}

fn measure(model: &Model, case: &Case, sums: &mut [Sum; 5]) {
    let (whole, count) = (case.whole(), case.pinned.len());
    let mut runner = Runner::new(model, case.tokens.len() + NEXT);
    let mut sequence = runner.sequence(case.tokens.len() + NEXT);
    let (stored, rest) = case.tokens.split_at(whole * BLOCK);
    runner.feed(&mut sequence, stored, 0);
    let image = runner.export(&sequence, whole, KvStore::Same);
    let rough = runner.export(&sequence, whole, KvStore::Int8);

    let mut following = rest.to_vec();
    let mut row = runner.feed(&mut sequence, rest, 1);
    for _ in 0..NEXT {
        let token = argmax(&row);
        following.push(token);
        row = runner.feed(&mut sequence, &[token], 1);
    }
    // Read again in one piece, as all others are.
    let mut read = |precise: &BTreeSet<usize>| {
        for block in 0..whole {
            let (store, bytes) = match precise.contains(&block) {
                true => (KvStore::Same, &image[block]),
                false => (KvStore::Int8, &rough[block]),
            };
            runner.import(&sequence, block, store, bytes);
        }
        runner.rewind(&mut sequence, whole * BLOCK);
        runner.feed(&mut sequence, &following, NEXT)
    };
    let exact = read(&(0..whole).collect());
    let mut add = |way: usize, precise: &BTreeSet<usize>| {
        let logits = read(precise);
        let rows = exact.chunks(model.config.vocab).zip(logits.chunks(model.config.vocab));
        rows.for_each(|(exact, rough)| sums[way].add(exact, rough));
    };
    add(0, &BTreeSet::new());
    add(1, &case.pinned);
    for draw in 0..DRAWS {
        add(2, &drawn(whole, count, draw));
    }
    add(3, &(0..count).collect());
    add(4, &(whole - count..whole).collect());
}

/// So many of the blocks, by a generator that always draws the same.
fn drawn(whole: usize, count: usize, draw: u64) -> BTreeSet<usize> {
    let mut state = draw.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ whole as u64;
    let mut set = BTreeSet::new();
    while set.len() < count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        set.insert((state >> 33) as usize % whole);
    }
    set
}

impl Case {
    fn whole(&self) -> usize {
        (self.tokens.len() - 1) / BLOCK
    }
}

impl Sum {
    fn add(&mut self, exact: &[f32], rough: &[f32]) {
        let (p, q) = (runner::log_softmax(exact), runner::log_softmax(rough));
        self.divergence += p.iter().zip(&q).map(|(p, q)| p.exp() * (p - q)).sum::<f64>();
        self.agreed += usize::from(argmax(exact) == argmax(rough));
        self.rows += 1;
    }
}

/// All dialogs of both halves.
fn dialogs() -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("dialogs");
    let mut files: Vec<_> = ["report", "rules"]
        .iter()
        .flat_map(|half| fs::read_dir(root.join(half)).expect("a folder").flatten())
        .map(|file| file.path())
        .collect();
    files.sort();
    let read = |file| fs::read_to_string(file).expect("text");
    let parse = |text: String| serde_json::from_str::<Vec<Value>>(&text).expect("an array of dialogs");
    files.iter().map(read).flat_map(parse).collect()
}

/// Dialogs as one prompt, up to the last question.
fn case(model: &Model, dialogs: &[Value]) -> Case {
    let mut messages = vec![ChatMessage::new("system", "You help customers of a shop. Be short and exact.")];
    let mut wanted = Vec::new();
    for turn in dialogs.iter().flat_map(|dialog| dialog["turns"].as_array().expect("a list")) {
        messages.push(ChatMessage::new("user", turn["text"].as_str().expect("text")));
        let slots = turn["slots"].as_array().into_iter().flatten().map(|slot| &slot["span"]);
        let kept = turn["keep"].as_array().into_iter().flatten();
        wanted.extend(slots.chain(kept).filter_map(Value::as_str).map(str::to_owned));
        messages.push(ChatMessage::new("assistant", turn["reply"].as_str().unwrap_or("Fine.")));
    }
    messages.pop();
    let options = RenderOptions { add_generation_prompt: true, ..RenderOptions::default() };
    let rendered = model.template.render(&messages, &options).expect("a prompt");
    let tokens = model.tokenizer.encode_prompt(&rendered).expect("it is text");
    let pinned = blocks_with(model, &tokens, &wanted);
    Case { tokens, pinned }
}

/// The whole blocks with a token of one of these texts, wherever it stands.
fn blocks_with(model: &Model, tokens: &[u32], wanted: &[String]) -> BTreeSet<usize> {
    let (mut text, mut token_at) = (Vec::new(), Vec::new());
    for (index, token) in tokens.iter().enumerate() {
        let piece = model.tokenizer.decode_bytes(*token);
        text.extend_from_slice(piece);
        token_at.resize(text.len(), index);
    }
    let whole = (tokens.len() - 1) / BLOCK;
    let found = wanted.iter().filter(|span| !span.is_empty()).flat_map(|span| {
        let places = text.windows(span.len()).enumerate().filter(|(_, part)| *part == span.as_bytes());
        places.flat_map(|(at, _)| at..at + span.len()).collect::<Vec<_>>()
    });
    found.map(|byte| token_at[byte] / BLOCK).filter(|block| *block < whole).collect()
}
