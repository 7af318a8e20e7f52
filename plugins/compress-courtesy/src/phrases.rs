//! Lists of phrases, found by their first scalar, the longest first.

use crate::text::{View, fold, is_wide};
use std::collections::BTreeMap;

/// A list of phrases. One space of a phrase stands for any number, and between two Chinese characters for none as well:
/// 谢谢 大家 and 谢谢大家 are one.
#[derive(Debug, Default)]
pub struct Phrases {
    by_first: BTreeMap<char, Vec<Vec<char>>>,
}

impl Phrases {
    /// Gathers phrases.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a String>) -> Self {
        let mut by_first: BTreeMap<char, Vec<Vec<char>>> = BTreeMap::new();
        for text in texts {
            let phrase = even(text);
            if let Some(first) = phrase.first() {
                by_first.entry(*first).or_default().push(phrase);
            }
        }
        for phrases in by_first.values_mut() {
            phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.len()));
        }
        Phrases { by_first }
    }

    /// End of the longest phrase that starts at `at` and ends by `limit`. English ones stand at the edges of words.
    pub fn longest_at(&self, view: &View<'_>, at: usize, limit: usize) -> Option<usize> {
        let first = view.get(at)?;
        if !is_edge(first, view.before(at)) {
            return None;
        }
        self.by_first.get(&first)?.iter().find_map(|phrase| end_of(phrase, view, at, limit))
    }
}

/// A phrase folded, without spaces that say nothing.
fn even(text: &str) -> Vec<char> {
    let mut phrase: Vec<char> = Vec::new();
    for c in text.trim().chars().map(fold) {
        match phrase.as_slice() {
            [.., ' '] if c == ' ' => continue,
            [.., before, ' '] if is_wide(*before) && is_wide(c) => {
                phrase.pop();
            }
            _ => {}
        }
        phrase.push(c);
    }
    phrase
}

fn end_of(phrase: &[char], view: &View<'_>, at: usize, limit: usize) -> Option<usize> {
    let mut end = at;
    let mut before = ' ';
    for &c in phrase {
        if is_wide(before) && is_wide(c) {
            end = skip_spaces(view, end);
        }
        if end >= limit || view.get(end) != Some(c) {
            return None;
        }
        end += 1;
        if c == ' ' {
            end = skip_spaces(view, end);
        }
        before = c;
    }
    is_edge(*phrase.last()?, view.get(end)).then_some(end)
}

fn skip_spaces(view: &View<'_>, from: usize) -> usize {
    let mut at = from;
    while view.get(at) == Some(' ') {
        at += 1;
    }
    at
}

/// Whether a phrase may begin or end in `inner` beside `outer`.
fn is_edge(inner: char, outer: Option<char>) -> bool {
    !inner.is_ascii_alphanumeric()
        || !outer.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '\'' | '-' | '_' | '@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(phrases: &[&str], text: &str) -> Option<usize> {
        let phrases: Vec<String> = phrases.iter().map(|s| (*s).to_owned()).collect();
        Phrases::new(&phrases).longest_at(&View::new(text), 0, text.chars().count())
    }

    #[test]
    fn spaces_of_phrase_and_text_need_not_be_the_same() {
        assert_eq!(found(&["thank  you"], "thank you all"), Some(9));
        assert_eq!(found(&["thank you"], "thank   you"), Some(11));
        assert_eq!(found(&["thank you"], "thankyou"), None);
        assert_eq!(found(&["谢谢 大家"], "谢谢大家"), Some(4));
        assert_eq!(found(&["谢谢大家"], "谢谢　 大家"), Some(6));
        assert_eq!(found(&["谢谢", "谢谢 大家"], "谢谢 各位"), Some(2));
    }

    #[test]
    fn the_longest_that_ends_in_time_is_found() {
        let phrases = Phrases::new(&["谢谢".to_owned(), "谢谢大家".to_owned()]);
        let view = View::new("谢谢 大家");
        assert_eq!(phrases.longest_at(&view, 0, 5), Some(5));
        assert_eq!(phrases.longest_at(&view, 0, 4), Some(2));
        assert_eq!(phrases.longest_at(&view, 0, 1), None);
    }
}
