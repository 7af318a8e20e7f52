//! The state machine: which step of the rules applies, and what it does.

use crate::config::{AnswerConfig, Bilingual, Config, LabelConfig, PromptConfig, StateConfig, StepConfig};
use crate::reader::{Reader, Reading};
use crate::template::Template;
use crate::text::{Text, is_cjk};
use jackfield_sdk::{Message, Role, Slot, Value};
use std::collections::BTreeMap;

/// Slots that the reader can find.
const SLOTS: [&str; 7] = ["order", "date", "time", "city", "quantity", "phone", "action"];

/// The language of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Chinese.
    Chinese,
    /// English.
    English,
}

impl Language {
    /// The language of a text: Chinese when one in three letters is a Chinese character. `None` without letters.
    pub fn of(text: &str) -> Option<Language> {
        let cjk = text.chars().filter(|c| is_cjk(*c)).count();
        // A code such as AB-123456 says nothing of the language.
        let words = text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .filter(|w| !w.contains(|c: char| c.is_ascii_digit()));
        let latin: usize = words.map(|w| w.chars().filter(char::is_ascii_alphabetic).count()).sum();
        match (cjk, latin) {
            (0, 0) => None,
            (cjk, latin) if cjk * 3 >= latin => Some(Language::Chinese),
            _ => Some(Language::English),
        }
    }

    /// `zh` or `en`.
    pub fn name(self) -> &'static str {
        match self {
            Language::Chinese => "zh",
            Language::English => "en",
        }
    }

    /// The language of that name.
    pub fn named(name: &str) -> Option<Language> {
        [Language::Chinese, Language::English].into_iter().find(|language| language.name() == name)
    }

    /// The language of a locale such as `zh-CN`; English when it is any other.
    pub fn of_locale(locale: &str) -> Language {
        let primary = locale.split(['-', '_']).next().unwrap_or("");
        if primary.eq_ignore_ascii_case("zh") { Language::Chinese } else { Language::English }
    }
}

/// Where a turn goes.
#[derive(Debug, Clone, PartialEq)]
pub enum Go {
    /// To the model as it is.
    Model,
    /// To the model with the instructions of the rules, and with this where the words do not say it.
    Prompt(Vec<Fact>),
    /// Answered.
    Answer(String),
}

/// A slot that the model may have to be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// Its value, as a reply shows it.
    pub text: String,
    /// The same as data.
    pub json: serde_json::Value,
    /// It was said in this turn.
    pub is_new: bool,
}

impl Fact {
    /// Whether who reads the messages knows it.
    pub fn is_seen_in(&self, messages: &[Message]) -> bool {
        // There are many words for a wish: they are seen where they are shown, whatever they are.
        if self.name == "action" {
            return messages.len() > 1 || self.is_new;
        }
        messages.iter().any(|message| says(&message.text, &self.text))
    }
}

/// What a turn does.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The new state.
    pub state: String,
    /// Slots to set.
    pub set: Vec<Slot>,
    /// Slots to forget.
    pub clear: Vec<String>,
    /// Where it goes.
    pub go: Go,
}

/// What is known when a turn starts.
pub struct Before<'a> {
    /// Name of the state; unknown names count as the first state of the rules.
    pub state: &'a str,
    /// Slots of the dialog.
    pub slots: &'a [Slot],
    /// Language of the reply.
    pub language: Language,
}

/// The machine of a rule file.
pub struct Machine {
    states: Vec<StateConfig>,
    steps: Vec<Step>,
    labels: Vec<LabelConfig>,
    instructions: Texts,
    known_so_far: Texts,
    most_messages: usize,
}

struct Texts {
    zh: Template,
    en: Template,
}

struct Step {
    rule: StepConfig,
    action: Option<usize>,
    reply: Option<Texts>,
}

impl Texts {
    fn new(texts: &Bilingual, known: impl Fn(&str) -> bool + Copy) -> Result<Texts, String> {
        Ok(Texts { zh: Template::new(&texts.zh, known)?, en: Template::new(&texts.en, known)? })
    }

