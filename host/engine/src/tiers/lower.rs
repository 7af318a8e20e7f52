//! A tier below memory with its queues: nobody but its own threads waits for it.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bytes::Bytes;
use jackfield_scheduler::BlockHash;

use super::fetch::Read;
use super::queue::Queue;
use super::shelf::Rank;
use super::stats::Counter;
use super::tier::{LowerStats, Tier};

/// Writes that may wait for one tier; their blocks are in memory until then.
pub(super) const WRITES: usize = 1024;

/// A tier that its own threads wait for: one that writes, and some that read.
pub(super) struct Lower {
    pub(super) tier: Box<dyn Tier>,
    pub(super) reads: Queue<Read>,
    writes: Queue<Write>,
    /// Prompts of which it lacked a block.
    pub(super) misses: Counter,
    dropped: Counter,
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

impl Lower {
    pub(super) fn over(tier: Box<dyn Tier>) -> Lower {
        Lower {
            tier,
            reads: Queue::new(usize::MAX),
            writes: Queue::new(WRITES),
            misses: Counter::default(),
            dropped: Counter::default(),
        }
    }

    /// Has a block written where the tier wants it, and otherwise [touched](Self::touch). Dropped where too many wait.
    pub(super) fn give(&self, prefix: BlockHash, payload: &Bytes, rank: Rank) {
        if self.tier.wants(&prefix) {
            self.push(Write::Block { prefix, payload: payload.clone(), rank });
        } else {
            self.touch(vec![prefix], rank);
        }
    }

    /// Has blocks count as used at `rank`.
    pub(super) fn touch(&self, prefixes: Vec<BlockHash>, rank: Rank) {
        if !prefixes.is_empty() {
            self.push(Write::Touch { prefixes, rank });
        }
    }

    fn push(&self, write: Write) {
        if let Err(write) = self.writes.push(write) {
            self.dropped.add(usize::from(matches!(write, Write::Block { .. })));
        }
    }

    /// Says when everything that is to be written by now is; never, where nothing more is written.
    pub(super) fn flushed(&self) -> Receiver<()> {
        let (sender, done) = sync_channel(1);
        // Given back, it is dropped, and who waits is told.
        let _ = self.writes.push_anyway(Write::Done(sender));
        done
    }

    /// The thread that writes.
    pub(super) fn write_all(&self) {
        while let Some(write) = self.writes.pop() {
            match write {
                Write::Block { prefix, payload, rank } => self.tier.put(&prefix, &payload, rank),
                Write::Touch { prefixes, rank } => self.tier.touch(&prefixes, rank),
                // Who has no more patience does not hear it.
                Write::Done(sender) => drop(sender.send(())),
            }
        }
    }

    /// Has the threads end; the one that writes, once it has written what waits.
    pub(super) fn close(&self) {
        self.writes.close();
        self.reads.close();
    }

    pub(super) fn stats(&self) -> LowerStats {
        let mut stats = self.tier.stats();
        stats.tier.misses += self.misses.get();
        stats.queued_writes = self.writes.len();
        stats.dropped_writes += self.dropped.get();
        stats
    }
}
