//! Which bytes may be touched, seen from the target's prefix cache. An edit within what it holds makes it read again all that
//! follows there.

use jackfield_sdk::compression::Part;

/// A place in the prompt: a message and a byte of it.
pub type Place = (usize, usize);

/// What the target holds of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// Leading bytes of each message, as given.
    bytes: Vec<usize>,
    /// Held bytes of the messages from this one on.
    from: Vec<usize>,
}

impl Held {
    /// Of these parts.
    pub fn new(parts: &[Part]) -> Held {
        let bytes: Vec<usize> =
            parts.iter().map(|part| (part.cached_bytes as usize).min(part.message.text.len())).collect();
        let mut from = vec![0; bytes.len() + 1];
        for at in (0..bytes.len()).rev() {
            from[at] = from[at + 1] + bytes[at];
        }
        Held { bytes, from }
    }

    /// The place behind everything that is held: what follows may be edited freely.
    pub fn end(&self) -> Place {
        self.bytes.iter().rposition(|bytes| *bytes > 0).map_or((0, 0), |last| (last, self.bytes[last]))
    }

    /// Held bytes from a place on: what an edit there makes worthless.
    pub fn behind(&self, (message, start): Place) -> usize {
        let here = self.bytes.get(message).map_or(0, |bytes| bytes.saturating_sub(start));
        here + self.from.get(message + 1).copied().unwrap_or(0)
    }
}

/// What an edit within the held prefix saves and costs.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    /// Tokens that a byte of the prompt takes.
    pub tokens_per_byte: f64,
    /// Microseconds of one token of prefill.
    pub us_per_token: f64,
}

impl Costs {
    /// Microseconds that are won, or below 0 lost, when `saved_tokens` go from what is held, and `broken_bytes` of it lie
    /// behind the first of them: what of those does not go is read again.
    pub fn gain_us(&self, saved_tokens: f64, broken_bytes: usize) -> f64 {
        let again = (broken_bytes as f64 * self.tokens_per_byte - saved_tokens).max(0.0);
        (saved_tokens - again) * self.us_per_token
    }

    /// Where in the held prefix edits may begin so that it is worth it, or its end where it never is. `words` are places
    /// there and the tokens to be saved, the last first; no more than `needed` tokens are.
    pub fn begin(&self, held: &Held, words: impl Iterator<Item = (Place, f64)>, needed: f64) -> Place {
        let mut best = (0.0, held.end());
        let mut loose = 0.0;
        for (place, tokens) in words {
            loose += tokens;
            let gain = self.gain_us(f64::min(loose, needed), held.behind(place));
            if gain > best.0 {
                best = (gain, place);
            }
        }
        best.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_sdk::{Message, Role};

    fn held(bytes: &[u32]) -> Held {
        let part = |&cached_bytes: &u32| Part {
            message: Message { role: Role::User, text: "x".repeat(40) },
            protected: vec![],
            cached_bytes,
        };
        Held::new(&bytes.iter().map(part).collect::<Vec<_>>())
    }

    const COSTS: Costs = Costs { tokens_per_byte: 0.25, us_per_token: 1000.0 };

    #[test]
    fn what_lies_behind_an_edit_is_broken() {
        let held = held(&[40, 30, 0]);
        assert_eq!(held.end(), (1, 30));
        assert_eq!([(0, 10), (1, 10), (1, 30), (2, 0)].map(|place| held.behind(place)), [60, 20, 0, 0]);
        assert_eq!(Held::new(&[]).end(), (0, 0));
    }

    #[test]
    fn the_prefix_is_broken_only_for_more_than_it_costs() {
        let held = held(&[40]);
        // Of 10 tokens held from byte 0 on, 6 go and 4 are read again.
        let begin = |words: &[(Place, f64)], needed| COSTS.begin(&held, words.iter().copied(), needed);
        assert_eq!(begin(&[((0, 0), 6.0)], 100.0), (0, 0));
        assert_eq!(begin(&[((0, 0), 5.0)], 100.0), (0, 40));
        assert_eq!(begin(&[((0, 0), 6.0)], 2.0), (0, 40));
        assert_eq!(begin(&[((0, 32), 2.0), ((0, 0), 1.0)], 100.0), (0, 32));
        let free = Costs { us_per_token: 0.0, ..COSTS };
        assert_eq!(free.begin(&held, [((0, 0), 9.0)].into_iter(), 100.0), (0, 40));
    }
}