    fn of(&self, language: Language) -> &Template {
        match language {
            Language::Chinese => &self.zh,
            Language::English => &self.en,
        }
    }
}

impl Machine {
    /// Checks that every name in the rules exists, and compiles the texts.
    pub fn new(config: Config, reader: &Reader) -> Result<Machine, String> {
        if config.state.is_empty() {
            return Err("there must be at least one [[state]]; the first is that of a new dialog".into());
        }
        let steps = config.step.into_iter().enumerate().map(|(n, rule)| {
            Step::new(rule, &config.state, reader).map_err(|what| format!("step {}: {what}", n + 1))
        });
        let steps = steps.collect::<Result<_, String>>()?;
        let PromptConfig { zh, en, known, most_messages } = config.prompt;
        let in_prompt = |what: String| format!("prompt: {what}");
        let instructions = Texts::new(&Bilingual { zh, en }, |name| name == "today").map_err(in_prompt)?;
        let known_so_far = Texts::new(&known, |name| name == "slots").map_err(in_prompt)?;
        if let Some(label) = config.label.iter().find(|label| !SLOTS.contains(&label.slot.as_str())) {
            return Err(format!("label: there is no slot `{}`", label.slot));
        }
        Ok(Machine {
            states: config.state,
            steps,
            labels: config.label,
            instructions,
            known_so_far,
            most_messages,
        })
    }

    /// What every prompt of a dialog begins with. It changes with the day and with nothing else, so that it is read once.
    pub fn instructions(&self, language: Language, today: Option<&str>) -> String {
        let today = today.unwrap_or("?");
        self.instructions.of(language).render(|_| Some(today.to_owned())).unwrap_or_default()
    }

    /// What is put before the user's words; `slots` is JSON.
    pub fn known(&self, language: Language, slots: &str) -> String {
        self.known_so_far.of(language).render(|_| Some(slots.to_owned())).unwrap_or_default()
    }

    /// Whether a text is a reply of one of the steps.
    pub fn is_reply(&self, text: &str) -> bool {
        let replies = self.steps.iter().filter_map(|step| step.reply.as_ref());
        replies.flat_map(|reply| [&reply.zh, &reply.en]).any(|reply| reply.could_be(text))
    }

    /// Whether these messages are surely all of the dialog, and can be written again as they were: calls of tools cannot.
    pub fn is_whole(&self, recent: &[Message]) -> bool {
        let is_text = |message: &Message| match message.role {
            Role::Tool => false,
            Role::Assistant => !message.text.is_empty(),
            Role::System | Role::User => true,
        };
        recent.len() <= self.most_messages && recent.iter().all(is_text)
    }

    /// The state of that name, or that of a new dialog.
    pub fn state(&self, name: &str) -> &StateConfig {
        self.states.iter().find(|state| state.name == name).unwrap_or(&self.states[0])
    }

    /// The first step that applies; without one the state stays, the slots are kept and the model answers.
    pub fn turn(&self, reader: &Reader, text: &Text<'_>, reading: &Reading, before: &Before<'_>) -> Outcome {
        let state = self.state(before.state);
        let facts = Facts::new(reader, text, reading, before, state);
        self.steps.iter().find_map(|step| self.take(step, &facts)).unwrap_or_else(|| Outcome {
            state: state.name.clone(),
            set: reading.slots.clone(),
            clear: Vec::new(),
            go: Go::Model,
        })
    }

    fn take(&self, step: &Step, facts: &Facts<'_, '_>) -> Option<Outcome> {
        // What is known takes time to gather, and most steps are out of the question without it.
        let known = step.may_apply(facts).then(|| facts.known(&step.rule))?;
        if !step.applies(facts, &known) {
            return None;
        }
        let language = facts.before.language;
        let go = match &step.reply {
            Some(reply) => Go::Answer(reply.of(language).render(|name| self.value(name, &known, facts))?),
            None if step.rule.prompt => Go::Prompt(self.facts(&known, facts)),
            None => Go::Model,
        };
        let (set, clear) = changes(step, facts, &known);
        let state = step.rule.go.clone().unwrap_or_else(|| facts.state.name.clone());
        Some(Outcome { state, set, clear, go })
    }

