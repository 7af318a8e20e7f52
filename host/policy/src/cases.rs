//! Recorded cases: one call of a policy, and what it must answer. The format is described in `CASES.md`.

mod compare;
mod filter;

pub(crate) use filter::play;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{
    Fault, Kind, Policy,
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

/// Run a case twice; both times the answer must be the same, and hold what is expected.
pub(crate) fn run(policy: &Policy, case: &Case) -> Result<(), String> {
    let answer = answer(policy, case)?;
    compare::holds(&answer, &case.expect)?;
    let again = self::answer(policy, case)?;
    if again != answer {
        return Err(format!("the same call answered differently the second time: {answer}, then {again}"));
    }
    Ok(())
}

/// The answer as JSON, with what can be derived from it; `{"error": …}` for a guest's own error.
fn answer(policy: &Policy, case: &Case) -> Result<Value, String> {
    let mut turn = case.turn.clone().unwrap_or_default();
    turn.now = case.now.unwrap_or(turn.now);
    let answered = match policy.manifest().kind {
        Kind::SlotExtractor => extract(policy, &turn, read(case)?),
        Kind::Router => route(policy, &turn, read(case)?),
        Kind::Compressor => compress(policy, &turn, read(case)?),
        Kind::OutputFilter => filter::answer(policy, read(case)?)?,
    };
    match answered {
        Ok(answer) => Ok(answer),
        Err(Fault::Refused { message }) => Ok(json!({ "error": message })),
        Err(fault) => Err(fault.to_string()),
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

fn extract(policy: &Policy, turn: &Turn, input: ExtractInput) -> Result<Value, Fault> {
    let mut recent = input.recent;
    recent.extend(input.text.map(|text| Message::new(Role::User, text)));
    let dialog = given_dialog(input.dialog, policy.description().dialog_schema);
    let transition = policy.extract(turn, &recent, &dialog)?.answer;
    let after = transition.apply(
        &dialog,
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

fn route(policy: &Policy, turn: &Turn, input: RouteInput) -> Result<Value, Fault> {
    let mut request = input.request;
    if let Some(text) = input.text {
        request.last_user_text = text;
    }
    let alone = || vec![Target { model: "default".into(), ..Target::default() }];
    let fleet = input.fleet.unwrap_or_else(alone);
    Ok(as_json(&policy.route(turn, &request, &fleet)?.answer))
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

fn compress(policy: &Policy, turn: &Turn, input: CompressInput) -> Result<Value, Fault> {
    let mut parts = input.parts;
    parts.extend(input.text.map(|text| Part {
        message: Message::new(Role::User, text),
        protected: Vec::new(),
        cached_bytes: 0,
    }));
    let edits = policy.compress(turn, &parts, &input.budget)?.answer;
    Ok(json!({ "texts": apply_edits(&parts, &edits), "edits": edits }))
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
