//! A message that may lose words: its pieces, what the model made of them, and which of them go.

use crate::Host;
use crate::glyphs::Glyphs;
use crate::guard;
use crate::lexicon::Lexicon;
use crate::pieces::{Class, Kind, Piece, pieces};
use crate::surprisal::{Judged, is_sound, judge};
use crate::weave::deletions;
use jackfield_sdk::Span;
use jackfield_sdk::compression::Part;
use std::ops::Range;

/// The host counts the tokens of no longer text.
const MOST_COUNTED_BYTES: usize = 256 << 10;

/// A message that may lose words.
pub struct Draft<'t> {
    /// Its place among the parts.
    pub message: usize,
    text: &'t str,
    glyphs: Glyphs<'t>,
    pieces: Vec<Piece>,
    /// Start of each piece in bytes, and the end of the text.
    starts: Vec<usize>,
    judged: Vec<Judged>,
    asked: bool,
    dropped: Vec<bool>,
    /// Words that stay so far.
    words_left: usize,
    /// Nothing before this byte may be touched.
    floor: usize,
    tokens_before: Option<f64>,
    /// Tokens saved by what is dropped, where they are counted already.
    saved: Option<f64>,
    tokens_per_byte: f64,
}

/// A word that may go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Index of the draft.
    pub draft: usize,
    /// Index of the piece.
    pub piece: usize,
    /// Its first byte.
    pub start: usize,
    /// Its class.
    pub class: Class,
    /// Surprisal in bits; none where the model has not judged it.
    pub bits: Option<f32>,
    /// Tokens that it takes, more or less.
    pub tokens: f64,
}

impl<'t> Draft<'t> {
    /// Reads a message; nothing goes yet. `tokens_per_byte` is how many tokens a byte of the prompt takes.
    pub fn new(lexicon: &Lexicon, message: usize, part: &'t Part, tokens_per_byte: f64) -> Self {
        let text = part.message.text.as_str();
        let glyphs = Glyphs::new(text);
        let given: Vec<Range<usize>> = part.protected.iter().map(Span::range).collect();
        let pieces = pieces(&glyphs, &guard::fixed(&glyphs, &given), lexicon);
        let starts: Vec<usize> =
            pieces.iter().map(|piece| glyphs.bytes(&piece.glyphs).start).chain([text.len()]).collect();
        let judged = judge(&pieces, &starts[1..], &[], tokens_per_byte);
        Draft {
            message,
            text,
            dropped: vec![false; pieces.len()],
            words_left: pieces.iter().filter(|piece| is_word(&glyphs, piece)).count(),
            glyphs,
            pieces,
            starts,
            judged,
            asked: false,
            floor: 0,
            tokens_before: None,
            saved: None,
            tokens_per_byte,
        }
    }

    /// Takes all drops back; nothing before byte `floor` is to be touched.
    pub fn reset(&mut self, floor: usize) {
        self.floor = floor;
        self.words_left += self.dropped.iter().filter(|dropped| **dropped).count();
        self.dropped.fill(false);
        self.saved = None;
    }

    /// The words that may go.
    pub fn candidates(&self, draft: usize) -> impl Iterator<Item = Candidate> {
        self.pieces.iter().enumerate().filter_map(move |(piece, Piece { kind, .. })| {
            let (Kind::Word(class), start) = (*kind, self.starts[piece]) else { return None };
            let Judged { bits, tokens } = self.judged[piece];
            (start >= self.floor).then_some(Candidate { draft, piece, start, class, bits, tokens })
        })
    }

    /// Bytes of the words that may go.
    pub fn loose_bytes(&self) -> usize {
        self.candidates(0).map(|word| self.starts[word.piece + 1] - word.start).sum()
    }

    /// How many leading bytes the model is asked to read, at most `most`; none is ever half a character.
    pub fn read_bytes(&self, most: usize) -> usize {
        let end = self.starts.partition_point(|start| *start <= most).saturating_sub(1);
        self.starts.get(end).copied().unwrap_or(0)
    }

    /// Asks the model of the first `bytes` bytes.
    ///
    /// # Errors
    /// What the host says instead, or that its answer makes no sense.
    pub fn ask(&mut self, host: &impl Host, bytes: usize) -> Result<(), String> {
        self.asked = true;
        let read = &self.text[..bytes];
        let scored = host.score(read)?;
        if !is_sound(&scored, read) {
            return Err("the scores do not fit the text".into());
        }
        self.judged = judge(&self.pieces, &self.starts[1..], &scored, self.tokens_per_byte);
        Ok(())
    }

    /// Drops a word, unless it is the last of the message.
    pub fn drop_word(&mut self, piece: usize) -> bool {
        if self.words_left <= 1 || self.dropped[piece] {
            return false;
        }
        self.words_left -= 1;
        self.dropped[piece] = true;
        self.saved = None;
        true
    }

    /// Whether a word goes.
    pub fn has_dropped(&self, piece: usize) -> bool {
        self.dropped[piece]
    }

    /// Whether the model has been asked.
    pub fn is_judged(&self) -> bool {
        self.asked
    }

    /// What goes, in bytes.
    pub fn deletions(&self) -> Vec<Range<usize>> {
        match self.dropped.contains(&true) {
            true => deletions(&self.glyphs, &self.pieces, &self.dropped, self.floor),
            false => Vec::new(),
        }
    }

    /// Tokens that the deletions save, by the host's own tokenizer: what is left is cut into tokens anew.
    pub fn saved_tokens(&mut self, host: &impl Host) -> f64 {
        if let Some(saved) = self.saved {
            return saved;
        }
        let gone = self.deletions();
        let saved = if gone.is_empty() {
            0.0
        } else if self.text.len() > MOST_COUNTED_BYTES {
            gone.iter().map(ExactSizeIterator::len).sum::<usize>() as f64 * self.tokens_per_byte
        } else {
            let before = *self.tokens_before.get_or_insert_with(|| f64::from(host.count(self.text)));
            before - f64::from(host.count(&without(self.text, &gone)))
        };
        self.saved = Some(saved);
        saved
    }

    /// How often its text was looked at.
    #[cfg(test)]
    pub(crate) fn looks(&self) -> usize {
        self.glyphs.looks()
    }
}

/// The text without some of its bytes.
pub fn without(text: &str, gone: &[Range<usize>]) -> String {
    let mut left = String::with_capacity(text.len());
    let mut from = 0;
    for range in gone {
        left.push_str(&text[from..range.start]);
        from = range.end;
    }
    left.push_str(&text[from..]);
    left
}

fn is_word(glyphs: &Glyphs<'_>, piece: &Piece) -> bool {
    let says_something = || glyphs.text(&piece.glyphs).chars().any(char::is_alphanumeric);
    matches!(piece.kind, Kind::Word(_) | Kind::Kept(_)) && says_something()
}
