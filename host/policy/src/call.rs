//! A call of a policy as plain data: to be recorded, made again, and its outcomes compared.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Fault, Kind, Policy,
    cases::{passed, through},
    policy::Called,
    types::{
        Budget, Decision, Dialog, Edit, Message, Part, RouteRequest, Target, Transition, Turn, apply_edits,
    },
};

/// What a policy is asked, beside the turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Call {
    /// The arguments of `extract`.
    SlotExtractor {
        /// The last messages; the utterance is the last of them.
        recent: Vec<Message>,
        /// What the dialog holds.
        dialog: Dialog,
    },
    /// The arguments of `route`.
    Router {
        /// The request as it stands.
        request: RouteRequest,
        /// Where it could run.
        fleet: Vec<Target>,
    },
    /// The arguments of `compress`.
    Compressor {
        /// The messages.
        parts: Vec<Part>,
        /// What is to be left of them.
        budget: Budget,
    },
    /// An answer from its beginning to its end. How it was cut into tokens makes no difference to a filter, and is left out.
    OutputFilter {
        /// What went in.
        text: String,
    },
}

/// What a call came to, so that two of them can be compared: an answer as JSON, or the label of a fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The answer. Of a compressor, the texts that are left; of a filter, what was sent, and the reason of a stop.
    Answer(Value),
    /// A fault, by its label.
    Fault(String),
}

impl Call {
    /// Which kind of policy it asks.
    pub fn kind(&self) -> Kind {
        match self {
            Call::SlotExtractor { .. } => Kind::SlotExtractor,
            Call::Router { .. } => Kind::Router,
            Call::Compressor { .. } => Kind::Compressor,
            Call::OutputFilter { .. } => Kind::OutputFilter,
        }
    }

    /// Makes it.
    pub fn make(&self, policy: &Policy, turn: &Turn) -> Outcome {
        match self {
            Call::SlotExtractor { recent, dialog } => {
                Outcome::of_transition(&policy.extract(turn, recent, dialog))
            }
            Call::Router { request, fleet } => Outcome::of_decision(&policy.route(turn, request, fleet)),
            Call::Compressor { parts, budget } => {
                Outcome::of_edits(&policy.compress(turn, parts, budget), parts)
            }
            Call::OutputFilter { text } => match through(policy, text) {
                Ok(played) => Outcome::Answer(played.json()),
                Err(fault) => Outcome::Fault(fault.label().into()),
            },
        }
    }
}

impl Outcome {
    /// Whether the deadline passed.
    pub(crate) fn is_late(&self) -> bool {
        matches!(self, Outcome::Fault(label) if label == Fault::Deadline { limit_ms: 0 }.label())
    }

    pub(crate) fn of_transition(called: &Result<Called<Transition>, Fault>) -> Outcome {
        Outcome::of(called, |transition| json!(transition))
    }

    pub(crate) fn of_decision(called: &Result<Called<Decision>, Fault>) -> Outcome {
        Outcome::of(called, |decision| json!(decision))
    }

    /// Edits that come to the same texts are the same.
    pub(crate) fn of_edits(called: &Result<Called<Vec<Edit>>, Fault>, parts: &[Part]) -> Outcome {
        Outcome::of(called, |edits| json!(apply_edits(parts, edits)))
    }

    /// Of a whole answer that went through a filter.
    pub fn of_stream(sent: &str, stop: Option<&str>) -> Outcome {
        Outcome::Answer(passed(sent, stop))
    }

    fn of<T>(called: &Result<Called<T>, Fault>, show: impl FnOnce(&T) -> Value) -> Outcome {
        match called {
            Ok(called) => Outcome::Answer(show(&called.answer)),
            Err(fault) => Outcome::Fault(fault.label().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_reads_back_as_it_was_written() {
        let calls = [
            Call::SlotExtractor {
                recent: vec![Message::new(crate::Role::User, "去上海 👩‍👩‍👧")],
                dialog: Dialog::default(),
            },
            Call::Router { request: RouteRequest::default(), fleet: vec![Target::default()] },
            Call::Compressor { parts: Vec::new(), budget: Budget::default() },
            Call::OutputFilter { text: "a\r\nb".into() },
        ];
        for call in calls {
            let text = serde_json::to_string(&call).expect("plain data");
            assert!(text.starts_with(&format!("{{\"kind\":\"{}\"", call.kind())), "{text}");
            assert_eq!(serde_json::from_str::<Call>(&text).expect("its own"), call);
        }
    }
}
