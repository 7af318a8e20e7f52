//! The sessions of a disk store: an index in memory over a database.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, RandomState},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::{Duration, Instant},
};

use super::{
    DiskClocks, DiskLimits, OpenError,
    engine::Engine,
    record::{Head, Line, body_bytes, key_bytes, parse_body},
    start::Start,
    versions::Versions,
};
use crate::{
    Found, Listed, Session, SessionKey, StoreError, Version,
    aging::{Moment, micros},
    index::Index,
    store::check_size,
};

/// So many locks share the keys among them.
const LOCKS: usize = 256;

/// A use is noted on disk after this part of the time to live.
const USE_NOTED: i64 = 16;

/// Index and database, in step: who changes a session, or reads its body, holds the lock of its key.
///
/// The lock of the index is taken inside of it, for look-ups alone, never while the disk is read or written. Only the index expires
/// sessions and pushes them out; the disk follows (see [`Sessions::settle`]).
pub(super) struct Sessions {
    limits: DiskLimits,
    clocks: DiskClocks,
    opened: Instant,
    engine: Engine,
    versions: Versions,
    moved_aside: usize,
    keys: RandomState,
    locks: Vec<RwLock<()>>,
    state: Mutex<State>,
}

struct State {
    index: Index<Known>,
    /// Keys of which the disk is behind the index.
    behind: VecDeque<Arc<SessionKey>>,
    /// Keys whose last write failed, and the version that it would have made ([`Version::NEW`] when it deleted): the disk may be
    /// ahead of the index.
    doubtful: HashMap<SessionKey, Version>,
}

/// What the index knows of a session.
struct Known {
    line: Line,
    /// Its last use as the disk knows it, or soon will.
    noted: Moment,
}

/// What is held under a key, without its content.
pub(super) enum Seen {
    New,
    Expired,
    Held,
}

impl Sessions {
    pub(super) fn open(folder: &Path, limits: DiskLimits, clocks: DiskClocks) -> Result<Sessions, OpenError> {
        let failed =
            |error: StoreError| OpenError::Failed { folder: folder.to_owned(), why: error.to_string() };
        let engine = Engine::open(folder)?;
        let unix_ms = (clocks.unix_ms)();
        let start = Start::read(&engine, unix_ms).map_err(failed)?;
        let versions = Versions::open(&engine, start.last_version()).map_err(failed)?;
        let state = State {
            index: Index::new(limits.max_sessions, limits.ttl),
            behind: VecDeque::new(),
            doubtful: HashMap::new(),
        };
        let sessions = Sessions {
            opened: (clocks.monotonic)(),
            limits,
            clocks,
            engine,
            versions,
            moved_aside: start.moved_aside,
            keys: RandomState::new(),
            locks: (0..LOCKS).map(|_| RwLock::new(())).collect(),
            state: Mutex::new(state),
        };
        sessions.fill(start);
        Ok(sessions)
    }

