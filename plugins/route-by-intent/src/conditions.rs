use jackfield_sdk::routing::{Request, Target};
use jackfield_sdk::text::{Folded, is_han};
use jackfield_sdk::{Slot, Turn, Value};

use crate::config::{Bounds, SlotIs, When};

/// The turn as the rules see it; the text folded once for all of them.
pub(crate) struct Facts<'a> {
    pub(crate) turn: &'a Turn,
    pub(crate) request: &'a Request,
    /// Requests in the shortest queue of the fleet.
    shortest_queue: u32,
    text: Folded,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(turn: &'a Turn, request: &'a Request, fleet: &[Target]) -> Facts<'a> {
        let shortest_queue = fleet.iter().map(|target| target.queue_depth).min().unwrap_or(0);
        Facts { turn, request, shortest_queue, text: Folded::new(&request.last_user_text) }
    }

    /// Whether the user is to be spoken to in Chinese: by the locale if there is one, else by the words used.
    pub(crate) fn in_chinese(&self) -> bool {
        match self.turn.locale.as_str() {
            "" => self.request.last_user_text.chars().any(is_han),
            locale => locale.to_ascii_lowercase().starts_with("zh"),
        }
    }
}

/// A rule's conditions, words folded.
#[derive(Debug)]
pub(crate) struct Conditions {
    task: Option<Vec<Name>>,
    tenant: Option<Vec<Name>>,
    locale: Option<Vec<Name>>,
    model: Option<Vec<Name>>,
    any: Option<Vec<Folded>>,
    all: Vec<Folded>,
    none: Vec<Folded>,
    prompt_tokens: Bounds,
    messages: Bounds,
    queue: Bounds,
    slots: Vec<(String, SlotIs)>,
}

impl Conditions {
    pub(crate) fn new(when: When) -> Result<Conditions, String> {
        for (name, bounds) in
            [("prompt_tokens", when.prompt_tokens), ("messages", when.messages), ("queue", when.queue)]
        {
            if bounds.min.zip(bounds.max).is_some_and(|(min, max)| min > max) {
                return Err(format!("`{name}` fits nothing: min is above max"));
            }
        }
        Ok(Conditions {
            task: when.task.map(names).transpose()?,
            tenant: when.tenant.map(names).transpose()?,
            locale: when.locale.map(names).transpose()?,
            model: when.model.map(names).transpose()?,
            any: when.any.map(words).transpose()?,
            all: words(when.all)?,
            none: words(when.none)?,
            prompt_tokens: when.prompt_tokens,
            messages: when.messages,
            queue: when.queue,
            slots: when.slots.into_iter().collect(),
        })
    }

    pub(crate) fn fit(&self, facts: &Facts<'_>) -> bool {
        let (turn, request) = (facts.turn, facts.request);
        let stands = |word: &Folded| facts.text.find(word).is_some();
        one_of(&self.task, turn.task.as_deref())
            && one_of(&self.tenant, Some(&turn.tenant))
            && one_of(&self.locale, Some(&turn.locale))
            && one_of(&self.model, Some(&request.wanted_model))
            && within(self.prompt_tokens, request.prompt_tokens)
            && within(self.messages, request.messages)
            && within(self.queue, facts.shortest_queue)
            && self.slots.iter().all(|(name, wanted)| slot_fits(&request.slots, name, wanted))
            && self.any.as_ref().is_none_or(|words| words.iter().any(stands))
            && self.all.iter().all(stands)
            && !self.none.iter().any(stands)
    }
}

/// A name, or the beginning of names.
#[derive(Debug)]
struct Name {
    text: String,
    is_prefix: bool,
}

fn names(written: Vec<String>) -> Result<Vec<Name>, String> {
    if written.is_empty() {
        return Err("an empty list fits nothing: leave it out to fit everything".into());
    }
    let name = |text: String| match text.strip_suffix('*') {
        Some(prefix) => Name { text: prefix.to_owned(), is_prefix: true },
        None => Name { text, is_prefix: false },
    };
    Ok(written.into_iter().map(name).collect())
}

fn words(written: Vec<String>) -> Result<Vec<Folded>, String> {
    let word = |text: String| match text.trim() {
        "" => Err("an empty word".to_owned()),
        word => Ok(Folded::new(word)),
    };
    written.into_iter().map(word).collect()
}

fn one_of(names: &Option<Vec<Name>>, value: Option<&str>) -> bool {
    let Some(names) = names else { return true };
    let Some(value) = value else { return false };
    names.iter().any(|name| if name.is_prefix { value.starts_with(&name.text) } else { value == name.text })
}

fn within(bounds: Bounds, value: u32) -> bool {
    bounds.min.is_none_or(|min| value >= min) && bounds.max.is_none_or(|max| value <= max)
}

fn slot_fits(slots: &[Slot], name: &str, wanted: &SlotIs) -> bool {
    let value = slots.iter().find(|slot| slot.name == name).map(|slot| &slot.value);
    match (wanted, value) {
        (SlotIs::Known(wanted), Some(Value::Boolean(value))) => wanted == value,
        (SlotIs::Known(wanted), value) => *wanted == value.is_some(),
        (SlotIs::Number(wanted), Some(Value::Number(value))) => wanted == value,
        (SlotIs::Text(wanted), Some(Value::Text(value) | Value::Choice(value) | Value::Date(value))) => {
            wanted == value
        }
        _ => false,
    }
}
