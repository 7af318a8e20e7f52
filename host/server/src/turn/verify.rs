//! Whether a compressed prompt means the same to the model: what it would say next after both, compared.

use jackfield_engine::{Engine, Job, Output, Sampling};
use tokio::runtime::Handle;

use super::job::DEFAULT_PRIORITY;

/// The report of a token comes with the rest of the character that it begins, which has so many bytes at most.
const MOST_TOKENS_OF_A_CHARACTER: usize = 4;

/// What came of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    /// The Kullback-Leibler divergence of what would come after the original from what would come after the other, in nats.
    Diverges(f32),
    /// The engine had no place for it, or failed.
    Unknown,
}

impl Verdict {
    /// For the trace.
    pub(super) fn note(self, taken: bool) -> String {
        let then = if taken { "taken" } else { "not taken" };
        match self {
            Verdict::Diverges(by) => format!("diverges by {by:.3} nats: {then}"),
            Verdict::Unknown => format!("could not be held against the original: {then}"),
        }
    }

    /// For the count of verdicts.
    pub(super) fn outcome(self, taken: bool) -> &'static str {
        match (self, taken) {
            (_, true) => "taken",
            (Verdict::Diverges(_), false) => "diverged",
            (Verdict::Unknown, false) => "unknown",
        }
    }
}

/// Whether a turn is one of the share; the same for the same turn.
pub(super) fn is_drawn(seed: u32, share: f32) -> bool {
    f64::from(seed) < f64::from(share) * (f64::from(u32::MAX) + 1.0)
}

/// Holds `other` against the original, of which the distribution is kept in `known`. On a thread that may block.
pub(super) fn hold(
    engine: &Engine,
    salt: &[u8; 32],
    known: &mut Option<Vec<f32>>,
    original: &[u32],
    other: &[u32],
) -> Verdict {
    if known.is_none() {
        *known = next(engine, salt, original);
    }
    match known.as_deref().zip(next(engine, salt, other).as_deref()) {
        Some((original, other)) => Verdict::Diverges(divergence(original, other)),
        None => Verdict::Unknown,
    }
}

/// Natural logarithms of how likely each token is after the prompt: `[vocab]`. What is computed for it stays in the prefix
/// cache, so that the turn itself finds it.
fn next(engine: &Engine, salt: &[u8; 32], prompt: &[u32]) -> Option<Vec<f32>> {
    let vocab = engine.model().vocab;
    let sampling = Sampling {
        temperature: 0.0,
        logprobs: Some(u32::try_from(vocab).ok()?),
        // A token that ends an answer has no report.
        ignore_end: true,
        ..Sampling::default()
    };
    let job = Job {
        prompt: prompt.to_vec(),
        n: 1,
        max_new_tokens: MOST_TOKENS_OF_A_CHARACTER,
        priority: DEFAULT_PRIORITY,
        salt: *salt,
        sampling,
        stop: Vec::new(),
        stop_tokens: Vec::new(),
        keep_for: None,
    };
    let mut ticket = engine.submit(job).ok()?;
    let handle = Handle::try_current().ok()?;
    while let Some(output) = handle.block_on(ticket.next()) {
        if let Output::Delta(delta) = output
            && let Some(token) = delta.tokens.into_iter().next()
        {
            let mut all = vec![f32::NEG_INFINITY; vocab];
            for (id, logprob) in token.top {
                if let Some(place) = all.get_mut(id as usize) {
                    *place = logprob;
                }
            }
            // What would come after it is given up.
            return Some(all);
        }
    }
    None
}

/// The Kullback-Leibler divergence of two distributions, given by natural logarithms: how many nats are lost on average where
/// `q` is taken for `p`.
fn divergence(p: &[f32], q: &[f32]) -> f32 {
    let lost = |(p, q): (&f32, &f32)| f64::from(*p).exp() * (f64::from(*p) - f64::from(*q));
    let likely = p.iter().zip(q).filter(|(p, _)| **p > f32::NEG_INFINITY);
    likely.map(lost).sum::<f64>().max(0.0) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(probabilities: &[f32]) -> Vec<f32> {
        probabilities.iter().map(|p| p.ln()).collect()
    }

    #[test]
    fn a_distribution_diverges_from_another_and_not_from_itself() {
        let (even, uneven) = (logs(&[0.5, 0.5, 0.0]), logs(&[0.75, 0.25, 0.0]));
        assert_eq!(divergence(&even, &even), 0.0);
        // 0.5 ln(0.5 / 0.75) + 0.5 ln(0.5 / 0.25)
        assert!((divergence(&even, &uneven) - 0.143_841).abs() < 1e-5);
        assert!((divergence(&uneven, &even) - 0.130_812).abs() < 1e-5);
        assert_eq!(
            divergence(&even, &logs(&[1.0, 0.0, 0.0])),
            f32::INFINITY,
            "what may be said cannot be said"
        );
    }

    #[test]
    fn a_share_is_drawn_and_the_ends_are_none_and_all() {
        let seeds = || (0..1000u32).map(|n| n.wrapping_mul(4_294_967));
        assert_eq!(seeds().filter(|seed| is_drawn(*seed, 0.0)).count(), 0);
        assert_eq!(seeds().filter(|seed| is_drawn(*seed, 1.0)).count(), 1000);
        assert!(is_drawn(u32::MAX, 1.0) && !is_drawn(0, 0.0));
        let quarter = seeds().filter(|seed| is_drawn(*seed, 0.25)).count();
        assert!((240..=260).contains(&quarter), "{quarter}");
    }
}
