//! What is reported: plain data, as the JSON has it. Rates are per second, times in milliseconds unless the name says
//! otherwise.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::workload::Slo;

/// One run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The address that was given.
    pub url: String,
    /// The model that was asked for.
    pub model: String,
    /// Where raw text was sent.
    pub endpoint: &'static str,
    /// Whether the server took `ignore_eos`; otherwise answers may have ended early.
    pub fixed_length: bool,
    /// A short run: to see that it works.
    pub quick: bool,
    /// Gives the same prompts and arrivals again.
    pub seed: u64,
    /// Of the model's vocabulary, as measured before the load.
    pub tokens_per_word: f64,
    /// In the order in which they ran.
    pub workloads: Vec<WorkloadReport>,
}

impl Report {
    /// Whether any request was answered.
    pub fn any_served(&self) -> bool {
        let phases = self.workloads.iter().flat_map(|workload| &workload.phases);
        phases.flat_map(|phase| &phase.lanes).any(|lane| lane.served > 0)
    }
}

/// One workload.
#[derive(Debug, Clone, Serialize)]
pub struct WorkloadReport {
    /// Its name.
    pub name: String,
    /// What it is.
    pub about: String,
    /// What a request must keep to count as good.
    pub slo: Slo,
    /// One after the other.
    pub phases: Vec<PhaseReport>,
}

/// One phase.
#[derive(Debug, Clone, Serialize)]
pub struct PhaseReport {
    /// Its name.
    pub name: String,
    /// Until the last request in the foreground was done.
    pub seconds: f64,
    /// Side by side.
    pub lanes: Vec<LaneReport>,
    /// The most resident memory that was seen, in MiB; none without a process to watch.
    pub resident_peak_mib: Option<f64>,
    /// What the server's `/metrics` says that the phase cost beside its work; empty when it does not say.
    pub waste: BTreeMap<String, f64>,
    /// Length of a window of the series.
    pub window_s: f64,
    /// All lanes together, over time.
    pub series: Vec<Window>,
}

/// One lane.
#[derive(Debug, Clone, Serialize)]
pub struct LaneReport {
    /// Its name.
    pub name: String,
    /// Requests that ended within the phase.
    pub requests: usize,
    /// Those that were answered whole.
    pub served: usize,
    /// How many were not, by kind.
    pub errors: BTreeMap<String, usize>,
    /// The first of them, in full.
    pub first_error: Option<String>,
    /// Of all served requests together.
    pub prompt_tokens: u64,
    /// Of those, the tokens that the server took from a cache.
    pub cached_tokens: u64,
    /// Of all served requests together.
    pub output_tokens: u64,
    /// Prompt tokens over time to first token, the median of the requests.
    pub prefill_tokens_per_s: Option<f64>,
    /// All streams together, while as many of them write as the lane has. None for an open loop, or when it never came
    /// to that.
    pub decode_tokens_per_s: Option<f64>,
    /// Of one stream after its first token, the median.
    pub stream_tokens_per_s: Option<f64>,
    /// All output tokens over the lane's whole time.
    pub output_tokens_per_s: f64,
    /// Time to first token.
    pub ttft_ms: Option<Quantiles>,
    /// Time between deliveries of one answer, over all answers.
    pub itl_ms: Option<Quantiles>,
    /// Time to the end of the answer.
    pub end_to_end_ms: Option<Quantiles>,
    /// When all requests were sent at once: until the last of them had its first token.
    pub all_first_ms: Option<f64>,
    /// The share of requests that kept the SLO; failed ones did not.
    pub good_share: f64,
    /// Those, over the lane's time.
    pub good_per_s: f64,
}

/// A distribution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quantiles {
    /// Half are at most this.
    pub p50: f64,
    /// 95 in 100 are at most this.
    pub p95: f64,
    /// 99 in 100 are at most this.
    pub p99: f64,
    /// The largest.
    pub max: f64,
    /// The 0th, 5th, 10th … 100th percentile.
    pub curve: Vec<f64>,
}

/// What happened in one window of a phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Window {
    /// Its beginning, in seconds from the phase's.
    pub from_s: f64,
    /// Output tokens that arrived in it.
    pub output_tokens_per_s: f64,
    /// Requests in progress, on average.
    pub in_progress: f64,
    /// Of requests whose first token arrived in it.
    pub ttft_p50_ms: Option<f64>,
    /// Likewise.
    pub ttft_p95_ms: Option<f64>,
    /// Of deliveries that arrived in it.
    pub itl_p95_ms: Option<f64>,
    /// Requests that ended in it, well or not.
    pub ended: usize,
    /// Those that failed.
    pub failed: usize,
    /// The most that was seen in it.
    pub resident_mib: Option<f64>,
}
