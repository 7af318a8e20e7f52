//! Recorded cases: one call of a policy, and what it must answer. The format is described in `CASES.md`.

mod compare;
mod filter;

use std::{sync::Arc, time::Duration};

pub use compare::Difference;
pub(crate) use filter::{passed, through};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{
    Answered, Fault, Kind, NoServices, Policy,
    replay::Recorded,
    types::{
        Budget, Dialog, Instant, Message, Part, Role, RouteRequest, Slot, Stamp, Target, Turn, apply_edits,
    },
};

/// One call of a policy, and what it must answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Shown when it fails.
    pub name: String,
    /// The time of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Instant>,
    /// What else is known of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
    /// The other arguments, by kind.
    pub input: Value,
    /// What its imports answer; without this, the host's own do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imports: Option<Vec<Answered>>,
    /// A part of the answer, by kind.
    pub expect: Value,
}

impl Case {
    /// Read a file of cases: one, or an array.
    ///
    /// # Errors
    /// What is wrong, with line and column.
    pub fn parse_file(text: &str) -> Result<Vec<Case>, String> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum OneOrMany {
            Many(Vec<Value>),
            One(Value),
        }
        let read: OneOrMany = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let values = match read {
            OneOrMany::Many(values) => values,
            OneOrMany::One(value) => vec![value],
        };
        let case = |value: Value| {
            let name = value.get("name").cloned().unwrap_or_default();
            serde_json::from_value(value).map_err(|error| format!("case {name}: {error}"))
        };
        values.into_iter().map(case).collect()
    }
}

/// Why a case failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CaseFailure {
    /// The answer does not hold what is expected.
    #[error("{}", summary(differences))]
    Differs {
        /// What was answered.
        answer: Value,
        /// Each place where it differs; at least one.
        differences: Vec<Difference>,
    },
    /// The answer holds what is expected, and another one came the second time.
    #[error("the same call answered differently the second time: {}, then {}", answers[0], answers[1])]
    Unsteady {
        /// The first and the second.
        answers: Box<[Value; 2]>,
    },
    /// There is no answer to compare: the case cannot be read, the call faulted, or a stream came out differently when cut.
    #[error("{why}")]
    NoAnswer {
        /// Why.
        why: String,
    },
}

impl Policy {
    /// Run a case twice; both times the answer must be the same, and hold what is expected. Returns the answer as JSON.
    ///
    /// # Errors
    /// Why the case failed, with every difference.
    pub fn run_case(&self, case: &Case) -> Result<Value, CaseFailure> {
        let call = Call::read(self, case).map_err(no_answer)?;
        let (policy, imports) = self.for_case(case);
        let answer = call.answer(&policy).map_err(no_answer)?;
        if let Some(asked) = imports.and_then(|imports| imports.asked_anew()) {
            return Err(no_answer(format!(
                "it asks for {asked}, which `imports` of the case does not answer"
            )));
        }
        let differences = compare::differences(&answer, &case.expect);
        if !differences.is_empty() {
            return Err(CaseFailure::Differs { answer, differences });
        }
        let second = call.answer(&policy).map_err(no_answer)?;
        if second != answer {
            return Err(CaseFailure::Unsteady { answers: Box::new([answer, second]) });
        }
        Ok(answer)
    }

    /// Make the calls of a case once and tell how long each took, instance and checks included. A filter's text is played
    /// whole, so there is a call only where something is for the guest to see.
    ///
    /// # Errors
    /// When the case cannot be read, or a call faults otherwise than by the policy's own error.
    pub fn time_case(&self, case: &Case) -> Result<Vec<Duration>, CaseFailure> {
        let call = Call::read(self, case).map_err(no_answer)?;
        call.time(&self.for_case(case).0).map_err(|fault| no_answer(fault.to_string()))
    }

