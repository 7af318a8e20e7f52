//! Dialogs in sessions against dialogs that are sent whole: the same texts to both, turn by turn in alternation.

use std::time::{Duration, Instant};

use rand_chacha::rand_core::RngCore;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::{Row, Server, Setup, Start};
use crate::client::{Client, Place, Prompt};
use crate::numbers::median;
use crate::prompt::Author;
use crate::turn::Usage;
use crate::{BenchError, Options};

/// Tokens of the instructions that a dialog begins with.
const SYSTEM_TOKENS: u32 = 200;
/// Tokens of a user's turn.
const USER_TOKENS: u32 = 20;
/// Tokens of an answer.
const ANSWER_TOKENS: u32 = 24;
/// Turns of a dialog.
const TURNS: usize = 10;
/// A pool that never runs out here.
const LARGE_KV_MIB: usize = 1024;
/// A pool that holds about four of these dialogs, at the 22.5 KiB that a token of the default model takes.
const SMALL_KV_MIB: usize = 64;

pub(super) struct Dialogs<'a> {
    runtime: &'a Runtime,
    start: Start<'a>,
    options: &'a Options,
    progress: &'a dyn Fn(&str),
}

/// A server with its client.
struct Peer {
    client: Client,
    /// Held for its `Drop`.
    _server: Box<dyn Server>,
}

/// A dialog as both sides know it.
struct Dialog {
    id: String,
    author: Author,
    number: u64,
    /// All that was said.
    messages: Vec<Value>,
    turns: u64,
}

/// What a turn came to.
#[derive(Clone, Copy)]
struct Cost {
    ttft_ms: f64,
    computed: f64,
    sent: f64,
}

impl Dialog {
    fn new(options: &Options, place: &str, tokens_per_word: f64, number: u64) -> Dialog {
        let author = Author::new(options.seed, place, tokens_per_word);
        let system = author.text(SYSTEM_TOKENS, &mut author.random(number << 32));
        let messages = vec![json!({"role": "system", "content": system})];
        let id = format!("bench-{:x}-{place}-{number}", options.seed);
        Dialog { id, author, number, messages, turns: 0 }
    }

    /// Says the next thing; gives how many messages are new to the server.
    fn say(&mut self) -> usize {
        let mut random = self.author.random((self.number << 32) | (self.turns + 1));
        let text = self.author.text(USER_TOKENS, &mut random);
        self.messages.push(json!({"role": "user", "content": text}));
        self.turns += 1;
        if self.turns == 1 { 2 } else { 1 }
    }
}

