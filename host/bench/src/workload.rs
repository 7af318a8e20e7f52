//! Workloads: raw as the file has them, checked once, then small.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::arrivals::Open;
use crate::error::BenchError;

/// A load: phases one after the other, each of lanes that run side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The file's name without its ending.
    pub name: String,
    /// One sentence.
    pub about: String,
    pub(crate) slo: Slo,
    /// Length of a window of the time series; none divides each phase.
    pub(crate) window_s: Option<f64>,
    pub(crate) phases: Vec<Phase>,
}

/// What a request must keep to count as good.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slo {
    /// Time to first token, in milliseconds, at most.
    pub ttft_ms: f64,
    /// P95 of the request's own times between deliveries, in milliseconds, at most.
    pub itl_ms: f64,
}

/// Lanes that run side by side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Phase {
    pub(crate) name: String,
    pub(crate) lanes: Vec<Lane>,
}

/// Requests of one shape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lane {
    pub(crate) name: String,
    pub(crate) arrivals: Arrivals,
    extent: Extent,
    quick: Extent,
    pub(crate) prompt_tokens: Amount,
    /// Text before the prompt that all requests of the lane have in common.
    pub(crate) shared_tokens: u32,
    pub(crate) output_tokens: Amount,
    /// So many turns of a chat, each with all before it; none sends raw text.
    pub(crate) turns: Option<u32>,
    /// Goes on until all other lanes are done, and is cut off then.
    pub(crate) background: bool,
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Arrivals {
    /// So many at a time; the next one when one is done.
    Closed(usize),
    /// By the clock, whatever is done.
    Open(Open),
}

/// When a lane has sent its last request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Extent {
    Requests(usize),
    Seconds(f64),
}