    /// Served with the answers that a case gives, where it gives some.
    fn for_case(&self, case: &Case) -> (Policy, Option<Arc<Recorded>>) {
        let Some(answers) = &case.imports else { return (self.clone(), None) };
        let imports = Arc::new(Recorded::new(answers, Arc::new(NoServices)));
        (self.with_services(imports.clone()), Some(imports))
    }
}

/// Run a case as [`Policy::run_case`] does.
pub(crate) fn run(policy: &Policy, case: &Case) -> Result<(), String> {
    policy.run_case(case).map(drop).map_err(|failure| failure.to_string())
}

fn no_answer(why: String) -> CaseFailure {
    CaseFailure::NoAnswer { why }
}

/// The first difference, and how many more there are.
fn summary(differences: &[Difference]) -> String {
    let first = differences.first().map(Difference::to_string).unwrap_or_default();
    match differences.len() {
        0 | 1 => first,
        all => format!("{first} (and {} more)", all - 1),
    }
}

/// The arguments of a case, ready to be given.
enum Call {
    Extract { turn: Turn, recent: Vec<Message>, dialog: Dialog },
    Route { turn: Turn, request: RouteRequest, fleet: Vec<Target> },
    Compress { turn: Turn, parts: Vec<Part>, budget: Budget },
    Filter(filter::Input),
}

impl Call {
    fn read(policy: &Policy, case: &Case) -> Result<Call, String> {
        let mut turn = case.turn.clone().unwrap_or_default();
        turn.now = case.now.unwrap_or(turn.now);
        Ok(match policy.manifest().kind {
            Kind::SlotExtractor => read::<ExtractInput>(case)?.call(turn, policy.description().dialog_schema),
            Kind::Router => read::<RouteInput>(case)?.call(turn),
            Kind::Compressor => read::<CompressInput>(case)?.call(turn),
            Kind::OutputFilter => Call::Filter(read(case)?),
        })
    }

    /// The answer as JSON, with what can be derived from it; `{"error": …}` for a guest's own error.
    fn answer(&self, policy: &Policy) -> Result<Value, String> {
        let answered = match self {
            Call::Extract { turn, recent, dialog } => extract(policy, turn, recent, dialog),
            Call::Route { turn, request, fleet } => {
                policy.route(turn, request, fleet).map(|called| as_json(&called.answer))
            }
            Call::Compress { turn, parts, budget } => policy
                .compress(turn, parts, budget)
                .map(|called| json!({ "texts": apply_edits(parts, &called.answer), "edits": called.answer })),
            Call::Filter(input) => filter::answer(policy, input)?,
        };
        match answered {
            Ok(answer) => Ok(answer),
            Err(Fault::Refused { message }) => Ok(json!({ "error": message })),
            Err(fault) => Err(fault.to_string()),
        }
    }

    fn time(&self, policy: &Policy) -> Result<Vec<Duration>, Fault> {
        match self {
            Call::Extract { turn, recent, dialog } => timed(|| policy.extract(turn, recent, dialog)),
            Call::Route { turn, request, fleet } => timed(|| policy.route(turn, request, fleet)),
            Call::Compress { turn, parts, budget } => timed(|| policy.compress(turn, parts, budget)),
            Call::Filter(input) => filter::time(policy, input),
        }
    }
}

/// How long one call took; a policy's own error is an answer like any other.
fn timed<T>(call: impl FnOnce() -> Result<T, Fault>) -> Result<Vec<Duration>, Fault> {
    let start = std::time::Instant::now();
    let answered = call();
    let took = start.elapsed();
    match answered {
        Ok(_) | Err(Fault::Refused { .. }) => Ok(vec![took]),
        Err(fault) => Err(fault),
    }
}

fn read<T: DeserializeOwned>(case: &Case) -> Result<T, String> {
    serde_json::from_value(case.input.clone()).map_err(|error| format!("input: {error}"))
}

