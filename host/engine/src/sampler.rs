//! Choosing the next token of one sequence.

use std::collections::{HashMap, HashSet};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::job::Sampling;

/// The state of one sequence's choices: what it already said, and its own random numbers.
#[derive(Debug)]
pub(crate) struct Sampler {
    sampling: Sampling,
    seed: u64,
    choice: u32,
    drawn: u64,
    counts: HashMap<u32, u32>,
    /// Filled only when a repetition penalty is in force.
    prompt: HashSet<u32>,
}

/// A chosen token and, when asked for, what the model thought of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) token: u32,
    pub(crate) logprobs: Option<Logprobs>,
}

/// Natural logarithms of the model's probabilities at one place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Logprobs {
    pub(crate) chosen: f32,
    pub(crate) top: Vec<(u32, f32)>,
}

impl Sampler {
    /// `seed` is the request's; `choice` picks its stream, so that the answers of one request differ.
    pub(crate) fn new(sampling: Sampling, seed: u64, choice: u32, prompt: &[u32]) -> Self {
        let prompt = match sampling.repetition_penalty {
            1.0 => HashSet::new(),
            _ => prompt.iter().copied().collect(),
        };
        Sampler { sampling, seed, choice, drawn: 0, counts: HashMap::new(), prompt }
    }

    /// Chooses from `logits` (`[vocab]`, changed in place) and remembers the choice.
    pub(crate) fn choose(&mut self, logits: &mut [f32]) -> Chosen {
        let raw = self.sampling.logprobs.map(|top| RawLogprobs::of(logits, top));
        self.adjust(logits);
        let token = if self.sampling.temperature == 0.0 { argmax(logits) } else { self.draw(logits) };
        *self.counts.entry(token).or_insert(0) += 1;
        self.drawn += 1;
        Chosen { token, logprobs: raw.map(|raw| raw.report(token)) }
    }

    /// Bias and penalties.
    fn adjust(&self, logits: &mut [f32]) {
        let s = &self.sampling;
        for &(id, bias) in &s.logit_bias {
            logits[id as usize] += bias;
        }
        if s.repetition_penalty != 1.0 {
            for &id in self.prompt.iter().chain(self.counts.keys().filter(|id| !self.prompt.contains(*id))) {
                let logit = &mut logits[id as usize];
                *logit =
                    if *logit > 0.0 { *logit / s.repetition_penalty } else { *logit * s.repetition_penalty };
            }
        }
        if s.presence_penalty != 0.0 || s.frequency_penalty != 0.0 {
            for (&id, &count) in &self.counts {
                logits[id as usize] -= s.presence_penalty + s.frequency_penalty * count as f32;
            }
        }
    }

    fn draw(&self, logits: &[f32]) -> u32 {
        let candidates = candidates(logits, &self.sampling);
        let total: f64 = candidates.iter().map(|c| c.weight).sum();
        let mut left = self.uniform() * total;
        for candidate in &candidates {
            left -= candidate.weight;
            if left < 0.0 {
                return candidate.token;
            }
        }
        candidates.last().map_or_else(|| argmax(logits), |last| last.token)
    }

