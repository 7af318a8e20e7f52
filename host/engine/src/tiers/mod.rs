//! KV below the device: blocks that live on after the arena gave them up.
//!
//! **Down.** When a cached block is given to something else, the scheduler's plan says so, and its keys and values are
//! copied to the tier in memory before anything is written over them. What memory gives up goes to the disk, through a queue
//! with a bound and a thread of its own: the engine thread waits for no disk, and what finds the queue full is dropped and
//! counted. What is [to be kept](crate::Engine::keep) is copied to memory and written to disk at once.
//!
//! **Up.** [`Engine::fetch`](crate::Engine::fetch), called while something else of a turn is still on its way, has threads read
//! from disk to memory what a prompt needs. When the prompt is submitted, the engine thread copies from memory to free
//! blocks of the arena, which the scheduler publishes as cached, and ordinary admission finds them there. Who does not fetch finds
//! what is in memory alone.
//!
//! **Names.** A block goes by the salted 256-bit hash of all tokens up to its end, everywhere. So tiers know nothing of
//! tenants, and no tenant's prompt can name a block of another.
//!
//! **Trust.** What comes from disk is checked first: it must be whole, of this model, kept and computed in this way, and of this
//! name ([`stored`]). Anything else is a miss, and is counted and removed.
//!
//! **Exactness.** Stored [as in the arena](KvStore::Same), a block comes back bit for bit, and an answer is what it would have
//! been without tiers. Stored in 8 bits, which takes half the room beside 16-bit floats, it comes back within half a step of
//! each number, as if the arena had kept this part of the prompt in 8 bits: an answer may part from the other where two tokens
//! were nearly as likely.
//!
//! **Cost.** On the engine thread a block of 16 tokens takes about 0.1 ms each way for Qwen2.5-0.5B in 8 bits (99 KiB), 0.2 ms for
//! SmolLM2-135M (185 KiB); as it is, some hundredths of a millisecond. A file is written in 0.3 ms and read and checked in 0.15 to
//! 0.3 ms, on other threads. (One core of two that were shared with other work; `what_a_block_costs` in the tests measures it.)
//!
//! **What goes first.** Each tier has a number of bytes and gives up what was used least recently. A block may be kept for a time:
//! while it runs the block counts as used at its end. Of the tiers only the last one there is looks at that, since what memory
//! gives up is on disk.

mod disk;
mod fetch;
mod queue;
mod shelf;
mod stats;
mod stored;
#[cfg(test)]
mod tests;
mod tier;
mod warnings;

use std::io;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jackfield_kernels::KvStore;
use jackfield_scheduler::BlockHash;

pub use disk::DiskTier;
pub use fetch::{Fetch, Fetched};
pub use stats::{KvStats, Rejection, TierStats};
pub(crate) use stored::Kept;

use disk::{Disk, now};
use fetch::Read;
use queue::Queue;
use shelf::{Evicted, Rank, Shelf};
use stats::{Counter, TierCounters};
use stored::Identity;
use tier::Tier;

/// Writes that may wait; their blocks are in memory until then.
const WRITES: usize = 1024;
/// Threads that read from disk.
const READERS: usize = 4;

/// The tiers, for the engine thread and those who ask it. The threads end when it is dropped, the one that writes once it
/// has written what waits.
pub(crate) struct Tiers {
    shared: Arc<Inner>,
}

/// What the threads see, too.
struct Inner {
    memory: Mutex<Shelf<Bytes>>,
    lower: Option<Lower>,
    counters: Counters,
    kept: Kept,
    /// Blocks that one fetch reads at most: more would push each other out of memory, or do not fit the arena.
    fetch_blocks: usize,
}

/// A tier that its own threads wait for.
struct Lower {
    tier: Box<dyn Tier>,
    writes: Queue<Write>,
    reads: Queue<Read>,
}

enum Write {
    Block {
        prefix: BlockHash,
        payload: Bytes,
        rank: Rank,
    },
    /// These are there, and wanted for longer.
    Touch {
        prefixes: Vec<BlockHash>,
        rank: Rank,
    },
    /// Everything before it is done.
    Done(SyncSender<()>),
}

#[derive(Default)]
struct Counters {
    memory: TierCounters,
    /// Chains that ended at something that the lower tier did not claim to have.
    lower_misses: Counter,
    promoted: Counter,
    demoted: Counter,
    kept: Counter,
    dropped: Counter,
}

