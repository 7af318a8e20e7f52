//! From text to tokens and back, as the model file says.
//!
//! A control token in a text that came from outside is text: [`Tokenizer::encode`] never makes one. The only way
//! to a control token is a [`Rendered`] prompt, whose segments say which are meant.

mod bpe;
mod byte_map;
mod error;
mod merge;
mod split;
mod spm;
#[cfg(test)]
mod tests;
mod vocab;

use aho_corasick::{AhoCorasick, MatchKind};
use rustc_hash::FxHashSet;

pub use error::{TokenizeError, TokenizerError};
pub use vocab::TokenKind;

use crate::gguf::{Fault, Gguf, GgufError};
use crate::template::{Rendered, Segment};

use bpe::Bpe;
use spm::SentencePiece;
use vocab::{Spelling, Vocab};

/// The longest text that is encoded: 256 MiB.
const MAX_TEXT_BYTES: usize = 1 << 28;

/// All user-defined tokens together: the automaton that finds them takes many times that.
const MAX_USER_DEFINED_BYTES: usize = 1 << 20;

/// Control tokens that end a message, under the names that published models give them.
const END_TEXTS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
    "<|eos|>",
];

/// Takes tokens as they are made, with the bytes of text that each stands for.
trait Sink {
    fn token(&mut self, id: u32, bytes: usize);

    /// Bytes that no token stands for.
    fn skip(&mut self, _bytes: usize) {}
}

impl Sink for Vec<u32> {
    fn token(&mut self, id: u32, _bytes: usize) {
        self.push(id);
    }
}

/// Collects where each token ends.
struct Ends {
    at: usize,
    ends: Vec<usize>,
}

impl Sink for Ends {
    fn token(&mut self, _id: u32, bytes: usize) {
        self.at += bytes;
        self.ends.push(self.at);
    }

    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }
}

enum Encoder {
    Bpe(Box<Bpe>),
    SentencePiece(Box<SentencePiece>),
}

/// A model's tokenizer.
pub struct Tokenizer {
    vocab: Vocab,
    encoder: Encoder,
    /// Finds user-defined tokens, the longest at the leftmost place.
    user_defined: Option<(AhoCorasick, Vec<u32>)>,
    ends: FxHashSet<u32>,
    add_bos: bool,
}

