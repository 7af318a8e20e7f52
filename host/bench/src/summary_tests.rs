use super::*;
use crate::report::{Report, WorkloadReport};
use crate::turn::{Fault, Usage};

const LANE: &str = "about = 'Two streams'\nslo = { ttft_ms = 150, itl_ms = 60 }\n[[phase]]\n[[phase.lane]]\n\
    name = 'streams'\nstreams = 2\nrequests = 3\nprompt_tokens = 8\noutput_tokens = 5\n";

/// A served request: its start, its deliveries, and how many tokens it wrote.
fn turn(started: u64, deliveries: &[u64], tokens: u64) -> Turn {
    let deliveries: Vec<Duration> = deliveries.iter().copied().map(Duration::from_millis).collect();
    Turn {
        lane: 0,
        started: Duration::from_millis(started),
        ended: *deliveries.last().expect("a delivery"),
        deliveries,
        outcome: Ok(Usage { prompt_tokens: 20, completion_tokens: tokens, cached_tokens: 4 }),
    }
}

fn failed(started: u64, ended: u64) -> Turn {
    let fault = Fault::Status(429, "busy".into());
    let ended = Duration::from_millis(ended);
    let started = Duration::from_millis(started);
    Turn { lane: 0, started, deliveries: Vec::new(), ended, outcome: Err(fault) }
}

fn run_of(turns: Vec<Turn>) -> PhaseRun {
    let memory = vec![(Duration::from_millis(100), 3 << 20), (Duration::from_millis(1_500), 5 << 20)];
    PhaseRun { seconds: 2.0, turns, memory, waste: [("preemptions".to_owned(), 2.0)].into() }
}

fn phase_of(turns: Vec<Turn>) -> PhaseReport {
    let workload = Workload::parse("tiny", LANE).expect("good");
    phase(&workload, &workload.phases[0], &run_of(turns))
}

fn lane_of(turns: Vec<Turn>) -> LaneReport {
    phase_of(turns).lanes.remove(0)
}

fn example() -> Vec<Turn> {
    vec![turn(0, &[100, 150, 200, 250, 300], 5), turn(0, &[200, 250, 300, 350, 1_400], 10), failed(300, 400)]
}

/// A report of two served requests and a failed one.
pub(crate) fn report() -> Report {
    Report {
        url: "http://h:1".into(),
        model: "m".into(),
        endpoint: "/v1/completions",
        fixed_length: true,
        quick: false,
        seed: 7,
        tokens_per_word: 1.0,
        workloads: vec![WorkloadReport {
            name: "tiny".into(),
            about: "Two streams".into(),
            slo: Slo { ttft_ms: 150.0, itl_ms: 60.0 },
            phases: vec![phase_of(example())],
        }],
    }
}

#[test]
fn requests_are_counted_and_their_faults_named() {
    let lane = lane_of(example());
    assert_eq!((lane.requests, lane.served), (3, 2));
    assert_eq!(lane.errors, [("status 429".to_owned(), 1)].into());
    assert_eq!(lane.first_error.as_deref(), Some("status 429: busy"));
    assert_eq!((lane.prompt_tokens, lane.cached_tokens, lane.output_tokens), (40, 8, 15));
}

#[test]
fn rates_are_what_a_pencil_says() {
    let lane = lane_of(example());
    // 20 tokens in 100 and in 200 ms: 200 and 100 a second.
    assert_eq!(lane.prefill_tokens_per_s, Some(150.0));
    // 4 tokens in 200 ms; 8 tokens (two a delivery) in 1.2 s.
    let streams = lane.stream_tokens_per_s.expect("two streams");
    assert!((streams - f64::midpoint(20.0, 8.0 / 1.2)).abs() < 1e-9, "{streams}");
    // Both write from 200 to 300 ms: two deliveries of one token and two of two.
    let full = lane.decode_tokens_per_s.expect("both at once");
    assert!((full - 60.0).abs() < 1e-9, "{full}");
    // 15 tokens in 1.4 s.
    assert!((lane.output_tokens_per_s - 15.0 / 1.4).abs() < 1e-9);
}

#[test]
fn a_good_request_keeps_both_bounds() {
    let lane = lane_of(example());
    assert!((lane.good_share - 1.0 / 3.0).abs() < 1e-9, "only the first one is in time");
    assert!((lane.good_per_s - 1.0 / 1.4).abs() < 1e-9);
    let late = lane_of(vec![turn(0, &[151], 1)]);
    let slow = lane_of(vec![turn(0, &[100, 161], 2)]);
    let just = lane_of(vec![turn(0, &[150, 210], 2)]);
    assert_eq!([late, slow, just].map(|lane| lane.good_share), [0.0, 0.0, 1.0]);
}

#[test]
fn times_are_taken_from_deliveries() {
    let lane = lane_of(example());
    let (ttft, itl) = (lane.ttft_ms.expect("two"), lane.itl_ms.expect("eight"));
    assert_eq!((ttft.p50, ttft.p95), (100.0, 200.0));
    assert_eq!((itl.p50, itl.max), (50.0, 1_050.0));
    assert_eq!((itl.curve.len(), itl.curve[20]), (21, 1_050.0));
}

#[test]
fn all_first_needs_all_of_them_at_once() {
    assert_eq!(lane_of(vec![turn(10, &[100], 1), turn(5, &[250], 1)]).all_first_ms, Some(245.0));
    assert_eq!(lane_of(vec![turn(10, &[100], 1), failed(5, 20)]).all_first_ms, None);
    assert_eq!(lane_of(example()).all_first_ms, None, "three requests, two at a time");
}

#[test]
fn streams_that_never_write_together_have_no_rate_together() {
    let apart = lane_of(vec![turn(0, &[100, 200], 2), turn(0, &[200, 300], 2)]);
    assert_eq!(apart.decode_tokens_per_s, None);
}

#[test]
fn windows_show_what_fell_into_them() {
    let phase = phase_of(example());
    assert_eq!((phase.window_s, phase.series.len()), (1.0, 2));
    let [first, second] = &phase.series[..] else { panic!("two windows") };
    assert_eq!((first.from_s, second.from_s), (0.0, 1.0));
    // 5 deliveries of one token and 4 of two, then one of two.
    assert_eq!((first.output_tokens_per_s, second.output_tokens_per_s), (13.0, 2.0));
    assert!((first.in_progress - 1.4).abs() < 1e-9, "300 + 1,000 + 100 ms");
    assert_eq!((first.ended, first.failed, second.ended, second.failed), (2, 1, 1, 0));
    assert_eq!((first.ttft_p50_ms, second.ttft_p50_ms), (Some(100.0), None));
    assert_eq!((first.itl_p95_ms, second.itl_p95_ms), (Some(50.0), Some(1_050.0)));
    assert_eq!((first.resident_mib, second.resident_mib), (Some(3.0), Some(5.0)));
    assert_eq!(phase.resident_peak_mib, Some(5.0));
}

#[test]
fn nothing_at_all_is_reported_as_nothing() {
    let lane = lane_of(Vec::new());
    assert_eq!((lane.requests, lane.good_share, lane.output_tokens_per_s), (0, 0.0, 0.0));
    assert_eq!((lane.ttft_ms, lane.decode_tokens_per_s), (None, None));
}
