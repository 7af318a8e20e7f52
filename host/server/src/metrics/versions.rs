//! What `/metrics` shows of each version in force or on its way. A version that is neither any more is not shown: so labels
//! stay few, however often policies are swapped.

use std::collections::HashMap;
use std::fmt;

use jackfield_policy::{BUCKET_MICROS, BreakerState, ImportStats, PolicyStatus, PolicyVersion, Stage, Stats};
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;

/// Characters of a digest that tell versions apart.
const DIGEST: usize = 8;

/// A version, and what was counted of it.
#[derive(Debug, Clone)]
pub(crate) struct VersionReading {
    labels: Labels,
    stats: Stats,
    open: bool,
}

type Labels = [(&'static str, String); 4];
type NoExemplars = HashMap<usize, Exemplar<[(&'static str, &'static str); 0], f64>>;

impl VersionReading {
    /// The active version of a policy, and its candidate.
    pub(crate) fn of(status: &PolicyStatus) -> impl Iterator<Item = VersionReading> + use<> {
        let reading = |version: &PolicyVersion, stage: Stage, stats: &Stats, breaker| VersionReading {
            labels: labels(version, stage),
            stats: stats.clone(),
            open: breaker != BreakerState::Closed,
        };
        let active = reading(&status.version, Stage::Active, &status.stats, status.breaker.state);
        let candidate = status.candidate.as_ref().map(|candidate| {
            reading(&candidate.version, candidate.stage, &candidate.stats, candidate.breaker.state)
        });
        [active].into_iter().chain(candidate)
    }

    /// Its labels and one more.
    fn with(&self, name: &'static str, value: &str) -> [(&'static str, String); 5] {
        let [policy, version, digest, stage] = self.labels.clone();
        [policy, version, digest, stage, (name, value.to_owned())]
    }
}

fn labels(version: &PolicyVersion, stage: Stage) -> Labels {
    let short = |digest: &str| digest.chars().take(DIGEST).collect::<String>();
    let stage = match stage {
        Stage::Active => "active",
        Stage::Canary => "canary",
        Stage::Shadow => "shadow",
    };
    [
        ("policy", version.name.clone()),
        ("version", version.version.clone()),
        ("digest", format!("{}-{}", short(&version.digest), short(&version.config_digest))),
        ("stage", stage.into()),
    ]
}

/// A counter: its name, its help, and where it is found.
type Counted = (&'static str, &'static str, fn(&Stats) -> f64);

const COUNTED: [Counted; 6] = [
    ("policy_version_calls", "Calls by version", |stats| stats.calls as f64),
    ("policy_version_cpu_seconds", "Processor time in calls, by version", |stats| {
        stats.cpu_micros as f64 / 1e6
    }),
    ("policy_version_edits", "Edits of prompts and answers, by version", |stats| stats.edits as f64),
    ("policy_version_saved_tokens", "Prompt tokens that edits saved, by version", |stats| {
        stats.saved_tokens as f64
    }),
    ("policy_version_answers", "Turns answered or refused without the model, by version", |stats| {
        stats.answered as f64
    }),
    ("policy_version_held_bytes", "Bytes that verdicts held back, by version", |stats| {
        stats.held_bytes as f64
    }),
];

/// Writes the series of these versions.
pub(crate) fn encode(readings: &[VersionReading], encoder: &mut DescriptorEncoder) -> fmt::Result {
    for (name, help, value) in COUNTED {
        let mut series = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for reading in readings {
            let mut one = series.encode_family(&reading.labels)?;
            one.encode_counter::<[(&str, &str); 0], _, f64>(&value(&reading.stats), None)?;
        }
    }
    encode_faults(readings, encoder)?;
    encode_imports(readings, encoder)?;
    let help = "1 while its breaker keeps calls from a version";
    let mut series = encoder.encode_descriptor("policy_version_open", help, None, MetricType::Gauge)?;
    for reading in readings {
        series.encode_family(&reading.labels)?.encode_gauge(&i64::from(reading.open))?;
    }
    let help = "Time in calls, by version";
    let mut series =
        encoder.encode_descriptor("policy_version_seconds", help, None, MetricType::Histogram)?;
    for reading in readings {
        let bounds = BUCKET_MICROS.iter().map(|micros| f64::from(*micros) / 1e6).chain([f64::MAX]);
        let buckets: Vec<(f64, u64)> = bounds.zip(reading.stats.latency.iter().copied()).collect();
        let (sum, count) = (reading.stats.micros as f64 / 1e6, reading.stats.latency.iter().sum());
        let mut one = series.encode_family(&reading.labels)?;
        one.encode_histogram(sum, count, &buckets, None::<&NoExemplars>)?;
    }
    Ok(())
}

/// A counter of an import: its name, its help, and where it is found.
type CountedImport = (&'static str, &'static str, fn(&ImportStats) -> f64);

const IMPORTS: [CountedImport; 3] = [
    ("policy_version_import_calls", "Calls of imports by version", |stats| stats.calls as f64),
    ("policy_version_import_seconds", "Time in imports, by version", |stats| stats.micros as f64 / 1e6),
    (
        "policy_version_import_errors",
        "Calls of imports that were answered with an error, by version",
        |stats| stats.errors as f64,
    ),
];

fn encode_imports(readings: &[VersionReading], encoder: &mut DescriptorEncoder) -> fmt::Result {
    for (name, help, value) in IMPORTS {
        let mut series = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for reading in readings {
            for stats in &reading.stats.imports {
                let labels = reading.with("import", stats.import);
                series
                    .encode_family(&labels)?
                    .encode_counter::<[(&str, &str); 0], _, f64>(&value(stats), None)?;
            }
        }
    }
    Ok(())
}

fn encode_faults(readings: &[VersionReading], encoder: &mut DescriptorEncoder) -> fmt::Result {
    let help = "Faults by version and kind";
    let mut series = encoder.encode_descriptor("policy_version_faults", help, None, MetricType::Counter)?;
    for reading in readings {
        for (fault, count) in &reading.stats.faults {
            let labels = reading.with("fault", fault);
            series.encode_family(&labels)?.encode_counter::<[(&str, &str); 0], _, f64>(count, None)?;
        }
    }
    Ok(())
}
