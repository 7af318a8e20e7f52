//! Lists of phrases, found by their first scalar, the longest first.

use crate::text::{View, fold};
use std::collections::BTreeMap;

/// A list of phrases.
#[derive(Debug, Default)]
pub struct Phrases {
    by_first: BTreeMap<char, Vec<Vec<char>>>,
}

impl Phrases {
    /// Gathers phrases.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a String>) -> Self {
        let mut by_first: BTreeMap<char, Vec<Vec<char>>> = BTreeMap::new();
        for text in texts {
            let phrase: Vec<char> = text.trim().chars().map(fold).collect();
            if let Some(first) = phrase.first() {
                by_first.entry(*first).or_default().push(phrase);
            }
        }
        for phrases in by_first.values_mut() {
            phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.len()));
        }
        Phrases { by_first }
    }

    /// End of the longest phrase that starts at `at`. English ones stand at the edges of words.
    pub fn longest_at(&self, view: &View<'_>, at: usize) -> Option<usize> {
        let first = view.get(at)?;
        if !is_edge(first, view.before(at)) {
            return None;
        }
        self.by_first.get(&first)?.iter().find_map(|phrase| end_of(phrase, view, at))
    }
}

fn end_of(phrase: &[char], view: &View<'_>, at: usize) -> Option<usize> {
    let mut end = at;
    for &c in phrase {
        if view.get(end) != Some(c) {
            return None;
        }
        end += 1;
        while c == ' ' && view.get(end) == Some(' ') {
            end += 1;
        }
    }
    is_edge(*phrase.last()?, view.get(end)).then_some(end)
}

/// Whether a phrase may begin or end in `inner` beside `outer`.
fn is_edge(inner: char, outer: Option<char>) -> bool {
    !inner.is_ascii_alphanumeric()
        || !outer.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '\'' | '-' | '_' | '@'))
}
