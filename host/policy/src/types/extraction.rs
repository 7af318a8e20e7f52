//! What a slot extractor answers.

use serde::{Deserialize, Serialize};

use super::{Dialog, Field, Message, Span, Value};

/// A slot as a policy sees and sets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Slot {
    /// Unique in its dialog.
    pub name: String,
    /// What it holds.
    pub value: Value,
    /// Where in the utterance it was found.
    #[serde(default)]
    pub source: Option<Span>,
    /// 0 to 1.
    #[serde(default = "certain")]
    pub confidence: f32,
}

fn certain() -> f32 {
    1.0
}

impl From<&jackfield_dialog::Slot> for Slot {
    /// As the next turn sees it: its source was in another utterance, and is left out.
    fn from(held: &jackfield_dialog::Slot) -> Slot {
        Slot { name: held.name.clone(), value: held.value.clone(), source: None, confidence: held.confidence }
    }
}

/// How a turn goes on after the slots are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Next {
    /// To the model, with the messages as they are.
    Model,
    /// To the model, with these messages instead.
    Prompt(Vec<Message>),
    /// Nowhere: this is the answer.
    Answer(String),
}

/// What a slot extractor made of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Transition {
    /// The new state.
    pub state: String,
    /// Slots to set.
    pub set: Vec<Slot>,
    /// Names of slots to forget.
    pub clear: Vec<String>,
    /// How the turn goes on.
    pub next: Next,
    /// Room to grow.
    #[serde(default)]
    pub attributes: Vec<Field>,
}

/// Who made a transition, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// The turn, counted from 1.
    pub turn: u32,
    /// `name@version` of the policy.
    pub policy: &'a str,
    /// The dialog schema the policy writes.
    pub schema: u32,
}

impl Transition {
    /// The dialog after this transition. The number of turns committed is the session's business, and stays.
    pub fn apply(&self, dialog: &Dialog, stamp: Stamp<'_>) -> Dialog {
        let mut after = dialog.clone();
        after.state.clone_from(&self.state);
        after.schema = stamp.schema;
        for name in &self.clear {
            after.clear(name);
        }
        for slot in &self.set {
            after.set(jackfield_dialog::Slot {
                name: slot.name.clone(),
                value: slot.value.clone(),
                source: slot.source.map(|span| span.start..span.end),
                confidence: slot.confidence,
                turn: stamp.turn,
                policy: stamp.policy.to_owned(),
            });
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transition_sets_clears_and_stamps() {
        let set = |name: &str, text: &str| Slot {
            name: name.into(),
            value: Value::Text(text.into()),
            source: Some(Span::new(0, 3)),
            confidence: 0.5,
        };
        let first = Transition {
            state: "asking".into(),
            set: vec![set("city", "上海"), set("order", "A-1")],
            clear: vec![],
            next: Next::Model,
            attributes: vec![],
        };
        let second = Transition {
            state: "done".into(),
            set: vec![set("order", "A-2")],
            clear: vec!["city".into(), "never-set".into()],
            ..first.clone()
        };
        let stamp = |turn| Stamp { turn, policy: "slots@1.0.0", schema: 3 };
        let dialog = first.apply(&Dialog::default(), stamp(1));
        let dialog = second.apply(&dialog, stamp(2));
        assert_eq!((dialog.state.as_str(), dialog.schema), ("done", 3));
        assert_eq!(dialog.slots.len(), 1);
        let order = dialog.slot("order").expect("was set");
        assert_eq!(order.value, Value::Text("A-2".into()));
        assert_eq!((order.turn, order.policy.as_str()), (2, "slots@1.0.0"));
        assert_eq!(order.source, Some(0..3));
        assert_eq!(Slot::from(order).source, None, "of another utterance");
    }
}
