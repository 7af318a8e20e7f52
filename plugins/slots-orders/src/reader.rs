//! All that one utterance says: its slots, its wishes, and what was not understood.

use crate::actions::{Actions, Wish};
use crate::civil::Day;
use crate::config::{AnswerConfig, Config, Expects};
use crate::dates::{Calendar, Mention, mentions, pick};
use crate::entities::{Cities, Found, Orders, Quantities, one_phone, phones};
use crate::taken::Taken;
use crate::text::{Phrases, Text, is_clause_end};
use crate::times;
use jackfield_sdk::{Slot, Span, Value};
use std::collections::BTreeMap;
use std::ops::Range;

/// Reads utterances by the rules.
pub struct Reader {
    orders: Orders,
    quantities: Quantities,
    cities: Cities,
    actions: Actions,
    date_targets: Phrases,
    rollover_days: i64,
    topics: BTreeMap<String, Phrases>,
}

/// What one utterance says.
pub struct Reading {
    /// Slots, each name once.
    pub slots: Vec<Slot>,
    /// Number of the action that is wanted.
    pub action: Option<usize>,
    /// Wishes, denied ones too.
    pub wishes: Vec<Wish>,
    /// Letters, digits and Chinese characters outside slots and order words.
    pub rest: usize,
}

impl Reader {
    /// Compiles the rules.
    pub fn new(config: &Config) -> Result<Self, String> {
        let phrases = |words: &[String]| Phrases::new(words.iter().map(String::as_str));
        Ok(Reader {
            orders: Orders::new(&config.order, &config.phone)?,
            quantities: Quantities::new(&config.quantity),
            cities: Cities::new(&config.city)?,
            actions: Actions::new(&config.action, &config.negation, &config.answers),
            date_targets: phrases(&config.dates.targets),
            rollover_days: i64::from(config.dates.rollover_days),
            topics: config.topic.iter().map(|(name, words)| (name.clone(), phrases(words))).collect(),
        })
    }

    /// The actions of the rules.
    pub fn actions(&self) -> &Actions {
        &self.actions
    }

    /// The cities of the rules.
    pub fn cities(&self) -> &Cities {
        &self.cities
    }

    /// Whether there is a topic of that name.
    pub fn has_topic(&self, name: &str) -> bool {
        self.topics.contains_key(name)
    }

    /// Whether the utterance has a word of the topic.
    pub fn speaks_of(&self, topic: &str, text: &Text<'_>) -> bool {
        self.topics.get(topic).is_some_and(|words| words.find_in(text, 0..text.len()).is_some())
    }

    /// What a yes-or-no question about `action` got.
    pub fn answer(&self, text: &Text<'_>, reading: &Reading, action: Option<usize>) -> Option<AnswerConfig> {
        self.actions.answer(text, &reading.wishes, action)
    }

    /// Reads an utterance. Without `today` there are no dates; `asked` is what the dialog has
    /// just asked for.
    pub fn read(&self, text: &Text<'_>, today: Option<Day>, asked: Option<Expects>) -> Reading {
        let mut phones = phones(text);
        phones.retain(|phone| !self.orders.called_order(text, phone.at.start));
        let mut mentions = today.map_or_else(Vec::new, |today| {
            mentions(text, Calendar { today, rollover_days: self.rollover_days })
        });
        let mut taken = Taken::default();
        taken.add(phones.iter().map(|p| p.at.clone()));
        mentions.retain(|m| !taken.touches(&m.at));
        taken.add(mentions.iter().map(|m| m.at.clone()));
        let order = self.orders.find(text, &taken, asked == Some(Expects::Order));
        taken.add(order.iter().map(|o| o.at.clone()));

        let wishes = self.actions.find(text);
        let wanted = self.actions.wanted(&wishes).cloned();
        let slots = Slots { text, all: Vec::new() }
            .text("order", order)
            .text("phone", one_phone(&phones))
            .date(pick(
                text,
                &mentions,
                &self.date_targets,
                wanted.as_ref().is_some_and(|w| self.actions.name(w.action) == "change"),
            ))
            .time(&taken)
            .choice("city", self.cities.find(text))
            .quantity(self.quantities.find(
                text,
                &taken,
                asked == Some(Expects::Change),
                self.actions.denied(text),
            ))
            .choice(
                "action",
                wanted
                    .as_ref()
                    .map(|w| Found { at: w.at.clone(), value: self.actions.name(w.action).to_owned() }),
            )
            .all;
        let rest = self.rest(text, &slots);
        Reading { slots, action: wanted.map(|w| w.action), wishes, rest }
    }

    /// Scalars that carry meaning (letters, digits, Chinese characters) outside of slots and order words.
    fn rest(&self, text: &Text<'_>, slots: &[Slot]) -> usize {
        let spans: Vec<_> = slots.iter().filter_map(|slot| slot.source.as_ref()).map(Span::range).collect();
        let mut word_end = 0;
        let mut rest = 0;
        for at in 0..text.len() {
            if let Some((end, _)) = self.orders.words().longest_at(text, at) {
                word_end = word_end.max(end);
            }
            let start = text.bytes(&(at..at + 1)).start;
            let explained = at < word_end || spans.iter().any(|span| span.contains(&start));
            let means = text.get(at).is_some_and(|c| c.is_alphanumeric() && !is_clause_end(c));
            rest += usize::from(means && !explained);
        }
        rest
    }
}

/// Gathers slots with the bytes they came from.
struct Slots<'t, 's> {
    text: &'t Text<'s>,
    all: Vec<Slot>,
}

impl Slots<'_, '_> {
    fn push(mut self, name: &str, at: &Range<usize>, value: Value, confidence: f32) -> Self {
        let source = Some(Span::new(self.text.bytes(at)));
        self.all.push(Slot { name: name.to_owned(), value, source, confidence });
        self
    }

    fn text(self, name: &str, found: Option<Found<String>>) -> Self {
        match found {
            Some(found) => self.push(name, &found.at, Value::Text(found.value), 1.0),
            None => self,
        }
    }

    fn choice(self, name: &str, found: Option<Found<String>>) -> Self {
        match found {
            Some(found) => self.push(name, &found.at, Value::Choice(found.value), 1.0),
            None => self,
        }
    }

    fn date(self, mention: Option<Mention>) -> Self {
        match mention.and_then(|m| Some((m.when?.iso()?, m.at, m.confidence))) {
            Some((iso, at, confidence)) => self.push("date", &at, Value::Date(iso), confidence),
            None => self,
        }
    }

    fn time(self, taken: &Taken) -> Self {
        match times::find(self.text) {
            // 今晚 is of the date, 晚八点 of the time: they may share that scalar.
            Some(time) if !taken.touches(&(time.at.start + 1..time.at.end)) => {
                self.push("time", &time.at, Value::Text(time.value), 1.0)
            }
            _ => self,
        }
    }

    fn quantity(self, found: Option<Found<u32>>) -> Self {
        match found {
            Some(found) => self.push("quantity", &found.at, Value::Number(f64::from(found.value)), 1.0),
            None => self,
        }
    }
}
