//! What the engine says of the tokens of a text, against the same weights in full precision: see golden/README.md.

#[path = "golden/support.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::time::Duration;

use jackfield_engine::{Engine, EngineConfig};
use jackfield_model::{Cpu, Model};
use serde::Deserialize;

/// Tokens of the text that are scored.
const SCORED: usize = 1024;
/// Root mean square distance of a log-probability from that of full precision, over the stored positions at which the text goes
/// on with one of the stored tokens. With activations rounded to 8 bits throughout, which is how llama.cpp does it, it is about
/// the root of twice the mean KL: 0.06.
const TOLERANCE: f64 = 0.06;

/// See golden/make/distance.py.
#[derive(Deserialize)]
struct FullPrecision {
    meta: Meta,
    /// A position, its most likely tokens after it and their log-probabilities.
    cases: Vec<(usize, Vec<u32>, Vec<f64>)>,
}

#[derive(Deserialize)]
struct Meta {
    file_sha256: String,
    tokens: Vec<u32>,
}

#[test]
fn scores_are_the_log_probabilities_of_full_precision() {
    let reference: FullPrecision =
        serde_json::from_str(&support::read("distance.json")).expect("it has this shape");
    assert_eq!(reference.meta.file_sha256, support::MODEL_SHA256);
    let cpu = Cpu::new(2);
    let model = Model::load(&support::model_file(), cpu.clone()).expect("the default model loads");
    let config = EngineConfig { kv_bytes: 128 << 20, ..EngineConfig::default() };
    let engine = Engine::start(model, &cpu, &config).expect("it starts");
    let tokens = &reference.meta.tokens[..SCORED];
    let scores =
        engine.score(tokens.to_vec()).expect("taken").wait(Duration::from_secs(600)).expect("scored");
    assert_eq!(scores.len(), SCORED - 1);
    let mut distances = Vec::new();
    for (at, best, exact) in reference.cases.iter().filter(|(at, ..)| at + 1 < SCORED) {
        if let Some(found) = best.iter().position(|token| *token == tokens[at + 1]) {
            distances.push(f64::from(scores[*at]) - exact[found]);
        }
    }
    let rms = (distances.iter().map(|it| it * it).sum::<f64>() / distances.len() as f64).sqrt();
    let furthest = distances.iter().fold(0.0_f64, |most, it| most.max(it.abs()));
    println!("{} tokens: {rms:.4} away (rms), {furthest:.3} at most", distances.len());
    assert!(distances.len() > SCORED / 8, "most tokens of a text are likely ones: {}", distances.len());
    assert!(rms <= TOLERANCE, "{rms}");
}