    fn fill(&self, start: Start) {
        let ttl = micros(self.limits.ttl);
        let (mut state, now) = self.locked();
        for (used, key, head) in start.heads {
            let expired_at = used.saturating_add(ttl);
            if !head.expired && expired_at > now {
                let left =
                    state.index.insert(&key, head.version, Known { line: head.line, noted: used }, used);
                state.behind.extend(left);
                continue;
            }
            let key = Arc::new(key);
            // Its note ends in the next look at the index, when it is old enough. The disk is to know, either way.
            let left = state.index.note(key.clone(), expired_at.min(now));
            state.behind.extend(left);
            if !head.expired {
                state.behind.push_back(key);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.locked().0.index.len()
    }

    pub(super) fn ttl(&self) -> Duration {
        self.limits.ttl
    }

    pub(super) fn moved_aside(&self) -> usize {
        self.moved_aside
    }

    pub(super) fn look(&self, key: &SessionKey) -> Seen {
        let (state, _) = self.locked();
        match state.index.get(key) {
            Some(_) => Seen::Held,
            None if state.index.is_expired(key) => Seen::Expired,
            None => Seen::New,
        }
    }

    /// Counts as a use of what is there, and says its version.
    pub(super) fn touch(&self, key: &SessionKey) -> Option<Version> {
        let (mut state, now) = self.locked();
        let (shared, (version, known)) = state.index.touch(key, now)?;
        let version = *version;
        if now.saturating_sub(known.noted) >= micros(self.limits.ttl) / USE_NOTED {
            known.noted = now;
            let shared = shared.clone();
            state.behind.push_back(shared);
        }
        Some(version)
    }

    pub(super) fn load(&self, key: &SessionKey) -> Result<Found, StoreError> {
        let bytes = checked_key(key)?;
        let _still = self.lock(key).read().unwrap_or_else(PoisonError::into_inner);
        let Some(version) = self.touch(key) else {
            return Ok(if matches!(self.look(key), Seen::Expired) { Found::Expired } else { Found::New });
        };
        let body = self.engine.read(|tables| tables.bodies.get(bytes)).map_err(|error| named(key, error))?;
        let session = match body {
            Some(body) => parse_body(&body, version),
            None => Err("it is missing".into()),
        };
        let unreadable = |why| named(key, StoreError::Unavailable(why));
        session.map(|session| Found::Held(session, version)).map_err(unreadable)
    }

    pub(super) fn commit(
        &self,
        key: &SessionKey,
        expected: Version,
        session: &Session,
    ) -> Result<Version, StoreError> {
        check_size(session, self.limits.max_session_bytes)?;
        let bytes = checked_key(key)?;
        let alone = self.lock(key).write().unwrap_or_else(PoisonError::into_inner);
        let found = self.locked().0.index.version(key);
        if found != expected {
            return Err(StoreError::Conflict { expected, found });
        }
        let version = self.versions.next(&self.engine)?;
        let body = body_bytes(session, version)?;
        let line = Line::of(session);
        let head = Head { expired: false, version, used_unix_ms: (self.clocks.unix_ms)(), line };
        let written = self.engine.write(|batch, tables| {
            batch.insert(&tables.bodies, bytes.clone(), body);
            batch.insert(&tables.heads, bytes, head.to_bytes());
        });
        self.doubt_unless(&written, key, version);
        written?;
        let (mut state, now) = self.locked();
        let pushed_out = state.index.insert(key, version, Known { line, noted: now }, now);
        drop((state, alone));
        self.settle_all(pushed_out);
        Ok(version)
    }

    pub(super) fn delete(&self, key: &SessionKey) -> Result<bool, StoreError> {
        let bytes = checked_key(key)?;
        let _alone = self.lock(key).write().unwrap_or_else(PoisonError::into_inner);
        if matches!(self.look(key), Seen::New) {
            return Ok(false);
        }
        let written = self.engine.write(|batch, tables| {
            batch.remove(&tables.bodies, bytes.clone());
            batch.remove(&tables.heads, bytes);
        });
        self.doubt_unless(&written, key, Version::NEW);
        written?;
        Ok(self.locked().0.index.remove(key))
    }

    pub(super) fn list(&self, tenant: &str, after: Option<&str>, limit: usize) -> Vec<Listed> {
        let (state, _) = self.locked();
        let own = state.index.of_tenant(tenant, after).take(limit);
        own.map(|(key, Known { line, .. })| Listed {
            id: key.id().to_owned(),
            turns: line.turns,
            created_unix_ms: line.created_unix_ms,
            updated_unix_ms: line.updated_unix_ms,
        })
        .collect()
    }

    /// Repairs, reserves, sweeps, syncs.
    pub(super) fn tend(&self) -> Result<(), StoreError> {
        if self.engine.is_broken() {
            self.engine.repair()?;
            self.end_doubts()?;
        }
        self.versions.reserve_ahead(&self.engine)?;
        let behind = std::mem::take(&mut self.locked().0.behind);
        self.settle_all(behind);
        self.engine.sync()
    }

    fn settle_all(&self, keys: impl IntoIterator<Item = Arc<SessionKey>>) {
        for key in keys {
            if self.settle(&key).is_err() {
                self.locked().0.behind.push_back(key);
            }
        }
    }

    /// Brings the disk to what the index says of a key now, which may be something else than when it was put on the list.
    fn settle(&self, key: &SessionKey) -> Result<(), StoreError> {
        let bytes = checked_key(key)?;
        let _alone = self.lock(key).write().unwrap_or_else(PoisonError::into_inner);
        let (head, with_body) = {
            let (state, now) = self.locked();
            if state.doubtful.contains_key(key) {
                return Ok(());
            }
            let unix_ms = (self.clocks.unix_ms)();
            let at = |moment: Moment| unix_ms.saturating_sub(now.saturating_sub(moment) / 1000);
            let used = state.index.used(key).map(at);
            let held = state.index.get(key).zip(used).map(|((version, known), used_unix_ms)| Head {
                expired: false,
                version: *version,
                used_unix_ms,
                line: known.line,
            });
            let note = state.index.expired_at(key).map(|expired_at| Head {
                expired: true,
                version: Version::NEW,
                used_unix_ms: at(expired_at.saturating_sub(micros(self.limits.ttl))),
                line: Line::default(),
            });
            (held.or(note), held.is_some())
        };
        self.engine.write(|batch, tables| {
            if !with_body {
                batch.remove(&tables.bodies, bytes.clone());
            }
            match head {
                Some(head) => batch.insert(&tables.heads, bytes, head.to_bytes()),
                None => batch.remove(&tables.heads, bytes),
            }
        })
    }

    fn doubt_unless(&self, written: &Result<(), StoreError>, key: &SessionKey, version: Version) {
        if written.is_err() {
            self.locked().0.doubtful.insert(key.clone(), version);
        }
    }

    /// Takes from the disk what became of the writes that failed.
    fn end_doubts(&self) -> Result<(), StoreError> {
        let doubtful: Vec<_> = self.locked().0.doubtful.keys().cloned().collect();
        for key in doubtful {
            let bytes = checked_key(&key)?;
            let _alone = self.lock(&key).write().unwrap_or_else(PoisonError::into_inner);
            let head = self.engine.read(|tables| tables.heads.get(bytes))?;
            let head = head.and_then(|bytes| Head::parse(&bytes)).filter(|head| !head.expired);
            let (mut state, now) = self.locked();
            match (state.doubtful.remove(&key), head) {
                (Some(tried), Some(head)) if head.version == tried => {
                    let known = Known { line: head.line, noted: now };
                    let left = state.index.insert(&key, head.version, known, now);
                    state.behind.extend(left);
                }
                (Some(Version::NEW), None) => drop(state.index.remove(&key)),
                // It was not done. What the index forgot meanwhile is still to be removed.
                _ => state.behind.push_back(Arc::new(key)),
            }
        }
        Ok(())
    }

    /// The index without what is forgotten by now, and the time.
    fn locked(&self) -> (MutexGuard<'_, State>, Moment) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = micros((self.clocks.monotonic)().saturating_duration_since(self.opened));
        let left = state.index.advance(now);
        state.behind.extend(left);
        (state, now)
    }

    fn lock(&self, key: &SessionKey) -> &RwLock<()> {
        &self.locks[self.keys.hash_one(key) as usize % LOCKS]
    }
}

fn checked_key(key: &SessionKey) -> Result<Vec<u8>, StoreError> {
    key_bytes(key).ok_or_else(|| StoreError::Unavailable("the tenant's name is too long for it".into()))
}

fn named(key: &SessionKey, error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(why) => {
            let (tenant, id) = (key.tenant(), key.id());
            StoreError::Unavailable(format!("session {id:?} of {tenant:?} cannot be read: {why}"))
        }
        other => other,
    }
}
