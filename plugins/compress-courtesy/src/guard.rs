//! What is never touched, whatever the rules say: code, quotations, JSON, URLs, and what the host protects. And what no
//! phrase of the rules may hold: negations, digits, quotation marks.

use crate::text::{View, is_wide};
use std::ops::Range;

/// For each scalar whether it must stay. `given` are spans in bytes.
pub fn kept(view: &View<'_>, given: &[Range<usize>]) -> Vec<bool> {
    let mut kept = vec![false; view.len()];
    for span in given {
        mark(&mut kept, view.scalars(span));
    }
    let mut at = 0;
    // Where one single quote of a line does not close, none behind it does: looking each time would take forever.
    let mut open_until = 0;
    while at < view.len() {
        match special_at(view, at, &mut open_until) {
            Some(end) => {
                mark(&mut kept, at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    kept
}

fn mark(kept: &mut [bool], range: Range<usize>) {
    if let Some(part) = kept.get_mut(range) {
        part.fill(true);
    }
}

/// End of what starts at `at` and must stay whole.
fn special_at(view: &View<'_>, at: usize, open_until: &mut usize) -> Option<usize> {
    match view.raw(at)? {
        '`' if view.has(at, "```") => Some(closing(view, at + 3, "```").unwrap_or(view.len())),
        '~' if view.has(at, "~~~") && line_start(view, at) => {
            Some(closing(view, at + 3, "~~~").unwrap_or(view.len()))
        }
        '`' => Some(quoted(view, at, '`')),
        '“' => Some(quoted(view, at, '”')),
        '‘' => Some(quoted(view, at, '’')),
        '「' => Some(quoted(view, at, '」')),
        '『' => Some(quoted(view, at, '』')),
        '《' => Some(quoted(view, at, '》')),
        '«' => Some(quoted(view, at, '»')),
        '"' | '＂' => Some(quoted(view, at, view.raw(at)?)),
        '\'' if at >= *open_until && !view.before(at).is_some_and(char::is_alphanumeric) => {
            let line = line_end(view, at);
            single_quoted(view, at, line).or_else(|| {
                *open_until = line;
                None
            })
        }
        '{' | '[' => Some(bracketed(view, at)),
        '>' if line_start(view, at) => Some(line_end(view, at)),
        'h' | 'H' if view.has(at, "http://") || view.has(at, "https://") => Some(url_end(view, at)),
        'w' | 'W' if view.has(at, "www.") => Some(url_end(view, at)),
        _ => None,
    }
}

fn closing(view: &View<'_>, from: usize, fence: &str) -> Option<usize> {
    (from..view.len()).find(|&at| view.has(at, fence)).map(|at| at + fence.len())
}

/// To the closing mark; without one, to the end of the paragraph.
fn quoted(view: &View<'_>, at: usize, close: char) -> usize {
    let mut end = at + 1;
    while let Some(c) = view.raw(end) {
        if c == close {
            return end + 1;
        }
        if c == '\n' && view.raw(end + 1) == Some('\n') {
            return end;
        }
        end += 1;
    }
    end
}

/// 'so': only when it closes before `line`, where its line ends; otherwise it is an apostrophe.
fn single_quoted(view: &View<'_>, at: usize, line: usize) -> Option<usize> {
    let end = (at + 1..line)
        .find(|&i| view.raw(i) == Some('\'') && !view.get(i + 1).is_some_and(char::is_alphanumeric))?;
    Some(end + 1)
}

/// To the bracket that closes it, strings skipped; an open one protects the rest of the text.
fn bracketed(view: &View<'_>, at: usize) -> usize {
    let mut depth = 0usize;
    let mut in_string = false;
    let mut end = at;
    while let Some(c) = view.raw(end) {
        end += 1;
        match c {
            '\\' if in_string => end += 1,
            '"' => in_string = !in_string,
            '{' | '[' if !in_string => depth += 1,
            '}' | ']' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return end;
                }
            }
            _ => {}
        }
    }
    view.len()
}

fn url_end(view: &View<'_>, at: usize) -> usize {
    (at..view.len())
        .find(|&i| view.raw(i).is_some_and(|c| c.is_whitespace() || is_wide(c)))
        .unwrap_or(view.len())
}

fn line_start(view: &View<'_>, at: usize) -> bool {
    at == 0 || view.before(at) == Some('\n')
}

fn line_end(view: &View<'_>, at: usize) -> usize {
    (at..view.len()).find(|&i| view.raw(i) == Some('\n')).unwrap_or(view.len())
}

/// Places of negations, in scalars. 非常 and 特别 hold the character of one and are none.
pub fn negations(view: &View<'_>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for at in 0..view.len() {
        let Some(c) = view.get(at) else { break };
        let chinese = match c {
            '不' | '没' | '沒' | '无' | '無' | '勿' | '未' | '莫' | '甭' => true,
            '非' => view.get(at + 1) != Some('常'),
            '别' | '別' => !view.before(at).is_some_and(|b| "特分差级告区辨识类性个派".contains(b)),
            _ => false,
        };
        if chinese {
            found.push(at..at + 1);
        } else if let Some(end) = english_negation(view, at) {
            found.push(at..end);
        }
    }
    found
}

fn english_negation(view: &View<'_>, at: usize) -> Option<usize> {
    const WORDS: [&str; 11] =
        ["not", "no", "never", "none", "nothing", "nobody", "nor", "without", "cannot", "neither", "dont"];
    let edge = |c: Option<char>| !c.is_some_and(|c| c.is_ascii_alphanumeric());
    if view.has(at, "n't") && edge(view.get(at + 3)) {
        return Some(at + 3);
    }
    if !edge(view.before(at)) {
        return None;
    }
    WORDS
        .iter()
        .find(|word| view.has(at, word) && edge(view.get(at + word.len())))
        .map(|word| at + word.len())
}

/// Why a phrase must not be in a list of things to drop.
pub fn refusal(phrase: &str) -> Option<&'static str> {
    let view = View::new(phrase);
    if phrase.trim().is_empty() {
        return Some("is empty");
    }
    if phrase.chars().any(char::is_numeric) {
        return Some("holds a digit");
    }
    if !negations(&view).is_empty() {
        return Some("holds a negation");
    }
    let sign = |c: char| !c.is_alphanumeric() && !matches!(c, ' ' | '\'' | '’');
    phrase.chars().any(sign).then_some("holds a sign: clauses are compared without their punctuation")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarded(s: &str) -> String {
        let view = View::new(s);
        let kept = kept(&view, &[]);
        s.chars().zip(kept).map(|(c, kept)| if kept { c } else { '·' }).collect()
    }

    #[test]
    fn code_quotations_json_and_urls_stay() {
        assert_eq!(guarded("a ```b\nc``` d"), "··```b\nc```··");
        assert_eq!(guarded("a `b` c"), "··`b`··");
        assert_eq!(guarded("他说“谢谢”了"), "··“谢谢”·");
        assert_eq!(guarded("「你好」x『a』"), "「你好」·『a』");
        assert_eq!(guarded("x {\"a\": \"}\"} y"), "··{\"a\": \"}\"}··");
        assert_eq!(guarded("看https://a.b/c，谢谢"), "·https://a.b/c···");
        assert_eq!(guarded("> hi\nyo"), "> hi···");
        assert_eq!(guarded("I don't 'hi' x"), "········'hi'··");
        assert_eq!(guarded("a 'b c\nd 'e' f"), "·········'e'··");
    }

    #[test]
    fn what_is_left_open_is_kept_to_the_end() {
        assert_eq!(guarded("a ```b\n\nc"), "··```b\n\nc");
        assert_eq!(guarded("a {b"), "··{b");
        assert_eq!(guarded("a “b\n\nc"), "··“b···");
    }

    #[test]
    fn phrases_that_could_lose_meaning_are_refused() {
        for bad in ["不好意思", "no worries", "don't mind", "谢谢3次", "", "“谢谢”", "别客气", "ok!"]
        {
            assert!(refusal(bad).is_some(), "{bad}");
        }
        for good in ["非常感谢", "特别感谢", "thanks", "i'd like to know", "你好"] {
            assert_eq!(refusal(good), None, "{good}");
        }
    }
}
