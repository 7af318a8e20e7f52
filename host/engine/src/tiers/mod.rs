//! KV below the device: blocks that live on after the arena gave them up.
//!
//! **Down.** When a cached block is given to something else, the scheduler's plan says so, and its keys and values are
//! copied to the tier in memory before anything is written over them. What memory gives up goes to the [lower](lower) tiers, to
//! the [disk] and to the [server](remote) that hosts share, to each through a queue with a bound and a thread of its own: the
//! engine thread waits for neither, none of them for the other, and what finds a queue full is dropped and counted. What is
//! [to be kept](crate::Engine::keep) is copied to memory and written to both at once.
//!
//! **Up.** [`Engine::fetch`](crate::Engine::fetch), called while something else of a turn is still on its way, has threads read
//! to memory what a prompt needs: from disk, and what the disk lacks from the server. When the prompt is submitted, the engine
//! thread copies from memory to free blocks of the arena, which the scheduler publishes as cached, and ordinary admission finds
//! them there. Who does not fetch finds what is in memory alone.
//!
//! **Names.** A block goes by the salted 256-bit hash of all tokens up to its end, everywhere. So tiers know nothing of
//! tenants, and no tenant's prompt can name a block of another.
//!
//! **Trust.** What comes from below is checked first: it must be whole, of this model, kept and computed in this way, and of this
//! name ([`stored`]). Anything else is a miss, and is counted and removed.
//!
//! **Exactness.** Stored [as in the arena](KvStore::Same), a block comes back bit for bit, and an answer is what it would have
//! been without tiers. Stored in 8 bits, which takes half the room beside 16-bit floats, it comes back within half a step of
//! each number, as if the arena had kept this part of the prompt in 8 bits: an answer may part from the other where two tokens
//! were nearly as likely.
//!
//! **Cost.** On the engine thread a block of 16 tokens takes about 0.1 ms each way for Qwen2.5-0.5B in 8 bits (99 KiB), 0.2 ms for
//! SmolLM2-135M (185 KiB); as it is, some hundredths of a millisecond. A file is written in 0.3 ms and read and checked in 0.15 to
//! 0.3 ms, on other threads. A server that does not answer costs a prompt that is fetched two timeouts at most, and only when it
//! was not known to be down. (One core of two that were shared with other work; `what_a_block_costs` in the tests measures it.)
//!
//! **What goes first.** Each tier has a number of bytes and gives up what was used least recently. A block may be kept for a time:
//! while it runs the block counts as used at its end. Memory looks at that only where it is the last tier, since what it gives up
//! is below.

mod disk;
mod fetch;
mod lower;
mod queue;
mod remote;
#[cfg(test)]
mod samples;
mod shelf;
mod stats;
mod stored;
#[cfg(test)]
mod tests;
mod tier;
mod warnings;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use jackfield_kernels::KvStore;
use jackfield_scheduler::BlockHash;

pub use disk::DiskTier;
pub use fetch::{Fetch, Fetched};
pub use remote::{InvalidServer, RemoteServer, RemoteTier};
pub use stats::{KvStats, Rejection, RemoteStats, TierStats};
pub(crate) use stored::Kept;

use disk::Disk;
use lower::Lower;
use remote::Remote;
use shelf::{Evicted, Rank, Shelf, now};
use stats::{Counter, TierCounters};
use stored::Identity;

/// Threads that read from one tier.
const READERS: usize = 4;

/// The tiers, for the engine thread and those who ask it. The threads end when it is dropped, those that write once
/// they have written what waits.
pub(crate) struct Tiers {
    shared: Arc<Inner>,
}

/// What memory has of a block.
struct Held {
    payload: Bytes,
    /// All of its positions count.
    whole: bool,
}

/// What the threads see, too.
struct Inner {
    memory: Mutex<Shelf<Held>>,
    disk: Option<Lower>,
    remote: Option<Lower>,
    counters: Counters,
    kept: Kept,
    /// Blocks that one fetch reads at most: more would push each other out of memory, or do not fit the arena.
    fetch_blocks: usize,
}

/// A block that is to be kept. One time counts for a whole chain, however long it takes until all of it is copied: its end must
/// not seem to have been used after its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToKeep {
    pub(crate) prefix: BlockHash,
    /// When it counts as last used, as others do.
    used: Rank,
    /// When it counts as last used where it is kept.
    kept: Rank,
}

#[derive(Default)]
struct Counters {
    memory: TierCounters,
    promoted: Counter,
    demoted: Counter,
    kept: Counter,
    dropped: Counter,
}

