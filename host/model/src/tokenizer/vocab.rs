//! The token list of a file: texts, kinds, scores, and the named ids.

use rustc_hash::FxHashMap;

use crate::gguf::{Fault, Gguf, GgufError};

use super::byte_map;

/// What a token is for, by GGUF's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A piece of text.
    Normal,
    /// Stands for what has no token.
    Unknown,
    /// Steers the model; never comes from text.
    Control,
    /// Text that is always one token.
    UserDefined,
    /// Not in use.
    Unused,
    /// One byte, for text that has no token (`<0x0A>`).
    Byte,
}

impl TokenKind {
    fn from_id(id: u32) -> Option<Self> {
        use TokenKind::*;
        [Normal, Unknown, Control, UserDefined, Unused, Byte].get((id as usize).checked_sub(1)?).copied()
    }
}

/// Many short strings in one allocation.
#[derive(Default)]
struct Pool {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Pool {
    fn close(&mut self) {
        self.ends.push(self.bytes.len());
    }

    fn get(&self, id: u32) -> &[u8] {
        let i = id as usize;
        let Some(&end) = self.ends.get(i) else { return &[] };
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..end]
    }
}

/// The tokens and what is known about each.
pub(super) struct Vocab {
    texts: Pool,
    pieces: Pool,
    kinds: Vec<TokenKind>,
    pub(super) scores: Vec<f32>,
    ids: FxHashMap<Box<str>, u32>,
    pub(super) special: SpecialIds,
}

/// The ids that the file names.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SpecialIds {
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    pub(super) eot: Option<u32>,
    pub(super) eom: Option<u32>,
    pub(super) unknown: Option<u32>,
}

impl SpecialIds {
    /// What begins and ends a text or a turn is control whatever type the file gives it: some files mark `</s>` as
    /// user-defined, and a user who writes it must not end anything.
    fn turn_into_control(&self, kinds: &mut [TokenKind]) {
        for id in [self.bos, self.eos, self.eot, self.eom].into_iter().flatten() {
            kinds[id as usize] = TokenKind::Control;
        }
    }
}

/// How a token's text becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// GPT-2's printable bytes.
    ByteLevel,
    /// `▁` for a space, `<0x0A>` for a byte.
    SentencePiece,
}

const TOKENS: &str = "tokenizer.ggml.tokens";
pub(super) const KINDS: &str = "tokenizer.ggml.token_type";
const SCORES: &str = "tokenizer.ggml.scores";

impl Vocab {
    pub(super) fn read(gguf: &Gguf, spelling: Spelling) -> Result<Self, GgufError> {
        let tokens = gguf.texts(TOKENS)?.ok_or_else(|| gguf.error(TOKENS, Fault::Missing))?;
        if tokens.is_empty() {
            return Err(gguf.error(TOKENS, Fault::Value("no tokens".into())));
        }
        let mut kinds = read_kinds(gguf, tokens.len())?;
        let scores = gguf.floats(SCORES)?.unwrap_or_default();
        if !scores.is_empty() {
            same_length(gguf, SCORES, scores.len(), tokens.len())?;
        }
        let special = read_special(gguf, tokens.len())?;
        special.turn_into_control(&mut kinds);
        let (mut texts, mut pieces) = (Pool::default(), Pool::default());
        let mut ids = FxHashMap::with_capacity_and_hasher(tokens.len(), Default::default());
        for (id, (&text, &kind)) in tokens.iter().zip(&kinds).enumerate() {
            texts.bytes.extend_from_slice(text.as_bytes());
            texts.close();
            piece(text, kind, spelling, &mut pieces.bytes);
            pieces.close();
            // Of two tokens with one text the later is meant, as in other implementations.
            ids.insert(Box::from(text), id as u32);
        }
        Ok(Self { texts, pieces, kinds, scores, ids, special })
    }

    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    pub(super) fn kind(&self, id: u32) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    pub(super) fn text(&self, id: u32) -> &str {
        std::str::from_utf8(self.texts.get(id)).unwrap_or_default() // made from strings
    }

    /// The bytes that a token adds to the text.
    pub(super) fn piece(&self, id: u32) -> &[u8] {
        self.pieces.get(id)
    }

    pub(super) fn id(&self, text: &str) -> Option<u32> {
        self.ids.get(text).copied()
    }

    pub(super) fn of_kind(&self, kind: TokenKind) -> impl Iterator<Item = u32> + '_ {
        (0..self.len() as u32).filter(move |&id| self.kinds[id as usize] == kind)
    }
}

fn read_kinds(gguf: &Gguf, tokens: usize) -> Result<Vec<TokenKind>, GgufError> {
    let Some(ids) = gguf.integers(KINDS)? else { return Ok(vec![TokenKind::Normal; tokens]) };
    same_length(gguf, KINDS, ids.len(), tokens)?;
    ids.iter()
        .enumerate()
        .map(|(i, &id)| {
            let fault = || gguf.error(KINDS, Fault::Value(format!("token {i} has the unknown type {id}")));
            // Old converters wrote 0 for tokens without a type.
            if id == 0 { Ok(TokenKind::Normal) } else { TokenKind::from_id(id).ok_or_else(fault) }
        })
        .collect()
}

fn same_length(gguf: &Gguf, key: &str, found: usize, tokens: usize) -> Result<(), GgufError> {
    if found == tokens {
        return Ok(());
    }
    let fault = format!("has {found} elements, {TOKENS} has {tokens}");
    Err(gguf.error(key, Fault::Value(fault)))
}

fn read_special(gguf: &Gguf, tokens: usize) -> Result<SpecialIds, GgufError> {
    let id = |name: &str| {
        let key = format!("tokenizer.ggml.{name}_token_id");
        let Some(id) = gguf.unsigned(&key)? else { return Ok(None) };
        if id >= tokens as u64 {
            return Err(gguf.error(&key, Fault::Value(format!("{id} is outside the {tokens} tokens"))));
        }
        Ok(Some(id as u32))
    };
    Ok(SpecialIds {
        bos: id("bos")?,
        eos: id("eos")?,
        eot: id("eot")?,
        eom: id("eom")?,
        unknown: id("unknown")?,
    })
}

/// Appends the bytes that a token adds to the text.
fn piece(text: &str, kind: TokenKind, spelling: Spelling, out: &mut Vec<u8>) {
    match (kind, spelling) {
        (TokenKind::Control | TokenKind::Unknown, _) => {}
        (TokenKind::UserDefined, _) => out.extend_from_slice(text.as_bytes()),
        (_, Spelling::ByteLevel) => byte_map::decode(text, out),
        (TokenKind::Byte, Spelling::SentencePiece) => match byte_token(text) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(text.as_bytes()),
        },
        (_, Spelling::SentencePiece) => out.extend_from_slice(text.replace('\u{2581}', " ").as_bytes()),
    }
}

/// The byte of `<0x0A>`.
fn byte_token(text: &str) -> Option<u8> {
    let hex = text.strip_prefix("<0x")?.strip_suffix('>')?;
    if hex.len() == 2 { u8::from_str_radix(hex, 16).ok() } else { None }
}
