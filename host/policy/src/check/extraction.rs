//! The answer of a slot extractor.

use std::collections::HashSet;

use super::{Checked, at_most, attributes, instant::is_date, not_empty, share, span};
use crate::types::{Next, Slot, Transition, Value};

const MAX_SLOTS: usize = 256;
const MAX_NAME_BYTES: usize = 128;
const MAX_STATE_BYTES: usize = 256;

/// `utterance` is the text that sources point into.
pub(crate) fn transition(transition: &Transition, utterance: &str) -> Checked {
    at_most("state", transition.state.len(), MAX_STATE_BYTES, "bytes")?;
    at_most("set", transition.set.len(), MAX_SLOTS, "slots")?;
    at_most("clear", transition.clear.len(), MAX_SLOTS, "names")?;
    let mut names = HashSet::new();
    for set in &transition.set {
        slot(set, utterance)?;
        if !names.insert(set.name.as_str()) {
            return Err(format!("slot `{}` is set twice", set.name));
        }
    }
    for name in &transition.clear {
        if names.contains(name.as_str()) {
            return Err(format!("slot `{name}` is both set and cleared"));
        }
    }
    next(&transition.next)?;
    attributes(&transition.attributes)
}

fn slot(slot: &Slot, utterance: &str) -> Checked {
    not_empty("the name of a slot", &slot.name)?;
    at_most("the name of a slot", slot.name.len(), MAX_NAME_BYTES, "bytes")?;
    let what = format!("slot `{}`", slot.name);
    share(&format!("{what}: confidence"), slot.confidence)?;
    if let Some(source) = slot.source {
        span(&what, source, utterance)?;
    }
    match &slot.value {
        Value::Number(number) if !number.is_finite() => {
            Err(format!("{what}: {number} is not a finite number"))
        }
        Value::Date(date) if !is_date(date) => {
            Err(format!("{what}: {date:?} is not an ISO 8601 year, month, day, instant or interval"))
        }
        _ => Ok(()),
    }
}

fn next(next: &Next) -> Checked {
    match next {
        Next::Model => Ok(()),
        Next::Answer(answer) => not_empty("the answer", answer),
        Next::Prompt(messages) => {
            if messages.iter().all(|message| message.text.trim().is_empty()) {
                return Err("the prompt has no message with text".into());
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Message, Role, Span};

    fn set(name: &str, value: Value) -> Transition {
        Transition {
            state: "s".into(),
            set: vec![Slot { name: name.into(), value, source: None, confidence: 1.0 }],
            clear: vec![],
            next: Next::Model,
            attributes: vec![],
        }
    }

    fn check(transition: &Transition) -> Checked {
        super::transition(transition, "订单 1")
    }

    #[test]
    fn a_good_one_passes() {
        let mut good = set("order", Value::Number(1.0));
        good.set[0].source = Some(Span::new(7, 8));
        good.clear = vec!["city".into()];
        good.next = Next::Prompt(vec![Message::new(Role::User, "x")]);
        assert_eq!(check(&good), Ok(()));
    }

    #[test]
    fn each_rule_is_held() {
        let broken = |transition: Transition| check(&transition).expect_err("broken");
        assert!(broken(set("", Value::Boolean(true))).contains("empty"));
        assert!(broken(set(&"n".repeat(129), Value::Boolean(true))).contains("129"));
        assert!(broken(set("n", Value::Number(f64::NAN))).contains("finite"));
        assert!(broken(set("n", Value::Date("soon".into()))).contains("soon"));
        let mut half = set("n", Value::Boolean(true));
        half.set[0].source = Some(Span::new(1, 3));
        assert!(broken(half).contains("inside of a character"));
        let mut sure = set("n", Value::Boolean(true));
        sure.set[0].confidence = 1.5;
        assert!(broken(sure).contains("confidence"));
        let mut twice = set("n", Value::Boolean(true));
        twice.set.push(twice.set[0].clone());
        assert!(broken(twice).contains("twice"));
        let mut both = set("n", Value::Boolean(true));
        both.clear.push("n".into());
        assert!(broken(both).contains("both"));
        let with_next = |next| Transition { next, ..set("n", Value::Boolean(true)) };
        assert!(broken(with_next(Next::Answer(String::new()))).contains("answer"));
        assert!(broken(with_next(Next::Prompt(vec![]))).contains("no message"));
        let blank = vec![Message::new(Role::User, " \n")];
        assert!(broken(with_next(Next::Prompt(blank))).contains("no message"));
    }
}
