//! The store in this process's memory.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{BoxFuture, Dialog, SessionKey, SessionStore, StoreError, Version};

/// What a [`MemoryStore`] keeps at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Sessions; the one longest unused goes first.
    pub max_sessions: usize,
    /// Bytes of one dialog.
    pub max_dialog_bytes: usize,
    /// A session not used for so long is forgotten.
    pub ttl: Duration,
}

impl Default for MemoryLimits {
    fn default() -> MemoryLimits {
        MemoryLimits {
            max_sessions: 100_000,
            max_dialog_bytes: 64 << 10,
            ttl: Duration::from_secs(24 * 3600),
        }
    }
}

/// Says what time it is; a test steps its own.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Sessions in memory: bounded, forgotten after a time without use, gone with the process.
///
/// One lock holds the sessions and their order of use. It is held for a hash look-up and the clone of one dialog,
/// which buys exact bounds; a map of many locks could only guess which session is the oldest.
pub struct MemoryStore {
    limits: MemoryLimits,
    clock: Clock,
    sessions: Mutex<Sessions>,
}

struct Entry {
    dialog: Dialog,
    version: Version,
    used: Instant,
    /// Its place in `Sessions::by_use`.
    order: u64,
}

#[derive(Default)]
struct Sessions {
    held: HashMap<SessionKey, Entry>,
    /// Oldest use first.
    by_use: BTreeMap<u64, SessionKey>,
    next_order: u64,
    last_version: u64,
}

impl MemoryStore {
    /// An empty store that goes by the machine's clock.
    pub fn new(limits: MemoryLimits) -> MemoryStore {
        MemoryStore::with_clock(limits, Arc::new(Instant::now))
    }

    /// An empty store that goes by the given clock.
    pub fn with_clock(limits: MemoryLimits, clock: Clock) -> MemoryStore {
        MemoryStore { limits, clock, sessions: Mutex::default() }
    }

    /// Sessions held now.
    pub fn len(&self) -> usize {
        self.locked().0.held.len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sessions without those that expired, and the time.
    fn locked(&self) -> (MutexGuard<'_, Sessions>, Instant) {
        // A panic under this lock cannot leave it half changed in a way that matters: take it as it is.
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (self.clock)();
        sessions.forget_expired(now, self.limits.ttl);
        (sessions, now)
    }

    fn commit_now(&self, key: &SessionKey, expected: Version, dialog: Dialog) -> Result<Version, StoreError> {
        let bytes = dialog.size_bytes();
        let max = self.limits.max_dialog_bytes;
        if bytes > max {
            return Err(StoreError::TooLarge { bytes, max });
        }
        let (mut sessions, now) = self.locked();
        let found = sessions.held.get(key).map_or(Version::NEW, |entry| entry.version);
        if found != expected {
            return Err(StoreError::Conflict { expected, found });
        }
        sessions.remove(key);
        while sessions.held.len() >= self.limits.max_sessions.max(1) {
            sessions.forget_oldest();
        }
        Ok(sessions.insert(key, dialog, now))
    }
}

impl Sessions {
    fn insert(&mut self, key: &SessionKey, dialog: Dialog, now: Instant) -> Version {
        self.last_version += 1;
        let version = Version(self.last_version);
        let order = self.next_order(key);
        self.held.insert(key.clone(), Entry { dialog, version, used: now, order });
        version
    }

    fn next_order(&mut self, key: &SessionKey) -> u64 {
        let order = self.next_order;
        self.next_order += 1;
        self.by_use.insert(order, key.clone());
        order
    }

    fn remove(&mut self, key: &SessionKey) -> bool {
        match self.held.remove(key) {
            Some(entry) => self.by_use.remove(&entry.order).is_some(),
            None => false,
        }
    }

    fn touch(&mut self, key: &SessionKey, now: Instant) -> Option<&Entry> {
        let old = self.held.get(key)?.order;
        self.by_use.remove(&old);
        let order = self.next_order(key);
        let entry = self.held.get_mut(key)?;
        entry.order = order;
        entry.used = now;
        Some(entry)
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.by_use.pop_first() {
            self.held.remove(&key);
        }
    }

    fn forget_expired(&mut self, now: Instant, ttl: Duration) {
        while let Some((_, key)) = self.by_use.first_key_value() {
            let used = self.held.get(key).map(|entry| entry.used);
            if used.is_some_and(|used| now.saturating_duration_since(used) < ttl) {
                return;
            }
            self.forget_oldest();
        }
    }
}

impl SessionStore for MemoryStore {
    fn load(&self, key: &SessionKey) -> BoxFuture<'_, Result<(Dialog, Version), StoreError>> {
        let (mut sessions, now) = self.locked();
        let loaded = match sessions.touch(key, now) {
            Some(entry) => (entry.dialog.clone(), entry.version),
            None => (Dialog::default(), Version::NEW),
        };
        Box::pin(std::future::ready(Ok(loaded)))
    }

    fn commit(
        &self,
        key: &SessionKey,
        expected: Version,
        dialog: Dialog,
    ) -> BoxFuture<'_, Result<Version, StoreError>> {
        Box::pin(std::future::ready(self.commit_now(key, expected, dialog)))
    }

    fn delete(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        let existed = self.locked().0.remove(key);
        Box::pin(std::future::ready(Ok(existed)))
    }

    fn touch(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (mut sessions, now) = self.locked();
        let existed = sessions.touch(key, now).is_some();
        Box::pin(std::future::ready(Ok(existed)))
    }

    fn touch_every(&self) -> Duration {
        self.limits.ttl / 4
    }
}

#[cfg(test)]
mod tests;
