//! What a cache in 8 bits does to a model's opinion: the same tokens over both caches, the distributions compared.

#[path = "golden/runner.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod runner;
#[path = "golden/support.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use jackfield_model::{Cpu, Gguf, KvType, Model};
use jackfield_testkit::tiny_model::{LAYERS, TinyModel};
use runner::{Runner, argmax};

/// Bounds for the real model: mean divergence in nats, and the share of positions whose most likely token stays the same.
/// llama.cpp's own configurations part at 2.8 to 4.2 % of the steps (golden/README.md).
const DIVERGENCE: f64 = 5e-3;
const AGREEMENT: f64 = 0.97;

/// How far two caches are apart over some positions.
#[derive(Debug, Default)]
struct Distance {
    positions: usize,
    /// Sum of the Kullback-Leibler divergences, in nats.
    divergence: f64,
    /// Positions whose most likely token is the same.
    agreed: usize,
}

impl Distance {
    fn add(&mut self, exact: &[f32], rough: &[f32]) {
        let (p, q) = (log_softmax(exact), log_softmax(rough));
        self.positions += 1;
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

fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let most = f64::from(logits[argmax(logits) as usize]);
    let sum: f64 = logits.iter().map(|x| (f64::from(*x) - most).exp()).sum();
    logits.iter().map(|x| f64::from(*x) - most - sum.ln()).collect()
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
            wanted.for_each(|(distance, _)| distance.add(exact, rough));
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
