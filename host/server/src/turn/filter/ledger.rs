//! Which tokens may be shown: those whose text was sent as the model wrote it.

use std::collections::VecDeque;
use std::ops::Range;

use super::segments::Segments;

/// A token as the engine reports it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) bytes: Vec<u8>,
    pub(crate) logprob: f32,
    /// Token ids and log-probabilities.
    pub(crate) top: Vec<(u32, f32)>,
}

/// A token that may be shown, and where its text begins in what was sent, in characters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shown {
    pub(crate) token: Token,
    pub(crate) offset_chars: usize,
}

/// Tokens that wait for their text to be sent.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    waiting: VecDeque<Entry>,
    /// Bytes of a character begun and not complete.
    open: Vec<u8>,
    /// Bytes of text the tokens have made so far.
    made: usize,
    /// Bytes of the model's text that were sent or replaced.
    released: usize,
    sent_chars: usize,
}

#[derive(Debug)]
struct Entry {
    token: Token,
    start: usize,
    /// None while its last character is incomplete.
    end: Option<usize>,
    offset_chars: usize,
    hidden: bool,
}

impl Ledger {
    /// Takes tokens in the order in which they were sampled. One without bytes (the end of a text) is never shown.
    pub(crate) fn add(&mut self, tokens: impl IntoIterator<Item = Token>) {
        for token in tokens {
            if token.bytes.is_empty() {
                continue;
            }
            let start = self.made;
            self.open.extend_from_slice(&token.bytes);
            self.make_text();
            self.waiting.push_back(Entry { token, start, end: None, offset_chars: 0, hidden: false });
            if self.open.is_empty() {
                self.waiting.iter_mut().for_each(|entry| entry.end = entry.end.or(Some(self.made)));
            }
        }
    }

    /// Counts the text that the open bytes have become: a bad sequence becomes one U+FFFD, as in the engine.
    fn make_text(&mut self) {
        let mut rest = self.open.as_slice();
        while let Err(error) = std::str::from_utf8(rest) {
            self.made += error.valid_up_to();
            rest = &rest[error.valid_up_to()..];
            let Some(bad) = error.error_len() else {
                let kept = rest.len();
                self.open.drain(..self.open.len() - kept);
                return;
            };
            self.made += char::REPLACEMENT_CHARACTER.len_utf8();
            rest = &rest[bad..];
        }
        self.made += rest.len();
        self.open.clear();
    }

    /// Ends of waiting tokens within `range` of the model's text, with their probability.
    pub(crate) fn within(&self, range: Range<usize>) -> impl Iterator<Item = (usize, f32)> {
        let in_range = move |entry: &Entry| {
            let end = entry.end.filter(|end| range.start < *end && *end <= range.end)?;
            Some((end, entry.token.logprob.exp().clamp(0.0, 1.0)))
        };
        self.waiting.iter().filter_map(in_range)
    }

    /// Notes what was sent, and returns the tokens that are now wholly sent and were not touched by a filter.
    pub(crate) fn release(&mut self, sent: &Segments) -> Vec<Shown> {
        for segment in sent.iter() {
            let origin = &segment.origin;
            for entry in &mut self.waiting {
                if segment.altered {
                    entry.hidden |= entry.overlaps(origin);
                } else if origin.contains(&entry.start) {
                    let before = segment.text.get(..entry.start - origin.start).unwrap_or_default();
                    entry.offset_chars = self.sent_chars + before.chars().count();
                }
            }
            self.released = self.released.max(origin.end);
            self.sent_chars += segment.text.chars().count();
        }
        let done = |entry: &Entry| entry.end.is_some_and(|end| end <= self.released);
        let count = self.waiting.iter().take_while(|entry| done(entry)).count();
        let shown = self.waiting.drain(..count).filter(|entry| !entry.hidden);
        shown.map(|entry| Shown { token: entry.token, offset_chars: entry.offset_chars }).collect()
    }
}

impl Entry {
    fn overlaps(&self, range: &Range<usize>) -> bool {
        let end = self.end.unwrap_or(usize::MAX);
        self.start < range.end && range.start < end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(bytes: &[u8]) -> Token {
        Token { bytes: bytes.to_vec(), logprob: -1.0, top: Vec::new() }
    }

    fn shown(ledger: &mut Ledger, sent: &Segments) -> Vec<(String, usize)> {
        let shown = ledger.release(sent).into_iter();
        shown
            .map(|shown| (String::from_utf8_lossy(&shown.token.bytes).into_owned(), shown.offset_chars))
            .collect()
    }

    #[test]
    fn tokens_wait_for_the_whole_of_their_text() {
        let mut ledger = Ledger::default();
        ledger.add([token(b"ab"), token(b"cd")]);
        let mut text = Segments::original("abcd".into(), 0);
        assert_eq!(shown(&mut ledger, &text.take(1)), []);
        assert_eq!(shown(&mut ledger, &text.take(2)), [("ab".into(), 0)]);
        assert_eq!(shown(&mut ledger, &text), [("cd".into(), 2)]);
    }

    #[test]
    fn tokens_of_replaced_text_are_never_shown() {
        let mut ledger = Ledger::default();
        ledger.add([token(b"no "), token(b"SEC"), token(b"RET"), token(b" ok")]);
        let text = Segments::original("no SECRET ok".into(), 0).rewrite([(5..9, "*".into())]);
        assert_eq!(shown(&mut ledger, &text), [("no ".into(), 0), (" ok".into(), 6)]);
    }

    #[test]
    fn a_character_of_several_tokens_shows_them_together() {
        let mut ledger = Ledger::default();
        ledger.add([token(&[0xe9]), token(&[0xbe, 0x98]), token(b"x")]);
        let mut text = Segments::original("龘x".into(), 0);
        assert_eq!(ledger.release(&text.take(3)).len(), 2);
        assert_eq!(shown(&mut ledger, &text), [("x".into(), 1)]);
    }

    #[test]
    fn a_character_half_replaced_hides_all_its_tokens() {
        let mut ledger = Ledger::default();
        ledger.add([token(&[b'a', 0xe9]), token(&[0xbe]), token(&[0x98, b'b']), token(b"c")]);
        let text = Segments::original("a龘bc".into(), 0).rewrite([(1..4, "?".into())]);
        assert_eq!(shown(&mut ledger, &text), [("c".into(), 3)]);
    }

    #[test]
    fn bad_bytes_count_as_their_replacement() {
        let mut ledger = Ledger::default();
        ledger.add([token(&[0xff]), token(b"a")]);
        let text = Segments::original("\u{fffd}a".into(), 0);
        assert_eq!(ledger.release(&text).len(), 2);
    }

    #[test]
    fn an_incomplete_character_at_the_end_is_never_shown() {
        let mut ledger = Ledger::default();
        ledger.add([token(b"a"), token(&[0xe9])]);
        assert_eq!(shown(&mut ledger, &Segments::original("a".into(), 0)), [("a".into(), 0)]);
    }
}
