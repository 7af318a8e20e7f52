//! What policies did to a turn: for the log, and for the client that asks.

use std::fmt::Write;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue};
use jackfield_policy::Kind;
use serde_json::{Value, json};

use super::filter::Tally;

/// The request header that asks for the trace, and the response header that carries it.
pub(crate) const TRACE_HEADER: &str = "x-jackfield-trace";
/// The response header that names the session, the number of the turn, whether the session had expired, and the turn that this
/// one goes back to.
pub(crate) const SESSION_HEADER: &str = "x-jackfield-session";
/// Bytes of trace that a response header may have; clients and proxies refuse much larger heads.
const MOST_HEADER_BYTES: usize = 6 << 10;

/// The decisions of one turn, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    pub(crate) generation: u64,
    /// The session of the turn, for the response header.
    pub(crate) session: Option<String>,
    steps: Vec<Step>,
    /// What the output filters have done so far, by `name@version`; they go on after the others.
    filters: Vec<(String, Arc<Tally>)>,
}

#[derive(Debug, Clone)]
struct Step {
    policy: String,
    kind: String,
    did: String,
    micros: u32,
}

impl Trace {
    /// Whether a request asks for it.
    pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
        headers.get(TRACE_HEADER).is_some_and(|value| value == "1")
    }

    /// Notes a call: `policy` is `name@version`.
    pub(crate) fn note(&mut self, policy: &str, kind: &str, did: impl Into<String>, micros: u32) {
        let step = Step { policy: policy.to_owned(), kind: kind.to_owned(), did: did.into(), micros };
        tracing::debug!(policy = step.policy, kind = step.kind, did = step.did, micros, "policy");
        self.steps.push(step);
    }

    /// Follows an output filter, `name@version`, by what it counts.
    pub(crate) fn watch(&mut self, policy: &str, tally: &Arc<Tally>) {
        self.filters.push((policy.to_owned(), Arc::clone(tally)));
    }

    fn entries(&self) -> usize {
        self.steps.len() + self.filters.len()
    }

    fn body(&self, entries: usize) -> Value {
        let entry = |policy: &str, kind: &str, did: &str, micros: u32| json!({"policy": policy, "kind": kind, "did": did, "us": micros});
        let steps = self.steps.iter().map(|step| entry(&step.policy, &step.kind, &step.did, step.micros));
        let filters = self
            .filters
            .iter()
            .map(|(policy, tally)| entry(policy, Kind::OutputFilter.world(), &tally.did(), tally.micros()));
        let shown: Vec<Value> = steps.chain(filters).take(entries).collect();
        json!({"generation": self.generation, "policies": shown})
    }

    /// As JSON in ASCII, whole: for a place without a limit.
    pub(crate) fn text(&self) -> String {
        ascii(&self.body(self.entries()).to_string())
    }

    /// As JSON in ASCII; entries at the end are left out when it would be too long.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let fits = |entries| {
            Some(ascii(&self.body(entries).to_string())).filter(|text| text.len() <= MOST_HEADER_BYTES)
        };
        let text = (0..=self.entries()).rev().find_map(fits)?;
        HeaderValue::from_str(&text).ok()
    }
}

/// The same JSON with everything beyond ASCII escaped.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_ascii_json_and_reads_back() {
        let mut trace = Trace { generation: 3, ..Trace::default() };
        trace.note("slots@1.0.0", "slot-extractor", "set 城市 to \"上海\" 😀\n", 12);
        let header = trace.header().unwrap();
        let text = header.to_str().unwrap();
        let body: Value = serde_json::from_str(text).unwrap();
        assert_eq!(body["generation"], 3);
        assert_eq!(body["policies"][0]["did"], "set 城市 to \"上海\" 😀\n");
    }

    #[test]
    fn a_long_trace_is_cut_at_a_step() {
        let mut trace = Trace::default();
        for _ in 0..100 {
            trace.note("p@1", "router", "x".repeat(200), 1);
        }
        let header = trace.header().unwrap();
        assert!(header.len() <= MOST_HEADER_BYTES);
        let body: Value = serde_json::from_str(header.to_str().unwrap()).unwrap();
        assert!((10..100).contains(&body["policies"].as_array().unwrap().len()));
    }
}
