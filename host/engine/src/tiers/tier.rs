//! What a tier below memory does.

use std::time::Duration;

use bytes::Bytes;
use jackfield_scheduler::BlockHash;

use super::shelf::Rank;
use super::stats::{Rejection, TierStats};

/// A place for stored blocks beyond the process's memory: a disk, or a service on the network. It is asked by threads of its
/// own, which may wait, and has an answer to everything: what goes wrong is counted there and is a miss here.
///
/// It removes by itself what it may not keep or would not give out again. What it gives is what was put there under that name by a host of the same [identity](super::stored::Identity), or nothing.
pub(crate) trait Tier: Send + Sync {
    /// Whether there is any point in asking for a block. Answered at once, from what is known without asking anybody; a tier
    /// that does not know says yes.
    fn may_have(&self, prefix: &BlockHash) -> bool;

    /// Whether it is to be given a block: it takes blocks now, and has not this one. Answered at once, as above; a tier that
    /// does not know says yes.
    fn wants(&self, prefix: &BlockHash) -> bool;

    /// For how long after a prompt has begun to be fetched blocks of it are still asked for: somebody waits for the last one.
    fn patience(&self) -> Duration {
        Duration::MAX
    }

    /// Keys and values of these blocks, verified, in their order. They are [touched](Self::touch).
    fn get(&self, prefixes: &[BlockHash], rank: Rank) -> Vec<Option<Bytes>>;

    /// Keeps a block for as long as there is room for one of this rank. One that is there is only [touched](Self::touch).
    fn put(&self, prefix: &BlockHash, payload: &Bytes, rank: Rank);

    /// These blocks count as used at `rank`, each but the first a little before the one before it.
    fn touch(&self, prefixes: &[BlockHash], rank: Rank);

    /// Gauges and counters.
    fn stats(&self) -> LowerStats;
}

/// What a tier has counted. Not all of them count everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct LowerStats {
    pub(crate) tier: TierStats,
    pub(crate) queued_writes: usize,
    pub(crate) dropped_writes: u64,
    pub(crate) failed_writes: u64,
    pub(crate) rejected: Vec<(Rejection, u64)>,
    /// Whether it can be reached, and how often it could not.
    pub(crate) is_up: bool,
    pub(crate) failures: u64,
}