impl Tokenizer {
    /// Reads the tokenizer of a model file.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, TokenizerError> {
        let key = "tokenizer.ggml.model";
        let model = gguf.text(key)?.ok_or_else(|| gguf.error(key, Fault::Missing))?;
        let (vocab, encoder, default_bos) = match model {
            "gpt2" => {
                let vocab = Vocab::read(gguf, Spelling::ByteLevel)?;
                let bpe = Bpe::read(gguf, &vocab)?;
                let add_bos = bpe.add_bos();
                (vocab, Encoder::Bpe(Box::new(bpe)), add_bos)
            }
            "llama" => {
                let vocab = Vocab::read(gguf, Spelling::SentencePiece)?;
                let spm = SentencePiece::read(gguf, &vocab)?;
                (vocab, Encoder::SentencePiece(Box::new(spm)), true)
            }
            other => return Err(TokenizerError::Model(other.to_owned())),
        };
        let add_bos = read_add_bos(gguf, &vocab, default_bos)?;
        let user_defined = find_user_defined(gguf, &vocab)?;
        let ends = end_tokens(&vocab);
        Ok(Self { vocab, encoder, user_defined, ends, add_bos })
    }

    /// The tokens of a plain text. Control tokens in it are text; no BOS is added. A control character for which the
    /// vocabulary has no byte is left out, as by other implementations.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizeError> {
        let mut tokens = Vec::with_capacity(text.len() / 3);
        self.encode_into(text, &mut tokens)?;
        Ok(tokens)
    }

    /// The tokens of a raw completion's prompt: plain text after one BOS where the file wants one. A prompt that
    /// spells the BOS itself gets those characters as text, after the real one.
    pub fn encode_completion(&self, text: &str) -> Result<Vec<u32>, TokenizeError> {
        let mut tokens: Vec<u32> = self.added_bos().into_iter().collect();
        self.encode_into(text, &mut tokens)?;
        Ok(tokens)
    }

    /// The tokens of a rendered conversation. Exactly one BOS where the file wants one, be it in the template or not.
    pub fn encode_prompt(&self, prompt: &Rendered) -> Result<Vec<u32>, TokenizeError> {
        let mut tokens: Vec<u32> = self.added_bos().into_iter().collect();
        for segment in prompt.segments() {
            match segment {
                Segment::Text(text) => self.encode_into(text, &mut tokens)?,
                Segment::Control(text) => {
                    let id = self.vocab.id(text).ok_or_else(|| TokenizeError::NoControl(text.clone()))?;
                    let again = tokens.len() == 1 && Some(id) == self.vocab.special.bos && tokens[0] == id;
                    if !again {
                        tokens.push(id);
                    }
                }
            }
        }
        Ok(tokens)
    }

    /// Where each token of a plain text ends, as byte offsets into it, never inside a character: a token that
    /// ends inside one counts to that character's end. Text that no token stands for counts to the one after it; the last
    /// ends at the text's length.
    pub fn boundaries(&self, text: &str) -> Result<Vec<u32>, TokenizeError> {
        let mut ends = Ends { at: 0, ends: Vec::new() };
        self.encode_into(text, &mut ends)?;
        let whole = |end: usize| (end..=text.len()).find(|&i| text.is_char_boundary(i)).unwrap_or(text.len());
        if let Some(last) = ends.ends.last_mut() {
            *last = text.len();
        }
        Ok(ends.ends.into_iter().map(|end| whole(end) as u32).collect())
    }

    /// The bytes that a token adds to a text; none for control tokens and unknown ids. They need not be whole
    /// characters.
    pub fn decode_bytes(&self, id: u32) -> &[u8] {
        self.vocab.piece(id)
    }

    /// The text of a run of tokens; bytes that are no text become U+FFFD. The space that SentencePiece models
    /// put before the first word is taken off again.
    pub fn decode(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids.iter().flat_map(|&id| self.vocab.piece(id)).copied().collect();
        let prefixed = matches!(&self.encoder, Encoder::SentencePiece(spm) if spm.add_space_prefix());
        let bytes = match bytes.strip_prefix(b" ") {
            Some(rest) if prefixed => rest,
            _ => &bytes,
        };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Whether a token steers the model instead of being text.
    pub fn is_control(&self, id: u32) -> bool {
        matches!(self.vocab.kind(id), Some(TokenKind::Control | TokenKind::Unknown))
    }

    /// Whether a token ends the answer: the file's EOS, EOT and EOM, and the control tokens that are known to.
    pub fn is_end(&self, id: u32) -> bool {
        self.ends.contains(&id)
    }

    /// All tokens that end an answer, in ascending order.
    pub fn end_tokens(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.ends.iter().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// The token that begins a sequence.
    pub fn bos(&self) -> Option<u32> {
        self.vocab.special.bos
    }

    /// The token that ends one.
    pub fn eos(&self) -> Option<u32> {
        self.vocab.special.eos
    }

    /// Whether prompts begin with the BOS.
    pub fn adds_bos(&self) -> bool {
        self.add_bos
    }

    /// How many tokens there are.
    pub fn vocab_size(&self) -> usize {
        self.vocab.len()
    }

    /// A token's entry in the vocabulary, in the file's spelling; empty for unknown ids.
    pub fn token_text(&self, id: u32) -> &str {
        self.vocab.text(id)
    }

    /// What a token is for; none for unknown ids.
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        self.vocab.kind(id)
    }

    /// The token with this entry in the vocabulary, in the file's spelling.
    pub fn id_of(&self, token: &str) -> Option<u32> {
        self.vocab.id(token)
    }

    /// The texts of all control tokens.
    pub(crate) fn control_texts(&self) -> impl Iterator<Item = &str> {
        let controls = self.vocab.of_kind(TokenKind::Control).chain(self.vocab.of_kind(TokenKind::Unknown));
        controls.map(|id| self.vocab.text(id)).filter(|text| !text.is_empty())
    }

    fn added_bos(&self) -> Option<u32> {
        self.vocab.special.bos.filter(|_| self.add_bos)
    }

    fn encode_into(&self, text: &str, out: &mut dyn Sink) -> Result<(), TokenizeError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(TokenizeError::TooLong { bytes: text.len(), limit: MAX_TEXT_BYTES });
        }
        let mut at = 0;
        if let Some((finder, ids)) = &self.user_defined {
            for found in finder.find_iter(text) {
                self.encode_plain(&text[at..found.start()], out)?;
                out.token(ids[found.pattern().as_usize()], found.len());
                at = found.end();
            }
        }
        self.encode_plain(&text[at..], out)
    }

    fn encode_plain(&self, text: &str, out: &mut dyn Sink) -> Result<(), TokenizeError> {
        match &self.encoder {
            Encoder::Bpe(bpe) => {
                bpe.encode(&self.vocab, text, out);
                Ok(())
            }
            // Each stretch follows a control or user-defined token, or nothing: that is where the prefix goes.
            Encoder::SentencePiece(spm) => spm.encode(&self.vocab, text, true, out),
        }
    }
}

fn read_add_bos(gguf: &Gguf, vocab: &Vocab, default: bool) -> Result<bool, GgufError> {
    let key = "tokenizer.ggml.add_bos_token";
    let explicit = gguf.boolean(key)?;
    if explicit == Some(true) && vocab.special.bos.is_none() {
        let fault = "is true, but tokenizer.ggml.bos_token_id is missing";
        return Err(gguf.error(key, Fault::Value(fault.into())));
    }
    Ok(explicit.unwrap_or(default && vocab.special.bos.is_some()))
}

fn find_user_defined(gguf: &Gguf, vocab: &Vocab) -> Result<Option<(AhoCorasick, Vec<u32>)>, GgufError> {
    let ids: Vec<u32> =
        vocab.of_kind(TokenKind::UserDefined).filter(|&id| !vocab.text(id).is_empty()).collect();
    if ids.is_empty() {
        return Ok(None);
    }
    let too_many = || gguf.error(vocab::KINDS, Fault::Value("too many user-defined tokens".into()));
    let bytes: usize = ids.iter().map(|&id| vocab.text(id).len()).sum();
    if bytes > MAX_USER_DEFINED_BYTES {
        return Err(too_many());
    }
    let texts = ids.iter().map(|&id| vocab.text(id));
    let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts);
    Ok(Some((finder.map_err(|_| too_many())?, ids)))
}

fn end_tokens(vocab: &Vocab) -> FxHashSet<u32> {
    let named = [vocab.special.eos, vocab.special.eot, vocab.special.eom];
    let known = END_TEXTS.iter().filter_map(|text| vocab.id(text));
    let known = known.filter(|&id| vocab.kind(id) == Some(TokenKind::Control));
    named.into_iter().flatten().chain(known).collect()
}
