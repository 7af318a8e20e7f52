//! Prompts: common words in random order, the same for the same seed, and different for every request.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::workload::Amount;

/// Words that most vocabularies have as one token, a space before them included.
const WORDS: &str = include_str!("words.txt");

/// The stream of random numbers that shared text comes from; requests count from 0.
const SHARED: u64 = u64::MAX;

/// Makes the texts of one lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Author {
    seed: u64,
    /// How many tokens of the served model a word takes.
    tokens_per_word: f64,
}

impl Author {
    /// `place` names workload, phase and lane: each has texts of its own.
    pub(crate) fn new(seed: u64, place: &str, tokens_per_word: f64) -> Author {
        Author { seed: seed ^ fnv(place), tokens_per_word }
    }

    /// The random numbers of a request.
    pub(crate) fn random(self, request: u64) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(request);
        random
    }

    /// Random numbers that belong to no request: for arrivals.
    pub(crate) fn schedule(self) -> ChaCha8Rng {
        self.random(SHARED - 1)
    }

    /// Text of about so many tokens that is the same for all requests of the lane.
    pub(crate) fn shared(self, tokens: u32) -> String {
        self.text(tokens, &mut self.random(SHARED))
    }

    /// Text of about so many tokens, at least one word.
    pub(crate) fn text(self, tokens: u32, random: &mut ChaCha8Rng) -> String {
        let words: Vec<&str> = WORDS.split_ascii_whitespace().collect();
        let count = (f64::from(tokens) / self.tokens_per_word).round().max(1.0) as usize;
        let mut text = String::with_capacity(count * 6);
        for _ in 0..count {
            text.push(' ');
            text.push_str(words[random.next_u32() as usize % words.len()]);
        }
        text
    }
}

/// A number within the amount.
pub(crate) fn draw(amount: Amount, random: &mut ChaCha8Rng) -> u32 {
    amount.low + random.next_u32() % (amount.high - amount.low + 1)
}

/// FNV-1a: stable over versions and machines, which the standard library's hasher does not promise.
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn prompt(author: Author, request: u64) -> String {
        author.text(64, &mut author.random(request))
    }

    #[test]
    fn the_same_seed_gives_the_same_text_and_nothing_else_does() {
        let author = Author::new(1, "decode_1/0/0", 1.0);
        let places = ["decode_1/0/1", "decode_1/1/0", "decode_4/0/0"].map(|place| Author::new(1, place, 1.0));
        let others = places.into_iter().chain([Author::new(2, "decode_1/0/0", 1.0)]);
        let mut seen: BTreeSet<String> = others.map(|other| prompt(other, 0)).collect();
        seen.extend((0..100).map(|request| prompt(author, request)));
        assert_eq!(seen.len(), 104);
        assert_eq!(prompt(author, 5), prompt(Author::new(1, "decode_1/0/0", 1.0), 5));
        // A prefix cache finds whole blocks, so the first words must differ as well.
        let heads: BTreeSet<String> =
            seen.iter().map(|text| text.split(' ').take(5).collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(heads.len(), 104);
    }

    #[test]
    fn length_follows_the_tokens_of_a_word() {
        let words = |tokens_per_word, tokens| {
            let author = Author::new(1, "", tokens_per_word);
            author.shared(tokens).split_ascii_whitespace().count()
        };
        assert_eq!(words(1.0, 512), 512);
        assert_eq!(words(4.0, 512), 128);
        assert_eq!(words(4.0, 1), 1);
    }

    #[test]
    fn words_are_plain_and_different() {
        let words: Vec<&str> = WORDS.split_ascii_whitespace().collect();
        let different: BTreeSet<&str> = words.iter().copied().collect();
        assert_eq!(words.len(), different.len());
        assert!(words.len() >= 256 && words.iter().all(|word| word.bytes().all(|b| b.is_ascii_lowercase())));
    }

    #[test]
    fn a_drawn_amount_stays_within_its_bounds() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let drawn: BTreeSet<u32> = (0..1000).map(|_| draw(Amount { low: 3, high: 6 }, &mut random)).collect();
        assert_eq!(drawn, BTreeSet::from([3, 4, 5, 6]));
        assert_eq!(draw(Amount { low: 9, high: 9 }, &mut random), 9);
    }
}
