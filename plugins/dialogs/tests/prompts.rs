//! What the model is given in a turn begins with what it was given, and has answered, in turns before.

use dialogs::{Dialog, load, shipped};
use jackfield_sdk::slot_extraction::{Dialog as State, Next, SlotExtractor};
use jackfield_sdk::{Message, Policy, Role, Turn};
use slots_orders::SlotsOrders;

/// An answer of the model. What is written in the dialogs as the reply is sometimes word for word one of the rules.
const ANSWER: &str = "I cannot say.";

/// What the model is given in the turns of a dialog that need it.
fn prompts(policy: &SlotsOrders, dialog: &Dialog) -> Vec<Vec<Message>> {
    let turn = Turn {
        id: dialog.id.clone(),
        tenant: String::new(),
        session: None,
        task: None,
        locale: String::new(),
        now: dialog.instant().expect("a time"),
        seed: 0,
        headers: vec![],
        attributes: vec![],
    };
    let mut state = State { state: String::new(), slots: Vec::new(), schema: 0 };
    let (mut recent, mut given) = (Vec::new(), Vec::new());
    for said in &dialog.turns {
        recent.push(Message { role: Role::User, text: said.text.clone() });
        let found = policy.extract(&turn, &recent, &state).expect("no fault");
        let reply = match found.next {
            Next::Answer(reply) => reply,
            Next::Prompt(messages) => {
                given.push(messages);
                ANSWER.to_owned()
            }
            Next::Model => {
                given.push(recent.clone());
                ANSWER.to_owned()
            }
        };
        recent.push(Message { role: Role::Assistant, text: reply });
        state.slots.retain(|slot| {
            !found.clear.contains(&slot.name) && found.set.iter().all(|new| new.name != slot.name)
        });
        state.slots.extend(found.set);
        (state.state, state.schema) = (found.state, 1);
    }
    given
}

#[test]
fn each_prompt_begins_with_the_one_before() {
    let policy = SlotsOrders::configure(shipped("slots-orders").expect("rules")).expect("valid");
    let (mut count, mut broken) = (0, Vec::new());
    for dialog in load().expect("the dialogs") {
        for pair in prompts(&policy, &dialog).windows(2) {
            count += 1;
            if !pair[1].starts_with(&pair[0]) {
                broken.push(dialog.id.clone());
            }
        }
    }
    assert!(count > 100, "{count} prompts that follow on another");
    assert!(broken.is_empty(), "of {count} prompts: {broken:?}");
}
