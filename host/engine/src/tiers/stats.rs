//! What is counted of the tiers.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the tiers stand (gauges), and what has happened since the start (counters). All zero where there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KvStats {
    /// The tier in memory.
    pub memory: TierStats,
    /// The tier on disk.
    pub disk: TierStats,
    /// Counter: blocks written back to the device instead of being computed.
    pub promoted_blocks: u64,
    /// Counter: blocks that the device gave up and that were copied to memory.
    pub demoted_blocks: u64,
    /// Counter: blocks copied to memory because they were [to be kept](crate::Engine::keep).
    pub kept_blocks: u64,
    /// Writes to disk that wait.
    pub queued_writes: usize,
    /// Counter: blocks that were not written to disk since too many waited, or since they are larger than the whole tier.
    pub dropped_writes: u64,
    /// Counter: blocks that the disk refused.
    pub failed_writes: u64,
    /// The tier on a server that hosts share.
    pub remote: RemoteStats,
    /// Counters: stored blocks that were found below memory and not used, by reason.
    pub rejected: Vec<(Rejection, u64)>,
}

/// The tier on a server that hosts share. How many blocks it has, it alone knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoteStats {
    /// Whether it answers, as far as is known.
    pub is_up: bool,
    /// Counter: blocks looked for and found.
    pub hits: u64,
    /// Counter: prompts of which it lacked a block, or had one that is not fit for use.
    pub misses: u64,
    /// Counter: blocks put there.
    pub stored: u64,
    /// Writes that wait.
    pub queued_writes: usize,
    /// Counter: blocks that were not written since too many waited.
    pub dropped_writes: u64,
    /// Counter: blocks that it did not take, or not in time.
    pub failed_writes: u64,
    /// Counter: times that it could not be reached, or gave no answer of use in time.
    pub failures: u64,
}

/// One tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TierStats {
    /// Blocks there.
    pub blocks: usize,
    /// Bytes they take.
    pub bytes: u64,
    /// Bytes they may take.
    pub max_bytes: u64,
    /// Counter: blocks looked for and found.
    pub hits: u64,
    /// Counter: times that a chain of blocks ended here because the next one was not there, or not fit for use; below memory,
    /// once for each prompt.
    pub misses: u64,
    /// Counter: blocks put there.
    pub stored: u64,
    /// Counter: blocks given up for others.
    pub evicted: u64,
}

/// Why a stored block was not used. It is computed again as if it had never been there, and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// Its file has gone.
    Gone,
    /// The system would not let it be read.
    Unreadable,
    /// It is cut short, or too long.
    Length,
    /// It is no stored block, or one of another version of the format.
    Format,
    /// Something in it has changed since it was written.
    Checksum,
    /// It is of another model or adapter.
    Model,
    /// Its numbers are kept or were computed in another way.
    Layout,
    /// It is of another prefix.
    Name,
}

impl Rejection {
    /// All of them.
    pub const ALL: [Rejection; 8] = [
        Rejection::Gone,
        Rejection::Unreadable,
        Rejection::Length,
        Rejection::Format,
        Rejection::Checksum,
        Rejection::Model,
        Rejection::Layout,
        Rejection::Name,
    ];

    /// One word, for metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Rejection::Gone => "gone",
            Rejection::Unreadable => "unreadable",
            Rejection::Length => "length",
            Rejection::Format => "format",
            Rejection::Checksum => "checksum",
            Rejection::Model => "model",
            Rejection::Layout => "layout",
            Rejection::Name => "name",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl KvStats {
    /// Stored blocks that were found below memory and not used, for this reason.
    pub fn rejected_for(&self, reason: Rejection) -> u64 {
        self.rejected.iter().find(|(its, _)| *its == reason).map_or(0, |(_, count)| *count)
    }
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One for each reason.
#[derive(Debug, Default)]
pub(crate) struct Rejections([Counter; Rejection::ALL.len()]);

impl Rejections {
    pub(crate) fn add(&self, rejection: Rejection) {
        let counts = Rejection::ALL.iter().zip(&self.0);
        counts.filter(|(reason, _)| **reason == rejection).for_each(|(_, count)| count.add(1));
    }

    pub(crate) fn counts(&self) -> Vec<(Rejection, u64)> {
        Rejection::ALL.iter().zip(&self.0).map(|(reason, count)| (*reason, count.get())).collect()
    }
}

/// What two tiers have rejected. One that is not there has no counts.
pub(super) fn sums(one: Vec<(Rejection, u64)>, other: Vec<(Rejection, u64)>) -> Vec<(Rejection, u64)> {
    if one.is_empty() {
        return other;
    }
    let mut sums = one;
    sums.iter_mut().zip(other).for_each(|(sum, more)| sum.1 += more.1);
    sums
}

/// Those of one tier.
#[derive(Debug, Default)]
pub(crate) struct TierCounters {
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) stored: Counter,
    pub(crate) evicted: Counter,
}

impl TierCounters {
    pub(crate) fn stats(&self, blocks: usize, bytes: u64, max_bytes: u64) -> TierStats {
        TierStats {
            blocks,
            bytes,
            max_bytes,
            hits: self.hits.get(),
            misses: self.misses.get(),
            stored: self.stored.get(),
            evicted: self.evicted.get(),
        }
    }
}
