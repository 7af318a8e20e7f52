//! Matching in Chinese and English text, with offsets that mean the original bytes.

use std::ops::Range;

use crate::Span;

/// The ASCII form of a full-width character (`３` → `3`, `Ａ` → `A`, `－` → `-`, the ideographic space → space);
/// every other character as it is.
pub fn narrow(c: char) -> char {
    match c {
        '\u{3000}' => ' ',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        _ => c,
    }
}

/// The value of a digit, ASCII or full-width.
pub fn digit(c: char) -> Option<u8> {
    narrow(c).to_digit(10).and_then(|value| u8::try_from(value).ok())
}

/// Whether the character is a Chinese character: the unified ideographs, their extensions and 〇.
pub fn is_han(c: char) -> bool {
    matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{323af}' | '\u{f900}'..='\u{faff}' | '〇')
}

/// A text made even for matching: full-width forms narrowed, letters in lower case. Knows where each byte came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    text: String,
    /// For each byte of `text` the span of the original scalar; none when every byte stands where it stood.
    sources: Option<Vec<(u32, u32)>>,
}

impl Folded {
    /// Folds a text.
    pub fn new(original: &str) -> Folded {
        if original.is_ascii() {
            return Folded { text: original.to_ascii_lowercase(), sources: None };
        }
        let mut text = String::with_capacity(original.len());
        let mut sources = Vec::with_capacity(original.len());
        for (at, c) in original.char_indices() {
            let narrow = narrow(c);
            if narrow.is_ascii() {
                text.push(narrow.to_ascii_lowercase());
            } else {
                text.extend(narrow.to_lowercase());
            }
            let Span { start, end } = Span::new(at..at + c.len_utf8());
            sources.resize(text.len(), (start, end));
        }
        Folded { text, sources: Some(sources) }
    }

    /// The folded text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The span of the original text from which this range of bytes of the folded text came: whole scalars, the smallest
    /// span that covers them. An empty range gives an empty span.
    pub fn span(&self, range: Range<usize>) -> Span {
        let Some(sources) = &self.sources else { return Span::new(range) };
        let original_len = sources.last().map_or(0, |last| last.1);
        let start = sources.get(range.start).map_or(original_len, |source| source.0);
        if range.is_empty() {
            return Span { start, end: start };
        }
        let end = sources.get(range.end - 1).map_or(original_len, |source| source.1);
        Span { start, end }
    }

    /// Where a term, folded too, first stands in the folded text by the rule of [`find_term`].
    pub fn find(&self, term: &Folded) -> Option<Range<usize>> {
        find_term(&self.text, &term.text)
    }
}

/// Where `term` first stands in `text`. An ASCII letter or digit at an edge of the term must not touch another one
/// outside, so that `cat` is not found in `category`, but is in `我的cat呢`. An empty term is never found.
pub fn find_term(text: &str, term: &str) -> Option<Range<usize>> {
    let (first, last) = (term.chars().next()?, term.chars().next_back()?);
    text.match_indices(term).map(|(at, _)| at..at + term.len()).find(|range| {
        let before = text[..range.start].chars().next_back();
        let after = text[range.end..].chars().next();
        !joins(before, first) && !joins(after, last)
    })
}

fn joins(outside: Option<char>, edge: char) -> bool {
    edge.is_ascii_alphanumeric() && outside.is_some_and(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_width_forms_become_ascii_and_the_rest_stays() {
        let folded = Folded::new("编号ＡＢ－１２３４\u{3000}Ok，👩‍👧");
        assert_eq!(folded.as_str(), "编号ab-1234 ok,👩‍👧");
    }

    #[test]
    fn a_match_in_folded_text_maps_back_to_the_original_bytes() {
        let original = "😀编号ＡＢ－１２，Ｘ";
        let folded = Folded::new(original);
        let found = folded.find(&Folded::new("AB-12")).expect("found");
        assert_eq!(&original[folded.span(found).range()], "ＡＢ－１２");
        let all = folded.span(0..folded.as_str().len());
        assert_eq!(all, Span::new(0..original.len()));
        let end = folded.as_str().len();
        assert_eq!(folded.span(end..end), Span::new(original.len()..original.len()));
    }

    #[test]
    fn a_letter_that_grows_in_lower_case_maps_back_whole() {
        let original = "aİb中";
        let folded = Folded::new(original);
        assert_eq!(folded.as_str(), "ai\u{307}b中");
        assert_eq!(&original[folded.span(1..2).range()], "İ");
        assert_eq!(&original[folded.span(2..5).range()], "İb");
    }

    #[test]
    fn ascii_maps_to_itself() {
        let folded = Folded::new("Hello World");
        assert_eq!(folded.as_str(), "hello world");
        assert_eq!(folded.span(6..11), Span::new(6..11));
    }

    #[test]
    fn terms_keep_ascii_words_whole_and_touch_han_freely() {
        assert_eq!(find_term("category cat", "cat"), Some(9..12));
        assert_eq!(find_term("category", "cat"), None);
        assert_eq!(find_term("我的cat呢", "cat"), Some(6..9));
        assert_eq!(find_term("要10个", "10"), Some(3..5));
        assert_eq!(find_term("要100个", "10"), None);
        assert_eq!(find_term("申请退款吧", "退款"), Some(6..12));
        assert_eq!(find_term("c++ code", "c++"), Some(0..3));
        assert_eq!(find_term("anything", ""), None);
    }

    #[test]
    fn digits_are_ascii_or_full_width_only() {
        assert_eq!(digit('7'), Some(7));
        assert_eq!(digit('７'), Some(7));
        assert_eq!(digit('七'), None);
        assert_eq!(digit('٧'), None);
        assert!(is_han('汉') && is_han('㐀') && is_han('𠀀') && !is_han('か') && !is_han('A'));
    }
}
