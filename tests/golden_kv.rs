//! What a cache in 8 bits does to a model's opinion: the same tokens over both caches, the distributions compared.

#[path = "golden/runner.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod runner;
#[path = "golden/support.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::env;
use std::fs;
use std::path::Path;

use jackfield_model::{Cpu, Gguf, KvType, Model};
use jackfield_testkit::tiny_model::{LAYERS, TinyModel};
use runner::{Runner, argmax, log_softmax};

/// Bounds for the real model: mean divergence in nats, and the share of positions whose most likely token stays the same.
/// llama.cpp's own configurations part at 2.8 to 4.2 % of the steps (golden/README.md).
const DIVERGENCE: f64 = 5e-3;
const AGREEMENT: f64 = 0.97;

/// Tokens of one window, as many as a perplexity is usually taken over.
const WINDOW: usize = 2048;
/// How much the perplexity may change, as a part of it.
const PERPLEXITY: f64 = 1e-3;

/// How far two caches are apart over some positions.
#[derive(Debug, Default)]
struct Distance {
    positions: usize,
    /// Sum of the Kullback-Leibler divergences, in nats.
    divergence: f64,
    /// Positions whose most likely token is the same.
    agreed: usize,
    /// Sums of the log-probabilities of the tokens that follow: over the exact cache, over the rough one.
    following: [f64; 2],
}

impl Distance {
    fn add(&mut self, exact: &[f32], rough: &[f32], next: Option<u32>) {
        let (p, q) = (log_softmax(exact), log_softmax(rough));
        self.positions += 1;
        if let Some(next) = next {
            self.following[0] += p[next as usize];
            self.following[1] += q[next as usize];
        }
        self.divergence += p.iter().zip(&q).map(|(p, q)| p.exp() * (p - q)).sum::<f64>();
        self.agreed += usize::from(argmax(exact) == argmax(rough));
    }

    fn mean(&self) -> f64 {
        self.divergence / self.positions as f64
    }

    fn agreement(&self) -> f64 {
        self.agreed as f64 / self.positions as f64
    }
}

/// The distance over the first positions of `tokens`, as many as each of `ends` says.
fn distances(model: &Model, tokens: &[u32], ends: &[usize]) -> Vec<Distance> {
    let mut runners = [KvType::F16, KvType::Int8].map(|ty| Runner::with_type(model, tokens.len(), ty));
    let mut sequences = runners.each_mut().map(|runner| runner.sequence(tokens.len()));
    let (mut all, mut position) = (ends.iter().map(|_| Distance::default()).collect::<Vec<_>>(), 0);
    for chunk in tokens.chunks(100) {
        let logits: Vec<Vec<f32>> = (runners.iter_mut().zip(&mut sequences))
            .map(|(runner, sequence)| runner.feed(sequence, chunk, chunk.len()))
            .collect();
        let rows = logits.iter().map(|logits| logits.chunks(model.config.vocab)).collect::<Vec<_>>();
        for (exact, rough) in rows[0].clone().zip(rows[1].clone()) {
            position += 1;
            let wanted = all.iter_mut().zip(ends).filter(|(_, end)| position <= **end);
            wanted.for_each(|(distance, _)| distance.add(exact, rough, tokens.get(position).copied()));
        }
    }
    all
}

#[test]
fn the_real_model_says_the_same() {
    let model = Model::load(&support::model_file(), Cpu::new(2)).expect("the default model loads");
    let reference: serde_json::Value = serde_json::from_str(&support::read("greedy.json")).expect("JSON");
    let cases = reference["cases"].as_array().expect("a list");
    let case = cases.iter().find(|case| case["name"] == "raw-long").expect("it is there");
    let ids = |field: &str| serde_json::from_value::<Vec<u32>>(case[field].clone()).expect("token ids");
    let tokens = [ids("prompt"), ids("tokens")].concat();
    assert!(tokens.len() > 2000);
    let ends = [512, tokens.len()];
    for (distance, end) in distances(&model, &tokens, &ends).iter().zip(ends) {
        let (mean, agreement) = (distance.mean(), distance.agreement());
        println!("{end} tokens: divergence {mean:.2e}, {:.1} % agree", 100.0 * agreement);
        assert!(mean <= DIVERGENCE && agreement >= AGREEMENT, "{end} tokens: {mean:.2e}, {agreement:.3}");
    }
}

