//! From requests as they went to what is reported.

use std::time::Duration;

use crate::load::PhaseRun;
use crate::memory;
use crate::numbers::{median, percentile, sorted};
use crate::report::{LaneReport, PhaseReport, Quantiles, Window};
use crate::turn::Turn;
use crate::workload::{Arrivals, Lane, Phase, Slo, Workload};

/// Windows of a phase when the workload does not say how long one is.
const WINDOWS: f64 = 24.0;

/// Reports one phase.
pub(crate) fn phase(workload: &Workload, phase: &Phase, run: &PhaseRun) -> PhaseReport {
    let of_lane = |index| run.turns.iter().filter(|turn| turn.lane == index).cloned().collect::<Vec<_>>();
    let lanes = phase.lanes.iter().enumerate();
    let window_s = workload.window_s.unwrap_or((run.seconds / WINDOWS).max(1.0));
    PhaseReport {
        name: phase.name.clone(),
        seconds: run.seconds,
        lanes: lanes.map(|(index, lane_of)| lane(lane_of, &of_lane(index), workload.slo)).collect(),
        resident_peak_mib: most_mib(run.memory.iter()),
        waste: run.waste.clone(),
        window_s,
        series: series(&run.turns, &run.memory, run.seconds, window_s),
    }
}

fn lane(lane: &Lane, turns: &[Turn], slo: Slo) -> LaneReport {
    let served: Vec<&Turn> = turns.iter().filter(|turn| turn.served().is_some()).collect();
    let total = |count: fn(&Turn) -> u64| served.iter().map(|turn| count(turn)).sum::<u64>();
    let output_tokens = total(|turn| turn.served().map_or(0, |(usage, _)| usage.completion_tokens));
    let good = served.iter().filter(|turn| is_good(turn, slo)).count();
    let faults = || turns.iter().filter_map(|turn| turn.outcome.as_ref().err());
    let mut errors = std::collections::BTreeMap::new();
    faults().for_each(|fault| *errors.entry(fault.kind()).or_default() += 1);
    let seconds = span(turns);
    LaneReport {
        name: lane.name.clone(),
        requests: turns.len(),
        served: served.len(),
        errors,
        first_error: faults().next().map(ToString::to_string),
        prompt_tokens: total(|turn| turn.served().map_or(0, |(usage, _)| usage.prompt_tokens)),
        cached_tokens: total(|turn| turn.served().map_or(0, |(usage, _)| usage.cached_tokens)),
        output_tokens,
        prefill_tokens_per_s: median(served.iter().filter_map(|turn| prefill_rate(turn))),
        decode_tokens_per_s: decode_rate(lane, &served),
        stream_tokens_per_s: median(served.iter().filter_map(|turn| stream_rate(turn))),
        output_tokens_per_s: rate(output_tokens as f64, seconds),
        ttft_ms: quantiles(served.iter().filter_map(|turn| turn.ttft())),
        itl_ms: quantiles(served.iter().flat_map(|turn| turn.gaps())),
        end_to_end_ms: quantiles(served.iter().map(|turn| turn.ended.saturating_sub(turn.started))),
        all_first_ms: all_first(lane, turns),
        good_share: rate(good as f64, turns.len() as f64),
        good_per_s: rate(good as f64, seconds),
    }
}

/// Whether a served request kept its bounds: the first token's time, and the P95 of its own gaps.
fn is_good(turn: &Turn, slo: Slo) -> bool {
    let gaps = sorted(turn.gaps().map(millis));
    turn.ttft().is_some_and(|ttft| millis(ttft) <= slo.ttft_ms)
        && percentile(&gaps, 95.0).is_none_or(|gap| gap <= slo.itl_ms)
}

fn prefill_rate(turn: &Turn) -> Option<f64> {
    let tokens = turn.served()?.0.prompt_tokens as f64;
    Some(rate(tokens, turn.ttft()?.as_secs_f64())).filter(|rate| *rate > 0.0)
}

/// Tokens after the first delivery over the time they took.
fn stream_rate(turn: &Turn) -> Option<f64> {
    let [first, .., last] = turn.deliveries[..] else { return None };
    let tokens = turn.tokens_per_delivery() * (turn.deliveries.len() - 1) as f64;
    Some(rate(tokens, (last - first).as_secs_f64())).filter(|rate| *rate > 0.0)
}

/// Tokens a second of all streams, while as many are between their first and last token as the lane has streams: no
/// prompt of the lane is read then, and no stream is missing.
fn decode_rate(lane: &Lane, served: &[&Turn]) -> Option<f64> {
    let Arrivals::Closed(streams) = lane.arrivals else { return None };
    let full = streams.min(served.len());
    let spans = full_spans(served, full);
    let inside = |at: Duration| spans.iter().any(|(from, to)| *from < at && at <= *to);
    let tokens: f64 = served
        .iter()
        .map(|turn| {
            turn.deliveries.iter().filter(|at| inside(**at)).count() as f64 * turn.tokens_per_delivery()
        })
        .sum();
    let seconds: f64 = spans.iter().map(|(from, to)| (*to - *from).as_secs_f64()).sum();
    Some(rate(tokens, seconds)).filter(|rate| *rate > 0.0)
}

