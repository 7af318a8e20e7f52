//! The shape of `rules.toml`, and the rules made ready.

use crate::guard;
use crate::phrases::Phrases;
use serde::Deserialize;

/// The rule file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// When it is worth it.
    pub when: When,
    /// Phrases that may be dropped where they are a clause of their own.
    pub whole: Words,
    /// Phrases that may be dropped from the start of a clause.
    pub lead: Words,
    /// Phrases that may be dropped from the end of a clause.
    pub tail: Words,
    /// Words that may be dropped anywhere in an English clause.
    pub inner: Words,
    /// Confirmations: of several in a row the last is kept.
    pub confirm: Words,
    /// Longer words that start like a phrase and are none: never dropped.
    pub trap: Words,
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

/// `[when]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Prompts of fewer tokens are left alone.
    pub least_prompt_tokens: u32,
    /// Savings below this are not worth an edit: in tokens that need not be computed.
    pub least_saved_tokens: f64,
    /// The same in microseconds of the target.
    pub least_saved_us: f64,
    /// What may be dropped from the last message of the user.
    pub last_user_message: LastMessage,
    /// Roles whose messages may be edited.
    pub roles: Vec<EditedRole>,
}

/// What may happen to the last message of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LastMessage {
    /// Byte for byte as it is.
    Keep,
    /// Courtesy at its very start and end may go; what lies between stays.
    Edges,
}

/// A role whose messages may be edited. The system's and a tool's never are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EditedRole {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// The rules, ready.
#[derive(Debug)]
pub struct Rules {
    /// When it is worth it.
    pub when: When,
    /// Whole clauses.
    pub whole: Phrases,
    /// Starts of clauses.
    pub lead: Phrases,
    /// Ends of clauses.
    pub tail: Phrases,
    /// English words anywhere.
    pub inner: Phrases,
    /// Confirmations.
    pub confirm: Phrases,
    /// Not to be touched.
    pub trap: Phrases,
}

impl Rules {
    /// Refuses phrases that could take a negation, a number or a quotation with them.
    pub fn new(config: Config) -> Result<Rules, String> {
        let lists = [
            ("whole", &config.whole),
            ("lead", &config.lead),
            ("tail", &config.tail),
            ("inner", &config.inner),
            ("confirm", &config.confirm),
        ];
        for (list, words) in lists {
            for phrase in words.zh.iter().chain(&words.en) {
                if let Some(why) = guard::refusal(phrase) {
                    return Err(format!("{list}: `{phrase}` {why}; it must not be dropped"));
                }
            }
        }
        let ready = |words: &Words| Phrases::new(words.zh.iter().chain(&words.en));
        let when = &config.when;
        if !when.least_saved_tokens.is_finite() || !when.least_saved_us.is_finite() {
            return Err("when: least_saved_tokens and least_saved_us must be numbers".into());
        }
        Ok(Rules {
            whole: ready(&config.whole),
            lead: ready(&config.lead),
            tail: ready(&config.tail),
            inner: ready(&config.inner),
            confirm: ready(&config.confirm),
            trap: ready(&config.trap),
            when: config.when,
        })
    }
}
