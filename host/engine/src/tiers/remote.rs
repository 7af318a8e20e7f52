//! Blocks on a Redis (6.2 or later) or Valkey server that several hosts share: what one host has kept, another finds.
//!
//! A block is one string, named by what must agree for it to be of use and by its hash, so that hosts with other models or
//! layouts do not meet. Each has a time to live. How many there may be is the server's `maxmemory`, with `volatile-lru` as its
//! policy. Commands: `GETRANGE`, `SET`, `UNLINK`, `EXISTS` and `EVAL` of one script.
//!
//! A server that is [down](link) costs nothing but its blocks. One that refuses to be written to (full, a replica) is read
//! from all the same.

mod connection;
mod link;
mod pause;
mod server;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use jackfield_scheduler::BlockHash;
use redis::{Cmd, RedisError, ServerError, Value, cmd};

pub use server::{InvalidServer, RemoteServer};

use super::shelf::{Rank, Shelf, now};
use super::stats::{Counter, Rejection, Rejections, TierCounters};
use super::stored::Identity;
use super::tier::{LowerStats, Tier};
use super::warnings::Warnings;
use connection::{Request, SHORT};
use link::Link;
use pause::Pause;

/// What an operator sets of the tier on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteTier {
    /// Where it is. Whoever can read there learns what the texts were, and whoever can write can make the model say anything.
    pub server: RemoteServer,
    /// A block that nobody uses for so long is forgotten. One that is to be kept for longer is not.
    pub ttl: Duration,
    /// What takes longer has failed. A prompt waits for its blocks at most twice as long.
    pub timeout: Duration,
}

/// The blocks of one identity on a server.
pub(crate) struct Remote {
    identity: Identity,
    config: RemoteTier,
    /// What all keys begin with.
    prefix: String,
    link: Link,
    /// What this host knows to be there, until it may have gone. What others have put there it learns when it would put it, too.
    known: Mutex<Known>,
    /// Nothing is written while this is on.
    writing: Mutex<Pause>,
    counters: TierCounters,
    failed: Counter,
    rejected: Rejections,
    warnings: Warnings,
}

struct Known {
    /// Of what the server had when it had come up so often.
    times_up: u64,
    /// Ranked by when they end.
    blocks: Shelf<()>,
}

/// Blocks that are known to be there, at most.
const KNOWN: u64 = 1 << 16;
/// Blocks in one run of the script, for which everybody else's commands wait.
const TOUCHED_AT_ONCE: usize = 256;
/// A hundred years: the script calculates in 64-bit floats, and the server has a bound of its own.
const LONGEST_TTL_MS: u64 = 100 * 366 * 24 * 3600 * 1000;

impl Remote {
    /// Looks for the server, once; one that does not answer is looked for again.
    ///
    /// # Errors
    /// The system refused a thread.
    pub(crate) fn open(config: &RemoteTier, identity: Identity) -> io::Result<Remote> {
        let link = Link::open(config)?;
        Ok(Remote {
            prefix: format!("jackfield:kv:{}:", identity.name()),
            identity,
            config: config.clone(),
            known: Mutex::new(Known::of(&link)),
            link,
            writing: Mutex::default(),
            counters: TierCounters::default(),
            failed: Counter::default(),
            rejected: Rejections::default(),
            warnings: Warnings::default(),
        })
    }

    fn key(&self, prefix: &BlockHash) -> String {
        format!("{}{prefix}", self.prefix)
    }

    /// For how long a block of this rank is kept, in milliseconds from now.
    fn ttl_ms(&self, rank: Rank) -> u64 {
        let usual = u64::try_from(self.config.ttl.as_millis()).unwrap_or(u64::MAX);
        usual.max(rank.0.saturating_sub(now().0) / 1000).clamp(1, LONGEST_TTL_MS)
    }

    fn until(&self) -> Instant {
        Instant::now() + self.config.timeout
    }

    /// The script that has blocks live on.
    fn touching(&self, prefixes: &[BlockHash], rank: Rank) -> Cmd {
        let mut eval = cmd("EVAL");
        eval.arg(include_str!("remote/touch.lua")).arg(prefixes.len());
        prefixes.iter().for_each(|prefix| {
            eval.arg(self.key(prefix));
        });
        eval.arg(self.identity.image_bytes());
        let ttl = self.ttl_ms(rank);
        prefixes.iter().for_each(|_| {
            eval.arg(ttl);
        });
        eval
    }

    /// Takes note of which blocks the script found; one for each.
    fn touched(&self, prefixes: &[BlockHash], rank: Rank, answer: Value) -> Option<Vec<bool>> {
        let Some(Value::Array(found)) = self.accepted(answer) else { return None };
        let there: Vec<bool> = found.iter().map(|found| *found == Value::Int(1)).collect();
        for (prefix, there) in prefixes.iter().zip(&there) {
            if *there {
                self.note(prefix, rank);
            } else {
                self.known().blocks.remove(prefix);
            }
        }
        Some(there)
    }

    /// A block of this rank is there.
    fn note(&self, prefix: &BlockHash, rank: Rank) {
        let ends = Rank(now().0.saturating_add(self.ttl_ms(rank) * 1000));
        self.known().blocks.insert(*prefix, (), 1, ends);
    }

    /// The answer to something that writes. Where the server refuses, nothing more is written for a while.
    fn accepted(&self, answer: Value) -> Option<Value> {
        let refused = |error: RedisError| {
            self.writing().begin(Instant::now());
            if self.warnings.may_say(error.category()) {
                let server = &self.config.server;
                tracing::warn!(%server, %error, "a KV block is not written to the server; nothing else depends on it");
            }
        };
        answer.extract_error().map_err(refused).ok()
    }