fn as_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ExtractInput {
    text: Option<String>,
    #[serde(default)]
    recent: Vec<Message>,
    #[serde(default)]
    dialog: GivenDialog,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GivenDialog {
    state: String,
    slots: Vec<Slot>,
    schema: Option<u32>,
}

impl ExtractInput {
    fn call(self, turn: Turn, own_schema: u32) -> Call {
        let mut recent = self.recent;
        recent.extend(self.text.map(|text| Message::new(Role::User, text)));
        Call::Extract { turn, recent, dialog: given_dialog(self.dialog, own_schema) }
    }
}

fn extract(policy: &Policy, turn: &Turn, recent: &[Message], dialog: &Dialog) -> Result<Value, Fault> {
    let transition = policy.extract(turn, recent, dialog)?.answer;
    let after = transition.apply(
        dialog,
        Stamp {
            turn: dialog.turns + 1,
            policy: &policy.version().to_string(),
            schema: policy.description().dialog_schema,
        },
    );
    let slots: Map<String, Value> =
        after.slots.iter().map(|slot| (slot.name.clone(), as_json(&slot.value))).collect();
    let mut answer = as_json(&transition);
    answer["slots"] = Value::Object(slots);
    Ok(answer)
}

/// A dialog of the policy's own schema, unless the case says otherwise or gives none.
fn given_dialog(given: GivenDialog, own_schema: u32) -> Dialog {
    let is_new = given.state.is_empty() && given.slots.is_empty();
    let held = |slot: Slot| jackfield_dialog::Slot {
        name: slot.name,
        value: slot.value,
        source: None,
        confidence: slot.confidence,
        turn: 1,
        policy: String::new(),
    };
    Dialog {
        schema: given.schema.unwrap_or(if is_new { 0 } else { own_schema }),
        state: given.state,
        slots: given.slots.into_iter().map(held).collect(),
        turns: u32::from(!is_new),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteInput {
    text: Option<String>,
    #[serde(default)]
    request: RouteRequest,
    fleet: Option<Vec<Target>>,
}

impl RouteInput {
    fn call(self, turn: Turn) -> Call {
        let mut request = self.request;
        if let Some(text) = self.text {
            request.last_user_text = text;
        }
        let alone = || vec![Target { model: "default".into(), ..Target::default() }];
        Call::Route { turn, request, fleet: self.fleet.unwrap_or_else(alone) }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompressInput {
    text: Option<String>,
    #[serde(default)]
    parts: Vec<Part>,
    #[serde(default)]
    budget: Budget,
}

impl CompressInput {
    fn call(self, turn: Turn) -> Call {
        let mut parts = self.parts;
        parts.extend(self.text.map(|text| Part {
            message: Message::new(Role::User, text),
            protected: Vec::new(),
            cached_bytes: 0,
        }));
        Call::Compress { turn, parts, budget: self.budget }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_one_case_or_many() {
        let one = r#"{"name": "a", "input": {"text": "x"}, "expect": {"next": "model"}}"#;
        assert_eq!(Case::parse_file(one).map(|cases| cases.len()), Ok(1));
        let many = format!("[{one}, {one}]");
        assert_eq!(Case::parse_file(&many).map(|cases| cases.len()), Ok(2));
    }

    #[test]
    fn a_mistake_names_the_case_and_the_field() {
        let wrong = r#"[{"name": "late", "input": {}, "expects": {}}]"#;
        let error = Case::parse_file(wrong).expect_err("a wrong field");
        assert!(error.contains("late") && error.contains("expects"), "{error}");
    }

    #[test]
    fn a_turn_may_be_given_in_part() {
        let case = r#"{"name": "a", "now": "2026-03-31T23:59:59+08:00", "turn": {"tenant": "acme"}, "input": {}, "expect": {}}"#;
        let cases = Case::parse_file(case).expect("reads");
        let turn = cases[0].turn.as_ref().expect("given");
        assert_eq!((turn.tenant.as_str(), turn.id.as_str()), ("acme", "turn"));
        assert_eq!(cases[0].now.map(|now| now.utc_offset_minutes), Some(480));
    }
}
