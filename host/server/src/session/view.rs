//! Sessions as the API shows them.

use jackfield_dialog::{
    Listed, Message, Session, SessionKey, Slot, SlotConflict, Value as SlotValue, Version,
};
use serde_json::{Value, json};

use super::messages::sent;

/// A whole session.
pub(crate) fn session(key: &SessionKey, session: &Session, version: Version, ttl_s: u64) -> Value {
    let instructions = session.instructions.iter().map(|said| message(said, 0));
    let turns = session.turns.iter().zip(1..);
    let said = turns.flat_map(|(turn, number)| {
        let resumes = turn.resumes.map(Value::from);
        turn.messages.iter().map(move |said| with(message(said, number), [("resumes", resumes.clone())]))
    });
    let turns = session.turns.iter().zip(1..);
    let conflicts =
        turns.flat_map(|(turn, number)| turn.conflicts.iter().map(move |lost| conflict(lost, number)));
    let segments = session.segments.iter().map(|segment| json!({"turns": segment.turns}));
    json!({
        "id": key.id(),
        "object": "session",
        "created_at": session.created_unix_ms.div_euclid(1000),
        "updated_at": session.updated_unix_ms.div_euclid(1000),
        "expires_after_s": ttl_s,
        "version": version.0,
        "turns": session.turns.len(),
        "generation": session.generation(),
        "parent": session.parent.as_ref().map(|parent| json!({"id": parent.id, "turn": parent.turn})),
        "state": session.dialog.state,
        "schema": session.dialog.schema,
        "slots": slots(session),
        "conflicts": conflicts.collect::<Vec<_>>(),
        "segments": segments.collect::<Vec<_>>(),
        "messages": instructions.chain(said).collect::<Vec<_>>(),
    })
}

/// The slots of a session.
pub(crate) fn slots(session: &Session) -> Vec<Value> {
    session.dialog.slots.iter().map(slot).collect()
}

/// A line of a list.
pub(crate) fn listed(line: &Listed) -> Value {
    json!({
        "id": line.id,
        "object": "session",
        "created_at": line.created_unix_ms.div_euclid(1000),
        "updated_at": line.updated_unix_ms.div_euclid(1000),
        "turns": line.turns,
    })
}

/// A slot that a turn changed which had not seen that another one had.
fn conflict(lost: &SlotConflict, turn: u32) -> Value {
    json!({
        "turn": turn,
        "slot": lost.name,
        "earlier": lost.earlier.as_ref().map(slot),
        "later": lost.later.as_ref().map(slot),
    })
}

fn slot(slot: &Slot) -> Value {
    json!({
        "name": slot.name,
        "type": slot.value.kind(),
        "value": value(&slot.value),
        "confidence": slot.confidence,
        "turn": slot.turn,
        "policy": slot.policy,
        "source": slot.source.as_ref().map(|span| json!({"start": span.start, "end": span.end})),
    })
}

fn value(value: &SlotValue) -> Value {
    match value {
        SlotValue::Text(text) | SlotValue::Date(text) | SlotValue::Choice(text) => json!(text),
        // Checked by its kind: without a fraction, and small enough to be exact.
        SlotValue::Number(number) if value.kind() == "integer" => json!(*number as i64),
        SlotValue::Number(number) => json!(number),
        SlotValue::Boolean(yes) => json!(yes),
    }
}

/// A message with the turn it belongs to; the instructions belong to none, which is 0.
fn message(kept: &Message, turn: u32) -> Value {
    let said = sent(kept);
    let shown = json!({"role": said.role.as_str(), "content": said.content, "turn": turn});
    let others = [
        ("name", said.name.map(Value::from)),
        ("tool_calls", said.tool_calls),
        ("tool_call_id", said.tool_call_id.map(Value::from)),
    ];
    with(shown, others)
}

/// The same object with further fields, as far as they have a value.
fn with<const N: usize>(mut shown: Value, fields: [(&str, Option<Value>); N]) -> Value {
    for (name, value) in fields {
        if let Some(value) = value {
            shown[name] = value;
        }
    }
    shown
}