    /// The number in 0..1 that belongs to this seed, choice and place.
    fn uniform(&self) -> f64 {
        let mut generator = ChaCha8Rng::seed_from_u64(self.seed);
        generator.set_stream(u64::from(self.choice));
        generator.set_word_pos(u128::from(self.drawn) * 2);
        (generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A token that may be drawn, with its unnormalised probability.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    token: u32,
    weight: f64,
}

/// What temperature, `top_k`, `top_p` and `min_p` leave, best first.
fn candidates(logits: &[f32], s: &Sampling) -> Vec<Candidate> {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    // A draw below e^-40 of the best one has no chance in 53 bits.
    let floor = best - 40.0 * s.temperature;
    let mut kept: Vec<Candidate> = logits
        .iter()
        .enumerate()
        .filter(|&(_, &logit)| logit >= floor)
        .map(|(id, &logit)| Candidate {
            token: id as u32,
            weight: f64::from((logit - best) / s.temperature).exp(),
        })
        .collect();
    if s.top_k > 0 && (s.top_k as usize) < kept.len() {
        kept.select_nth_unstable_by(s.top_k as usize - 1, better);
        kept.truncate(s.top_k as usize);
    }
    if s.top_p < 1.0 {
        keep_mass(&mut kept, f64::from(s.top_p));
    }
    if s.min_p > 0.0 {
        kept.retain(|c| c.weight >= f64::from(s.min_p));
    }
    kept.sort_unstable_by(better);
    kept
}

/// Keeps the smallest set of best candidates that has `share` of the whole weight.
fn keep_mass(kept: &mut Vec<Candidate>, share: f64) {
    let wanted = share * kept.iter().map(|c| c.weight).sum::<f64>();
    // Most prompts are decided among few tokens: sort a growing head instead of the whole vocabulary.
    let mut head = 64;
    loop {
        let head_len = head.min(kept.len());
        if head_len < kept.len() {
            kept.select_nth_unstable_by(head_len - 1, better);
        }
        kept[..head_len].sort_unstable_by(better);
        let mut mass = 0.0;
        for i in 0..head_len {
            mass += kept[i].weight;
            if mass >= wanted {
                kept.truncate(i + 1);
                return;
            }
        }
        if head_len == kept.len() {
            return;
        }
        head *= 8;
    }
}

/// Heavier first; equal weights by token id, so that an order is never left to chance.
fn better(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.weight.total_cmp(&a.weight).then(a.token.cmp(&b.token))
}

/// The first of the largest.
fn argmax(logits: &[f32]) -> u32 {
    let mut best = (0, f32::NEG_INFINITY);
    for (id, &logit) in logits.iter().enumerate() {
        if logit > best.1 {
            best = (id, logit);
        }
    }
    best.0 as u32
}

/// Log-probabilities taken before anything was changed.
struct RawLogprobs {
    log_sum: f32,
    logits: Vec<f32>,
    top: Vec<(u32, f32)>,
}

impl RawLogprobs {
    fn of(logits: &[f32], top: u8) -> Self {
        let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits.iter().map(|&l| f64::from(l - best).exp()).sum();
        let log_sum = best + sum.ln() as f32;
        let mut ids: Vec<u32> = (0..logits.len() as u32).collect();
        let by_logit = |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
        let top = usize::from(top).min(ids.len());
        if top > 0 && top < ids.len() {
            ids.select_nth_unstable_by(top - 1, by_logit);
        }
        ids.truncate(top);
        ids.sort_unstable_by(by_logit);
        let top = ids.into_iter().map(|id| (id, logits[id as usize] - log_sum)).collect();
        RawLogprobs { log_sum, logits: logits.to_vec(), top }
    }

    fn report(self, token: u32) -> Logprobs {
        Logprobs { chosen: self.logits[token as usize] - self.log_sum, top: self.top }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(change: impl FnOnce(&mut Sampling)) -> Sampler {
        let mut sampling = Sampling::default();
        change(&mut sampling);
        Sampler::new(sampling, 7, 0, &[1, 2])
    }

    fn draws(sampler: &mut Sampler, logits: &[f32], times: usize) -> Vec<u32> {
        (0..times).map(|_| sampler.choose(&mut logits.to_vec()).token).collect()
    }

    #[test]
    fn greedy_takes_the_best_and_the_first_of_equals() {
        let mut s = sampler(|s| s.temperature = 0.0);
        assert_eq!(draws(&mut s, &[0.0, 3.0, 3.0, 1.0], 2), [1, 1]);
    }

    #[test]
    fn draws_follow_the_distribution() {
        let logits = [0.0f32, 1.0, 2.0, f32::NEG_INFINITY];
        let mut s = sampler(|_| ());
        let times = 20_000;
        let drawn = draws(&mut s, &logits, times);
        let sum: f64 = logits.iter().map(|&l| f64::from(l).exp()).sum();
        let chi: f64 = (0..3)
            .map(|id| {
                let expected = f64::from(logits[id]).exp() / sum * times as f64;
                let seen = drawn.iter().filter(|&&t| t == id as u32).count() as f64;
                (seen - expected).powi(2) / expected
            })
            .sum();
        assert!(!drawn.contains(&3));
        assert!(chi < 13.8, "chi-square {chi} is beyond 99.9 % for two degrees of freedom");
    }

    #[test]
    fn a_seed_repeats_and_choices_differ() {
        let logits: Vec<f32> = (0..50).map(|i| (i % 7) as f32 * 0.1).collect();
        let run =
            |seed, choice| draws(&mut Sampler::new(Sampling::default(), seed, choice, &[]), &logits, 32);
        assert_eq!(run(7, 0), run(7, 0));
        assert_ne!(run(7, 0), run(8, 0));
        assert_ne!(run(7, 0), run(7, 1));
    }

    #[test]
    fn top_k_top_p_and_min_p_cut_where_they_say() {
        let logits: Vec<f32> = [0.5f32, 0.25, 0.15, 0.1].iter().map(|p| p.ln()).collect();
        let left = |change: fn(&mut Sampling)| {
            let mut sampling = Sampling::default();
            change(&mut sampling);
            candidates(&logits, &sampling).iter().map(|c| c.token).collect::<Vec<_>>()
        };
        assert_eq!(left(|s| s.top_k = 2), [0, 1]);
        assert_eq!(left(|s| s.top_p = 0.7), [0, 1]);
        assert_eq!(left(|s| s.top_p = 0.8), [0, 1, 2]);
        assert_eq!(left(|s| s.min_p = 0.29), [0, 1, 2]);
        assert_eq!(left(|s| s.top_p = 1e-9), [0]);
        assert_eq!(left(|_| ()), [0, 1, 2, 3]);
    }

    #[test]
    fn keeping_mass_looks_past_its_first_head() {
        let logits = vec![0.0f32; 1000];
        let sampling = Sampling { top_p: 0.5, ..Sampling::default() };
        assert_eq!(candidates(&logits, &sampling).len(), 500);
    }

    #[test]
    fn penalties_and_bias_change_the_choice() {
        let mut s = sampler(|s| {
            s.temperature = 0.0;
            s.frequency_penalty = 1.0;
        });
        assert_eq!(draws(&mut s, &[2.0, 1.5, 0.0], 4), [0, 1, 0, 1]);
        let mut s = sampler(|s| {
            s.temperature = 0.0;
            s.repetition_penalty = 2.0;
        });
        assert_eq!(draws(&mut s, &[1.5, 2.0, -1.0], 1), [0], "token 1 is in the prompt");
        let mut s = sampler(|s| {
            s.temperature = 0.0;
            s.logit_bias = vec![(2, 100.0)];
        });
        assert_eq!(draws(&mut s, &[1.5, 2.0, -1.0], 1), [2]);
    }

    #[test]
    fn reported_logprobs_are_the_models_own() {
        let mut s = sampler(|s| {
            s.temperature = 0.0;
            s.logprobs = Some(2);
            s.logit_bias = vec![(2, 100.0)];
        });
        let probabilities = [0.6f32, 0.3, 0.1];
        let mut logits: Vec<f32> = probabilities.iter().map(|p| p.ln() + 5.0).collect();
        let chosen = s.choose(&mut logits);
        let logprobs = chosen.logprobs.expect("asked for");
        assert_eq!(chosen.token, 2);
        assert!((logprobs.chosen - 0.1f32.ln()).abs() < 1e-5);
        assert_eq!(logprobs.top.iter().map(|t| t.0).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_row_without_numbers_still_gives_a_known_token() {
        let mut s = sampler(|_| ());
        assert_eq!(draws(&mut s, &[f32::NAN; 4], 1), [0]);
    }
}
