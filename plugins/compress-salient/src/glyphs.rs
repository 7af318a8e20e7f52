//! A text as a row of glyphs: what a reader takes for one character (a grapheme of Unicode), which is never cut.

use jackfield_sdk::text::narrow;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// A text to look at. Indices are glyphs; [`Glyphs::bytes`] maps them back.
pub struct Glyphs<'a> {
    source: &'a str,
    /// The first scalar of each glyph, folded: full width and case.
    folded: Vec<char>,
    /// The first scalar as it was written.
    written: Vec<char>,
    /// Where each starts, in bytes; and the end of the text.
    starts: Vec<usize>,
    #[cfg(test)]
    looks: std::cell::Cell<usize>,
}

impl<'a> Glyphs<'a> {
    /// Reads a text.
    pub fn new(source: &'a str) -> Self {
        let mut glyphs = Glyphs {
            source,
            folded: Vec::with_capacity(source.len()),
            written: Vec::with_capacity(source.len()),
            starts: Vec::with_capacity(source.len() + 1),
            #[cfg(test)]
            looks: Default::default(),
        };
        for (at, glyph) in source.grapheme_indices(true) {
            let first = glyph.chars().next().unwrap_or_default();
            glyphs.starts.push(at);
            glyphs.written.push(first);
            glyphs.folded.push(fold(first));
        }
        glyphs.starts.push(source.len());
        glyphs
    }

    /// Number of glyphs.
    pub fn len(&self) -> usize {
        self.folded.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.folded.is_empty()
    }

    /// The folded glyph at `at`.
    pub fn get(&self, at: usize) -> Option<char> {
        self.look();
        self.folded.get(at).copied()
    }

    /// The folded glyph before `at`.
    pub fn before(&self, at: usize) -> Option<char> {
        at.checked_sub(1).and_then(|before| self.get(before))
    }

    /// The glyph at `at` as it was written.
    pub fn written(&self, at: usize) -> Option<char> {
        self.look();
        self.written.get(at).copied()
    }

    /// Whether `text`, folded, stands here.
    pub fn has(&self, at: usize, text: &str) -> bool {
        text.chars().enumerate().all(|(n, c)| self.get(at + n) == Some(c))
    }

    /// The bytes of a range of glyphs.
    pub fn bytes(&self, range: &Range<usize>) -> Range<usize> {
        let last = self.starts.len() - 1;
        self.starts[range.start.min(last)]..self.starts[range.end.min(last)]
    }

    /// The text of a range of glyphs.
    pub fn text(&self, range: &Range<usize>) -> &'a str {
        &self.source[self.bytes(range)]
    }

    /// The glyphs that a range of bytes touches.
    pub fn touched(&self, bytes: &Range<usize>) -> Range<usize> {
        let start = self.starts.partition_point(|at| *at <= bytes.start).saturating_sub(1);
        let end = self.starts.partition_point(|at| *at < bytes.end);
        start..end.min(self.len()).max(start)
    }

    #[cfg(not(test))]
    fn look(&self) {}

    #[cfg(test)]
    fn look(&self) {
        self.looks.set(self.looks.get() + 1);
    }

    /// How often a glyph was looked at: the work done on this text.
    #[cfg(test)]
    pub(crate) fn looks(&self) -> usize {
        self.looks.get()
    }
}

/// Full-width letters and digits narrowed, case folded, one scalar to one. Chinese punctuation keeps its form.
pub fn fold(c: char) -> char {
    match c {
        '’' => '\'',
        '\u{3000}' | '\u{a0}' => ' ',
        '\u{ff10}'..='\u{ff19}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' => {
            narrow(c).to_ascii_lowercase()
        }
        _ => c.to_lowercase().next().unwrap_or(c),
    }
}

/// Chinese, Japanese and Korean letters and full-width punctuation: text that is written without spaces.
pub fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{323af}')
}

/// Letters of scripts that separate words by spaces. Of the others (Japanese kana, Thai, Lao, Khmer, Burmese) no word is known.
pub fn is_spaced_letter(c: char) -> bool {
    let unspaced = matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
        || (is_wide(c) && !matches!(c, '\u{ac00}'..='\u{d7af}'));
    c.is_alphabetic() && !unspaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glyph_is_what_a_reader_takes_for_one_character() {
        let glyphs = Glyphs::new("a你👨‍👩‍👧e\u{301}🇫🇷b");
        assert_eq!(glyphs.len(), 6);
        assert_eq!(glyphs.text(&(2..4)), "👨‍👩‍👧e\u{301}");
        assert_eq!(glyphs.touched(&(5..6)), 2..3); // a part of the family is the whole of it
        assert_eq!(glyphs.touched(&(4..4)), 2..2);
        let end = "a你👨‍👩‍👧e\u{301}🇫🇷b".len();
        assert_eq!(glyphs.touched(&(end..end)), 6..6);
    }

    #[test]
    fn folding_keeps_chinese_punctuation() {
        let glyphs = Glyphs::new("ＯＫ，É’！");
        assert_eq!((0..glyphs.len()).filter_map(|at| glyphs.get(at)).collect::<String>(), "ok，é'！");
    }
}
