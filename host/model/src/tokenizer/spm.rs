//! SentencePiece as Llama 2 and Mistral use it: characters, merged by score, bytes where nothing fits.

use crate::gguf::{Fault, Gguf, GgufError};

use super::Sink;
use super::error::{TokenizeError, TokenizerError};
use super::merge::{Merge, Merger, Symbol};
use super::vocab::{TokenKind, Vocab};

const SCORES: &str = "tokenizer.ggml.scores";
const SPACE: char = '\u{2581}';
/// Of a symbol that is no token.
const NO_TOKEN: u32 = u32::MAX;

/// What encoding needs beside the vocabulary.
pub(super) struct SentencePiece {
    add_space_prefix: bool,
    /// Rank of each token: the higher its score the lower, equal scores share one.
    ranks: Vec<u32>,
    bytes: [Option<u32>; 256],
    /// Stands for a byte without a token, where it is no control token.
    unknown: Option<u32>,
    longest: usize,
}

impl SentencePiece {
    pub(super) fn read(gguf: &Gguf, vocab: &Vocab) -> Result<Self, TokenizerError> {
        if vocab.scores.is_empty() {
            return Err(gguf.error(SCORES, Fault::Missing).into());
        }
        let mut bytes = [None; 256];
        for id in vocab.of_kind(TokenKind::Byte) {
            if let &[byte] = vocab.piece(id) {
                bytes[usize::from(byte)] = Some(id);
            }
        }
        Ok(Self {
            add_space_prefix: gguf.boolean("tokenizer.ggml.add_space_prefix")?.unwrap_or(true),
            ranks: ranks(gguf, &vocab.scores)?,
            bytes,
            unknown: vocab.special.unknown.filter(|&id| vocab.kind(id) != Some(TokenKind::Control)),
            longest: (0..vocab.len() as u32).map(|id| vocab.text(id).len()).max().unwrap_or(0),
        })
    }

    pub(super) fn add_space_prefix(&self) -> bool {
        self.add_space_prefix
    }

    /// Encodes one stretch of text; lengths given to `out` are in bytes of `text`.
    pub(super) fn encode(
        &self,
        vocab: &Vocab,
        text: &str,
        after_special: bool,
        out: &mut dyn Sink,
    ) -> Result<(), TokenizeError> {
        if text.is_empty() {
            return Ok(());
        }
        let prefix = self.add_space_prefix && after_special;
        let spelled = spell(text, prefix);
        let mut merger = Merger::default();
        for c in spelled.chars() {
            let token = self.text_token(vocab, c.encode_utf8(&mut [0; 4])).unwrap_or(NO_TOKEN);
            merger.push(c.len_utf8() as u32, token);
        }
        merger.run(&|a, b| self.pair(vocab, &spelled, a, b));
        let mut source = Source::new(text, prefix);
        for symbol in merger.symbols() {
            let piece = &spelled[symbol.start as usize..(symbol.start + symbol.len) as usize];
            let bytes = source.advance(piece);
            self.emit(piece, symbol.token, bytes, out)?;
        }
        Ok(())
    }

    /// The token of a text: never a control or byte token that happens to be spelled like it.
    fn text_token(&self, vocab: &Vocab, text: &str) -> Option<u32> {
        let id = vocab.id(text)?;
        matches!(vocab.kind(id), Some(TokenKind::Normal | TokenKind::UserDefined)).then_some(id)
    }

    fn pair(&self, vocab: &Vocab, spelled: &str, a: &Symbol, b: &Symbol) -> Option<Merge> {
        let len = (a.len + b.len) as usize;
        if len > self.longest {
            return None; // keeps the look-up short on endless words
        }
        let start = a.start as usize;
        let token = self.text_token(vocab, &spelled[start..start + len])?;
        Some(Merge { rank: self.ranks[token as usize], token })
    }

    fn emit(
        &self,
        piece: &str,
        token: u32,
        source_bytes: usize,
        out: &mut dyn Sink,
    ) -> Result<(), TokenizeError> {
        if token != NO_TOKEN {
            out.token(token, source_bytes);
            return Ok(());
        }
        // A character without a token: its bytes, the source's length counted on the first.
        for (i, byte) in piece.bytes().enumerate() {
            let id = self.bytes[usize::from(byte)].or(self.unknown);
            out.token(id.ok_or(TokenizeError::NoToken { byte })?, if i == 0 { source_bytes } else { 0 });
        }
        Ok(())
    }
}

fn spell(text: &str, prefix: bool) -> String {
    let mut spelled = String::with_capacity(text.len() + text.len() / 4 + 3);
    if prefix {
        spelled.push(SPACE);
    }
    spelled.extend(text.chars().map(|c| if c == ' ' { SPACE } else { c }));
    spelled
}

/// Follows the source text while pieces of its spelling are taken.
struct Source<'a> {
    chars: std::str::Chars<'a>,
    prefix: bool,
}

impl<'a> Source<'a> {
    fn new(text: &'a str, prefix: bool) -> Self {
        Self { chars: text.chars(), prefix }
    }

    /// Bytes of the source that `piece` stands for.
    fn advance(&mut self, piece: &str) -> usize {
        let chars = piece.chars().count() - usize::from(std::mem::take(&mut self.prefix));
        self.chars.by_ref().take(chars).map(char::len_utf8).sum()
    }
}

/// Scores as ranks, so that they can be compared as integers.
fn ranks(gguf: &Gguf, scores: &[f32]) -> Result<Vec<u32>, GgufError> {
    if let Some(i) = scores.iter().position(|score| score.is_nan()) {
        return Err(gguf.error(SCORES, Fault::Value(format!("score {i} is not a number"))));
    }
    let mut order: Vec<u32> = (0..scores.len() as u32).collect();
    order.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]));
    let mut ranks = vec![0; scores.len()];
    let mut rank = 0;
    for (i, &id) in order.iter().enumerate() {
        if i > 0 && scores[id as usize] != scores[order[i - 1] as usize] {
            rank += 1;
        }
        ranks[id as usize] = rank;
    }
    Ok(ranks)
}
