//! A model that recites. After a line break it writes the same text, token by token, and ends: what it will say is known
//! beforehand, and so is where each token is cut, inside a character too.

use crate::gguf_writer::{GgufWriter, Quant};
use crate::tiny_model::{LAYERS, TinyModel, WIDTH, printable};

const TOKENS: &str = "tokenizer.ggml.tokens";
const KINDS: &str = "tokenizer.ggml.token_type";
/// `<|im_end|>`, which ends an answer.
const END: usize = 2;

/// What is recited, one token a piece.
#[derive(Debug, Clone, PartialEq)]
pub struct Reciter {
    /// No two alike. They need not be whole characters, nor text at all.
    pub pieces: Vec<Vec<u8>>,
    /// Begin again after the last piece instead of ending.
    pub again: bool,
    /// Template, context and the like.
    pub tiny: TinyModel,
}

impl Reciter {
    /// Recites `text` once, cut into pieces of two bytes or some more with no regard for characters.
    pub fn of(text: &str) -> Reciter {
        Reciter::of_pieces(cut(text.as_bytes()))
    }

    /// Recites these pieces once.
    pub fn of_pieces(pieces: Vec<Vec<u8>>) -> Reciter {
        Reciter { pieces, again: false, tiny: TinyModel { untied: true, ..TinyModel::default() } }
    }

    /// What it has said after so many tokens.
    pub fn said(&self, tokens: usize) -> Vec<u8> {
        self.pieces[..tokens].concat()
    }

    /// The file's bytes.
    ///
    /// Attention and feed-forward add nothing, so what comes out of the last layer is the embedding of the token that
    /// went in; the output row of each piece is the embedding of the piece before it.
    pub fn bytes(&self) -> Vec<u8> {
        let mut w = TinyModel { untied: true, ..self.tiny.clone() }.writer();
        let ids = add_pieces(&mut w, &self.pieces);
        let line_break = id_of(&texts(&w), b"\n").expect("all bytes are tokens");
        let vocab = texts(&w).len();
        let embeddings = embeddings(vocab);
        let mut output = vec![0.0; vocab * WIDTH];
        let mut follow = |before: usize, after: usize| {
            let (from, to) = (before * WIDTH, after * WIDTH);
            (0..WIDTH).for_each(|i| output[to + i] += embeddings[from + i]);
        };
        let (first, last) = (ids[0], ids[ids.len() - 1]);
        follow(line_break, first);
        ids.windows(2).for_each(|pair| follow(pair[0], pair[1]));
        follow(last, if self.again { first } else { END });
        replace(&mut w, "token_embd.weight", &embeddings);
        replace(&mut w, "output.weight", &output);
        for layer in 0..LAYERS {
            for part in ["attn_output", "ffn_down"] {
                w.tensor_mut(&format!("blk.{layer}.{part}.weight")).data.fill(0);
            }
        }
        w.build()
    }
}

/// The shortest pieces of at least two bytes that are all different.
fn cut(text: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let is_new = |len: &usize| !pieces.iter().any(|piece| piece == &rest[..*len]);
        match (2..=rest.len()).find(is_new) {
            Some(len) => pieces.push(rest[..len].to_vec()),
            None => pieces.last_mut().expect("more than one byte").extend(rest),
        }
        rest = &text[pieces.iter().map(Vec::len).sum::<usize>()..];
    }
    pieces
}

/// Gives every piece a token and returns the ids; a piece that is a token already keeps its id.
fn add_pieces(w: &mut GgufWriter, pieces: &[Vec<u8>]) -> Vec<usize> {
    let mut tokens = texts(w);
    let mut ids: Vec<usize> = Vec::new();
    for piece in pieces {
        let id = id_of(&tokens, piece).unwrap_or_else(|| {
            tokens.push(spelled(piece));
            tokens.len() - 1
        });
        assert!(!ids.contains(&id), "{piece:?} twice; what follows it would be unknown");
        ids.push(id);
    }
    let (_, _, kinds) = w.metadata.iter().find(|(key, ..)| key == KINDS).expect("kinds of tokens");
    let mut kinds: Vec<i32> =
        kinds[12..].as_chunks().0.iter().map(|kind| i32::from_le_bytes(*kind)).collect();
    kinds.resize(tokens.len(), 1);
    w.texts(TOKENS, &tokens);
    w.integers(KINDS, &kinds);
    ids
}

fn texts(w: &GgufWriter) -> Vec<String> {
    let (_, _, bytes) = w.metadata.iter().find(|(key, ..)| key == TOKENS).expect("tokens");
    let mut rest = &bytes[12..];
    let mut texts = Vec::new();
    while let Some((len, after)) = rest.split_first_chunk() {
        let (text, after) = after.split_at(u64::from_le_bytes(*len) as usize);
        texts.push(String::from_utf8(text.to_vec()).expect("as it was written"));
        rest = after;
    }
    texts
}

fn id_of(tokens: &[String], piece: &[u8]) -> Option<usize> {
    let spelled = spelled(piece);
    tokens.iter().position(|token| *token == spelled)
}

fn spelled(piece: &[u8]) -> String {
    piece.iter().map(|&byte| printable(byte)).collect()
}

/// Rows in all directions, always the same ones: `[vocab, WIDTH]`.
fn embeddings(vocab: usize) -> Vec<f32> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..vocab * WIDTH).map(|_| next()).collect()
}

fn replace(w: &mut GgufWriter, name: &str, values: &[f32]) {
    let tensor = w.tensor_mut(name);
    tensor.shape = vec![WIDTH as u64, (values.len() / WIDTH) as u64];
    tensor.quantisation = Quant::F32.id();
    tensor.data = Quant::F32.encode(values);
}

#[cfg(test)]
mod tests {
    use jackfield_model::{Cpu, Gguf, Model};

    use super::*;
    use crate::generate::greedy;

    #[test]
    fn it_says_its_text_and_ends() {
        let text = "龘👩‍👩‍👧é and nine at nine";
        let reciter = Reciter::of(text);
        let model = Model::from_gguf(Gguf::from_bytes(reciter.bytes()).unwrap(), Cpu::new(1)).unwrap();
        let prompt = model.tokenizer.encode("anything\n").unwrap();
        let said = greedy(&model, &prompt, reciter.pieces.len() + 1);
        assert_eq!(model.tokenizer.decode(&said), text);
        assert!(model.tokenizer.is_end(said[said.len() - 1]));
    }

    #[test]
    fn pieces_are_the_text_and_differ() {
        let text_of = |pieces: Vec<Vec<u8>>| String::from_utf8(pieces.join(&b'|')).unwrap();
        assert_eq!(text_of(cut(b"aaaaaaaab")), "aa|aaa|aaab");
        assert_eq!(text_of(cut(b"abcdefabcd")), "ab|cd|ef|abcd");
        assert_eq!(text_of(cut(b"abcdabab")), "ab|cd|abab");
    }
}
