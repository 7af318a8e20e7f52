//! Clauses: what stands between two pieces of punctuation. Phrases are compared with whole clauses or with their
//! edges, never with letters inside one, so that 好的 is found in 好的，… and not in 好的公司.

use crate::text::{View, is_wide};
use std::ops::Range;

/// How much a piece of punctuation separates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// Nothing: the end of the text.
    None,
    /// A space beside Chinese text.
    Space,
    /// A comma, colon or dash.
    Comma,
    /// The end of a sentence.
    Stop,
    /// The end of a line.
    Line,
}

/// A clause and the punctuation behind it, in scalars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// The words, without spaces around them.
    pub words: Range<usize>,
    /// Where the next clause starts: after the punctuation and its spaces.
    pub next: usize,
    /// The strongest piece of punctuation behind it.
    pub strength: Strength,
}

/// Splits a text. Kept scalars never separate.
pub fn split(view: &View<'_>, kept: &[bool]) -> Vec<Clause> {
    let mut clauses = Vec::new();
    let mut start = skip_space(view, kept, 0);
    while start < view.len() {
        let mut end = start;
        while end < view.len() && separator(view, kept, end).is_none() {
            end += 1;
        }
        let (next, strength) = separators(view, kept, end);
        let mut last = end;
        while last > start && view.before(last).is_some_and(char::is_whitespace) && !kept[last - 1] {
            last -= 1;
        }
        clauses.push(Clause { words: start..last, next, strength });
        start = next;
    }
    clauses
}

fn skip_space(view: &View<'_>, kept: &[bool], from: usize) -> usize {
    (from..view.len())
        .find(|&at| kept[at] || !view.get(at).is_some_and(char::is_whitespace))
        .unwrap_or(view.len())
}

fn separators(view: &View<'_>, kept: &[bool], from: usize) -> (usize, Strength) {
    let mut at = from;
    let mut strength = Strength::None;
    while at < view.len() && !kept[at] {
        match separator(view, kept, at) {
            Some(here) => strength = strength.max(here),
            None if view.get(at).is_some_and(char::is_whitespace) => {}
            None => break,
        }
        at += 1;
    }
    (at, strength)
}

fn separator(view: &View<'_>, kept: &[bool], at: usize) -> Option<Strength> {
    if kept[at] {
        return None;
    }
    let (before, after) = (view.before(at), view.get(at + 1));
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    match view.get(at)? {
        '\n' | '\r' => Some(Strength::Line),
        '。' | '！' | '？' | '!' | '?' | '；' | ';' | '…' => Some(Strength::Stop),
        '.' if after.is_none_or(|c| c.is_whitespace() || c == '.') => Some(Strength::Stop),
        '，' | '、' | '：' | '～' | '—' => Some(Strength::Comma),
        ',' if !(digit(before) && digit(after)) => Some(Strength::Comma),
        ':' if after.is_none_or(char::is_whitespace) || before.is_some_and(is_wide) => Some(Strength::Comma),
        '~' if before.is_some_and(is_wide) && !digit(after) => Some(Strength::Comma),
        ' ' if before.is_some_and(is_wide) && after.is_some_and(is_wide) => Some(Strength::Space),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clauses(s: &str) -> Vec<(String, Strength)> {
        let view = View::new(s);
        let text = |range: &Range<usize>| view.source()[view.bytes(range)].to_owned();
        split(&view, &vec![false; view.len()]).iter().map(|c| (text(&c.words), c.strength)).collect()
    }

    #[test]
    fn punctuation_separates_and_spaces_only_between_chinese() {
        use Strength::*;
        let own = |v: &[(&str, Strength)]| v.iter().map(|(s, x)| ((*s).to_owned(), *x)).collect::<Vec<_>>();
        assert_eq!(
            clauses("你好，请问 A 型号？\n谢谢"),
            own(&[("你好", Comma), ("请问 A 型号", Line), ("谢谢", None)])
        );
        assert_eq!(clauses("嗯嗯 好的"), own(&[("嗯嗯", Space), ("好的", None)]));
        assert_eq!(
            clauses("Hi there. It costs 3.5 or 1,000."),
            own(&[("Hi there", Stop), ("It costs 3.5 or 1,000", Stop)])
        );
        assert_eq!(clauses("  "), own(&[]));
        assert_eq!(clauses("at 8:30, ok"), own(&[("at 8:30", Comma), ("ok", None)]));
    }
}