impl Tiers {
    /// A tier of so many bytes in memory, and one on disk where that is wanted.
    ///
    /// # Errors
    /// The folder cannot be used, or the system refused a thread.
    pub(crate) fn start(
        memory_bytes: usize,
        disk: Option<&DiskTier>,
        model: [u8; 32],
        kept: Kept,
    ) -> io::Result<Tiers> {
        let disk = disk.map(|disk| Disk::open(disk, Identity::new(model, &kept))).transpose()?;
        Self::over(memory_bytes, disk.map(|disk| Box::new(disk) as Box<dyn Tier>), kept)
    }

    fn over(memory_bytes: usize, lower: Option<Box<dyn Tier>>, kept: Kept) -> io::Result<Tiers> {
        let queues = |tier| Lower { tier, writes: Queue::new(WRITES), reads: Queue::new(usize::MAX) };
        let lower = lower.map(queues);
        let shared = Arc::new(Inner {
            memory: Mutex::new(Shelf::new(memory_bytes as u64)),
            lower,
            counters: Counters::default(),
            kept,
            fetch_blocks: (memory_bytes / 2 / kept.bytes).min(kept.shape.blocks),
        });
        let tiers = Tiers { shared: Arc::clone(&shared) };
        if shared.lower.is_some() {
            tiers.spawn("kv-write", Inner::write_all)?;
            (0..READERS).try_for_each(|_| tiers.spawn("kv-read", Inner::read_all))?;
        }
        Ok(tiers)
    }

    fn spawn(&self, name: &str, run: fn(&Inner)) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        std::thread::Builder::new().name(name.into()).spawn(move || run(&shared))?;
        Ok(())
    }

    /// Bytes of a block outside of the arena.
    pub(crate) fn block_bytes(&self) -> usize {
        self.shared.kept.bytes
    }

    /// How blocks are kept outside of the arena.
    pub(crate) fn store(&self) -> KvStore {
        self.shared.kept.store
    }

    /// Whether memory has a block; it counts as used then.
    pub(crate) fn is_in_memory(&self, prefix: &BlockHash) -> bool {
        self.shared.memory().touch(prefix, now()).is_some()
    }

    /// Takes what the arena gave up.
    pub(crate) fn demote(&self, prefix: BlockHash, payload: Bytes) {
        self.shared.counters.demoted.add(1);
        self.shared.hold(prefix, payload, now());
    }

    /// What memory has of these blocks, from the first to one that it has not.
    pub(crate) fn leading(&self, prefixes: impl Iterator<Item = BlockHash>) -> Vec<Bytes> {
        let (mut found, now) = (Vec::new(), now());
        let mut memory = self.shared.memory();
        for prefix in prefixes {
            let Some(payload) = memory.touch(&prefix, now.back(found.len())) else {
                self.shared.counters.memory.misses.add(1);
                break;
            };
            found.push(payload.clone());
        }
        self.shared.counters.memory.hits.add(found.len());
        found
    }

    /// A block that is in memory, and is not any more.
    pub(crate) fn take(&self, prefix: &BlockHash) -> Option<Bytes> {
        let taken = self.shared.memory().remove(prefix);
        self.shared.counters.memory.hits.add(usize::from(taken.is_some()));
        taken
    }

    /// So many blocks are back in the arena.
    pub(crate) fn count_promoted(&self, blocks: usize) {
        self.shared.counters.promoted.add(blocks);
    }

    /// Of blocks that are to be kept, takes note of those that the last tier has; gives the others, with their places in
    /// the chain.
    pub(crate) fn not_kept(&self, chain: &[BlockHash], keep_for: Duration) -> Vec<(usize, BlockHash)> {
        let rank = rank(keep_for);
        let links = || chain.iter().copied().enumerate();
        let Some(lower) = &self.shared.lower else {
            let mut memory = self.shared.memory();
            return links()
                .filter(|(link, prefix)| memory.touch(prefix, rank.back(*link)).is_none())
                .collect();
        };
        let (there, others): (Vec<_>, Vec<_>) =
            links().partition(|(_, prefix)| lower.tier.leading(&[*prefix]) == 1);
        if !there.is_empty() {
            let prefixes = there.into_iter().map(|(_, prefix)| prefix).collect();
            self.shared.queue(Write::Touch { prefixes, rank });
        }
        others
    }

    /// Keeps a block, the so-manieth of its chain: `copied` is asked for it where memory has it not, and may know nothing of it
    /// either.
    pub(crate) fn keep(
        &self,
        (link, prefix): (usize, BlockHash),
        keep_for: Duration,
        copied: impl FnOnce() -> Option<Bytes>,
    ) {
        let rank = rank(keep_for).back(link);
        let in_memory = self.shared.memory().peek(&prefix).cloned();
        let is_new = in_memory.is_none();
        let Some(payload) = in_memory.or_else(copied) else { return };
        if is_new {
            self.shared.counters.kept.add(1);
            let in_memory = if self.shared.lower.is_some() { now().back(link) } else { rank };
            self.shared.hold(prefix, payload.clone(), in_memory);
        }
        if self.shared.lower.is_some() {
            self.shared.queue(Write::Block { prefix, payload, rank });
        }
    }

    /// So many blocks were to be kept, and too many wait.
    pub(crate) fn count_dropped(&self, blocks: usize) {
        self.shared.counters.dropped.add(blocks);
    }

    /// Has what the arena has not, and memory neither, read from below.
    pub(crate) fn fetch(&self, chain: &[BlockHash], on_device: &[bool], block_size: usize) -> Fetch {
        fetch::fetch(&self.shared, chain, on_device, block_size)
    }

    /// Waits until everything that was to be written by now is, or for so long; true when it is.
    pub(crate) fn flush(&self, patience: Duration) -> bool {
        let Some(lower) = &self.shared.lower else { return true };
        let (sender, done) = sync_channel(1);
        if lower.writes.push_anyway(Write::Done(sender)).is_err() {
            return false;
        }
        !matches!(
            done.recv_timeout(patience),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)
        )
    }

    pub(crate) fn stats(&self) -> KvStats {
        let Inner { counters, lower, .. } = &*self.shared;
        let (blocks, bytes, max_bytes) = {
            let memory = self.shared.memory();
            (memory.len(), memory.bytes(), memory.max_bytes())
        };
        let mut below = lower.as_ref().map(|lower| lower.tier.stats()).unwrap_or_default();
        below.tier.misses += counters.lower_misses.get();
        KvStats {
            memory: counters.memory.stats(blocks, bytes, max_bytes),
            disk: below.tier,
            promoted_blocks: counters.promoted.get(),
            demoted_blocks: counters.demoted.get(),
            kept_blocks: counters.kept.get(),
            queued_writes: lower.as_ref().map_or(0, |lower| lower.writes.len()),
            dropped_writes: counters.dropped.get() + below.dropped_writes,
            failed_writes: below.failed_writes,
            rejected: below.rejected,
        }
    }
}

