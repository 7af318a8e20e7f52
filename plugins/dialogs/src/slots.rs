//! Plays dialogs through `slots-orders`, each turn with the state that the turns before left.

use crate::figures::Figures;
use crate::{Dialog, GoldSlot, Turn, shipped};
use jackfield_sdk::slot_extraction::{Dialog as State, Next, SlotExtractor, Transition};
use jackfield_sdk::{Message, Policy, Role, Slot};
use slots_orders::SlotsOrders;

/// The policy with its shipped rules.
pub fn policy() -> Result<SlotsOrders, String> {
    SlotsOrders::configure(shipped("slots-orders")?)
}

/// Plays a dialog and counts. An error is a fault of the policy or of the data.
pub fn play(policy: &SlotsOrders, dialog: &Dialog, figures: &mut Figures) -> Result<(), String> {
    let mut state = State { state: String::new(), slots: Vec::new(), schema: 0 };
    let mut recent = Vec::new();
    for turn in &dialog.turns {
        recent.push(Message { role: Role::User, text: turn.text.clone() });
        let found = policy.extract(&call(dialog)?, &recent, &state).map_err(|why| format!("{}: {why}", dialog.id))?;
        count(dialog, turn, &found, figures);
        state = after(state, found);
        recent.push(Message { role: Role::Assistant, text: turn.reply.clone() });
    }
    figures.goal(dialog, &state.slots);
    Ok(())
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

/// The state that the next turn starts with. A wish that a step forgot, since it was carried out, is still known here.
fn after(before: State, found: Transition) -> State {
    let gone = |slot: &Slot| found.clear.contains(&slot.name) || found.set.iter().any(|new| new.name == slot.name);
    let mut slots: Vec<Slot> = before.slots.into_iter().filter(|slot| !gone(slot)).collect();
    slots.extend(found.set);
    State { state: found.state, slots, schema: 1 }
}

fn count(dialog: &Dialog, turn: &Turn, found: &Transition, figures: &mut Figures) {
    figures.answered(dialog, turn, matches!(found.next, Next::Answer(_)));
    for gold in turn.slots.iter().filter(|slot| slot.claimed) {
        let slot = found.set.iter().find(|slot| slot.name == gold.name);
        let right = slot.map_or_else(|| carried_out(gold, &found.state), |slot| is(gold, slot, &turn.text));
        figures.read(dialog, turn, gold, right);
    }
    for slot in found.set.iter().filter(|slot| slot.name != "language") {
        let of_name = || turn.slots.iter().filter(|gold| gold.name == slot.name);
        let expected = of_name().any(|gold| if gold.claimed { is(gold, slot, &turn.text) } else { gold.value.is(&slot.value) });
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

/// A step that carries a wish out forgets it: the state tells.
fn carried_out(gold: &GoldSlot, state: &str) -> bool {
    let action = match state {
        "human" => "to-human",
        "cancel-confirmed" => "cancel",
        "change-confirmed" => "change",
        _ => return false,
    };
    gold.name == "action" && gold.value.is(&jackfield_sdk::Value::Choice(action.into()))
}
