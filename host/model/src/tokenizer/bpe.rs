//! Byte-level BPE: words, then bytes, then the file's merges.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::gguf::{Fault, Gguf, GgufError};

use super::Sink;
use super::byte_map;
use super::error::TokenizerError;
use super::merge::{Merge, Merger};
use super::split::{self, Splitter};
use super::vocab::{TokenKind, Vocab};

const MERGES: &str = "tokenizer.ggml.merges";
const PRE: &str = "tokenizer.ggml.pre";
/// Of a byte without a token.
const NO_TOKEN: u32 = u32::MAX;

/// What encoding needs beside the vocabulary.
pub(super) struct Bpe {
    splitter: Splitter,
    /// From (left, right) to the merge's rank and the token it makes.
    merges: FxHashMap<(u32, u32), Merge>,
    bytes: [Option<u32>; 256],
    /// Stands for a byte without a token, in vocabularies that have one for it.
    unknown: Option<u32>,
    /// For each token, whether a word that is spelt like it becomes it: most words of most texts, which so need no merging.
    whole: Box<[bool]>,
}

/// Buffers that are reused from word to word.
#[derive(Default)]
struct Scratch {
    merger: Merger,
    spelling: String,
}

impl Bpe {
    pub(super) fn read(gguf: &Gguf, vocab: &Vocab) -> Result<Self, TokenizerError> {
        let name = gguf.text(PRE)?.unwrap_or("default");
        let splitter = Splitter::named(name)
            .ok_or_else(|| TokenizerError::PreTokeniser { found: name.to_owned(), known: split::known() })?;
        let merges = read_merges(gguf, vocab)?;
        let mut bytes = [None; 256];
        for byte in 0..=255u8 {
            let id = vocab.id(byte_map::to_char(byte).encode_utf8(&mut [0; 4]));
            bytes[usize::from(byte)] = id.filter(|&id| is_text(vocab, id));
        }
        // Some files name a control token as the unknown one, which text must never become.
        let unknown = vocab.special.unknown.filter(|&id| vocab.kind(id) != Some(TokenKind::Control));
        let mut bpe = Self { splitter, merges, bytes, unknown, whole: Box::default() };
        bpe.whole = bpe.find_whole(vocab);
        Ok(bpe)
    }

    /// Every token that a model takes whole, or that merging its bytes ends in.
    fn find_whole(&self, vocab: &Vocab) -> Box<[bool]> {
        let is_whole = |merger: &mut Merger, id: u32| match vocab.kind(id) {
            Some(TokenKind::Normal) if self.splitter.whole_words => true,
            Some(TokenKind::Normal | TokenKind::UserDefined) => {
                self.merge(vocab.piece(id), merger);
                let mut symbols = merger.symbols();
                symbols.next().is_some_and(|only| only.token == id) && symbols.next().is_none()
            }
            _ => false,
        };
        (0..vocab.len() as u32).into_par_iter().map_init(Merger::default, is_whole).collect()
    }

    pub(super) fn add_bos(&self) -> bool {
        self.splitter.add_bos
    }

    pub(super) fn encode(&self, vocab: &Vocab, text: &str, out: &mut dyn Sink) {
        let mut scratch = Scratch::default();
        self.splitter.split(text, &mut |word| self.encode_word(vocab, word, &mut scratch, out));
    }

    fn encode_word(&self, vocab: &Vocab, word: &str, scratch: &mut Scratch, out: &mut dyn Sink) {
        scratch.spelling.clear();
        scratch.spelling.extend(word.bytes().map(byte_map::to_char));
        if let Some(id) = vocab.id(&scratch.spelling).filter(|&id| self.whole[id as usize]) {
            return out.token(id, word.len());
        }
        self.merge(word.as_bytes(), &mut scratch.merger);
        for symbol in scratch.merger.symbols() {
            match symbol.token {
                // Vocabularies lack bytes that no text has, and some a control character: it is left out, as by the
                // tokenizer that the model was trained with.
                NO_TOKEN => out.skip(symbol.len as usize),
                token => out.token(token, symbol.len as usize),
            }
        }
    }

    /// Leaves in `merger` what the bytes of a word become.
    fn merge(&self, word: &[u8], merger: &mut Merger) {
        merger.clear();
        for &byte in word {
            merger.push(1, self.bytes[usize::from(byte)].or(self.unknown).unwrap_or(NO_TOKEN));
        }
        merger.run(&|a, b| self.merges.get(&(a.token, b.token)).copied());
    }
}

fn read_merges(gguf: &Gguf, vocab: &Vocab) -> Result<FxHashMap<(u32, u32), Merge>, GgufError> {
    let lines = gguf.texts(MERGES)?.ok_or_else(|| gguf.error(MERGES, Fault::Missing))?;
    let mut merges = FxHashMap::with_capacity_and_hasher(lines.len(), Default::default());
    let mut both = String::new();
    for (rank, line) in lines.iter().enumerate() {
        let bad = |what: &str| gguf.error(MERGES, Fault::Value(format!("merge {rank} (`{line}`) {what}")));
        let (left, right) = halves(line).ok_or_else(|| bad("is not two tokens with a space between"))?;
        both.clear();
        both.extend([left, right]);
        let id =
            |text: &str| vocab.id(text).ok_or_else(|| bad("uses or makes a token that is not in the list"));
        let merge = Merge { rank: rank as u32, token: id(&both)? };
        if is_text(vocab, merge.token) {
            merges.entry((id(left)?, id(right)?)).or_insert(merge);
        }
    }
    Ok(merges)
}

/// Text never becomes a control token, not even through a file's merges.
fn is_text(vocab: &Vocab, id: u32) -> bool {
    matches!(vocab.kind(id), Some(TokenKind::Normal | TokenKind::UserDefined))
}

/// The two sides of `Ġ t`; the first character is never the separator.
fn halves(line: &str) -> Option<(&str, &str)> {
    let first = line.chars().next()?.len_utf8();
    let at = first + line[first..].find(' ')?;
    Some((&line[..at], &line[at + 1..]))
}
