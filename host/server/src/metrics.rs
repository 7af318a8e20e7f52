//! What `/metrics` shows. Every label has a bounded set of values: routes, statuses, names of policies in force.

mod versions;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub(crate) use versions::VersionReading;

type Labels<const N: usize> = [(&'static str, String); N];

/// Numbers that are read from elsewhere at the instant of the scrape.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readings {
    pub(crate) gauges: Vec<(&'static str, &'static str, f64)>,
    pub(crate) counters: Vec<(&'static str, &'static str, u64)>,
    pub(crate) versions: Vec<VersionReading>,
}

/// Counters and histograms of the HTTP side and of policies, with the engine's readings beside them.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Labels<2>, Counter>,
    request_seconds: Family<Labels<1>, Histogram, fn() -> Histogram>,
    ttft_seconds: Histogram,
    itl_seconds: Histogram,
    prompt_tokens: Counter,
    completion_tokens: Counter,
    cached_tokens: Counter,
    finishes: Family<Labels<1>, Counter>,
    cancelled: Counter,
    policy_calls: Family<Labels<1>, Counter>,
    policy_faults: Family<Labels<2>, Counter>,
    policy_seconds: Family<Labels<1>, Histogram, fn() -> Histogram>,
    answered_by_policy: Counter,
    verified: Family<Labels<1>, Counter>,
    verify_tokens: Counter,
    recalls: Family<Labels<1>, Counter>,
    no_vectors: NoVectors,
    swaps: Swaps,
}

/// Changes of policies that were asked for, counted by all who bring them about.
#[derive(Debug, Clone, Default)]
pub struct Swaps(Family<Labels<2>, Counter>);

/// Turns of which topics are told apart, and which have no vector for that.
#[derive(Debug, Clone, Default)]
pub(crate) struct NoVectors(Family<Labels<1>, Counter>);

impl NoVectors {
    pub(crate) fn register(&self, to: &mut Registry) {
        let help = "Turns that are told apart by their words, since they have no vector";
        to.register("session_turns_without_vector", help, self.0.clone());
    }

    /// Counts one: `foreign` to the model, `failed`, or `late`.
    pub(crate) fn count(&self, why: &'static str) {
        self.0.get_or_create(&[("why", why.to_owned())]).inc();
    }
}

impl Swaps {
    /// Counts one: what was to change (`put`, `reload`, …) and what came of it: `applied`, `unchanged` or `refused`.
    pub fn count(&self, change: &'static str, outcome: &'static str) {
        self.0.get_or_create(&[("change", change.to_owned()), ("outcome", outcome.to_owned())]).inc();
    }
}

impl Metrics {
    pub(crate) fn new(
        swaps: Swaps,
        no_vectors: NoVectors,
        read: impl Fn() -> Readings + Send + Sync + 'static,
    ) -> Self {
        let mut metrics = Metrics {
            registry: Registry::with_prefix("jackfield"),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(turn_times),
            ttft_seconds: turn_times(),
            itl_seconds: token_times(),
            prompt_tokens: Counter::default(),
            completion_tokens: Counter::default(),
            cached_tokens: Counter::default(),
            finishes: Family::default(),
            cancelled: Counter::default(),
            policy_calls: Family::default(),
            policy_faults: Family::default(),
            policy_seconds: Family::new_with_constructor(policy_times),
            answered_by_policy: Counter::default(),
            verified: Family::default(),
            verify_tokens: Counter::default(),
            recalls: Family::default(),
            no_vectors,
            swaps,
        };
        metrics.register();
        metrics.registry.register_collector(Box::new(Scrape { read: Arc::new(read) }));
        metrics
    }

    fn register(&mut self) {
        let to = &mut self.registry;
        to.register("http_requests", "Answers by route and status", self.requests.clone());
        to.register(
            "http_request_seconds",
            "Time to an answer's head, by route",
            self.request_seconds.clone(),
        );
        to.register("ttft_seconds", "Time from a request to its first text", self.ttft_seconds.clone());
        to.register(
            "itl_seconds",
            "Time between two deliveries of text of one answer",
            self.itl_seconds.clone(),
        );
        to.register("prompt_tokens", "Prompt tokens of finished turns", self.prompt_tokens.clone());
        to.register("completion_tokens", "Sampled tokens of finished turns", self.completion_tokens.clone());
        to.register("cached_tokens", "Prompt tokens found in the prefix cache", self.cached_tokens.clone());
        to.register("finished_answers", "Answers by how they ended", self.finishes.clone());
        to.register("cancelled_turns", "Turns whose client left", self.cancelled.clone());
        to.register("policy_calls", "Calls by policy", self.policy_calls.clone());
        to.register("policy_faults", "Faults by policy and kind", self.policy_faults.clone());
        to.register("policy_call_seconds", "Time in a policy's call", self.policy_seconds.clone());
        to.register(
            "policy_answers",
            "Turns answered or refused without the model",
            self.answered_by_policy.clone(),
        );
        to.register(
            "compression_verified",
            "Compressed prompts held against the original, by outcome",
            self.verified.clone(),
        );
        to.register(
            "compression_verify_tokens",
            "Tokens computed only to hold compressed prompts against the original",
            self.verify_tokens.clone(),
        );
        to.register("session_recalls", "Turns that were to go back, by outcome", self.recalls.clone());
        self.no_vectors.register(to);
        to.register("policy_swaps", "Changes asked for, by kind and outcome", self.swaps.0.clone());
    }

