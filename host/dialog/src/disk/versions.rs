//! Versions that are never given twice.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use super::engine::Engine;
use crate::{StoreError, Version};

/// So many are taken from the disk at once. A restart skips those that were not given.
const RESERVED: u64 = 1 << 16;
/// Their key in the table of the store's own numbers.
const KEY: &str = "versions reserved below";

/// Gives versions below a number that the disk itself knows of before the first of them is given.
pub(super) struct Versions {
    next: AtomicU64,
    below: AtomicU64,
    reserving: Mutex<()>,
}

impl Versions {
    /// Goes on after all that were ever reserved, and after `seen`.
    pub(super) fn open(engine: &Engine, seen: Version) -> Result<Versions, StoreError> {
        let stored = engine.read(|tables| tables.own.get(KEY))?;
        let below = match stored.map(|bytes| <[u8; 8]>::try_from(bytes.as_ref())) {
            None => 1,
            Some(Ok(bytes)) => u64::from_le_bytes(bytes),
            Some(Err(_)) => return Err(StoreError::Unavailable("the number of versions is damaged".into())),
        };
        let next = below.max(seen.0.saturating_add(1));
        let versions = Versions { next: next.into(), below: next.into(), reserving: Mutex::default() };
        versions.reserve(engine, next)?;
        Ok(versions)
    }

    pub(super) fn next(&self, engine: &Engine) -> Result<Version, StoreError> {
        let version = self.next.fetch_add(1, Ordering::Relaxed);
        self.reserve(engine, version)?;
        Ok(Version(version))
    }

    /// Reserves early, so that no commit has to wait for the disk.
    pub(super) fn reserve_ahead(&self, engine: &Engine) -> Result<(), StoreError> {
        self.reserve(engine, self.next.load(Ordering::Relaxed).saturating_add(RESERVED / 2))
    }

    /// Sees to it that this version may be given.
    fn reserve(&self, engine: &Engine, version: u64) -> Result<(), StoreError> {
        if version < self.below.load(Ordering::Acquire) {
            return Ok(());
        }
        let _one = self.reserving.lock().unwrap_or_else(PoisonError::into_inner);
        if version < self.below.load(Ordering::Acquire) {
            return Ok(());
        }
        let below = version.saturating_add(RESERVED);
        engine.write(|batch, tables| batch.insert(&tables.own, KEY, below.to_le_bytes()))?;
        engine.sync()?;
        self.below.store(below, Ordering::Release);
        Ok(())
    }
}
