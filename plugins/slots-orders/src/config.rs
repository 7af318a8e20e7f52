//! The shape of `rules.toml`, as it arrives in JSON. Nothing is interpreted here.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The whole rule file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How an order number looks.
    pub order: OrderConfig,
    /// How dates are read.
    pub dates: DateConfig,
    /// How phone numbers are told from order numbers.
    pub phone: PhoneConfig,
    /// How a quantity is said.
    pub quantity: QuantityConfig,
    /// The cities.
    pub city: CityConfig,
    /// What a customer may want.
    pub action: Vec<ActionConfig>,
    /// How it is said that it is not wanted.
    pub negation: NegationConfig,
    /// How a question is confirmed or denied.
    pub answers: AnswersConfig,
    /// Named lists of words that a step can ask for.
    #[serde(default)]
    pub topic: BTreeMap<String, Vec<String>>,
    /// Slots that `{changes}` lists, in this order.
    #[serde(default)]
    pub label: Vec<LabelConfig>,
    /// What a model is given where it is needed.
    pub prompt: PromptConfig,
    /// The states of the dialog.
    pub state: Vec<StateConfig>,
    /// What happens, the first that applies.
    pub step: Vec<StepConfig>,
}

/// A text in both languages.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bilingual {
    /// Chinese.
    pub zh: String,
    /// English.
    pub en: String,
}

/// `[prompt]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptConfig {
    /// The instructions, in Chinese. `{today}` may stand in them.
    pub zh: String,
    /// The same in English.
    pub en: String,
    /// What is put before the user's words where they do not say all that is known; `{slots}` is one line of JSON.
    pub known: Bilingual,
    /// A dialog of more messages is not given whole. No more than the host shows of one, less one.
    pub most_messages: usize,
}

/// `[order]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderConfig {
    /// Codes with letters.
    pub patterns: Vec<PatternConfig>,
    /// Fewest digits of a number without letters.
    pub least_digits: usize,
    /// Most digits of a number without letters.
    pub most_digits: usize,
    /// Words before a number that make it an order number.
    pub words: Vec<String>,
    /// Words that say so beyond doubt, even of what looks like a phone number.
    pub number_words: Vec<String>,
    /// Scalars that may lie between the word and the number.
    pub reach: usize,
    /// Short words that are not the letters of a code.
    pub not_codes: Vec<String>,
}

/// One pattern of an order number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternConfig {
    /// In the language of the rule file's first section.
    pub pattern: String,
    /// Only after one of the order words.
    #[serde(default)]
    pub after_word: bool,
}

/// `[dates]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DateConfig {
    /// How near a date of another year must be to be meant when the year is left out.
    pub rollover_days: u16,
    /// Words right before the one date that is meant.
    pub targets: Vec<String>,
}

/// `[phone]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhoneConfig {
    /// Words before a number that make it a phone number.
    pub words: Vec<String>,
}

/// `[quantity]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuantityConfig {
    /// Words right before the number.
    pub triggers: Vec<String>,
    /// Words after which a number needs no unit.
    pub names: Vec<String>,
    /// Units right after the number.
    pub units: Vec<String>,
    /// What may not follow the unit.
    pub not_before: Vec<String>,
}

/// `[city]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CityConfig {
    /// Each city: its Chinese name (the slot's value), its English name, further names.
    pub names: Vec<Vec<String>>,
    /// What may not follow a name: a road or a dish is no city.
    pub not_before: Vec<String>,
    /// What may not stand before a name.
    pub not_after: Vec<String>,
    /// Whole words in which a name is only letters.
    pub traps: Vec<String>,
    /// Words right before the one city that is meant.
    pub targets: Vec<String>,
}

/// `[[action]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionConfig {
    /// The slot's value.
    pub name: String,
    /// Of several in one utterance the highest is meant; of two at the same rank neither.
    pub rank: u8,
    /// How it is said.
    pub words: Vec<String>,
    /// Words of the same clause with which it is not meant.
    #[serde(default)]
    pub unless: Vec<String>,
}

/// `[negation]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NegationConfig {
    /// Words that deny what follows in the clause.
    pub words: Vec<String>,
    /// Forms that hold such a word and deny nothing.
    pub not: Vec<String>,
    /// Words after which a new wish starts.
    pub resets: Vec<String>,
    /// How far a denial reaches, in scalars for Chinese and in words for English.
    pub reach: usize,
}

/// `[answers]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswersConfig {
    /// Confirms.
    pub yes: Vec<String>,
    /// Denies.
    pub no: Vec<String>,
    /// Could be either.
    pub unclear: Vec<String>,
    /// Says nothing.
    pub filler: Vec<String>,
}

/// `[[label]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelConfig {
    /// Name of the slot.
    pub slot: String,
    /// How it is called in Chinese.
    pub zh: String,
    /// How it is called in English.
    pub en: String,
}

/// `[[state]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateConfig {
    /// Name of the state.
    pub name: String,
    /// The action of an earlier turn is still wanted here.
    #[serde(default)]
    pub pending: bool,
    /// What was asked for, and may then be said in fewer words.
    #[serde(default)]
    pub expects: Option<Expects>,
}

/// What a state has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expects {
    /// The order number: bare digits will do.
    Order,
    /// What to change: a number and its unit are a quantity without a word of wanting.
    Change,
}

/// `[[step]]`: all conditions must hold.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepConfig {
    /// States in which it applies; none means all.
    #[serde(default)]
    pub from: Vec<String>,
    /// The action wanted now.
    #[serde(default)]
    pub action: Option<String>,
    /// Nothing is wanted.
    #[serde(default)]
    pub no_action: bool,
    /// One of these slots was said in this turn.
    #[serde(default)]
    pub said_any: Vec<String>,
    /// One of these slots was said in this turn and has another value than before.
    #[serde(default)]
    pub changed_any: Vec<String>,
    /// All of these slots are known.
    #[serde(default)]
    pub has: Vec<String>,
    /// None of these slots is known.
    #[serde(default)]
    pub missing: Vec<String>,
    /// `yes`, `no` or `unclear`.
    #[serde(default)]
    pub answer: Option<AnswerConfig>,
    /// One of the words of this topic is in the utterance.
    #[serde(default)]
    pub topic: Option<String>,
    /// At most so many letters, digits and Chinese characters beside what was understood.
    #[serde(default)]
    pub rest_at_most: Option<usize>,
    /// The next state; none keeps the state.
    #[serde(default)]
    pub go: Option<String>,
    /// Answer with this text.
    #[serde(default)]
    pub reply: Option<Bilingual>,
    /// Go on to the model with the structured prompt.
    #[serde(default)]
    pub prompt: bool,
    /// Slots to forget.
    #[serde(default)]
    pub clear: Vec<String>,
    /// Of these slots keep only what was said in this turn. Applies before the reply is written.
    #[serde(default)]
    pub fresh: Vec<String>,
}

/// What a yes-or-no question got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerConfig {
    /// It was confirmed.
    Yes,
    /// It was denied.
    No,
    /// It was spoken of, but which is not sure.
    Unclear,
}
