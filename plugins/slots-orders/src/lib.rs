//! `slots-orders`: reads what a customer says (order number, date, time, city, phone, quantity, what is wanted), keeps it
//! as slots, and answers by itself what needs no model. Words, states and replies are data: `rules.toml`.
//!
//! | module | |
//! |---|---|
//! | `text`, `pattern`, `number`, `civil` | the ground: normalised text, patterns, numerals, calendar |
//! | `dates`, `times`, `entities`, `actions` | what can be found in a text |
//! | `reader`, `taken` | all that one utterance says |
//! | `machine`, `template` | what it leads to |
//!
//! No value is guessed: what could mean two things gives no slot.

pub mod actions;
pub mod civil;
pub mod config;
pub mod dates;
pub mod entities;
pub mod machine;
pub mod number;
pub mod pattern;
pub mod reader;
pub mod taken;
pub mod template;
pub mod text;
pub mod times;

use civil::Day;
use config::Config;
use jackfield_sdk::slot_extraction::{Dialog, Next, SlotExtractor, Transition};
use jackfield_sdk::{Description, Message, Policy, Role, Slot, Turn, Value};
use machine::{Before, Go, Language, Machine};
use reader::Reader;
use text::Text;

/// Version of the slots and states that this policy writes.
const DIALOG_SCHEMA: u32 = 1;

/// The slot that keeps the language in which a dialog was answered: "12345678" says nothing of it.
const LANGUAGE: &str = "language";

/// The policy, compiled from its rules.
pub struct SlotsOrders {
    reader: Reader,
    machine: Machine,
}

impl Policy for SlotsOrders {
    type Config = Config;

    fn describe() -> Description {
        Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .with_config_schema(include_str!("../config.schema.json"))
            .with_dialog_schema(DIALOG_SCHEMA, &[])
    }

    fn configure(config: Config) -> Result<Self, String> {
        let reader = Reader::new(&config)?;
        let machine = Machine::new(config, &reader)?;
        Ok(SlotsOrders { reader, machine })
    }
}

impl SlotExtractor for SlotsOrders {
    fn extract(&self, turn: &Turn, recent: &[Message], dialog: &Dialog) -> Result<Transition, String> {
        let utterance = recent.last().map_or("", |message| message.text.as_str());
        let text = Text::new(utterance);
        let today = Day::of_instant(turn.now.unix_ms, turn.now.utc_offset_minutes);
        let asked = self.machine.state(&dialog.state).expects;
        let reading = self.reader.read(&text, today, asked);
        let language = language(recent, dialog, &turn.locale);
        let today_iso = today.and_then(Day::iso);
        let before = Before { state: &dialog.state, slots: &dialog.slots, today: today_iso, language };
        let mut outcome = self.machine.turn(&self.reader, &text, &reading, &before);
        let next = match outcome.go {
            Go::Model => Next::Model,
            Go::Answer(reply) => {
                outcome.set.extend(remembered(language, dialog));
                Next::Answer(reply)
            }
            Go::Prompt(system) => Next::Prompt(prompt(recent, system, utterance)),
        };
        Ok(Transition {
            state: outcome.state,
            set: outcome.set,
            clear: outcome.clear,
            next,
            attributes: Vec::new(),
        })
    }
}

/// The language the user writes: of this message, else of the last one before it that has letters, else the one this
/// dialog was answered in, else that of the locale.
fn language(recent: &[Message], dialog: &Dialog, locale: &str) -> Language {
    let mut own = recent.iter().rev().filter(|message| message.role == Role::User);
    let kept = dialog.slots.iter().find(|slot| slot.name == LANGUAGE).and_then(|slot| match &slot.value {
        Value::Choice(name) => Language::named(name),
        _ => None,
    });
    own.find_map(|message| Language::of(&message.text))
        .or(kept)
        .unwrap_or_else(|| Language::of_locale(locale))
}

/// The slot that keeps the language of the dialog, when it has to be written.
fn remembered(language: Language, dialog: &Dialog) -> Option<Slot> {
    let value = Value::Choice(language.name().to_owned());
    let known = dialog.slots.iter().any(|slot| slot.name == LANGUAGE && slot.value == value);
    (!known).then(|| Slot { name: LANGUAGE.to_owned(), value, source: None, confidence: 1.0 })
}

/// The caller's own system messages, then what is known, then the user's words as they are.
fn prompt(recent: &[Message], system: String, utterance: &str) -> Vec<Message> {
    let own =
        recent.iter().filter(|message| message.role == Role::System).map(|message| message.text.as_str());
    let texts: Vec<&str> = own.chain([system.as_str()]).collect();
    vec![
        Message { role: Role::System, text: texts.join("\n\n") },
        Message { role: Role::User, text: utterance.to_owned() },
    ]
}

jackfield_sdk::export_slot_extractor!(SlotsOrders);
