//! Which sessions a store holds, and which it remembers to have held.

use std::{sync::Arc, time::Duration};

use crate::{
    SessionKey, Version,
    aging::{Aging, Moment, micros},
};

/// Sessions by key, with something (`T`) for each, bounded in number and in time without use. Pure: time is an argument.
pub(crate) struct Index<T> {
    max_sessions: usize,
    ttl: Moment,
    sessions: Aging<(Version, T)>,
    /// Who expired when, for as long again as a session lives, and no more of them than there may be sessions.
    expired: Aging<()>,
}

/// Keys of which something is no longer held.
pub(crate) type Left = Vec<Arc<SessionKey>>;

impl<T> Index<T> {
    pub(crate) fn new(max_sessions: usize, ttl: Duration) -> Index<T> {
        let (sessions, expired) = (Aging::default(), Aging::default());
        Index { max_sessions: max_sessions.max(1), ttl: micros(ttl), sessions, expired }
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Forgets what was not used for too long: sessions leave a note, notes leave nothing.
    #[must_use]
    pub(crate) fn advance(&mut self, now: Moment) -> Left {
        let mut left = Vec::new();
        let latest = now.saturating_sub(self.ttl);
        while let Some((key, _, used)) = self.sessions.pop_unused_since(latest) {
            left.extend(self.note(key.clone(), used.saturating_add(self.ttl)));
            left.push(key);
        }
        while let Some((key, ..)) = self.expired.pop_unused_since(latest) {
            left.push(key);
        }
        left
    }

    /// Remembers that a session expired. Notes are to come in the order of their times.
    #[must_use]
    pub(crate) fn note(&mut self, key: Arc<SessionKey>, at: Moment) -> Option<Arc<SessionKey>> {
        self.expired.insert(key, (), at);
        let over = self.expired.len() > self.max_sessions;
        over.then(|| self.expired.pop_oldest()).flatten().map(|(key, ..)| key)
    }

    pub(crate) fn version(&self, key: &SessionKey) -> Version {
        self.sessions.get(key).map_or(Version::NEW, |(version, _)| *version)
    }

    pub(crate) fn get(&self, key: &SessionKey) -> Option<&(Version, T)> {
        self.sessions.get(key)
    }

    pub(crate) fn used(&self, key: &SessionKey) -> Option<Moment> {
        self.sessions.used(key)
    }

    pub(crate) fn is_expired(&self, key: &SessionKey) -> bool {
        self.expired.contains(key)
    }

    /// When it expired, where that is still known.
    pub(crate) fn expired_at(&self, key: &SessionKey) -> Option<Moment> {
        self.expired.used(key)
    }

    /// Counts as a use.
    pub(crate) fn touch(
        &mut self,
        key: &SessionKey,
        now: Moment,
    ) -> Option<(&Arc<SessionKey>, &mut (Version, T))> {
        self.sessions.touch(key, now)
    }

    /// In the place of what is there; makes room for it.
    #[must_use]
    pub(crate) fn insert(&mut self, key: &SessionKey, version: Version, value: T, now: Moment) -> Left {
        self.remove(key);
        let mut left = Vec::new();
        while self.sessions.len() >= self.max_sessions {
            left.extend(self.sessions.pop_oldest().map(|(key, ..)| key));
        }
        self.sessions.insert(Arc::new(key.clone()), (version, value), now);
        left
    }

    /// Forgets it, and that it ever was. Whether there was one.
    pub(crate) fn remove(&mut self, key: &SessionKey) -> bool {
        self.expired.remove(key);
        self.sessions.remove(key).is_some()
    }

    pub(crate) fn of_tenant(
        &self,
        tenant: &str,
        after: Option<&str>,
    ) -> impl Iterator<Item = (&SessionKey, &T)> {
        self.sessions.of_tenant(tenant, after).map(|(key, (_, value))| (key, value))
    }
}