    fn may_write(&self) -> bool {
        self.writing().is_over(Instant::now()) && self.link.is_up()
    }

    fn try_put(&self, prefix: &BlockHash, payload: &[u8], rank: Rank) -> Option<()> {
        if !self.may_write() {
            return None;
        }
        let ask = |command| {
            let request = Request { commands: &[command], most: SHORT, until: self.until() };
            self.link.ask(request)?.pop()
        };
        let there = self.touched(&[*prefix], rank, ask(self.touching(&[*prefix], rank))?)?;
        if there == [true] {
            return Some(());
        }
        let mut set = cmd("SET");
        set.arg(self.key(prefix)).arg(self.identity.image(prefix, payload)).arg("PX").arg(self.ttl_ms(rank));
        self.accepted(ask(set)?)?;
        self.writing().reset();
        self.note(prefix, rank);
        self.counters.stored.add(1);
        Some(())
    }

    /// What came for a block: nothing, or its payload.
    fn opened(&self, prefix: &BlockHash, answer: Value) -> Result<Option<Bytes>, Unusable> {
        match answer {
            Value::BulkString(image) if image.is_empty() => Ok(None),
            Value::BulkString(image) => Ok(Some(self.identity.open(image, prefix)?)),
            Value::ServerError(error) if error.code() == "WRONGTYPE" => Err(Rejection::Format.into()),
            Value::ServerError(error) => Err(Unusable::Server(error)),
            _ => Err(Rejection::Unreadable.into()),
        }
    }

    /// Counts blocks that are not fit for use and has them removed, so that they can be stored again.
    fn reject(&self, rejected: &[(BlockHash, Rejection)], until: Instant) {
        let mut unlink = cmd("UNLINK");
        for (prefix, rejection) in rejected {
            self.rejected.add(*rejection);
            self.known().blocks.remove(prefix);
            unlink.arg(self.key(prefix));
            if self.warnings.may_say(rejection.as_str()) {
                let (server, reason) = (&self.config.server, rejection.as_str());
                tracing::warn!(%server, %prefix, reason, "a stored KV block is not used; it is computed again");
            }
        }
        if let Some(answer) = self.link.ask(Request { commands: &[unlink], most: SHORT, until }) {
            answer.into_iter().for_each(|answer| drop(self.accepted(answer)));
        }
    }

    /// Of the server as it is now: when it comes back, it may have lost what it had.
    fn known(&self) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.times_up != self.link.times_up() {
            *known = Known::of(&self.link);
        }
        known
    }

    fn writing(&self) -> MutexGuard<'_, Pause> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn of(link: &Link) -> Known {
        Known { times_up: link.times_up(), blocks: Shelf::new(KNOWN) }
    }
}

/// Why there is no payload.
enum Unusable {
    Block(Rejection),
    Server(ServerError),
}

impl From<Rejection> for Unusable {
    fn from(rejection: Rejection) -> Unusable {
        Unusable::Block(rejection)
    }
}

impl Tier for Remote {
    fn may_have(&self, _: &BlockHash) -> bool {
        self.link.is_up()
    }

    fn wants(&self, prefix: &BlockHash) -> bool {
        self.may_write() && self.known().blocks.rank(prefix).is_none_or(|ends| ends <= now())
    }

    fn patience(&self) -> Duration {
        self.config.timeout
    }

    fn get(&self, prefixes: &[BlockHash], rank: Rank) -> Vec<Option<Bytes>> {
        let (image, until) = (self.identity.image_bytes(), self.until());
        let get = |prefix| {
            // One byte more than a block has tells that there are more.
            let mut get = cmd("GETRANGE");
            get.arg(self.key(prefix)).arg(0).arg(image);
            get
        };
        let mut commands: Vec<Cmd> = prefixes.iter().map(get).collect();
        if self.may_write() {
            commands.push(self.touching(prefixes, rank));
        }
        let most = prefixes.len() * (image + 64) + SHORT;
        let mut found = vec![None; prefixes.len()];
        let Some(answers) = self.link.ask(Request { commands: &commands, most, until }) else { return found };
        let mut answers = answers.into_iter();
        let (mut rejected, mut refused) = (Vec::new(), None);
        for (found, (prefix, answer)) in found.iter_mut().zip(prefixes.iter().zip(answers.by_ref())) {
            match self.opened(prefix, answer) {
                Ok(payload) => *found = payload,
                Err(Unusable::Block(rejection)) => rejected.push((*prefix, rejection)),
                Err(Unusable::Server(error)) => refused = Some(RedisError::from(error)),
            }
        }
        refused.iter().for_each(|error| self.link.fail(error));
        answers.for_each(|touched| drop(self.touched(prefixes, rank, touched)));
        self.counters.hits.add(found.iter().flatten().count());
        if !rejected.is_empty() {
            self.reject(&rejected, until);
        }
        found
    }

    fn put(&self, prefix: &BlockHash, payload: &Bytes, rank: Rank) {
        if self.try_put(prefix, payload, rank).is_none() {
            self.failed.add(1);
        }
    }

    fn touch(&self, prefixes: &[BlockHash], rank: Rank) {
        for prefixes in prefixes.chunks(TOUCHED_AT_ONCE).take_while(|_| self.may_write()) {
            let commands = &[self.touching(prefixes, rank)];
            let answers = self.link.ask(Request { commands, most: SHORT, until: self.until() });
            answers.into_iter().flatten().for_each(|touched| drop(self.touched(prefixes, rank, touched)));
        }
    }

    fn stats(&self) -> LowerStats {
        LowerStats {
            tier: self.counters.stats(0, 0, 0),
            failed_writes: self.failed.get(),
            rejected: self.rejected.counts(),
            is_up: self.link.is_up(),
            failures: self.link.failures(),
            ..LowerStats::default()
        }
    }
}