impl Tiers {
    /// A tier of so many bytes in memory, one on disk and one on a server where they are wanted.
    ///
    /// # Errors
    /// The folder cannot be used, or the system refused a thread.
    pub(crate) fn start(
        memory_bytes: usize,
        disk: Option<&DiskTier>,
        remote: Option<&RemoteTier>,
        model: [u8; 32],
        kept: Kept,
    ) -> io::Result<Tiers> {
        let identity = Identity::new(model, &kept);
        let disk = disk.map(|disk| Disk::open(disk, identity.clone())).transpose()?;
        let remote = remote.map(|remote| Remote::open(remote, identity)).transpose()?;
        let disk = disk.map(|disk| Lower::over(Box::new(disk)));
        Self::over(memory_bytes, disk, remote.map(|remote| Lower::over(Box::new(remote))), kept)
    }

    fn over(
        memory_bytes: usize,
        disk: Option<Lower>,
        remote: Option<Lower>,
        kept: Kept,
    ) -> io::Result<Tiers> {
        let shared = Arc::new(Inner {
            memory: Mutex::new(Shelf::new(memory_bytes as u64)),
            disk,
            remote,
            counters: Counters::default(),
            kept,
            fetch_blocks: (memory_bytes / 2 / kept.bytes).min(kept.shape.blocks),
        });
        let tiers = Tiers { shared: Arc::clone(&shared) };
        for at in 0..shared.lower().count() {
            tiers.spawn("kv-write", move |inner| inner.write_all(at))?;
            (0..READERS).try_for_each(|_| tiers.spawn("kv-read", move |inner| inner.read_all(at)))?;
        }
        Ok(tiers)
    }