    /// This policy's slots as data for the model.
    fn facts(&self, known: &Known<'_>, facts: &Facts<'_, '_>) -> Vec<Fact> {
        let slots = known.iter().filter(|(name, _)| SLOTS.contains(name));
        let fact = |(name, value): (&&str, &&Value)| {
            let text = shown(value, name, facts.before.language, facts.reader);
            let json = as_json(value, &text);
            Fact { name: (*name).to_owned(), text, json, is_new: facts.said(name).is_some() }
        };
        slots.map(fact).collect()
    }

    /// A slot as a reply shows it; `changes` lists the labelled ones.
    fn value(&self, name: &str, known: &Known<'_>, facts: &Facts<'_, '_>) -> Option<String> {
        let language = facts.before.language;
        if name != "changes" {
            return known.get(name).map(|value| shown(value, name, language, facts.reader));
        }
        let listed: Vec<String> = self
            .labels
            .iter()
            .filter_map(|label| {
                let value = shown(known.get(label.slot.as_str())?, &label.slot, language, facts.reader);
                let title = if language == Language::Chinese { &label.zh } else { &label.en };
                Some(format!("{title} {value}"))
            })
            .collect();
        let comma = if language == Language::Chinese { "，" } else { ", " };
        (!listed.is_empty()).then(|| listed.join(comma))
    }
}

type Known<'a> = BTreeMap<&'a str, &'a Value>;

/// What the conditions of a step look at.
struct Facts<'a, 't> {
    reader: &'a Reader,
    text: &'a Text<'t>,
    reading: &'a Reading,
    before: &'a Before<'a>,
    state: &'a StateConfig,
    action: Option<usize>,
    answer: Option<AnswerConfig>,
}

impl<'a, 't> Facts<'a, 't> {
    fn new(
        reader: &'a Reader,
        text: &'a Text<'t>,
        reading: &'a Reading,
        before: &'a Before<'a>,
        state: &'a StateConfig,
    ) -> Self {
        let pending =
            before.slots.iter().find(|slot| state.pending && slot.name == "action").and_then(|slot| {
                match &slot.value {
                    Value::Choice(name) | Value::Text(name) => reader.actions().number(name),
                    _ => None,
                }
            });
        let action = reading.action.or(pending);
        let answer = reader.answer(text, reading, pending);
        Facts { reader, text, reading, before, state, action, answer }
    }

    /// Slots of the dialog and of this turn, without stale ones: those that `fresh` names and nobody said now, unless an
    /// action of an earlier turn is still pending.
    fn known(&self, rule: &StepConfig) -> Known<'a> {
        let stale = |name: &str| !self.state.pending && rule.fresh.iter().any(|fresh| fresh == name);
        let old = self.before.slots.iter().filter(|slot| !stale(&slot.name));
        old.chain(&self.reading.slots).map(|slot| (slot.name.as_str(), &slot.value)).collect()
    }

    fn said(&self, name: &str) -> Option<&Slot> {
        self.reading.slots.iter().find(|slot| slot.name == name)
    }

    fn changed(&self, name: &str) -> bool {
        let old = self.before.slots.iter().find(|slot| slot.name == name);
        self.said(name).is_some_and(|slot| old.is_none_or(|old| old.value != slot.value))
    }
}

