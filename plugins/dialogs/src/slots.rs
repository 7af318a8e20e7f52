//! Plays dialogs through `slots-orders`, each turn with the state that the turns before left.

use crate::figures::Figures;
use crate::{Dialog, GoldSlot, Turn, shipped};
use jackfield_sdk::slot_extraction::{Dialog as State, Next, SlotExtractor, Transition};
use jackfield_sdk::{Message, Policy, Role, Slot};
use slots_orders::SlotsOrders;
use slots_orders::civil::Day;
use slots_orders::config::{Config, Expects};
use slots_orders::reader::Reader;
use slots_orders::text::Text;
use std::collections::BTreeMap;

/// The policy with its shipped rules, and what it reads before its steps forget wishes that they carry out.
pub struct Player {
    policy: SlotsOrders,
    reader: Reader,
    /// What each state has just asked for.
    asking: BTreeMap<String, Expects>,
}

impl Player {
    /// Reads the shipped rules.
    pub fn new() -> Result<Player, String> {
        let config: Config = shipped("slots-orders")?;
        let asking =
            config.state.iter().filter_map(|state| Some((state.name.clone(), state.expects?))).collect();
        Ok(Player { reader: Reader::new(&config)?, policy: SlotsOrders::configure(config)?, asking })
    }

    /// Plays a dialog and counts. An error is a fault of the policy or of the data.
    pub fn play(&self, dialog: &Dialog, figures: &mut Figures) -> Result<(), String> {
        let call = call(dialog)?;
        let today = Day::of_instant(call.now.unix_ms, call.now.utc_offset_minutes);
        let mut state = State { state: String::new(), slots: Vec::new(), schema: 0 };
        let mut recent = Vec::new();
        // What was set last under each name: a change that was carried out is forgotten by the next one, and still reached.
        let mut known = BTreeMap::new();
        for turn in &dialog.turns {
            let asked = self.asking.get(&state.state).copied();
            count_slots(dialog, turn, &self.reader.read(&Text::new(&turn.text), today, asked).slots, figures);
            recent.push(Message { role: Role::User, text: turn.text.clone() });
            let found =
                self.policy.extract(&call, &recent, &state).map_err(|why| format!("{}: {why}", dialog.id))?;
            figures.answered(dialog, turn, matches!(found.next, Next::Answer(_)));
            known.extend(found.set.iter().map(|slot| (slot.name.clone(), slot.value.clone())));
            state = after(state, found);
            recent.push(Message { role: Role::Assistant, text: turn.reply.clone() });
        }
        figures.goal(dialog, &known);
        Ok(())
    }
}

fn call(dialog: &Dialog) -> Result<jackfield_sdk::Turn, String> {
    let now = dialog.instant().ok_or_else(|| format!("{}: `{}` is no time", dialog.id, dialog.now))?;
    Ok(jackfield_sdk::Turn {
        id: dialog.id.clone(),
        tenant: String::new(),
        session: None,
        task: None,
        locale: String::new(),
        now,
        seed: 0,
        headers: vec![],
        attributes: vec![],
    })
}

/// The state that the next turn starts with.
fn after(before: State, found: Transition) -> State {
    let gone =
        |slot: &Slot| found.clear.contains(&slot.name) || found.set.iter().any(|new| new.name == slot.name);
    let mut slots: Vec<Slot> = before.slots.into_iter().filter(|slot| !gone(slot)).collect();
    slots.extend(found.set);
    State { state: found.state, slots, schema: 1 }
}

fn count_slots(dialog: &Dialog, turn: &Turn, found: &[Slot], figures: &mut Figures) {
    for gold in turn.slots.iter().filter(|slot| slot.claimed) {
        let right = found.iter().any(|slot| slot.name == gold.name && is(gold, slot, &turn.text));
        figures.read(dialog, turn, gold, right);
    }
    for slot in found {
        let expected =
            turn.slots.iter().filter(|gold| gold.name == slot.name).any(|gold| {
                if gold.claimed { is(gold, slot, &turn.text) } else { gold.value.is(&slot.value) }
            });
        if !expected {
            figures.wrong(dialog, turn, slot);
        }
    }
}

/// Whether value and words are the same. The words of a wish are not compared: there are many ways to cut them.
fn is(gold: &GoldSlot, slot: &Slot, text: &str) -> bool {
    let span = slot.source.as_ref().map(|span| span.range());
    gold.value.is(&slot.value) && (gold.name == "action" || span == gold.bytes(text))
}
