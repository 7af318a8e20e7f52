//! What the tests share: the policy with its own rules, a host that is a function of the text, and prompts.

#![allow(dead_code, unreachable_pub)] // Each test file uses a part.

use compress_salient::rules::Config;
use compress_salient::{CompressSalient, Host};
use jackfield_sdk::compression::{Budget, Part};
use jackfield_sdk::imports::saliency::Scored;
use jackfield_sdk::text::is_han;
use jackfield_sdk::{Edit, Message, Policy, Role, Span};
use std::cell::{Cell, RefCell};
use std::path::Path;

pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn rules() -> String {
    std::fs::read_to_string(folder().join("rules.toml")).expect("rules.toml is there")
}

pub fn configured(rules: &str) -> Result<CompressSalient, String> {
    CompressSalient::configure(toml::from_str::<Config>(rules).expect("rules.toml fits"))
}

/// With the shipped rules, short prompts and messages included, and whatever a word says it may go.
pub fn policy() -> CompressSalient {
    let rules = rules().replace("least_prompt_tokens = 64", "least_prompt_tokens = 0");
    let rules = rules.replace("most_bits = 6.0", "most_bits = 1000.0");
    configured(&rules.replace("least_bytes = 48", "least_bytes = 1")).expect("valid")
}

/// A model of its own: a token is a word with the space before it, cut after each eighth letter, or any other character.
#[derive(Default)]
pub struct Words {
    pub refuses: bool,
    pub scored: RefCell<Vec<String>>,
    pub counted_bytes: Cell<usize>,
}

impl Words {
    pub fn ends(text: &str) -> Vec<u32> {
        let mut ends = Vec::new();
        let mut letters = 0;
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            letters += 1;
            let joins = |next: char| next.is_alphanumeric() && !is_han(next);
            let goes_on = (c == ' ' || joins(c)) && letters < 8;
            if !(goes_on && chars.peek().is_some_and(|(_, next)| joins(*next))) {
                ends.push((at + c.len_utf8()) as u32);
                letters = 0;
            }
        }
        ends
    }
}

impl Host for Words {
    fn count(&self, text: &str) -> u32 {
        self.counted_bytes.set(self.counted_bytes.get() + text.len());
        Words::ends(text).len() as u32
    }

    /// The more seldom its letters, by their sum, the more surprising.
    fn score(&self, text: &str) -> Result<Vec<Scored>, String> {
        self.scored.borrow_mut().push(text.to_owned());
        if self.refuses {
            return Err("busy".into());
        }
        let mut start = 0;
        let scored = Words::ends(text).into_iter().map(|end| {
            let token = &text[start..end as usize];
            start = end as usize;
            let sum = token.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            Scored { end, surprisal_bits: (sum % 160) as f32 / 10.0 }
        });
        Ok(scored.collect())
    }
}

pub fn part(role: Role, text: &str) -> Part {
    Part { message: Message { role, text: text.into() }, protected: vec![], cached_bytes: 0 }
}

/// A message before the question.
pub fn before_question(text: &str) -> Vec<Part> {
    vec![part(Role::User, text), part(Role::User, "And the price?")]
}

pub fn prompt_tokens(parts: &[Part]) -> u32 {
    parts.iter().map(|part| Words::ends(&part.message.text).len() as u32).sum()
}

/// All that may go, as a budget.
pub fn nothing_left(parts: &[Part]) -> Budget {
    Budget { keep_tokens: 0, prompt_tokens: prompt_tokens(parts), us_per_token: 2000.0 }
}

/// The texts after the edits; the host's checks on the way.
pub fn applied(parts: &[Part], edits: &[Edit]) -> Vec<String> {
    let mut texts: Vec<String> = parts.iter().map(|part| part.message.text.clone()).collect();
    let mut end = (0, 0);
    for edit in edits {
        let start = (edit.message, edit.at.start);
        assert!(end == (0, 0) || end < start, "edits rise, and do not touch");
        assert!(edit.at.start < edit.at.end && edit.replacement.is_empty(), "edits drop something");
        end = (edit.message, edit.at.end);
        for Span { start, end } in &parts[edit.message as usize].protected {
            assert!(edit.at.end <= *start || *end <= edit.at.start, "a protected span was touched");
        }
    }
    for edit in edits.iter().rev() {
        texts[edit.message as usize].replace_range(edit.at.range(), "");
    }
    texts
}
