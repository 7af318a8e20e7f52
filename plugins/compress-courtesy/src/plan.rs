//! Which deletions are worth it. A target that already holds the KV of the prompt's first bytes loses what it holds
//! from the first edit on, so an early edit must save more than it breaks.

use std::ops::Range;

/// A deletion of a message, and where it starts in the whole prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Index of the message.
    pub message: usize,
    /// Bytes of the message.
    pub at: Range<usize>,
    /// Cached bytes of the prompt from `at.start` on: those that an edit here makes worthless.
    pub breaks_bytes: usize,
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    /// Tokens of the prompt divided by its bytes.
    pub tokens_per_byte: f64,
    /// Microseconds of one token of prefill.
    pub us_per_token: f64,
    /// Least saving in tokens.
    pub least_tokens: f64,
    /// Least saving in microseconds.
    pub least_us: f64,
}

/// The best tail of `candidates`, which are in the order of the prompt: once the prefix is broken at some place, every
/// later edit is free. Empty when no tail saves enough.
///
/// All that is worth it goes, not just enough for the budget: what a rule drops depends on the words alone, so that the
/// prompt of the next turn starts with the same text and finds it in the cache.
pub fn worthwhile(candidates: &[Candidate], costs: &Costs) -> usize {
    let mut saved_bytes = 0.0;
    let mut best = (0.0, candidates.len());
    for (n, candidate) in candidates.iter().enumerate().rev() {
        saved_bytes += candidate.at.len() as f64;
        // Dropped bytes that were cached cost nothing before: they are saved on one side and broken on the other.
        let gain = (saved_bytes - candidate.breaks_bytes as f64) * costs.tokens_per_byte;
        if gain > best.0 {
            best = (gain, n);
        }
    }
    let (tokens, first) = best;
    let slow_enough = costs.us_per_token <= 0.0 || tokens * costs.us_per_token >= costs.least_us;
    if tokens >= costs.least_tokens && slow_enough { first } else { candidates.len() }
}

/// Cached bytes at or behind byte `start` of message `message`; `cached` are the cached bytes of each message.
pub fn broken_bytes(cached: &[usize], message: usize, start: usize) -> usize {
    let here = cached.get(message).map_or(0, |bytes| bytes.saturating_sub(start));
    here + cached.iter().skip(message + 1).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs =
        Costs { tokens_per_byte: 0.25, us_per_token: 1000.0, least_tokens: 1.0, least_us: 0.0 };

    fn candidate(len: usize, breaks_bytes: usize) -> Candidate {
        Candidate { message: 0, at: 0..len, breaks_bytes }
    }

    #[test]
    fn an_edit_in_the_cached_prefix_must_save_more_than_it_breaks() {
        assert_eq!(worthwhile(&[candidate(100, 0)], &COSTS), 0);
        assert_eq!(worthwhile(&[candidate(100, 90)], &COSTS), 0);
        assert_eq!(worthwhile(&[candidate(100, 99)], &COSTS), 1); // a quarter of a token
        assert_eq!(worthwhile(&[candidate(100, 200)], &COSTS), 1);
        // The early one breaks too much, the late one is free.
        assert_eq!(worthwhile(&[candidate(100, 200), candidate(40, 0)], &COSTS), 1);
        // Together they pay for the break.
        assert_eq!(worthwhile(&[candidate(100, 120), candidate(40, 100)], &COSTS), 0);
    }

    #[test]
    fn small_savings_are_not_worth_an_edit() {
        assert_eq!(worthwhile(&[candidate(3, 0)], &COSTS), 1);
        assert_eq!(worthwhile(&[candidate(40, 0)], &Costs { least_us: 20_000.0, ..COSTS }), 1);
        assert_eq!(worthwhile(&[candidate(40, 0)], &Costs { least_us: 10_000.0, ..COSTS }), 0);
        assert_eq!(worthwhile(&[], &COSTS), 0);
    }

    #[test]
    fn what_lies_behind_an_edit_is_broken() {
        assert_eq!(broken_bytes(&[10, 20, 5, 0], 1, 4), 21);
        assert_eq!(broken_bytes(&[10, 20, 5, 0], 2, 9), 0);
        assert_eq!(broken_bytes(&[], 3, 0), 0);
    }
}
