//! What handles and the engine thread both see, and the places of those who are inside.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jackfield_scheduler::{RequestId, Scheduler, block_hashes};

use crate::config::EngineConfig;
use crate::engine::SubmitError;
use crate::tiers::{Tiers, ToKeep};

/// What handles and the engine thread both see.
pub(crate) struct Shared {
    /// Locked for the microseconds of `schedule`, `commit` and look-ups; never while a step runs.
    scheduler: Mutex<Scheduler>,
    /// Has locks of its own, which nobody holds while a block is copied, read or written.
    tiers: Option<Tiers>,
    pub(crate) block_size: usize,
    pub(crate) in_flight: Places,
    pub(crate) scoring: Places,
    pub(crate) max_choices: usize,
    next_request: AtomicU64,
    busy_us: AtomicU64,
    closed: AtomicBool,
}

impl Shared {
    pub(crate) fn new(scheduler: Scheduler, tiers: Option<Tiers>, config: &EngineConfig) -> Self {
        Shared {
            tiers,
            block_size: config.block_size,
            scheduler: Mutex::new(scheduler),
            in_flight: Places::new(config.max_in_flight()),
            scoring: Places::new(config.max_scoring),
            max_choices: config.max_running,
            next_request: AtomicU64::new(0),
            busy_us: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn next_id(&self) -> RequestId {
        RequestId(self.next_request.fetch_add(1, Ordering::Relaxed))
    }

    /// After a panic the counts may be read still; nothing is scheduled any more.
    pub(crate) fn scheduler(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The whole blocks of these tokens that are not stored for so long yet.
    pub(crate) fn not_kept(&self, tokens: &[u32], salt: &[u8; 32], keep_for: Duration) -> Vec<ToKeep> {
        let Some(tiers) = &self.tiers else { return Vec::new() };
        tiers.not_kept(&block_hashes(tokens, salt, self.block_size), keep_for)
    }

    pub(crate) fn tiers(&self) -> Option<&Tiers> {
        self.tiers.as_ref()
    }

    /// The engine thread has had something to do for so much longer.
    pub(crate) fn note_busy(&self, more: Duration) {
        self.busy_us.fetch_add(u64::try_from(more.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn busy(&self) -> Duration {
        Duration::from_micros(self.busy_us.load(Ordering::Relaxed))
    }

    /// The engine thread has failed.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

/// So many may be inside at once.
pub(crate) struct Places {
    taken: Arc<AtomicUsize>,
    pub(crate) most: usize,
}

impl Places {
    fn new(most: usize) -> Places {
        Places { taken: Arc::default(), most }
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    pub(crate) fn take(&self) -> Result<Admission, SubmitError> {
        let more = |n: usize| (n < self.most).then_some(n + 1);
        let taken = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken
            .map(|_| Admission(Arc::clone(&self.taken)))
            .map_err(|in_flight| SubmitError::QueueFull { in_flight })
    }
}

/// One request's place among those that are inside; dropping it gives the place back.
pub(crate) struct Admission(Arc<AtomicUsize>);

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
