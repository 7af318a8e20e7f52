//! The store in this process's memory.

use std::{
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    BoxFuture, Clock, Found, Listed, Session, SessionKey, SessionStore, StoreError, Version,
    aging::{Moment, micros},
    index::Index,
    store::check_size,
};

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

/// Sessions in memory: bounded, forgotten after a time without use, gone with the process.
///
/// One lock holds the sessions and their order of use. It is held for a look-up and the clone of one session (whose turns are
/// shared), which buys exact bounds; a map of many locks could only guess which session is the oldest.
pub struct MemoryStore {
    limits: MemoryLimits,
    clock: Clock,
    opened: Instant,
    sessions: Mutex<Sessions>,
}

struct Sessions {
    index: Index<Session>,
    last_version: u64,
}

impl MemoryStore {
    /// An empty store that goes by the machine's clock.
    pub fn new(limits: MemoryLimits) -> MemoryStore {
        MemoryStore::with_clock(limits, Arc::new(Instant::now))
    }

    /// An empty store that goes by the given clock.
    pub fn with_clock(limits: MemoryLimits, clock: Clock) -> MemoryStore {
        let index = Index::new(limits.max_sessions, limits.ttl);
        let sessions = Mutex::new(Sessions { index, last_version: 0 });
        MemoryStore { limits, opened: clock(), clock, sessions }
    }

    /// Sessions held now.
    pub fn len(&self) -> usize {
        self.locked().0.index.len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sessions without those that expired, and the time.
    fn locked(&self) -> (MutexGuard<'_, Sessions>, Moment) {
        // A panic under this lock cannot leave it half changed in a way that matters: take it as it is.
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let now = micros((self.clock)().saturating_duration_since(self.opened));
        drop(sessions.index.advance(now));
        (sessions, now)
    }

    fn commit_now(
        &self,
        key: &SessionKey,
        expected: Version,
        session: Session,
    ) -> Result<Version, StoreError> {
        check_size(&session, self.limits.max_session_bytes)?;
        let (mut sessions, now) = self.locked();
        let found = sessions.index.version(key);
        if found != expected {
            return Err(StoreError::Conflict { expected, found });
        }
        sessions.last_version += 1;
        let version = Version(sessions.last_version);
        drop(sessions.index.insert(key, version, session, now));
        Ok(version)
    }
}

impl SessionStore for MemoryStore {
    fn load(&self, key: &SessionKey) -> BoxFuture<'_, Result<Found, StoreError>> {
        let (mut sessions, now) = self.locked();
        let gone = if sessions.index.is_expired(key) { Found::Expired } else { Found::New };
        let held = sessions.index.touch(key, now);
        let found = held.map_or(gone, |(_, (version, session))| Found::Held(session.clone(), *version));
        Box::pin(ready(Ok(found)))
    }

    fn commit(
        &self,
        key: &SessionKey,
        expected: Version,
        session: Session,
    ) -> BoxFuture<'_, Result<Version, StoreError>> {
        Box::pin(ready(self.commit_now(key, expected, session)))
    }

    fn delete(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        let existed = self.locked().0.index.remove(key);
        Box::pin(ready(Ok(existed)))
    }

    fn touch(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (mut sessions, now) = self.locked();
        let existed = sessions.index.touch(key, now).is_some();
        Box::pin(ready(Ok(existed)))
    }

    fn list(
        &self,
        tenant: &str,
        after: Option<&str>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Listed>, StoreError>> {
        let (sessions, _) = self.locked();
        let lines = sessions.index.of_tenant(tenant, after).take(limit);
        let listed = lines.map(|(key, session)| Listed::of(key, session)).collect();
        Box::pin(ready(Ok(listed)))
    }

    fn ttl(&self) -> Duration {
        self.limits.ttl
    }
}

#[cfg(test)]
mod tests;