impl<'a> Dialogs<'a> {
    pub(super) fn new(
        runtime: &'a Runtime,
        start: Start<'a>,
        options: &'a Options,
        progress: &'a dyn Fn(&str),
    ) -> Dialogs<'a> {
        Dialogs { runtime, start, options, progress }
    }

    pub(super) fn run(mut self) -> Result<Vec<Row>, BenchError> {
        let mut rows = self.ten_turns()?;
        rows.push(self.taking_turns()?);
        rows.push(self.after_a_restart()?);
        Ok(rows)
    }

    /// One dialog after the other, alone on each server.
    fn ten_turns(&mut self) -> Result<Vec<Row>, BenchError> {
        (self.progress)("ten turns: a session, against the whole dialog each time without caches");
        let ours = self.peer(&Setup { state: 0, prefix_cache: true, tiers: true, kv_mib: LARGE_KV_MIB })?;
        let base = self.peer(&Setup { state: 1, prefix_cache: false, tiers: false, kv_mib: LARGE_KV_MIB })?;
        let mut costs: Vec<(Cost, Cost)> = Vec::new();
        for number in 0..self.count(6) {
            let mut dialog = Dialog::new(self.options, "ten", ours.client.tokens_per_word, number as u64);
            for _ in 0..TURNS {
                costs.push(self.both(&ours, &base, &mut dialog)?);
            }
        }
        let later = || costs.chunks(TURNS).flat_map(|dialog| &dialog[1..]);
        let last = || costs.chunks(TURNS).filter_map(<[_]>::last);
        let sum = |of: fn(&Cost) -> f64| {
            later().fold((0.0, 0.0), |(ours, base), (a, b)| (ours + of(a), base + of(b)))
        };
        let middle = |costs: &mut dyn Iterator<Item = &(Cost, Cost)>| {
            let (ours, base): (Vec<_>, Vec<_>) = costs.map(|(a, b)| (a.ttft_ms, b.ttft_ms)).unzip();
            (median(ours).unwrap_or(f64::NAN), median(base).unwrap_or(f64::NAN))
        };
        let row = |work, unit, (ours, base)| Row::new(work, unit, ours, base);
        Ok(vec![
            row("ttft_turn_10", "ms", middle(&mut last())),
            row("ttft_turns_2_to_10", "ms", middle(&mut later())),
            row("prefill_turns_2_to_10", "tokens", sum(|cost| cost.computed)),
            row("sent_turns_2_to_10", "bytes", sum(|cost| cost.sent)),
        ])
    }

    /// Many dialogs whose turns come at random, over a pool that holds a few of them.
    fn taking_turns(&mut self) -> Result<Row, BenchError> {
        let (dialogs, turns) = if self.options.quick { (8, 24) } else { (32, 192) };
        (self.progress)(&format!(
            "{dialogs} dialogs take turns over a pool for four: with tiers, and without"
        ));
        let ours = self.peer(&Setup { state: 2, prefix_cache: true, tiers: true, kv_mib: SMALL_KV_MIB })?;
        let base = self.peer(&Setup { state: 3, prefix_cache: true, tiers: false, kv_mib: SMALL_KV_MIB })?;
        let tokens_per_word = ours.client.tokens_per_word;
        let mut open: Vec<Dialog> =
            (0..dialogs).map(|number| Dialog::new(self.options, "many", tokens_per_word, number)).collect();
        for dialog in &mut open {
            self.both(&ours, &base, dialog)?;
        }
        let mut random = Author::new(self.options.seed, "order", 1.0).random(0);
        let mut costs = Vec::new();
        for _ in 0..turns {
            let dialog = &mut open[random.next_u32() as usize % dialogs as usize];
            let (ours, base) = self.both(&ours, &base, dialog)?;
            costs.push((ours.ttft_ms, base.ttft_ms));
        }
        let (ours, base): (Vec<_>, Vec<_>) = costs.into_iter().unzip();
        let middle = |costs| median(costs).unwrap_or(f64::NAN);
        Ok(Row::new("ttft_many_dialogs", "ms", middle(ours), middle(base)))
    }

    /// The turn after a restart of the host.
    fn after_a_restart(&mut self) -> Result<Row, BenchError> {
        (self.progress)("after a restart: a session from disk, against computing it again");
        let with_state = Setup { state: 4, prefix_cache: true, tiers: true, kv_mib: LARGE_KV_MIB };
        let base = self.peer(&Setup { state: 5, prefix_cache: false, tiers: false, kv_mib: LARGE_KV_MIB })?;
        let ours = self.peer(&with_state)?;
        let tokens_per_word = ours.client.tokens_per_word;
        let count = self.count(6) as u64;
        let mut open: Vec<Dialog> =
            (0..count).map(|number| Dialog::new(self.options, "back", tokens_per_word, number)).collect();
        for dialog in &mut open {
            for _ in 0..TURNS - 1 {
                self.turn(&ours, dialog)?;
            }
        }
        drop(ours);
        let ours = self.peer(&with_state)?;
        let mut costs = Vec::new();
        for dialog in &mut open {
            costs.push(self.both(&ours, &base, dialog)?);
        }
        let (ours, base): (Vec<_>, Vec<_>) = costs.iter().map(|(a, b)| (a.ttft_ms, b.ttft_ms)).unzip();
        let middle = |costs| median(costs).unwrap_or(f64::NAN);
        Ok(Row::new("ttft_after_restart", "ms", middle(ours), middle(base)))
    }

    /// So many, or a few in a short run.
    fn count(&self, all: usize) -> usize {
        if self.options.quick { all.div_ceil(3) } else { all }
    }

    fn peer(&mut self, setup: &Setup) -> Result<Peer, BenchError> {
        let server = (self.start)(setup)?;
        let options = Options { url: server.url().to_owned(), model: None, ..self.options.clone() };
        let client = self.runtime.block_on(Client::connect(&options))?;
        Ok(Peer { client, _server: server })
    }

    /// The next turn of a dialog: in its session, and whole. Both are told the same; the session's answer is what counts.
    fn both(&self, ours: &Peer, base: &Peer, dialog: &mut Dialog) -> Result<(Cost, Cost), BenchError> {
        let whole = dialog.messages.len();
        let cost = self.turn(ours, dialog)?;
        // The question, without the answer that was just heard.
        let sent = &dialog.messages[..=whole];
        let (other, _) = self.ask(base, Prompt::Chat(sent))?;
        Ok((cost, other))
    }

    /// The next turn of a dialog, in its session.
    fn turn(&self, peer: &Peer, dialog: &mut Dialog) -> Result<Cost, BenchError> {
        let new = dialog.say();
        let from = dialog.messages.len() - new;
        let (cost, answer) = self.ask(peer, Prompt::Session(&dialog.id, &dialog.messages[from..]))?;
        dialog.messages.push(json!({"role": "assistant", "content": answer}));
        Ok(cost)
    }

    fn ask(&self, peer: &Peer, prompt: Prompt<'_>) -> Result<(Cost, String), BenchError> {
        let place = Place { lane: 0, clock: Instant::now(), started: Duration::ZERO };
        let sent = peer.client.body_bytes(prompt, ANSWER_TOKENS) as f64;
        let (turn, text) = self.runtime.block_on(peer.client.ask(prompt, ANSWER_TOKENS, place));
        let (Usage { prompt_tokens, cached_tokens, .. }, first) = turn.served().ok_or_else(|| {
            let what = turn.outcome.err().map_or_else(|| "nothing".into(), |fault| fault.to_string());
            BenchError::Turn { what }
        })?;
        let computed = prompt_tokens.saturating_sub(cached_tokens) as f64;
        Ok((Cost { ttft_ms: first.as_secs_f64() * 1e3, computed, sent }, text))
    }
}
