use std::collections::BTreeMap;

use serde::Deserialize;

/// `rules.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What a plan has when its rule does not say.
    pub default: PlanFields,
    /// In order; the first that fits decides.
    pub rule: Vec<Rule>,
}

/// One `[[rule]]`: when it fits, and exactly one of plan, answer and refuse.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name; comes back as the attribute `rule` of a plan.
    pub name: String,
    /// When it fits; always, if left out.
    #[serde(default)]
    pub when: When,
    /// Run so.
    pub plan: Option<PlanFields>,
    /// Say this.
    pub answer: Option<Words>,
    /// Refuse so.
    pub refuse: Option<Refuse>,
}

/// All that is written must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// The caller's task is one of these.
    pub task: Option<Vec<String>>,
    /// The tenant is one of these.
    pub tenant: Option<Vec<String>>,
    /// The locale is one of these.
    pub locale: Option<Vec<String>>,
    /// The model asked for is one of these.
    pub model: Option<Vec<String>>,
    /// At least one of these stands in the user's last message.
    pub any: Option<Vec<String>>,
    /// All of these do.
    pub all: Vec<String>,
    /// None of these does.
    pub none: Vec<String>,
    /// Length of the prompt, in tokens.
    pub prompt_tokens: Bounds,
    /// Number of messages.
    pub messages: Bounds,
    /// Requests in the shortest queue of the fleet.
    pub queue: Bounds,
    /// What is known of these slots.
    pub slots: BTreeMap<String, SlotIs>,
}

/// Both ends included.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bounds {
    /// At least this.
    pub min: Option<u32>,
    /// At most this.
    pub max: Option<u32>,
}

/// What a rule wants of a slot.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum SlotIs {
    /// Known, or not known. A slot that holds a boolean fits when it holds this one.
    Known(bool),
    /// Holds this number.
    Number(f64),
    /// Holds this text, choice or date.
    Text(String),
}

/// Fields of a plan.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlanFields {
    /// A model, or `least-busy`.
    pub target: Option<String>,
    /// What the target does; generate when left out.
    pub mode: Option<Mode>,
    /// The task named to the model's side; the caller's own when left out.
    pub task: Option<String>,
    /// 0 is the most urgent.
    pub priority: Option<u8>,
    /// Give up after this time, in milliseconds.
    pub deadline_ms: Option<u32>,
    /// Upper bound on new tokens.
    pub max_tokens: Option<u32>,
    /// Tokens a drafter may propose a step.
    pub draft_tokens: Option<u8>,
    /// Probability from which an early exit is taken.
    pub exit_threshold: Option<f32>,
    /// Share of the prompt's tokens to keep.
    pub compress_to: Option<f32>,
    /// Tokens and probabilities only.
    pub minimal_output: Option<bool>,
    /// Keep the prompt's cache so long, in seconds.
    pub keep_cache_s: Option<u32>,
    /// Texts that end the answer.
    pub stop: Option<Vec<String>>,
    /// The answer is JSON of this schema, itself written as JSON.
    pub json_schema: Option<String>,
    /// The answer matches this regex.
    pub regex: Option<String>,
}

/// What a target can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Write text.
    Generate,
    /// Choose a label.
    Classify,
    /// Give a vector.
    Embed,
}

/// A text, in one language or two.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// The same for everybody.
    One(String),
    /// By the language of the turn.
    Both {
        /// In Chinese.
        zh: String,
        /// In English, and for every other language.
        en: String,
    },
}

/// A refusal.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refuse {
    /// 400 to 599.
    pub status: u16,
    /// Why, for the user.
    pub reason: Words,
}
