//! A text as a row of scalars, each with its folded form and its place in the bytes.

use std::ops::Range;

/// A text to look at. Indices are scalars; [`View::bytes`] maps them back.
pub struct View<'a> {
    source: &'a str,
    original: Vec<char>,
    folded: Vec<char>,
    starts: Vec<usize>,
}

impl<'a> View<'a> {
    /// Reads a text.
    pub fn new(source: &'a str) -> Self {
        let original: Vec<char> = source.chars().collect();
        let folded = original.iter().map(|c| fold(*c)).collect();
        let starts = source.char_indices().map(|(at, _)| at).chain([source.len()]).collect();
        View { source, original, folded, starts }
    }

    /// The text as it was given.
    pub fn source(&self) -> &'a str {
        self.source
    }

    /// Number of scalars.
    pub fn len(&self) -> usize {
        self.folded.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.folded.is_empty()
    }

    /// The folded scalar at `at`.
    pub fn get(&self, at: usize) -> Option<char> {
        self.folded.get(at).copied()
    }

    /// The folded scalar before `at`.
    pub fn before(&self, at: usize) -> Option<char> {
        at.checked_sub(1).and_then(|i| self.get(i))
    }

    /// The scalar at `at` as it was given.
    pub fn raw(&self, at: usize) -> Option<char> {
        self.original.get(at).copied()
    }

    /// The bytes of a range of scalars.
    pub fn bytes(&self, range: &Range<usize>) -> Range<usize> {
        let last = self.starts.len() - 1;
        self.starts[range.start.min(last)]..self.starts[range.end.min(last)]
    }

    /// The scalars that a range of bytes touches.
    pub fn scalars(&self, bytes: &Range<usize>) -> Range<usize> {
        let start = self.starts.partition_point(|at| *at <= bytes.start).saturating_sub(1);
        let end = self.starts.partition_point(|at| *at < bytes.end);
        start..end.min(self.len()).max(start)
    }

    /// Whether `word` stands here, folded.
    pub fn has(&self, at: usize, word: &str) -> bool {
        word.chars().enumerate().all(|(n, c)| self.get(at + n) == Some(c))
    }
}

/// Full-width forms, case, spaces and apostrophes folded, one scalar to one. Chinese punctuation keeps its form.
pub fn fold(c: char) -> char {
    match c {
        'A'..='Z' => c.to_ascii_lowercase(),
        '\0'..='\x7f' => c,
        '\u{ff10}'..='\u{ff19}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' => {
            char::from_u32(c as u32 - 0xfee0).unwrap_or(c).to_ascii_lowercase()
        }
        '’' => '\'',
        '\u{3000}' | '\u{a0}' => ' ',
        '謝' => '谢',
        '請' => '请',
        '問' => '问',
        '煩' => '烦',
        '麽' | '麼' => '么',
        '嗎' => '吗',
        '個' => '个',
        '說' => '说',
        '對' => '对',
        '擾' => '扰',
        '託' => '托',
        '幫' => '帮',
        '們' => '们',
        '這' => '这',
        '懂' => '懂',
        '類' => '类',
        '東' => '东',
        '見' => '见',
        '誒' => '诶',
        '嘍' => '喽',
        _ => c,
    }
}

/// Chinese, Japanese and Korean letters and full-width punctuation: text that is written without spaces.
pub fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_scalars_map_both_ways() {
        let view = View::new("a你😀b");
        assert_eq!(view.bytes(&(1..3)), 1..8);
        assert_eq!(view.scalars(&(1..8)), 1..3);
        assert_eq!(view.scalars(&(2..3)), 1..2); // half a scalar is the whole of it
        assert_eq!(view.scalars(&(9..9)), 4..4);
    }

    #[test]
    fn folding_keeps_chinese_punctuation() {
        let view = View::new("ＯＫ，謝謝！");
        assert_eq!((0..view.len()).filter_map(|i| view.get(i)).collect::<String>(), "ok，谢谢！");
    }
}
