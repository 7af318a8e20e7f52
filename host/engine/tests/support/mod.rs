//! A driver: an engine with a tiny model, jobs for it, and an answer read to its end.

// Seen by the tests that name this module, each of which uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::time::{Duration, Instant};

use jackfield_engine::{
    Delta, Engine, EngineConfig, EngineStats, Finish, Job, KvStore, Output, Sampling, Ticket, TokenInfo,
    Usage,
};
use jackfield_model::{Cpu, Gguf, Model};
use jackfield_tiny::tiny_model::TinyModel;

/// Tokens of a block, unless a test says otherwise.
pub const BLOCK: usize = 16;

/// One of the choices of an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choice {
    pub text: String,
    pub tokens: Vec<TokenInfo>,
    pub finish: Option<Finish>,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    pub choices: Vec<Choice>,
    pub usage: Usage,
    /// The texts of the deltas, in order.
    pub deltas: Vec<String>,
}

impl Reply {
    pub fn text(&self) -> &str {
        &self.choices[0].text
    }

    pub fn finish(&self) -> Finish {
        self.choices[0].finish.expect("it ended")
    }

    pub fn ids(&self) -> Vec<u32> {
        self.choices[0].tokens.iter().map(|token| token.id).collect()
    }
}

/// An engine of one thread with this model file.
pub fn engine_of(file: Vec<u8>, change: impl FnOnce(&mut EngineConfig)) -> Engine {
    let cpu = Cpu::new(1);
    let model = Model::from_gguf(Gguf::from_bytes(file).expect("a file"), cpu.clone()).expect("a model");
    // What comes back from memory is what went there, so that no text depends on it.
    let kv_store = KvStore::Same;
    let mut config =
        EngineConfig { block_size: BLOCK, kv_bytes: 16 << 20, kv_store, ..EngineConfig::default() };
    change(&mut config);
    Engine::start(model, &cpu, &config).expect("it starts")
}

/// An engine with the tiny model of random weights.
pub fn engine(change: impl FnOnce(&mut EngineConfig)) -> Engine {
    engine_of(TinyModel::default().bytes(), change)
}

/// The same with a longer context.
pub fn long_engine(context: u32, change: impl FnOnce(&mut EngineConfig)) -> Engine {
    engine_of(TinyModel { context, ..TinyModel::default() }.bytes(), change)
}

/// Memory for this many blocks of the tiny model: two layers, K and V, two heads of 16 dimensions, two bytes each.
pub fn kv_bytes(blocks: usize) -> usize {
    blocks * BLOCK * 2 * 2 * 2 * 16 * 2
}

/// A greedy job of 24 tokens that nothing but its length ends.
pub fn job(engine: &Engine, prompt: &str) -> Job {
    Job {
        prompt: engine.tokenizer().encode(prompt).expect("a text"),
        n: 1,
        max_new_tokens: 24,
        priority: 0,
        salt: [0; 32],
        sampling: greedy(),
        stop: Vec::new(),
        stop_tokens: Vec::new(),
        keep_for: None,
    }
}

pub fn greedy() -> Sampling {
    Sampling { temperature: 0.0, ignore_end: true, ..Sampling::default() }
}

pub fn seeded(seed: u64) -> Sampling {
    Sampling { temperature: 1.0, seed: Some(seed), ignore_end: true, ..Sampling::default() }
}

/// Submits a job and reads it to its end.
pub async fn run(engine: &Engine, job: Job) -> Reply {
    let ticket = engine.submit(job).expect("taken");
    read(ticket).await
}

/// Reads a ticket to its end. Panics when something comes after an end, or an end is missing.
pub async fn read(mut ticket: Ticket) -> Reply {
    let mut reply = Reply::default();
    while let Some(output) = ticket.next().await {
        match output {
            Output::Delta(Delta { choice, text, tokens }) => {
                let so_far = choice_mut(&mut reply, choice);
                assert_eq!(so_far.finish, None, "nothing follows the end of a choice");
                so_far.text += &text;
                so_far.tokens.extend(tokens);
                reply.deltas.push(text);
            }
            Output::Finished { choice, reason } => {
                assert_eq!(choice_mut(&mut reply, choice).finish.replace(reason), None, "one end");
            }
            Output::Done(usage) => {
                assert!(reply.choices.iter().all(|choice| choice.finish.is_some()), "{reply:?}");
                assert_eq!(ticket.next().await, None);
                return Reply { usage, ..reply };
            }
            Output::Failed(fault) => panic!("{fault}"),
        }
    }
    panic!("no end: {reply:?}");
}

fn choice_mut(reply: &mut Reply, index: u32) -> &mut Choice {
    let len = reply.choices.len().max(index as usize + 1);
    reply.choices.resize_with(len, Choice::default);
    &mut reply.choices[index as usize]
}

/// Waits until `holds`; a minute is for a busy machine.
pub fn eventually(engine: &Engine, what: &str, holds: impl Fn(&EngineStats) -> bool) {
    let begun = Instant::now();
    while !holds(&engine.stats()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}: {:?}", engine.stats());
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Waits until nothing is inside and no block is held.
pub fn settle(engine: &Engine) {
    eventually(engine, "back at rest", |stats| {
        let s = &stats.scheduler;
        (stats.in_flight, s.running, s.waiting, s.preempted, s.used_blocks) == (0, 0, 0, 0, 0)
    });
}

/// Whole blocks of the prompt that need not be computed.
pub const HELD: usize = 5 * BLOCK;

/// A prompt of five blocks and a bit, no two alike.
pub fn prompt(number: u32) -> Vec<u32> {
    (0..HELD as u32 + 3).map(|i| 70 + (number * 37 + i * (7 + number)) % 180).collect()
}

/// A job of such a prompt.
pub fn ask(engine: &Engine, number: u32) -> Job {
    Job { prompt: prompt(number), ..job(engine, "x") }
}

/// What a host answers that has never heard of it.
pub async fn cold(number: u32) -> Reply {
    let engine = engine(|config| config.kv_memory_bytes = 0);
    run(&engine, ask(&engine, number)).await
}

/// Answers others until nothing of a prompt is on the device.
pub async fn push_out(engine: &Engine, number: u32) {
    for other in 100..110 {
        run(engine, ask(engine, other)).await;
        if engine.cached_prefix(&prompt(number), &[0; 32]) == 0 {
            return;
        }
    }
    panic!("it is still there: {:?}", engine.stats());
}

/// Ten blocks on the device.
pub fn scarce(config: &mut EngineConfig) {
    config.kv_bytes = kv_bytes(10);
}