impl Step {
    fn new(rule: StepConfig, states: &[StateConfig], reader: &Reader) -> Result<Step, String> {
        let slot = |name: &str| SLOTS.contains(&name);
        if let Some(name) =
            rule.from.iter().chain(&rule.go).find(|name| !states.iter().any(|s| s.name == **name))
        {
            return Err(format!("there is no state `{name}`"));
        }
        let lists = [&rule.said_any, &rule.changed_any, &rule.has, &rule.missing, &rule.clear, &rule.fresh];
        if let Some(name) = lists.into_iter().flatten().find(|name| !slot(name)) {
            return Err(format!("there is no slot `{name}`"));
        }
        if let Some(topic) = rule.topic.as_ref().filter(|topic| !reader.has_topic(topic)) {
            return Err(format!("there is no topic `{topic}`"));
        }
        if rule.prompt && rule.reply.is_some() {
            return Err("either `reply` or `prompt`, not both".into());
        }
        let action = match &rule.action {
            Some(name) => {
                Some(reader.actions().number(name).ok_or_else(|| format!("there is no action `{name}`"))?)
            }
            None => None,
        };
        let reply = match &rule.reply {
            Some(texts) if texts.zh.trim().is_empty() || texts.en.trim().is_empty() => {
                return Err("an empty reply".into());
            }
            Some(texts) => Some(Texts::new(texts, |name| slot(name) || name == "changes")?),
            None => None,
        };
        Ok(Step { rule, action, reply })
    }

    /// The conditions that need no look at what is known.
    fn may_apply(&self, facts: &Facts<'_, '_>) -> bool {
        let rule = &self.rule;
        let here = rule.from.is_empty() || rule.from.contains(&facts.state.name);
        let wanted = rule.action.is_none() || facts.action == self.action;
        here && wanted
            && (!rule.no_action || facts.action.is_none())
            && (rule.answer.is_none() || facts.answer == rule.answer)
            && rule.rest_at_most.is_none_or(|most| facts.reading.rest <= most)
            && (rule.said_any.is_empty() || rule.said_any.iter().any(|name| facts.said(name).is_some()))
            && (rule.changed_any.is_empty() || rule.changed_any.iter().any(|name| facts.changed(name)))
    }

    fn applies(&self, facts: &Facts<'_, '_>, known: &Known<'_>) -> bool {
        let rule = &self.rule;
        rule.has.iter().all(|name| known.contains_key(name.as_str()))
            && !rule.missing.iter().any(|name| known.contains_key(name.as_str()))
            && rule.topic.as_ref().is_none_or(|topic| facts.reader.speaks_of(topic, facts.text))
    }
}

/// What a step writes: no slot is both set and forgotten.
fn changes(step: &Step, facts: &Facts<'_, '_>, known: &Known<'_>) -> (Vec<Slot>, Vec<String>) {
    let forgotten = |name: &str| step.rule.clear.iter().any(|clear| clear == name);
    let set = facts.reading.slots.iter().filter(|slot| !forgotten(&slot.name)).cloned().collect();
    let clear = facts.before.slots.iter().map(|slot| &slot.name);
    let clear = clear.filter(|name| forgotten(name) || !known.contains_key(name.as_str())).cloned().collect();
    (set, clear)
}

fn shown(value: &Value, name: &str, language: Language, reader: &Reader) -> String {
    match value {
        Value::Choice(city) if name == "city" && language == Language::English => {
            reader.cities().english(city).to_owned()
        }
        Value::Text(text) | Value::Date(text) | Value::Choice(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Boolean(yes) => yes.to_string(),
    }
}

/// A value as data for the model: what it is shown as, or its number.
fn as_json(value: &Value, shown: &str) -> serde_json::Value {
    match value {
        Value::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => (*number as i64).into(),
        Value::Number(number) => (*number).into(),
        Value::Boolean(yes) => (*yes).into(),
        Value::Text(_) | Value::Date(_) | Value::Choice(_) => shown.into(),
    }
}

/// Whether a value stands in a text, and not within a longer word or number.
fn says(text: &str, value: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
    text.match_indices(value).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + value.len()..]);
        is_edge(before.chars().next_back()) && is_edge(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_whole_values_only() {
        assert!(says("查一下AB-12345678到哪了", "AB-12345678"));
        assert!(says("3 of them, not 33", "3"));
        assert!(!says("33 of them", "3"));
        assert!(!says("X12345678", "12345678"));
    }
}
