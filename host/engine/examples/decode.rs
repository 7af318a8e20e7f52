//! What the engine writes a second when nothing stands between: `decode MODEL.gguf [STREAMS [TOKENS [THREADS]]]`.
//!
//! The work of the bench's `decode_16`, in process: as many requests at once as there are streams, of eight tokens each, which
//! nothing ends before their length; greedy. Printed is, as there, tokens a second while all of them write.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use jackfield_engine::{Engine, EngineConfig, Job, Output, Sampling, Ticket};
use jackfield_model::{Cpu, Model};

/// Times that the work is done; the first warms up and does not count.
const WAVES: u32 = 3;
const PROMPT_TOKENS: u32 = 8;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let model = args.next().ok_or("decode MODEL.gguf [STREAMS [TOKENS [THREADS]]]")?;
    let numbers: Vec<usize> = args.map(|arg| arg.parse()).collect::<Result<_, _>>()?;
    let number = |index: usize, default| numbers.get(index).copied().unwrap_or(default);
    let (streams, tokens) = (number(0, 16), number(1, 128));
    let cpu = Cpu::new(number(2, 2));
    let engine = Engine::start(Model::load(Path::new(&model), cpu.clone())?, &cpu, &EngineConfig::default())?;
    let (mut written, mut seconds) = (0.0, 0.0);
    for wave in 0..WAVES {
        let jobs = (0..streams as u32).map(|stream| job(&engine, wave * streams as u32 + stream, tokens));
        let tickets: Vec<Ticket> = jobs.map(|job| engine.submit(job)).collect::<Result<_, _>>()?;
        let readers: Vec<_> = tickets.into_iter().map(|ticket| tokio::spawn(deliveries(ticket))).collect();
        let mut turns = Vec::new();
        for reader in readers {
            turns.push(reader.await?);
        }
        if wave > 0 {
            let (of_all, during) = while_all_write(&turns, tokens).ok_or("too few tokens to tell")?;
            written += of_all;
            seconds += during;
        }
    }
    println!("{:.1} tokens/s", written / seconds);
    Ok(())
}

/// No two alike, so that no prompt is in the cache.
fn job(engine: &Engine, number: u32, tokens: usize) -> Job {
    let vocab = engine.model().vocab as u32;
    // Beyond the control tokens and single bytes; the factor is prime to any vocabulary that is not its multiple.
    let token = |i: u32| 300 + (number * PROMPT_TOKENS + i).wrapping_mul(7919) % (vocab - 300);
    Job {
        prompt: (0..PROMPT_TOKENS).map(token).collect(),
        n: 1,
        max_new_tokens: tokens,
        priority: 0,
        salt: [0; 32],
        sampling: Sampling { temperature: 0.0, ignore_end: true, ..Sampling::default() },
        stop: Vec::new(),
        stop_tokens: Vec::new(),
        keep_for: None,
    }
}

/// When each piece of text came.
async fn deliveries(mut ticket: Ticket) -> Vec<Instant> {
    let mut times = Vec::new();
    while let Some(output) = ticket.next().await {
        if matches!(output, Output::Delta(_)) {
            times.push(Instant::now());
        }
    }
    times
}

/// Tokens of all between the last one's first and the first one's last, and how long that was.
fn while_all_write(turns: &[Vec<Instant>], tokens: usize) -> Option<(f64, f64)> {
    let from = *turns.iter().map(|times| times.first()).max()??;
    let to = *turns.iter().map(|times| times.last()).min()??;
    let inside = |at: &&Instant| from < **at && **at <= to;
    let of = |times: &Vec<Instant>| {
        times.iter().filter(inside).count() as f64 / times.len() as f64 * tokens as f64
    };
    let seconds = to.checked_duration_since(from)?.as_secs_f64();
    (seconds > 0.0).then(|| (turns.iter().map(of).sum(), seconds))
}
