//! From the model's tokens to words: how surprising each is, and how many tokens it takes.

use crate::pieces::{Kind, Piece};
use jackfield_sdk::imports::saliency::Scored;

/// What the model made of one piece.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// Surprisal in bits; none where the model has not judged it.
    pub bits: Option<f32>,
    /// Tokens that end in it.
    pub tokens: f64,
}

/// Of each piece what the model made of it. `ends` are the ends of the pieces in bytes, rising; `scored` covers the text from
/// its start, or the first part of it. `tokens_per_byte` is for the rest.
///
/// A word is as surprising as its most surprising token. The sum would be the information of the whole word, but counts a word
/// that the vocabulary cuts into many pieces (a typing error, a Chinese character of three bytes) several times over, although it
/// is no more telling; and a mean lets the predictable end of a rare name hide its beginning. The first token of a text has
/// nothing before it to be surprising after: a word of which it is all is not judged.
pub fn judge(pieces: &[Piece], ends: &[usize], scored: &[Scored], tokens_per_byte: f64) -> Vec<Judged> {
    let mut judged = Vec::with_capacity(pieces.len());
    let mut next = 0;
    let mut start = 0;
    for (piece, &end) in pieces.iter().zip(ends) {
        let mut bits: Option<f32> = None;
        let first = next;
        while let Some(token) = scored.get(next).filter(|token| token.end as usize <= end) {
            if next > 0 {
                bits = Some(bits.map_or(token.surprisal_bits, |bits| bits.max(token.surprisal_bits)));
            }
            next += 1;
        }
        // The token in which this word lies, with others: 就是 as one token, of which this is the first half.
        let began =
            next.checked_sub(1).and_then(|before| scored.get(before)).map_or(0, |token| token.end as usize);
        let around = scored.get(next).filter(|_| next > 0 && began < end && is_word(piece));
        let bits = bits.or(around.map(|token| token.surprisal_bits));
        let seen = scored.last().is_some_and(|last| end <= last.end as usize);
        let tokens = if seen { (next - first) as f64 } else { (end - start) as f64 * tokens_per_byte };
        judged.push(Judged { bits, tokens });
        start = end;
    }
    judged
}

fn is_word(piece: &Piece) -> bool {
    matches!(piece.kind, Kind::Word(_))
}

/// Whether scores are what the contract says: ends that rise within the text, and numbers.
pub fn is_sound(scored: &[Scored], text: &str) -> bool {
    let mut before = 0;
    scored.iter().all(|token| {
        let end = token.end as usize;
        let rises = before <= end && end <= text.len();
        before = end;
        rises && token.surprisal_bits.is_finite()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pieces::Class;

    fn pieces(lens: &[usize]) -> (Vec<Piece>, Vec<usize>) {
        let mut at = 0;
        let piece = |len: &usize| {
            at += len;
            Piece { glyphs: at - len..at, kind: Kind::Word(Class::Content) }
        };
        let pieces: Vec<Piece> = lens.iter().map(piece).collect();
        let ends = pieces.iter().map(|piece| piece.glyphs.end).collect();
        (pieces, ends)
    }

    fn judged(lens: &[usize], scored: &[(u32, f32)]) -> Vec<(Option<f32>, f64)> {
        let (pieces, ends) = pieces(lens);
        let scored: Vec<Scored> =
            scored.iter().map(|&(end, surprisal_bits)| Scored { end, surprisal_bits }).collect();
        judge(&pieces, &ends, &scored, 0.25).iter().map(|judged| (judged.bits, judged.tokens)).collect()
    }

    #[test]
    fn a_word_is_as_surprising_as_its_most_surprising_token() {
        let found = judged(&[4, 6], &[(4, 15.0), (6, 2.0), (9, 9.0), (10, 0.5)]);
        assert_eq!(found, [(None, 1.0), (Some(9.0), 3.0)]);
    }

    #[test]
    fn the_first_token_is_not_judged_and_the_rest_of_its_word_is() {
        assert_eq!(judged(&[4], &[(2, 15.0), (4, 1.0)]), [(Some(1.0), 2.0)]);
        assert_eq!(judged(&[2, 2], &[(4, 15.0)]), [(None, 0.0), (None, 1.0)]);
    }

    #[test]
    fn a_token_of_two_words_tells_of_both() {
        let found = judged(&[2, 3, 3], &[(2, 15.0), (8, 4.0)]);
        assert_eq!(found, [(None, 1.0), (Some(4.0), 0.0), (Some(4.0), 1.0)]);
    }

    #[test]
    fn what_the_model_has_not_read_is_counted_by_its_bytes() {
        assert_eq!(judged(&[2, 2, 8], &[(2, 15.0), (4, 4.0)])[2], (None, 2.0));
        assert_eq!(judged(&[8], &[]), [(None, 2.0)]);
    }
}
