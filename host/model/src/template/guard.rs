//! Marks in outside text, so that nothing in it can become a control token.
//!
//! A mark is a character that occurs nowhere in the conversation or the template, and that is dropped after
//! rendering. It stands behind the first character of every control token that outside text spells, in any
//! case, and of every beginning of one at the text's end; before a text that starts with the end of one, or
//! that is the inside of one. So neither the text alone nor its neighbours can complete a token.
//!
//! A template that cuts something out of the middle of a text could still close a gap (`<|im<think>_end|>`).
//! For that there is the strict marking, behind every character that could begin a token: nothing gets past
//! it, but a template that looks for `</think>` no longer finds it. It is the yardstick: only when the light
//! marking gives the same control tokens as the strict one is it used.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, MatchKind};

/// How much is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strength {
    /// What spells a control token.
    Light,
    /// Whatever could begin one.
    Strict,
}

/// What a string is in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A value, written out by the template.
    Value,
    /// The name of a field, which the template may look for.
    Key,
}

/// Words that templates compare with; inside `<function>` they would look like an attempt.
const VOCABULARY: &[&str] = &[
    "function", "object", "string", "number", "integer", "boolean", "array", "null", "true", "false", "enum",
];

/// Knows the control tokens.
pub(super) struct Guard {
    finder: AhoCorasick,
    /// Sorted, lower case.
    forwards: Vec<String>,
    /// Each reversed, sorted.
    backwards: Vec<String>,
    /// All of them, to look for a text inside.
    joined: String,
    /// What tokens begin with, and what they end in: most texts have neither at their edges, and need no further look.
    firsts: Vec<char>,
    lasts: Vec<char>,
    longest: usize,
}

impl Guard {
    /// None when the control tokens are too many to look for.
    pub(super) fn new(controls: &[String]) -> Option<Self> {
        let mut builder = AhoCorasick::builder();
        let finder =
            builder.match_kind(MatchKind::Standard).ascii_case_insensitive(true).build(controls).ok()?;
        let mut forwards: Vec<String> = controls.iter().map(|text| text.to_ascii_lowercase()).collect();
        let mut backwards: Vec<String> = forwards.iter().map(|text| text.chars().rev().collect()).collect();
        let firsts = set(forwards.iter().filter_map(|text| text.chars().next()));
        let lasts = set(forwards.iter().filter_map(|text| text.chars().next_back()));
        forwards.sort_unstable();
        backwards.sort_unstable();
        let longest = forwards.iter().map(String::len).max().unwrap_or(0);
        Some(Self { finder, joined: forwards.join("\0"), forwards, backwards, firsts, lasts, longest })
    }

    /// The text with its marks.
    pub(super) fn mark(&self, text: &str, place: Place, mark: char, strength: Strength) -> String {
        let mut at = Vec::new();
        match strength {
            Strength::Light => self.spelled(text, &mut at),
            Strength::Strict => self.beginnings(text, &mut at),
        }
        self.edges(text, place, &mut at);
        at.sort_unstable();
        at.dedup();
        let mut out = String::with_capacity(text.len() + 3 * at.len());
        let mut from = 0;
        for to in at {
            out.push_str(&text[from..to]);
            out.push(mark);
            from = to;
        }
        out.push_str(&text[from..]);
        out
    }

    /// Behind the first character of each control token in the text.
    fn spelled(&self, text: &str, at: &mut Vec<usize>) {
        at.extend(self.finder.find_overlapping_iter(text).map(|m| after_first(text, m.start())));
    }

    /// Behind each character that could begin one.
    fn beginnings(&self, text: &str, at: &mut Vec<usize>) {
        at.extend(self.starts(text).map(|(i, c)| i + c.len_utf8()));
    }

    /// The characters that could begin a token, and their places.
    fn starts<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, char)> + 'a {
        text.char_indices().filter(|(_, c)| self.firsts.binary_search(&c.to_ascii_lowercase()).is_ok())
    }

    /// Where a neighbour could complete a token; the same when the template trims the text.
    fn edges(&self, text: &str, place: Place, at: &mut Vec<usize>) {
        let left = text.len() - text.trim_start().len();
        let right = text.trim_end().len();
        self.open_end(text, text.len(), at);
        if right > left {
            self.open_end(text, right, at);
        }
        let inside = place == Place::Value && self.is_inside(text.trim());
        for start in [0, left] {
            if inside || self.closes(&text[start..]) {
                at.push(start);
            }
        }
    }

    /// Behind the first character of each beginning of a token that ends the text at `end`.
    fn open_end(&self, text: &str, end: usize, at: &mut Vec<usize>) {
        let window = floor(text, end.saturating_sub(self.longest));
        let tail = &text[window..end];
        let begins = |&(i, _): &(usize, char)| has_prefix(&self.forwards, &tail[i..].to_ascii_lowercase());
        at.extend(self.starts(tail).filter(begins).map(|(i, c)| window + i + c.len_utf8()));
    }

    /// Whether the text starts with the end of a token.
    fn closes(&self, text: &str) -> bool {
        let head = &text[..floor(text, self.longest)];
        let ends = |c: char| self.lasts.binary_search(&c.to_ascii_lowercase()).is_ok();
        head.char_indices().filter(|&(_, c)| ends(c)).any(|(i, c)| {
            let backwards = head[..i + c.len_utf8()].chars().rev();
            has_prefix(&self.backwards, &backwards.map(|c| c.to_ascii_lowercase()).collect::<String>())
        })
    }

    /// Whether the whole text is the inside of a token.
    fn is_inside(&self, text: &str) -> bool {
        if text.is_empty() || text.len() >= self.longest || VOCABULARY.contains(&text) {
            return false;
        }
        self.joined.contains(&text.to_ascii_lowercase())
    }
}

/// In order, each once.
fn set(chars: impl Iterator<Item = char>) -> Vec<char> {
    chars.collect::<BTreeSet<char>>().into_iter().collect()
}

/// Whether a sorted list has a string that begins with `prefix`.
fn has_prefix(sorted: &[String], prefix: &str) -> bool {
    let i = sorted.partition_point(|text| text.as_str() < prefix);
    sorted.get(i).is_some_and(|text| text.starts_with(prefix))
}

fn after_first(text: &str, start: usize) -> usize {
    start + text[start..].chars().next().map_or(0, char::len_utf8)
}

/// The last character boundary that is not after `i`.
fn floor(text: &str, i: usize) -> usize {
    (0..=i.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

/// A noncharacter that no string of the conversation holds.
pub(super) fn absent_mark(holds: impl Fn(char) -> bool) -> Option<char> {
    let planes = (0..=16u32).flat_map(|plane| [plane << 16 | 0xfffe, plane << 16 | 0xffff]);
    (0xfdd0..=0xfdef).chain(planes).filter_map(char::from_u32).find(|&c| !holds(c))
}