/// The times during which at least `full` requests were between their first and their last delivery.
fn full_spans(turns: &[&Turn], full: usize) -> Vec<(Duration, Duration)> {
    let mut changes: Vec<(Duration, isize)> = turns
        .iter()
        .filter_map(|turn| match turn.deliveries[..] {
            [first, .., last] => Some([(first, 1), (last, -1)]),
            _ => None,
        })
        .flatten()
        .collect();
    // At the same instant, what ends comes first.
    changes.sort();
    let (mut running, mut begun, mut spans) = (0isize, None, Vec::new());
    for (at, change) in changes {
        running += change;
        match begun {
            None if running >= full as isize => begun = Some(at),
            Some(from) if running < full as isize => {
                spans.push((from, at));
                begun = None;
            }
            _ => {}
        }
    }
    spans
}

/// Only where all requests were sent at once and all were served.
fn all_first(lane: &Lane, turns: &[Turn]) -> Option<f64> {
    let Arrivals::Closed(streams) = lane.arrivals else { return None };
    if turns.len() > streams || lane.turns.is_some() {
        return None;
    }
    let firsts: Option<Vec<Duration>> =
        turns.iter().map(|turn| turn.served().map(|(_, first)| first)).collect();
    let begun = turns.iter().map(|turn| turn.started).min()?;
    Some(millis(firsts?.into_iter().max()?.saturating_sub(begun)))
}

fn quantiles(durations: impl Iterator<Item = Duration>) -> Option<Quantiles> {
    let values = sorted(durations.map(millis));
    let at = |percent| percentile(&values, percent);
    Some(Quantiles {
        p50: at(50.0)?,
        p95: at(95.0)?,
        p99: at(99.0)?,
        max: at(100.0)?,
        curve: (0..=20).filter_map(|step| at(f64::from(step) * 5.0)).collect(),
    })
}

/// The phase in windows. The last one is as short as the phase leaves it.
fn series(turns: &[Turn], memory: &[memory::Sample], seconds: f64, window_s: f64) -> Vec<Window> {
    let count = (seconds / window_s).ceil().max(1.0) as usize;
    (0..count)
        .map(|index| {
            let from_s = index as f64 * window_s;
            window(turns, memory, from_s, (from_s + window_s).min(seconds))
        })
        .collect()
}

fn window(turns: &[Turn], memory: &[memory::Sample], from_s: f64, to_s: f64) -> Window {
    let inside = |at: Duration| (from_s..to_s).contains(&at.as_secs_f64());
    let tokens: f64 = turns
        .iter()
        .map(|turn| {
            turn.deliveries.iter().filter(|at| inside(**at)).count() as f64 * turn.tokens_per_delivery()
        })
        .sum();
    let overlap =
        |turn: &Turn| (turn.ended.as_secs_f64().min(to_s) - turn.started.as_secs_f64().max(from_s)).max(0.0);
    let first_inside = |turn: &&Turn| turn.deliveries.first().is_some_and(|at| inside(*at));
    let ttfts = sorted(turns.iter().filter(first_inside).filter_map(Turn::ttft).map(millis));
    let gaps = turns.iter().flat_map(|turn| turn.deliveries.windows(2)).filter(|pair| inside(pair[1]));
    let gaps = sorted(gaps.map(|pair| millis(pair[1] - pair[0])));
    let ended = || turns.iter().filter(|turn| inside(turn.ended));
    Window {
        from_s,
        output_tokens_per_s: rate(tokens, to_s - from_s),
        in_progress: rate(turns.iter().map(overlap).sum(), to_s - from_s),
        ttft_p50_ms: percentile(&ttfts, 50.0),
        ttft_p95_ms: percentile(&ttfts, 95.0),
        itl_p95_ms: percentile(&gaps, 95.0),
        ended: ended().count(),
        failed: ended().filter(|turn| turn.outcome.is_err()).count(),
        resident_mib: most_mib(memory.iter().filter(|(at, _)| inside(*at))),
    }
}

fn most_mib<'a>(samples: impl Iterator<Item = &'a memory::Sample>) -> Option<f64> {
    samples.map(|(_, bytes)| *bytes as f64 / f64::from(1 << 20)).reduce(f64::max)
}

/// From the first request's start to the last one's end.
fn span(turns: &[Turn]) -> f64 {
    let begun = turns.iter().map(|turn| turn.started).min().unwrap_or_default();
    let ended = turns.iter().map(|turn| turn.ended).max().unwrap_or_default();
    ended.saturating_sub(begun).as_secs_f64()
}

fn rate(amount: f64, over: f64) -> f64 {
    if over > 0.0 { amount / over } else { 0.0 }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
#[path = "summary_tests.rs"]
pub(crate) mod tests;
