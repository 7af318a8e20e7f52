//! What is counted of a policy's calls.

use std::{
    array,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use serde::Serialize;

use crate::{Fault, ImportStats, meter::Meter, policy::Called};

/// Upper bounds of the histogram's buckets, in microseconds; the last bucket takes the rest.
pub const BUCKET_MICROS: [u32; 16] =
    [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072];

/// Counts of a policy's calls since it came into force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Calls made.
    pub calls: u64,
    /// Time of all calls, in microseconds.
    pub micros: u64,
    /// Processor time of all calls, in microseconds.
    pub cpu_micros: u64,
    /// Faults, by label; labels without any are left out.
    pub faults: Vec<(&'static str, u64)>,
    /// Calls by how long they took: as many as took no longer than each of [`BUCKET_MICROS`], and longer than the one
    /// before; then those that took longer than all.
    pub latency: Vec<u64>,
    /// Edits made: by a compressor to prompts, by a filter to answers.
    pub edits: u64,
    /// Prompt tokens that a compressor's edits saved.
    pub saved_tokens: u64,
    /// Turns that it answered or refused, so that no model was asked.
    pub answered: u64,
    /// Bytes that a filter's verdicts held back, each time they did.
    pub held_bytes: u64,
    /// Of the imports it called.
    pub imports: Vec<ImportStats>,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    calls: AtomicU64,
    micros: AtomicU64,
    cpu_nanos: AtomicU64,
    faults: [AtomicU64; Fault::LABELS.len()],
    latency: [AtomicU64; BUCKET_MICROS.len() + 1],
    pub(crate) edits: AtomicU64,
    pub(crate) saved_tokens: AtomicU64,
    pub(crate) answered: AtomicU64,
    pub(crate) held_bytes: AtomicU64,
    pub(crate) imports: Arc<Meter>,
}

impl Counters {
    pub(crate) fn count<T>(&self, micros: u32, cpu: Duration, called: &Result<Called<T>, Fault>) {
        self.calls.fetch_add(1, Relaxed);
        self.micros.fetch_add(micros.into(), Relaxed);
        self.cpu_nanos.fetch_add(u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        self.latency[BUCKET_MICROS.partition_point(|bound| *bound < micros)].fetch_add(1, Relaxed);
        if let Err(fault) = called {
            self.faults[fault.index()].fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn read(&self) -> Stats {
        let faults = Fault::LABELS.iter().zip(&self.faults);
        Stats {
            calls: self.calls.load(Relaxed),
            micros: self.micros.load(Relaxed),
            cpu_micros: self.cpu_nanos.load(Relaxed) / 1000,
            faults: faults
                .map(|(label, count)| (*label, count.load(Relaxed)))
                .filter(|(_, count)| *count > 0)
                .collect(),
            latency: array::from_fn::<_, { BUCKET_MICROS.len() + 1 }, _>(|at| self.latency[at].load(Relaxed))
                .into(),
            edits: self.edits.load(Relaxed),
            saved_tokens: self.saved_tokens.load(Relaxed),
            answered: self.answered.load(Relaxed),
            held_bytes: self.held_bytes.load(Relaxed),
            imports: self.imports.read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_in_one_bucket() {
        let counters = Counters::default();
        for micros in [0, 4, 5, 131_072, 131_073, u32::MAX] {
            counters.count(micros, Duration::ZERO, &Ok(Called { answer: (), micros }));
        }
        let fault: Result<Called<()>, Fault> = Err(Fault::Tripped);
        counters.count(1, Duration::from_millis(2), &fault);
        let stats = counters.read();
        assert_eq!((stats.calls, stats.cpu_micros), (7, 2000));
        assert_eq!((stats.latency[0], stats.latency[1], stats.latency[15], stats.latency[16]), (3, 1, 1, 2));
        assert_eq!(stats.latency.iter().sum::<u64>(), 7);
        assert_eq!(stats.faults, [("tripped", 1)]);
    }
}