/// The documents of this repository, as one text.
fn prose() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files: Vec<_> =
        fs::read_dir(root.join("docs")).expect("a folder").flatten().map(|file| file.path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "md"));
    files.sort();
    files.extend(["README.md", "ARCHITECTURE.md"].map(|name| root.join(name)));
    files.iter().map(|file| fs::read_to_string(file).expect("text")).collect()
}

/// Takes minutes: `JACKFIELD_LONG=1`.
#[test]
fn over_a_long_text_the_real_model_says_the_same() {
    if env::var_os("JACKFIELD_LONG").is_none() {
        return;
    }
    let model = Model::load(&support::model_file(), Cpu::new(2)).expect("the default model loads");
    let tokens = model.tokenizer.encode(&prose()).expect("it is text");
    assert!(tokens.len() >= 10 * WINDOW && model.config.context >= 8192, "{} tokens", tokens.len());
    let ends = [512, 2048, 8192];
    for (distance, end) in distances(&model, &tokens[..8192], &ends).iter().zip(ends) {
        let (mean, agreement) = (distance.mean(), distance.agreement());
        println!("{end} tokens: divergence {mean:.2e}, {:.1} % agree", 100.0 * agreement);
        assert!(mean <= DIVERGENCE && agreement >= AGREEMENT, "{end} tokens: {mean:.2e}, {agreement:.3}");
    }
    let windows: Vec<_> = tokens.chunks_exact(WINDOW).take(10).collect();
    let measured = windows.iter().map(|window| distances(&model, window, &[WINDOW]).remove(0));
    let (mut following, mut positions) = ([0.0; 2], 0);
    for window in measured {
        following = [following[0] + window.following[0], following[1] + window.following[1]];
        positions += window.positions - 1;
    }
    let [exact, rough] = following.map(|sum| (-sum / positions as f64).exp());
    println!("{positions} tokens: perplexity {exact:.3} over 16 bits, {rough:.3} over 8");
    assert!((rough / exact - 1.0).abs() <= PERPLEXITY, "perplexity {exact} became {rough}");
}

/// One dimension of K with a large bias takes the 8 bits from the others. Up to some size that is harmless; how much is
/// lost grows with it, which is what the engine's check at start looks for.
#[test]
fn a_dimension_that_outshines_the_others_costs_what_it_must() {
    let tokens: Vec<u32> = (0..2000_u32).map(|i| 6 + (i.wrapping_mul(2_654_435_761) >> 7) % 250).collect();
    let mean = |outlier: f32, end: usize| {
        let mut writer = TinyModel { context: 2048, ..TinyModel::of("qwen2") }.writer();
        for layer in 0..LAYERS {
            let bias = &mut writer.tensor_mut(&format!("blk.{layer}.attn_k.bias")).data;
            bias[4 * 15..4 * 16].copy_from_slice(&outlier.to_le_bytes());
        }
        let file = Gguf::from_bytes(writer.build()).expect("a file");
        let model = Model::from_gguf(file, Cpu::new(1)).expect("a model");
        distances(&model, &tokens, &[end])[0].mean()
    };
    for end in [512, 2000] {
        let (none, small, large) = (mean(0.0, end), mean(20.0, end), mean(400.0, end));
        println!(
            "{end} tokens: divergence {none:.2e}, with an outlier {small:.2e}, with a huge one {large:.2e}"
        );
        assert!(none <= 0.01 && small <= 0.03, "{end} tokens: {none:.2e}, {small:.2e}");
        assert!(large > 0.3, "{end} tokens: {large:.2e}");
    }
}