/// A number of tokens, evenly distributed between two bounds, both of them included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) low: u32,
    pub(crate) high: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWorkload {
    about: String,
    #[serde(default = "default_slo")]
    slo: Slo,
    window_s: Option<f64>,
    phase: Vec<RawPhase>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPhase {
    name: Option<String>,
    lane: Vec<RawLane>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLane {
    name: Option<String>,
    streams: Option<usize>,
    per_second: Option<f64>,
    burst: Option<usize>,
    requests: Option<usize>,
    seconds: Option<f64>,
    quick: Option<RawExtent>,
    prompt_tokens: RawAmount,
    #[serde(default)]
    shared_tokens: u32,
    output_tokens: RawAmount,
    turns: Option<u32>,
    #[serde(default)]
    background: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExtent {
    requests: Option<usize>,
    seconds: Option<f64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum RawAmount {
    Exactly(u32),
    Between([u32; 2]),
}

fn default_slo() -> Slo {
    Slo { ttft_ms: 2_000.0, itl_ms: 200.0 }
}

impl Workload {
    /// Reads and checks a workload's file.
    ///
    /// # Errors
    /// When it cannot be read, is not TOML, or asks for what cannot be.
    pub fn read(path: &Path) -> Result<Workload, BenchError> {
        let text =
            fs::read_to_string(path).map_err(|cause| BenchError::Read { path: path.to_owned(), cause })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Workload::parse(&name, &text)
    }

    /// Checks a workload's text.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Workload, BenchError> {
        let raw: RawWorkload = toml::from_str(text)
            .map_err(|cause| BenchError::Parse { name: name.to_owned(), cause: Box::new(cause) })?;
        raw.check(name).map_err(|what| BenchError::Invalid { name: name.to_owned(), what })
    }
}

impl Lane {
    pub(crate) fn extent(&self, quick: bool) -> Extent {
        if quick { self.quick } else { self.extent }
    }
}

impl RawWorkload {
    fn check(self, name: &str) -> Result<Workload, String> {
        if self.phase.is_empty() {
            return Err("has no [[phase]]".into());
        }
        within("slo.ttft_ms", self.slo.ttft_ms, 0.0, 1e9)?;
        within("slo.itl_ms", self.slo.itl_ms, 0.0, 1e9)?;
        if let Some(window) = self.window_s {
            within("window_s", window, 0.0, 3_600.0)?;
        }
        let phases = self.phase.into_iter().enumerate().map(|(index, phase)| phase.check(index));
        Ok(Workload {
            name: name.to_owned(),
            about: self.about,
            slo: self.slo,
            window_s: self.window_s,
            phases: phases.collect::<Result<_, _>>()?,
        })
    }
}

impl RawPhase {
    fn check(self, index: usize) -> Result<Phase, String> {
        let name = self.name.unwrap_or_else(|| format!("phase {}", index + 1));
        if self.lane.iter().all(|lane| lane.background) {
            return Err(format!("phase {name:?} needs a lane that is not `background`, or it never ends"));
        }
        let lanes = self.lane.into_iter().enumerate().map(|(index, lane)| {
            let lane_name = lane.name.clone().unwrap_or_else(|| format!("lane {}", index + 1));
            let place = format!("phase {name:?}, lane {lane_name:?}: ");
            lane.check(lane_name).map_err(|what| place + &what)
        });
        Ok(Phase { lanes: lanes.collect::<Result<_, _>>()?, name })
    }
}

impl RawLane {
    fn check(self, name: String) -> Result<Lane, String> {
        let arrivals = self.arrivals()?;
        let extent = self.extent()?;
        let quick = match &self.quick {
            Some(quick) => extent_of("quick.", quick.requests, quick.seconds)?,
            None => a_quarter(extent, arrivals),
        };
        if let Some(turns) = self.turns {
            within("turns", f64::from(turns), 1.0, 1_000.0)?;
        }
        within("shared_tokens", f64::from(self.shared_tokens), 0.0, MOST_TOKENS)?;
        Ok(Lane {
            name,
            arrivals,
            extent,
            quick,
            prompt_tokens: self.prompt_tokens.check("prompt_tokens")?,
            shared_tokens: self.shared_tokens,
            output_tokens: self.output_tokens.check("output_tokens")?,
            turns: self.turns,
            background: self.background,
        })
    }

    fn arrivals(&self) -> Result<Arrivals, String> {
        match (self.streams, self.per_second) {
            (Some(_), None) if self.burst.is_some() => Err("`burst` goes with `per_second`".into()),
            (Some(streams), None) => {
                within("streams", streams as f64, 1.0, 4_096.0)?;
                Ok(Arrivals::Closed(streams))
            }
            (None, Some(per_second)) => {
                within("per_second", per_second, 1e-6, 1e5)?;
                let burst = self.burst.unwrap_or(1);
                within("burst", burst as f64, 1.0, 4_096.0)?;
                Ok(Arrivals::Open(Open { per_second, burst }))
            }
            _ => Err("needs either `streams` (so many at a time) or `per_second` (by the clock)".into()),
        }
    }

    /// A lane in the background needs none: it goes on for as long as there is another.
    fn extent(&self) -> Result<Extent, String> {
        if self.background && self.requests.is_none() && self.seconds.is_none() {
            return Ok(Extent::Seconds(MOST_SECONDS));
        }
        extent_of("", self.requests, self.seconds)
    }
}

impl RawAmount {
    fn check(self, field: &str) -> Result<Amount, String> {
        let (low, high) = match self {
            RawAmount::Exactly(amount) => (amount, amount),
            RawAmount::Between([low, high]) => (low, high),
        };
        within(field, f64::from(low), 1.0, MOST_TOKENS)?;
        within(field, f64::from(high), f64::from(low), MOST_TOKENS)?;
        Ok(Amount { low, high })
    }
}

/// No context is longer.
const MOST_TOKENS: f64 = 16e6;
const MOST_SECONDS: f64 = 7.0 * 86_400.0;

fn extent_of(prefix: &str, requests: Option<usize>, seconds: Option<f64>) -> Result<Extent, String> {
    match (requests, seconds) {
        (Some(requests), None) => {
            within(&format!("{prefix}requests"), requests as f64, 1.0, 1e6)?;
            Ok(Extent::Requests(requests))
        }
        (None, Some(seconds)) => {
            within(&format!("{prefix}seconds"), seconds, 1e-3, MOST_SECONDS)?;
            Ok(Extent::Seconds(seconds))
        }
        _ => Err(format!("needs either `{prefix}requests` or `{prefix}seconds`")),
    }
}

/// What `--quick` makes of an extent when the lane does not say.
fn a_quarter(extent: Extent, arrivals: Arrivals) -> Extent {
    match (extent, arrivals) {
        (Extent::Requests(requests), Arrivals::Closed(streams)) => {
            Extent::Requests((requests / 4).max(streams.min(requests)))
        }
        (Extent::Requests(requests), Arrivals::Open(_)) => Extent::Requests(requests.div_ceil(4)),
        (Extent::Seconds(seconds), _) => Extent::Seconds(seconds / 4.0),
    }
}

fn within(field: &str, value: f64, low: f64, high: f64) -> Result<(), String> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(format!("`{field}` is {value}; give {low} to {high}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: &str = "streams = 2\nrequests = 8\nprompt_tokens = 4\noutput_tokens = [2, 6]\n";

    fn parse(lane: &str) -> Result<Workload, BenchError> {
        Workload::parse("w", &format!("about = 'x'\n[[phase]]\n[[phase.lane]]\n{lane}"))
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let workload = parse(LANE).expect("good");
        let lane = &workload.phases[0].lanes[0];
        assert_eq!((workload.name.as_str(), workload.phases[0].name.as_str()), ("w", "phase 1"));
        assert_eq!(lane.arrivals, Arrivals::Closed(2));
        assert_eq!((lane.extent(false), lane.extent(true)), (Extent::Requests(8), Extent::Requests(2)));
        assert_eq!(lane.output_tokens, Amount { low: 2, high: 6 });
        assert_eq!((lane.shared_tokens, lane.turns, lane.background), (0, None, false));
    }

    #[test]
    fn what_cannot_be_is_named_with_its_place() {
        let cases = [
            ("requests = 8", "requests = 0", "lane \"lane 1\": `requests` is 0"),
            ("requests = 8", "", "either `requests` or `seconds`"),
            ("requests = 8", "seconds = nan", "`seconds` is NaN"),
            ("requests = 8", "requests = 8\nquick = { seconds = -1.0 }", "`quick.seconds` is -1"),
            ("streams = 2", "streams = 2\nper_second = 1.0", "either `streams`"),
            ("streams = 2", "streams = 2\nburst = 2", "`burst` goes with"),
            ("streams = 2", "per_second = 0.0", "`per_second` is 0"),
            ("[2, 6]", "[6, 2]", "`output_tokens` is 2; give 6 to"),
            ("prompt_tokens = 4", "prompt_tokens = 0", "`prompt_tokens` is 0"),
            ("requests = 8", "requests = 8\nbackground = true", "never ends"),
            ("requests = 8", "reqests = 8", "line 5"),
        ];
        for (from, to, expected) in cases {
            let error = parse(&LANE.replace(from, to)).expect_err(to).to_string();
            assert!(error.starts_with("workload w: ") && error.contains(expected), "{to}: {error}");
        }
    }
}
