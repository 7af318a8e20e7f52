//! The shape of `rules.toml`.

use serde::Deserialize;

/// The rule file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// When it is worth it.
    pub when: When,
    /// What the model is asked.
    pub score: Score,
    /// How much the words of a class weigh.
    pub weight: Weight,
    /// Say nothing: the first to go, and the model is not asked.
    pub filler: Words,
    /// Say nothing where a pause follows.
    #[serde(default)]
    pub pause: Words,
    /// Hold a sentence together; a reader can do without most of them.
    pub function: Words,
    /// Chinese words that are kept or dropped whole, and that hide characters of other lists.
    pub word: Words,
    /// Never dropped, nor what they negate.
    pub negation: Words,
    /// Verbs that say what is wanted or done: never dropped. English ones in every form.
    pub verb: Words,
    /// Names of times: never dropped.
    pub time: Words,
    /// Words that turn the meaning around: never dropped.
    pub keep: Words,
    /// What is counted: never dropped behind a number.
    pub unit: Words,
    /// A name follows.
    pub name_after: Words,
    /// A name stands before.
    pub name_before: Words,
}

/// A list in both languages.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// Chinese.
    #[serde(default)]
    pub zh: Vec<String>,
    /// English.
    #[serde(default)]
    pub en: Vec<String>,
}

impl Words {
    /// Of both languages.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        self.zh.iter().chain(&self.en)
    }
}

/// `[when]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Prompts of fewer tokens are left alone.
    pub least_prompt_tokens: u32,
    /// Roles whose messages may be edited.
    pub roles: Vec<EditedRole>,
}

/// A role whose messages may be edited. The system's and a tool's never are, nor is the last message of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EditedRole {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// `[score]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// The model is asked of a message with so many bytes of words that could go.
    pub least_bytes: usize,
    /// Of a longer message the model reads so many leading bytes.
    pub most_bytes: usize,
    /// What it reads of all messages of a call.
    pub most_total_bytes: usize,
    /// Surprisal of function words that the model has not judged, in bits.
    pub unjudged_bits: f32,
    /// A word above so many bits, weighted, stays, however small the budget is.
    pub most_bits: f32,
    /// What happens when the model cannot be asked.
    pub when_unavailable: Unavailable,
}

/// What happens when the model cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unavailable {
    /// Fillers and function words go by the lists alone.
    Rules,
    /// Nothing is edited.
    Keep,
}

/// `[weight]`: the surprisal of a word is multiplied by that of its class; the lowest product goes first.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    /// Of function words.
    pub function: f32,
    /// Of other words.
    pub content: f32,
    /// Of Chinese characters that belong to no known word.
    pub character: f32,
}

impl Config {
    /// # Errors
    /// The first number that cannot be meant.
    pub fn validate(&self) -> Result<(), String> {
        let Weight { function, content, character } = self.weight;
        let numbers = [
            ("weight.function", function),
            ("weight.content", content),
            ("weight.character", character),
            ("score.unjudged_bits", self.score.unjudged_bits),
            ("score.most_bits", self.score.most_bits),
        ];
        match numbers.iter().find(|(_, number)| !number.is_finite() || *number < 0.0) {
            Some((name, _)) => Err(format!("{name} must be a number from 0 on")),
            None => Ok(()),
        }
    }
}
