//! What is kept byte for byte because of what it is, whatever its words: code, JSON, quotations, quoted lines, links, and
//! what the host protects. Each glyph is looked at a bounded number of times: what is opened and never closed is looked for
//! once.

use crate::glyphs::{Glyphs, is_wide};
use std::ops::Range;

/// For each glyph whether it must stay. `given` are spans in bytes.
pub fn fixed(glyphs: &Glyphs<'_>, given: &[Range<usize>]) -> Vec<bool> {
    let mut guard = Guard { glyphs, fixed: vec![false; glyphs.len()], no_single_before: 0 };
    let mut at = 0;
    while at < glyphs.len() {
        match guard.special_at(at) {
            Some(end) => {
                guard.mark(at..end);
                at = end.max(at + 1);
            }
            None => at += 1,
        }
    }
    for span in given {
        // An empty span is a place that no edit may reach over.
        let touched = glyphs.touched(span);
        guard.mark(touched.start..touched.end.max(touched.start + 1).min(glyphs.len()));
    }
    guard.fixed
}

struct Guard<'a, 't> {
    glyphs: &'a Glyphs<'t>,
    fixed: Vec<bool>,
    /// No straight single quotation mark closes before this glyph.
    no_single_before: usize,
}

impl Guard<'_, '_> {
    fn mark(&mut self, range: Range<usize>) {
        if let Some(part) = self.fixed.get_mut(range) {
            part.fill(true);
        }
    }

    fn line_start(&self, at: usize) -> bool {
        self.glyphs.before(at).is_none_or(is_line_end)
    }

    /// End of what starts at `at` and must stay whole.
    fn special_at(&mut self, at: usize) -> Option<usize> {
        let glyphs = self.glyphs;
        match glyphs.written(at)? {
            '`' if glyphs.has(at, "```") => Some(self.fenced(at, "```")),
            '~' if glyphs.has(at, "~~~") && self.line_start(at) => Some(self.fenced(at, "~~~")),
            '`' => Some(self.quoted(at, '`')),
            '“' => Some(self.quoted(at, '”')),
            '‘' => Some(self.quoted(at, '’')),
            '「' => Some(self.quoted(at, '」')),
            '『' => Some(self.quoted(at, '』')),
            '《' => Some(self.quoted(at, '》')),
            '«' => Some(self.quoted(at, '»')),
            '"' => Some(self.quoted(at, '"')),
            '＂' => Some(self.quoted(at, '＂')),
            '\'' if !glyphs.before(at).is_some_and(char::is_alphanumeric) => self.single_quoted(at),
            '{' | '[' => Some(self.bracketed(at)),
            '>' | '|' if self.line_start(at) => Some(self.line_end(at)),
            '\t' if self.line_start(at) => Some(self.line_end(at)),
            ' ' if self.line_start(at) && glyphs.has(at, "    ") => Some(self.line_end(at)),
            'h' | 'H' if glyphs.has(at, "http://") || glyphs.has(at, "https://") => Some(self.link_end(at)),
            'w' | 'W' if glyphs.has(at, "www.") => Some(self.link_end(at)),
            _ => None,
        }
    }

    /// To the closing fence; without one, to the end of the text.
    fn fenced(&self, at: usize, fence: &str) -> usize {
        let end = self.glyphs.len();
        (at + 3..end).find(|&i| self.glyphs.has(i, fence)).map_or(end, |i| i + fence.len())
    }

    /// To the closing mark; without one, to the end of the paragraph.
    fn quoted(&self, at: usize, close: char) -> usize {
        let mut end = at + 1;
        while let Some(c) = self.glyphs.written(end) {
            if c == close {
                return end + 1;
            }
            if is_line_end(c) && self.glyphs.get(end + 1).is_some_and(is_line_end) {
                return end;
            }
            end += 1;
        }
        end
    }

    /// 'so': only when it closes in its line; otherwise it is an apostrophe.
    fn single_quoted(&mut self, at: usize) -> Option<usize> {
        if at < self.no_single_before {
            return None;
        }
        for i in at + 1..self.glyphs.len() {
            let c = self.glyphs.written(i)?;
            if is_line_end(c) {
                break;
            }
            let closes = c == '\'' && i > at + 1 && !self.glyphs.before(i).is_some_and(char::is_whitespace);
            if closes && !self.glyphs.get(i + 1).is_some_and(char::is_alphanumeric) {
                return Some(i + 1);
            }
        }
        self.no_single_before = self.line_end(at);
        None
    }

    /// To the bracket that closes it, strings skipped; an open one protects the rest of the text.
    fn bracketed(&self, at: usize) -> usize {
        let mut depth = 0usize;
        let mut in_string = false;
        let mut end = at;
        while let Some(c) = self.glyphs.written(end) {
            end += 1;
            match c {
                '\\' if in_string => end += 1,
                '"' => in_string = !in_string,
                '{' | '[' if !in_string => depth += 1,
                '}' | ']' if !in_string => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return end;
                    }
                }
                _ => {}
            }
        }
        self.glyphs.len()
    }

    /// To the next space or Chinese character, without the punctuation of the sentence.
    fn link_end(&self, at: usize) -> usize {
        let ends = |i: &usize| self.glyphs.written(*i).is_some_and(|c| c.is_whitespace() || is_wide(c));
        let mut end = (at..self.glyphs.len()).find(ends).unwrap_or(self.glyphs.len());
        while self.glyphs.before(end).is_some_and(|c| matches!(c, ',' | '.' | ';' | ':' | '!' | '?' | ')')) {
            end -= 1;
        }
        end
    }

    fn line_end(&self, at: usize) -> usize {
        (at..self.glyphs.len())
            .find(|&i| self.glyphs.get(i).is_some_and(is_line_end))
            .unwrap_or(self.glyphs.len())
    }
}

/// Ends a line. A carriage return and line feed are one glyph.
pub fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarded(s: &str) -> String {
        let glyphs = Glyphs::new(s);
        let fixed = fixed(&glyphs, &[]);
        (0..glyphs.len()).map(|at| if fixed[at] { glyphs.text(&(at..at + 1)) } else { "·" }).collect()
    }

    #[test]
    fn code_quotations_json_and_links_stay() {
        assert_eq!(guarded("a ```b\nc``` d"), "··```b\nc```··");
        assert_eq!(guarded("a `b` c"), "··`b`··");
        assert_eq!(guarded("a:\n    b c\nd"), "···    b c··");
        assert_eq!(guarded("他说“谢谢”了"), "··“谢谢”·");
        assert_eq!(guarded("「你好」x『a』"), "「你好」·『a』");
        assert_eq!(guarded("x {\"a\": \"}\"} y"), "··{\"a\": \"}\"}··");
        assert_eq!(guarded("看https://a.b/c，谢谢"), "·https://a.b/c···");
        assert_eq!(guarded("(https://a.b/c?d=e), x"), "·https://a.b/c?d=e····");
        assert_eq!(guarded("> hi\r\nyo"), "> hi···");
    }

    #[test]
    fn an_apostrophe_is_no_quotation() {
        assert_eq!(guarded("I don't 'hi' x"), "········'hi'··");
        assert_eq!(guarded("'tis so, y'all"), "··············");
        assert_eq!(guarded("the dogs' 'a b"), "··············");
    }

    #[test]
    fn what_is_left_open_is_kept_to_the_end() {
        assert_eq!(guarded("a ```b\n\nc"), "··```b\n\nc");
        assert_eq!(guarded("a {b"), "··{b");
        assert_eq!(guarded("a “b\n\nc"), "··“b···");
    }
}
