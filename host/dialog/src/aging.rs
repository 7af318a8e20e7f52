//! What is held under keys, in the order of its last use.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::SessionKey;

/// Says what time it is; a test steps its own.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Microseconds on a clock that never goes back, since a store was opened; below 0 before.
pub(crate) type Moment = i64;

/// A duration in the unit of a [`Moment`].
pub(crate) fn micros(duration: Duration) -> Moment {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Values under keys, each with the time of its last use. Look-ups and changes take the logarithm of their number.
pub(crate) struct Aging<V> {
    held: BTreeMap<Arc<SessionKey>, Aged<V>>,
    /// Oldest use first.
    by_use: BTreeMap<u64, Arc<SessionKey>>,
    next_order: u64,
}

struct Aged<V> {
    value: V,
    used: Moment,
    /// Its place in `by_use`.
    order: u64,
}

impl<V> Default for Aging<V> {
    fn default() -> Aging<V> {
        Aging { held: BTreeMap::new(), by_use: BTreeMap::new(), next_order: 0 }
    }
}

impl<V> Aging<V> {
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn get(&self, key: &SessionKey) -> Option<&V> {
        self.held.get(key).map(|aged| &aged.value)
    }

    pub(crate) fn contains(&self, key: &SessionKey) -> bool {
        self.held.contains_key(key)
    }

    /// In the place of what is there, as the one used last.
    pub(crate) fn insert(&mut self, key: Arc<SessionKey>, value: V, used: Moment) {
        self.remove(&key);
        let order = self.next_order();
        self.by_use.insert(order, key.clone());
        self.held.insert(key, Aged { value, used, order });
    }

    pub(crate) fn remove(&mut self, key: &SessionKey) -> Option<V> {
        let aged = self.held.remove(key)?;
        self.by_use.remove(&aged.order);
        Some(aged.value)
    }

    /// Makes it the one used last.
    pub(crate) fn touch(&mut self, key: &SessionKey, now: Moment) -> Option<(&Arc<SessionKey>, &mut V)> {
        let order = self.next_order();
        let aged = self.held.get_mut(key)?;
        let key = self.by_use.remove(&aged.order)?;
        aged.order = order;
        aged.used = now;
        let key = self.by_use.entry(order).or_insert(key);
        Some((key, &mut aged.value))
    }

    /// Takes out the one longest unused.
    pub(crate) fn pop_oldest(&mut self) -> Option<(Arc<SessionKey>, V, Moment)> {
        let (_, key) = self.by_use.pop_first()?;
        let aged = self.held.remove(&key)?;
        Some((key, aged.value, aged.used))
    }

    /// Takes out the one longest unused, when its last use was at `latest` or before.
    pub(crate) fn pop_unused_since(&mut self, latest: Moment) -> Option<(Arc<SessionKey>, V, Moment)> {
        let (_, key) = self.by_use.first_key_value()?;
        let old = self.held.get(key).is_none_or(|aged| aged.used <= latest);
        if old { self.pop_oldest() } else { None }
    }

    /// When it was last used.
    pub(crate) fn used(&self, key: &SessionKey) -> Option<Moment> {
        self.held.get(key).map(|aged| aged.used)
    }

    /// Those of a tenant in the order of their ids, after `after`.
    pub(crate) fn of_tenant(
        &self,
        tenant: &str,
        after: Option<&str>,
    ) -> impl Iterator<Item = (&SessionKey, &V)> {
        let from = SessionKey::first_after(tenant, after);
        let held = self.held.range::<SessionKey, _>((Bound::Excluded(&from), Bound::Unbounded));
        let own = held.take_while(move |(key, _)| key.tenant() == tenant);
        own.map(|(key, aged)| (key.as_ref(), &aged.value))
    }

    fn next_order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order
    }
}
