//! What this policy keeps of a dialog for itself, in slots that no customer fills.

use crate::machine::Language;
use jackfield_sdk::slot_extraction::Dialog;
use jackfield_sdk::{Slot, Value};
use std::collections::BTreeMap;

/// The language in which a dialog was answered: "12345678" says nothing of it.
pub const LANGUAGE: &str = "language";

/// The language of the instructions with which the prompts of a dialog begin, once one did.
pub const PROMPTED: &str = "prompted";

/// What prompts had before the user's words, so that those to come have it there too.
pub const TOLD: &str = "told";

/// The language that a slot keeps.
pub fn language(name: &str, dialog: &Dialog) -> Option<Language> {
    match value(name, dialog)? {
        Value::Choice(language) => Language::named(language),
        _ => None,
    }
}

/// The slot that keeps a language, when it has to be written.
pub fn keep_language(name: &str, now: Language, dialog: &Dialog) -> Option<Slot> {
    (language(name, dialog) != Some(now)).then(|| slot(name, Value::Choice(now.name().to_owned())))
}

/// Texts by the [place] of the user's message before which they stand.
pub type Told = BTreeMap<String, String>;

/// The user's message of this number, from 0, that says this. Where a dialog has gone back to an earlier topic another message has
/// the number, before which nothing was told.
pub fn place(number: usize, words: &str) -> String {
    // FNV-1a, 32 bits.
    let hash =
        words.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{number}:{hash:08x}")
}

/// What was told so far.
pub fn told(dialog: &Dialog) -> Told {
    match value(TOLD, dialog) {
        Some(Value::Text(json)) => serde_json::from_str(json).unwrap_or_default(),
        _ => Told::new(),
    }
}

/// The slot that keeps what was told.
pub fn keep_told(told: &Told) -> Option<Slot> {
    Some(slot(TOLD, Value::Text(serde_json::to_string(told).ok()?)))
}

fn value<'d>(name: &str, dialog: &'d Dialog) -> Option<&'d Value> {
    dialog.slots.iter().find(|slot| slot.name == name).map(|slot| &slot.value)
}

fn slot(name: &str, value: Value) -> Slot {
    Slot { name: name.to_owned(), value, source: None, confidence: 1.0 }
}
