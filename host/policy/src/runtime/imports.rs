//! The imports, as a call sees them: counted, bounded, metered, and their time taken from its deadline.

use std::time::{Duration, Instant};

use wasmtime::Result;

use super::{
    deadline::thread_time,
    state::{CallState, Denied},
};
use crate::{
    Fault, Grant, HostServices, LogLevel, Scored,
    bindings::shared::jackfield::policy::{embeddings, log, metrics, saliency, tokens, types},
};

/// A log line is cut here.
const MAX_LOG_BYTES: usize = 4 << 10;
/// The longest text that is tokenised: some fifty thousand tokens, more than prompts have.
const MAX_TOKENS_BYTES: usize = 256 << 10;

impl CallState {
    /// Serves a call that takes what it takes of the processor, and no more.
    fn serve<T>(&mut self, grant: Grant, serve: impl FnOnce(&dyn HostServices, &str) -> T) -> Result<T> {
        self.enter(grant)?;
        let begun = Instant::now();
        let answer = serve(&*self.imports.services, &self.policy);
        self.imports.meter.count(grant, begun.elapsed(), false);
        Ok(answer)
    }

    /// Serves a call that waits for others. What it waits is the guest's time, and so it may be over when the answer is there.
    fn serve_waiting<T>(
        &mut self,
        grant: Grant,
        serve: impl FnOnce(&dyn HostServices, Duration) -> Result<T, String>,
    ) -> Result<Result<T, String>> {
        let left = self.enter(grant)?;
        let (begun, ran_before) = (Instant::now(), thread_time());
        let answer = serve(&*self.imports.services, left);
        let (taken, ran) = (begun.elapsed(), thread_time());
        self.imports.meter.count(grant, taken, answer.is_err());
        if let (Some(before), Some(ran)) = (ran_before, ran) {
            self.waited(taken.saturating_sub(ran.saturating_sub(before)));
        }
        self.left()?;
        Ok(answer)
    }
}

impl types::Host for CallState {}

impl log::Host for CallState {
    fn write(&mut self, level: log::Level, text: String) -> Result<()> {
        let level = match level {
            log::Level::Debug => LogLevel::Debug,
            log::Level::Info => LogLevel::Info,
            log::Level::Warn => LogLevel::Warn,
            log::Level::Error => LogLevel::Error,
        };
        let budget = self.log_budget.clone();
        self.serve(Grant::Log, |services, policy| {
            let left_out = match budget.map(|budget| budget.take(Instant::now())) {
                None => 0,
                Some(Some(left_out)) => left_out,
                Some(None) => return,
            };
            if left_out > 0 {
                let words =
                    format!("{left_out} lines were left out: more than its limit of them came in a second");
                services.log(policy, LogLevel::Warn, &words);
            }
            let end = text.floor_char_boundary(MAX_LOG_BYTES);
            services.log(policy, level, &text[..end]);
        })
    }
}

impl metrics::Host for CallState {
    fn add(&mut self, counter: String, amount: f64) -> Result<()> {
        self.serve(Grant::Metrics, |services, policy| {
            if is_counter(&counter) && amount.is_finite() && amount >= 0.0 {
                services.count(policy, &counter, amount);
            }
        })
    }
}

fn is_counter(name: &str) -> bool {
    let rest = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
    name.len() <= 64 && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(rest)
}

impl tokens::Host for CallState {
    fn count(&mut self, text: String) -> Result<u32> {
        let text = short_enough(text)?;
        self.serve(Grant::Tokens, |services, _| services.count_tokens(&text))
    }

    fn boundaries(&mut self, text: String) -> Result<Vec<u32>> {
        let text = short_enough(text)?;
        self.serve(Grant::Tokens, |services, _| services.token_boundaries(&text))
    }

    fn encode(&mut self, text: String) -> Result<Vec<u32>> {
        let text = short_enough(text)?;
        self.serve(Grant::Tokens, |services, _| services.encode_tokens(&text))
    }
}

/// There is no answer that says that a text is too long.
fn short_enough(text: String) -> Result<String> {
    if text.len() > MAX_TOKENS_BYTES {
        let fault = Fault::invalid(format!(
            "`tokens` was asked for a text of {} bytes; it takes {MAX_TOKENS_BYTES}",
            text.len()
        ));
        return Err(Denied(fault).into());
    }
    Ok(text)
}

impl saliency::Host for CallState {
    fn score(&mut self, text: String) -> Result<Result<Vec<saliency::Scored>, String>> {
        let scored = |s: Scored| saliency::Scored { end: s.end, surprisal_bits: s.surprisal_bits };
        let scores = self.serve_waiting(Grant::Saliency, |services, left| services.score(&text, left))?;
        Ok(scores.map(|scores| scores.into_iter().map(scored).collect()))
    }
}

impl embeddings::Host for CallState {
    fn embed(&mut self, text: String) -> Result<Result<Vec<f32>, String>> {
        self.serve_waiting(Grant::Embeddings, |services, left| services.embed(&text, left))
    }
}
