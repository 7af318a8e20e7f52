//! The store in this process's memory.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{BoxFuture, Found, Listed, Session, SessionKey, SessionStore, StoreError, Version};

/// What a [`MemoryStore`] keeps at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Sessions; the one longest unused goes first.
    pub max_sessions: usize,
    /// Bytes of one session.
    pub max_session_bytes: usize,
    /// A session not used for so long is forgotten.
    pub ttl: Duration,
}

impl Default for MemoryLimits {
    fn default() -> MemoryLimits {
        MemoryLimits {
            max_sessions: 100_000,
            max_session_bytes: 1 << 20,
            ttl: Duration::from_secs(24 * 3600),
        }
    }
}

/// Says what time it is; a test steps its own.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Sessions in memory: bounded, forgotten after a time without use, gone with the process.
///
/// One lock holds the sessions and their order of use. It is held for a look-up and the clone of one session (whose turns are
/// shared), which buys exact bounds; a map of many locks could only guess which session is the oldest.
pub struct MemoryStore {
    limits: MemoryLimits,
    clock: Clock,
    sessions: Mutex<Sessions>,
}

struct Entry {
    session: Session,
    version: Version,
    used: Instant,
    /// Its place in `Sessions::by_use`.
    order: u64,
}

#[derive(Default)]
struct Sessions {
    held: BTreeMap<SessionKey, Entry>,
    /// Oldest use first.
    by_use: BTreeMap<u64, SessionKey>,
    expired: Expired,
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
        sessions.forget_expired(now, &self.limits);
        (sessions, now)
    }

    fn commit_now(
        &self,
        key: &SessionKey,
        expected: Version,
        session: Session,
    ) -> Result<Version, StoreError> {
        let bytes = session.size_bytes();
        let max = self.limits.max_session_bytes;
        if bytes > max {
            return Err(StoreError::TooLarge { bytes, max });
        }
        let (mut sessions, now) = self.locked();
        let found = sessions.held.get(key).map_or(Version::NEW, |entry| entry.version);
        if found != expected {
            return Err(StoreError::Conflict { expected, found });
        }
        sessions.remove(key);
        sessions.expired.forget(key);
        while sessions.held.len() >= self.limits.max_sessions.max(1) {
            sessions.forget_oldest();
        }
        Ok(sessions.insert(key, session, now))
    }
}

/// Who expired, for as long again as a session lives, and no more of them than there may be sessions.
#[derive(Default)]
struct Expired {
    at: HashMap<SessionKey, Instant>,
    by_time: VecDeque<(Instant, SessionKey)>,
}

impl Expired {
    fn add(&mut self, key: SessionKey, now: Instant, most: usize) {
        while self.by_time.len() >= most.max(1) {
            self.forget_first();
        }
        self.at.insert(key.clone(), now);
        self.by_time.push_back((now, key));
    }

    fn forget(&mut self, key: &SessionKey) {
        self.at.remove(key);
    }

    fn forget_older(&mut self, now: Instant, ttl: Duration) {
        while self.by_time.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) >= ttl) {
            self.forget_first();
        }
    }

    /// A key may have come again since: then only its later note counts.
    fn forget_first(&mut self) {
        if let Some((at, key)) = self.by_time.pop_front()
            && self.at.get(&key) == Some(&at)
        {
            self.at.remove(&key);
        }
    }
}

impl Sessions {
    fn insert(&mut self, key: &SessionKey, session: Session, now: Instant) -> Version {
        self.last_version += 1;
        let version = Version(self.last_version);
        let order = self.next_order(key);
        self.held.insert(key.clone(), Entry { session, version, used: now, order });
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

    fn forget_expired(&mut self, now: Instant, limits: &MemoryLimits) {
        self.expired.forget_older(now, limits.ttl);
        while let Some((&order, key)) = self.by_use.first_key_value() {
            let used = self.held.get(key).map(|entry| entry.used);
            if used.is_some_and(|used| now.saturating_duration_since(used) < limits.ttl) {
                return;
            }
            let key = key.clone();
            self.by_use.remove(&order);
            self.held.remove(&key);
            self.expired.add(key, now, limits.max_sessions);
        }
    }

    fn listed(&self, tenant: &str, after: Option<&str>, limit: usize) -> Vec<Listed> {
        let from = SessionKey::first_after(tenant, after);
        let held = self.held.range((Bound::Excluded(from), Bound::Unbounded));
        let own = held.take_while(|(key, _)| key.tenant() == tenant).take(limit);
        own.map(|(key, entry)| Listed::of(key, &entry.session)).collect()
    }
}

impl SessionStore for MemoryStore {
    fn load(&self, key: &SessionKey) -> BoxFuture<'_, Result<Found, StoreError>> {
        let (mut sessions, now) = self.locked();
        let held = sessions.touch(key, now).map(|entry| Found::Held(entry.session.clone(), entry.version));
        let gone = || if sessions.expired.at.contains_key(key) { Found::Expired } else { Found::New };
        let found = held.unwrap_or_else(gone);
        Box::pin(std::future::ready(Ok(found)))
    }

    fn commit(
        &self,
        key: &SessionKey,
        expected: Version,
        session: Session,
    ) -> BoxFuture<'_, Result<Version, StoreError>> {
        Box::pin(std::future::ready(self.commit_now(key, expected, session)))
    }

    fn delete(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (mut sessions, _) = self.locked();
        sessions.expired.forget(key);
        let existed = sessions.remove(key);
        Box::pin(std::future::ready(Ok(existed)))
    }

    fn touch(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (mut sessions, now) = self.locked();
        let existed = sessions.touch(key, now).is_some();
        Box::pin(std::future::ready(Ok(existed)))
    }

    fn list(
        &self,
        tenant: &str,
        after: Option<&str>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Listed>, StoreError>> {
        let listed = self.locked().0.listed(tenant, after, limit);
        Box::pin(std::future::ready(Ok(listed)))
    }

    fn ttl(&self) -> Duration {
        self.limits.ttl
    }
}

#[cfg(test)]
mod tests;