    fn spawn(&self, name: &str, run: impl FnOnce(&Inner) + Send + 'static) -> io::Result<()> {
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

    /// Takes what the arena gave up. What is not a `whole` block goes no further down: it is of use to the next turn alone, if that
    /// comes soon.
    pub(crate) fn demote(&self, prefix: BlockHash, payload: Bytes, whole: bool) {
        self.shared.counters.demoted.add(1);
        self.shared.put(prefix, Held { payload, whole }, now());
    }

    /// What memory has of these blocks, from the first to one that it has not.
    pub(crate) fn leading(&self, prefixes: impl Iterator<Item = BlockHash>) -> Vec<Bytes> {
        let (mut found, now) = (Vec::new(), now());
        let mut memory = self.shared.memory();
        for prefix in prefixes {
            let Some(held) = memory.touch(&prefix, now.back(found.len())) else {
                self.shared.counters.memory.misses.add(1);
                break;
            };
            found.push(held.payload.clone());
        }
        self.shared.counters.memory.hits.add(found.len());
        found
    }

    /// The first of these that memory has.
    pub(crate) fn first(&self, names: &[BlockHash]) -> Option<(BlockHash, Bytes)> {
        let memory = self.shared.memory();
        let found = names.iter().find_map(|name| Some((*name, memory.peek(name)?.payload.clone())));
        self.shared.counters.memory.hits.add(usize::from(found.is_some()));
        found
    }

    /// Memory need not have this any more.
    pub(crate) fn forget(&self, prefix: &BlockHash) {
        self.shared.memory().remove(prefix);
    }

    /// So many blocks are back in the arena.
    pub(crate) fn count_promoted(&self, blocks: usize) {
        self.shared.counters.promoted.add(blocks);
    }

    /// Of blocks that are to be kept, has every lower tier take note of those that it has; gives those that one of them lacks,
    /// or memory where it is the last.
    pub(crate) fn not_kept(&self, chain: &[BlockHash], keep_for: Duration) -> Vec<ToKeep> {
        let used = now();
        let kept = Rank(used.0.saturating_add(u64::try_from(keep_for.as_micros()).unwrap_or(u64::MAX)));
        let blocks = chain.iter().enumerate().map(|(link, prefix)| ToKeep {
            prefix: *prefix,
            used: used.back(link),
            kept: kept.back(link),
        });
        if self.shared.lower().next().is_none() {
            let mut memory = self.shared.memory();
            return blocks.filter(|block| memory.touch(&block.prefix, block.kept).is_none()).collect();
        }
        for lower in self.shared.lower() {
            let has = |prefix: &&BlockHash| lower.tier.may_have(prefix) && !lower.tier.wants(prefix);
            let there = chain.iter().filter(has);
            lower.touch(there.copied().collect(), kept);
        }
        blocks.filter(|block| self.shared.lower().any(|lower| lower.tier.wants(&block.prefix))).collect()
    }

    /// Keeps a block: `copied` is asked for it where memory has it not, and may know nothing of it either.
    pub(crate) fn keep(&self, block: ToKeep, copied: impl FnOnce() -> Option<Bytes>) {
        let ToKeep { prefix, used, kept } = block;
        let in_memory = self.shared.memory().peek(&prefix).map(|held| held.payload.clone());
        let is_new = in_memory.is_none();
        let Some(payload) = in_memory.or_else(copied) else { return };
        if is_new {
            self.shared.counters.kept.add(1);
            let is_last = self.shared.lower().next().is_none();
            self.shared.hold(prefix, payload.clone(), if is_last { kept } else { used });
        }
        self.shared.lower().for_each(|lower| lower.give(prefix, &payload, kept));
    }

    /// So many blocks were to be kept, and too many wait.
    pub(crate) fn count_dropped(&self, blocks: usize) {
        self.shared.counters.dropped.add(blocks);
    }

    /// Has what the arena has not, and memory neither, read from below.
    pub(crate) fn fetch(&self, chain: &[BlockHash], on_device: &[bool], block_size: usize) -> Fetch {
        fetch::fetch(&self.shared, chain, on_device, block_size)
    }

    /// Waits until everything that was to be written by now is, or has failed, or for so long; false when it is not.
    pub(crate) fn flush(&self, patience: Duration) -> bool {
        let begun = Instant::now();
        let all: Vec<_> = self.shared.lower().map(Lower::flushed).collect();
        all.into_iter().all(|done| done.recv_timeout(patience.saturating_sub(begun.elapsed())).is_ok())
    }

    pub(crate) fn stats(&self) -> KvStats {
        let Inner { counters, disk, remote, .. } = &*self.shared;
        let (blocks, bytes, max_bytes) = {
            let memory = self.shared.memory();
            (memory.len(), memory.bytes(), memory.max_bytes())
        };
        let stats = |lower: &Option<Lower>| lower.as_ref().map(Lower::stats).unwrap_or_default();
        let (disk, remote) = (stats(disk), stats(remote));
        KvStats {
            memory: counters.memory.stats(blocks, bytes, max_bytes),
            disk: disk.tier,
            promoted_blocks: counters.promoted.get(),
            demoted_blocks: counters.demoted.get(),
            kept_blocks: counters.kept.get(),
            queued_writes: disk.queued_writes,
            dropped_writes: counters.dropped.get() + disk.dropped_writes,
            failed_writes: disk.failed_writes,
            remote: RemoteStats {
                is_up: remote.is_up,
                hits: remote.tier.hits,
                misses: remote.tier.misses,
                stored: remote.tier.stored,
                queued_writes: remote.queued_writes,
                dropped_writes: remote.dropped_writes,
                failed_writes: remote.failed_writes,
                failures: remote.failures,
            },
            rejected: stats::sums(disk.rejected, remote.rejected),
        }
    }
}

impl Drop for Tiers {
    fn drop(&mut self) {
        self.shared.lower().for_each(Lower::close);
    }
}

impl Inner {
    /// The tiers below memory, in the order in which they are asked.
    fn lower(&self) -> impl Iterator<Item = &Lower> {
        self.disk.iter().chain(&self.remote)
    }

    /// Puts a whole block into memory.
    fn hold(&self, prefix: BlockHash, payload: Bytes, rank: Rank) {
        self.put(prefix, Held { payload, whole: true }, rank);
    }

    /// Puts something into memory; what has to go for it goes down.
    fn put(&self, prefix: BlockHash, held: Held, rank: Rank) {
        let bytes = held.payload.len() as u64;
        let evicted = self.memory().insert(prefix, held, bytes, rank);
        self.counters.memory.stored.add(1);
        self.counters.memory.evicted.add(evicted.len());
        for Evicted { prefix, value, rank } in evicted.into_iter().filter(|evicted| evicted.value.whole) {
            let lower = self.lower().filter(|lower| lower.tier.wants(&prefix));
            lower.for_each(|lower| lower.give(prefix, &value.payload, rank));
        }
    }

    /// The thread that writes to the tier at this place.
    fn write_all(&self, at: usize) {
        self.lower().nth(at).into_iter().for_each(Lower::write_all);
    }

    /// A shelf is whole between any two calls, whatever panicked.
    fn memory(&self) -> MutexGuard<'_, Shelf<Held>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
