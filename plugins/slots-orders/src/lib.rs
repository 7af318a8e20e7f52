//! `slots-orders`: reads what a customer says (order number, date, time, city, phone, quantity, what is wanted), keeps it
//! as slots, and answers by itself what needs no model. Words, states and replies are data: `rules.toml`.
//!
//! | module | |
//! |---|---|
//! | `text`, `pattern`, `number`, `civil` | the ground: normalised text, patterns, numerals, calendar |
//! | `dates`, `times`, `entities`, `actions` | what can be found in a text |
//! | `reader`, `taken` | all that one utterance says |
//! | `machine`, `template` | what it leads to |
//! | `prompt`, `memory` | what the model is given, and what is kept for that |
//!
//! No value is guessed: what could mean two things gives no slot.

pub mod actions;
pub mod civil;
pub mod config;
pub mod dates;
pub mod entities;
pub mod machine;
pub mod memory;
pub mod number;
pub mod pattern;
pub mod prompt;
pub mod reader;
pub mod taken;
pub mod template;
pub mod text;
pub mod times;

use civil::Day;
use config::Config;
use jackfield_sdk::slot_extraction::{Dialog, Next, SlotExtractor, Transition};
use jackfield_sdk::{Description, Message, Policy, Role, Turn};
use machine::{Before, Go, Language, Machine};
use memory::LANGUAGE;
use prompt::Asking;
use reader::Reader;
use text::Text;

/// Version of the slots and states that this policy writes.
const DIALOG_SCHEMA: u32 = 1;

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
        let before = Before { state: &dialog.state, slots: &dialog.slots, language };
        let mut outcome = self.machine.turn(&self.reader, &text, &reading, &before);
        let today = today.and_then(Day::iso);
        let asking = Asking { machine: &self.machine, recent, dialog, language, today: today.as_deref() };
        let prompt = match &outcome.go {
            Go::Answer(_) => None,
            Go::Prompt(facts) => Some(asking.with(facts)),
            Go::Model => asking.going_on(),
        };
        let next = match (outcome.go, prompt) {
            (Go::Answer(reply), _) => {
                outcome.set.extend(memory::keep_language(LANGUAGE, language, dialog));
                Next::Answer(reply)
            }
            (_, Some(prompt)) => {
                outcome.set.extend(prompt.set);
                Next::Prompt(prompt.messages)
            }
            (_, None) => Next::Model,
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
    own.find_map(|message| Language::of(&message.text))
        .or_else(|| memory::language(LANGUAGE, dialog))
        .unwrap_or_else(|| Language::of_locale(locale))
}

jackfield_sdk::export_slot_extractor!(SlotsOrders);
