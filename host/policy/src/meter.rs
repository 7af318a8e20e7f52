//! What a policy's imports were asked, and how long that took.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use serde::Serialize;

use crate::Grant;

/// Counts of one import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ImportStats {
    /// Its name.
    pub import: &'static str,
    /// Calls that were served.
    pub calls: u64,
    /// Time in them, in microseconds.
    pub micros: u64,
    /// Those that were answered with an error: no model, too busy, a text too long.
    pub errors: u64,
}

/// Counts of all imports.
#[derive(Debug, Default)]
pub(crate) struct Meter([Counts; Grant::ALL.len()]);

#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU64,
    nanos: AtomicU64,
    errors: AtomicU64,
}

impl Meter {
    pub(crate) fn count(&self, grant: Grant, time: Duration, failed: bool) {
        let counts = &self.0[grant as usize];
        counts.calls.fetch_add(1, Relaxed);
        counts.nanos.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        counts.errors.fetch_add(failed.into(), Relaxed);
    }

    /// Of the imports that were called.
    pub(crate) fn read(&self) -> Vec<ImportStats> {
        let imports = Grant::ALL.iter().map(|&grant| (grant, &self.0[grant as usize]));
        let read = imports.map(|(grant, counts)| ImportStats {
            import: grant.name(),
            calls: counts.calls.load(Relaxed),
            micros: counts.nanos.load(Relaxed) / 1000,
            errors: counts.errors.load(Relaxed),
        });
        read.filter(|stats| stats.calls > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_import_is_counted_apart() {
        let meter = Meter::default();
        for grant in Grant::ALL {
            meter.count(grant, Duration::from_nanos(1500), false);
        }
        meter.count(Grant::Saliency, Duration::from_nanos(1500), true);
        let read = meter.read();
        assert_eq!(read.iter().map(|stats| stats.import).collect::<Vec<_>>(), Grant::ALL.map(Grant::name));
        let counts = |stats: &ImportStats| (stats.calls, stats.micros, stats.errors);
        assert_eq!((counts(&read[3]), counts(&read[4])), ((2, 3, 1), (1, 1, 0)));
    }
}
