//! The shortest way from a model file to its greedy tokens, and the model that tests of real text use.

use std::path::PathBuf;

use jackfield_model::{Batch, KvArena, KvSpan, Model, Scratch};

/// The model of the tests that want real text. Panics with a hint when it is not there.
pub fn default_model() -> PathBuf {
    const FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
    if let Some(path) = std::env::var_os("JACKFIELD_TEST_MODEL") {
        return path.into();
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    let path = cache.unwrap_or_else(home).join("jackfield/models").join(FILE);
    assert!(
        path.exists(),
        "{} is missing: fetch it with `cargo run --release -- model pull`, or name a file in JACKFIELD_TEST_MODEL",
        path.display()
    );
    path
}

/// One step of a greedy run.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The most likely token.
    pub token: u32,
    /// Logit of that token less the logit of the second: how near the choice was to a tie.
    pub gap: f32,
}

/// Runs one sequence over a cache of its own.
pub struct Runner<'a> {
    model: &'a Model,
    kv: KvArena,
    table: Vec<u32>,
    scratch: Scratch,
    len: usize,
}

const BLOCK: usize = 16;

impl<'a> Runner<'a> {
    /// Room for `positions` tokens. The blocks lie in the cache in reverse, so that a test with several of them also
    /// tests the block table.
    pub fn new(model: &'a Model, positions: usize) -> Self {
        let blocks = positions.div_ceil(BLOCK).max(1);
        let kv = KvArena::new(model.kv_shape(blocks, BLOCK)).expect("a small cache");
        let table = (0..blocks as u32).rev().collect();
        Self { model, kv, table, scratch: Scratch::new(model, 64), len: 0 }
    }

    /// Feeds tokens in one step and gives the logits of the last.
    pub fn feed(&mut self, tokens: &[u32]) -> Vec<f32> {
        let positions: Vec<u32> = (self.len..self.len + tokens.len()).map(|p| p as u32).collect();
        let spans = [KvSpan { table: &self.table, start: self.len, len: tokens.len(), row: 0 }];
        let batch = Batch { tokens, positions: &positions, spans: &spans, logits_for: &[tokens.len() - 1] };
        let mut logits = Vec::new();
        self.model.forward(&batch, &mut self.kv, &mut self.scratch, &mut logits).expect("a sound batch");
        self.len += tokens.len();
        logits
    }

    /// Feeds a prompt in chunks of `chunk` tokens, then `steps` greedy tokens, also past the end of the answer.
    pub fn greedy(&mut self, prompt: &[u32], chunk: usize, steps: usize) -> Vec<Step> {
        let mut logits = Vec::new();
        for part in prompt.chunks(chunk) {
            logits = self.feed(part);
        }
        let mut out = Vec::new();
        while out.len() < steps {
            let step = choose(&logits);
            if out.len() + 1 < steps {
                logits = self.feed(&[step.token]);
            }
            out.push(step);
        }
        out
    }
}

/// The first of the largest logits, and how far the next is.
pub fn choose(logits: &[f32]) -> Step {
    let mut best = (0, f32::NEG_INFINITY);
    let mut second = f32::NEG_INFINITY;
    for (id, &logit) in logits.iter().enumerate() {
        if logit > best.1 {
            second = best.1;
            best = (id, logit);
        } else if logit > second {
            second = logit;
        }
    }
    Step { token: best.0 as u32, gap: best.1 - second }
}

/// `steps` greedy tokens after a prompt.
pub fn greedy(model: &Model, prompt: &[u32], steps: usize) -> Vec<u32> {
    let steps = Runner::new(model, prompt.len() + steps).greedy(prompt, 256, steps);
    steps.into_iter().map(|step| step.token).collect()
}