    /// The exposition text.
    pub(crate) fn render(&self) -> Result<String, fmt::Error> {
        let mut out = String::new();
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }

    pub(crate) fn answered(&self, route: &str, status: u16, took: Duration) {
        let route = || ("route", route.to_owned());
        self.requests.get_or_create(&[route(), ("status", status.to_string())]).inc();
        self.request_seconds.get_or_create(&[route()]).observe(took.as_secs_f64());
    }

    pub(crate) fn first_text(&self, after: Duration) {
        self.ttft_seconds.observe(after.as_secs_f64());
    }

    pub(crate) fn next_text(&self, after: Duration) {
        self.itl_seconds.observe(after.as_secs_f64());
    }

    pub(crate) fn finished(&self, reason: &'static str) {
        self.finishes.get_or_create(&[("reason", reason.to_owned())]).inc();
    }

    pub(crate) fn used(&self, prompt: usize, completion: usize, cached: usize) {
        self.prompt_tokens.inc_by(prompt as u64);
        self.completion_tokens.inc_by(completion as u64);
        self.cached_tokens.inc_by(cached as u64);
    }

    pub(crate) fn cancelled(&self) {
        self.cancelled.inc();
    }

    pub(crate) fn policy_called(&self, policy: &str, micros: u32) {
        let label = [("policy", policy.to_owned())];
        self.policy_calls.get_or_create(&label).inc();
        self.policy_seconds.get_or_create(&label).observe(f64::from(micros) / 1e6);
    }

    pub(crate) fn policy_faulted(&self, policy: &str, fault: &'static str) {
        let label = || ("policy", policy.to_owned());
        self.policy_calls.get_or_create(&[label()]).inc();
        self.policy_faults.get_or_create(&[label(), ("fault", fault.to_owned())]).inc();
    }

    /// A compressed prompt was held against the original.
    pub(crate) fn verified(&self, outcome: &'static str) {
        self.verified.get_or_create(&[("outcome", outcome.to_owned())]).inc();
    }

    /// So many tokens were computed for that, and for nothing else.
    pub(crate) fn read_to_verify(&self, tokens: usize) {
        self.verify_tokens.inc_by(tokens as u64);
    }

    /// A turn was to go back to an earlier topic.
    pub(crate) fn recalled(&self, outcome: &'static str) {
        self.recalls.get_or_create(&[("outcome", outcome.to_owned())]).inc();
    }

    pub(crate) fn policy_answered(&self) {
        self.answered_by_policy.inc();
    }

    pub(crate) fn swapped(&self, change: &'static str, outcome: &'static str) {
        self.swaps.count(change, outcome);
    }
}

/// 5 ms to 80 s.
fn turn_times() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.0, 15))
}

/// 1 ms to 4 s.
fn token_times() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 13))
}

/// 4 µs to 130 ms.
fn policy_times() -> Histogram {
    Histogram::new(exponential_buckets(0.000_004, 2.0, 16))
}

struct Scrape {
    read: Arc<dyn Fn() -> Readings + Send + Sync>,
}

impl fmt::Debug for Scrape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Scrape")
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let readings = (self.read)();
        for (name, help, value) in readings.gauges {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        for (name, help, value) in readings.counters {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        versions::encode(&readings.versions, &mut encoder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_its_prefix_and_counts() {
        let metrics = Metrics::new(Swaps::default(), NoVectors::default(), || Readings {
            gauges: vec![("running_sequences", "Sequences that hold blocks", 3.0)],
            counters: vec![("preemptions", "Sequences that lost their blocks", 2)],
            versions: Vec::new(),
        });
        metrics.answered("/v1/models", 200, Duration::from_millis(7));
        metrics.policy_faulted("p", "deadline");
        metrics.used(10, 5, 4);
        let text = metrics.render().unwrap();
        for line in [
            "jackfield_http_requests_total{route=\"/v1/models\",status=\"200\"} 1",
            "jackfield_policy_faults_total{policy=\"p\",fault=\"deadline\"} 1",
            "jackfield_policy_calls_total{policy=\"p\"} 1",
            "jackfield_prompt_tokens_total 10",
            "jackfield_running_sequences 3",
            "jackfield_preemptions_total 2",
        ] {
            assert!(text.lines().any(|have| have.starts_with(line)), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