impl Drop for Tiers {
    fn drop(&mut self) {
        if let Some(lower) = &self.shared.lower {
            lower.writes.close();
            lower.reads.close();
        }
    }
}

impl Inner {
    /// Puts a block into memory; what has to go for it goes down.
    fn hold(&self, prefix: BlockHash, payload: Bytes, rank: Rank) {
        let bytes = payload.len() as u64;
        let evicted = self.memory().insert(prefix, payload, bytes, rank);
        self.counters.memory.stored.add(1);
        self.counters.memory.evicted.add(evicted.len());
        for Evicted { prefix, value, rank } in evicted {
            match &self.lower {
                Some(lower) if lower.tier.leading(&[prefix]) == 0 => {
                    self.queue(Write::Block { prefix, payload: value, rank });
                }
                _ => {}
            }
        }
    }

    fn queue(&self, write: Write) {
        let Some(lower) = &self.lower else { return };
        if let Err(write) = lower.writes.push(write) {
            self.counters.dropped.add(usize::from(matches!(write, Write::Block { .. })));
        }
    }

    /// The thread that writes.
    fn write_all(&self) {
        let Some(lower) = &self.lower else { return };
        while let Some(write) = lower.writes.pop() {
            match write {
                Write::Block { prefix, payload, rank } => lower.tier.put(&prefix, &payload, rank),
                Write::Touch { prefixes, rank } => lower.tier.touch(&prefixes, rank),
                // Who has no more patience does not hear it.
                Write::Done(sender) => drop(sender.send(())),
            }
        }
    }

    /// A shelf is whole between any two calls, whatever panicked.
    fn memory(&self) -> MutexGuard<'_, Shelf<Bytes>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a block that is to be kept for so long counts as last used.
fn rank(keep_for: Duration) -> Rank {
    Rank(now().0.saturating_add(u64::try_from(keep_for.as_micros()).unwrap_or(u64::MAX)))
}
