//! The plain data of a dialog.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A typed slot value. Mirrors `types.value` of the policy contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// Free text.
    Text(String),
    /// A finite number.
    Number(f64),
    /// Yes or no.
    Boolean(bool),
    /// ISO 8601: a year, month, day, instant, or an interval of two.
    Date(String),
    /// One of a set known to the policy's author.
    Choice(String),
}

impl Value {
    /// What kind of value it is: `text`, `integer`, `decimal`, `boolean`, `date` or `choice`. A number is an integer when it
    /// has no fraction and every smaller one can be told from its neighbours.
    pub fn kind(&self) -> &'static str {
        const LARGEST_EXACT: f64 = (1u64 << 53) as f64;
        match self {
            Value::Text(_) => "text",
            Value::Number(number) if number.fract() == 0.0 && number.abs() <= LARGEST_EXACT => "integer",
            Value::Number(_) => "decimal",
            Value::Boolean(_) => "boolean",
            Value::Date(_) => "date",
            Value::Choice(_) => "choice",
        }
    }

    /// Bytes of text that the value holds.
    fn text_bytes(&self) -> usize {
        match self {
            Value::Text(text) | Value::Date(text) | Value::Choice(text) => text.len(),
            Value::Number(_) | Value::Boolean(_) => 0,
        }
    }
}

/// Something known in a dialog, and who found it where and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Slot {
    /// Unique in its dialog.
    pub name: String,
    /// What it holds.
    pub value: Value,
    /// Bytes of the utterance of `turn` in which it was found; none when it was inferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Range<u32>>,
    /// 0 to 1.
    #[serde(default = "certain")]
    pub confidence: f32,
    /// The turn that set it, counted from 1.
    #[serde(default)]
    pub turn: u32,
    /// `name@version` of the policy that set it.
    #[serde(default)]
    pub policy: String,
}

impl Slot {
    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<Slot>() + self.name.len() + self.policy.len() + self.value.text_bytes()
    }
}

fn certain() -> f32 {
    1.0
}

/// What is remembered of a session between two turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Dialog {
    /// Name of the state, in the policy author's words; empty in a new dialog.
    pub state: String,
    /// In the order in which they were first set; each name once.
    pub slots: Vec<Slot>,
    /// Version of the schema the state is written in; 0 in a new dialog.
    pub schema: u32,
    /// Turns committed so far.
    pub turns: u32,
}

impl Dialog {
    /// The slot of this name.
    pub fn slot(&self, name: &str) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.name == name)
    }

    /// Set a slot, in the place of one of the same name or else at the end.
    pub fn set(&mut self, slot: Slot) {
        match self.slots.iter_mut().find(|held| held.name == slot.name) {
            Some(held) => *held = slot,
            None => self.slots.push(slot),
        }
    }

    /// Forget a slot. Whether there was one.
    pub fn clear(&mut self, name: &str) -> bool {
        let before = self.slots.len();
        self.slots.retain(|slot| slot.name != name);
        self.slots.len() != before
    }

    /// Roughly what it takes in memory, in bytes.
    pub fn size_bytes(&self) -> usize {
        size_of::<Dialog>() + self.state.len() + self.slots.iter().map(Slot::size_bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(name: &str, value: Value) -> Slot {
        Slot { name: name.into(), value, source: None, confidence: 1.0, turn: 1, policy: "p@1".into() }
    }

    #[test]
    fn setting_a_known_slot_keeps_its_place() {
        let mut dialog = Dialog::default();
        dialog.set(slot("city", Value::Text("上海".into())));
        dialog.set(slot("count", Value::Number(2.0)));
        dialog.set(slot("city", Value::Text("北京".into())));
        let names: Vec<_> = dialog.slots.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["city", "count"]);
        assert_eq!(dialog.slot("city").map(|s| &s.value), Some(&Value::Text("北京".into())));
    }

    #[test]
    fn clearing_says_whether_there_was_one() {
        let mut dialog = Dialog::default();
        dialog.set(slot("city", Value::Boolean(true)));
        assert!(dialog.clear("city"));
        assert!(!dialog.clear("city"));
        assert!(dialog.slots.is_empty());
    }

    #[test]
    fn survives_json() {
        let mut dialog = Dialog { state: "asking".into(), schema: 2, turns: 3, ..Dialog::default() };
        let mut sourced = slot("when", Value::Date("2026-03".into()));
        sourced.source = Some(3..9);
        dialog.set(sourced);
        let json = serde_json::to_string(&dialog).expect("plain data");
        assert_eq!(serde_json::from_str::<Dialog>(&json).expect("its own"), dialog);
    }
}
