//! Choosing the next token of one sequence.

use std::collections::{HashMap, HashSet};

use jackfield_kernels::{Cpu, argmax};
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

    /// Chooses from `logits`, `[vocab]`, and remembers the choice.
    pub(crate) fn choose(&mut self, cpu: &Cpu, logits: &[f32], desk: &mut Desk) -> Chosen {
        let raw = self.sampling.logprobs.map(|top| RawLogprobs::of(logits, top));
        let Desk { adjusted, weights, sums, kept } = desk;
        let logits = if self.adjusts() {
            adjusted.clear();
            adjusted.extend_from_slice(logits);
            self.adjust(adjusted);
            adjusted
        } else {
            logits
        };
        let best = argmax(logits).unwrap_or(0);
        let token = if self.sampling.temperature == 0.0 {
            best as u32
        } else {
            weights.resize(logits.len(), 0.0);
            cpu.exp_scaled(logits, logits[best], 1.0 / self.sampling.temperature, weights);
            let drawn = match self.sampling.cuts() {
                false => draw_any(weights, sums, self.uniform()),
                true => draw_kept(candidates(weights, &self.sampling, kept), self.uniform()),
            };
            drawn.unwrap_or(best as u32)
        };
        *self.counts.entry(token).or_insert(0) += 1;
        self.drawn += 1;
        Chosen { token, logprobs: raw.map(|raw| raw.report(token)) }
    }

    /// Whether bias or a penalty changes what the model says.
    fn adjusts(&self) -> bool {
        let s = &self.sampling;
        !s.logit_bias.is_empty()
            || s.repetition_penalty != 1.0
            || s.presence_penalty != 0.0
            || s.frequency_penalty != 0.0
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

    /// The number in 0..1 that belongs to this seed, choice and place.
    fn uniform(&self) -> f64 {
        let mut generator = ChaCha8Rng::seed_from_u64(self.seed);
        generator.set_stream(u64::from(self.choice));
        generator.set_word_pos(u128::from(self.drawn) * 2);
        (generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Working memory of a choice, kept from one to the next so that none allocates.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    adjusted: Vec<f32>,
    weights: Vec<f32>,
    sums: Vec<f64>,
    kept: Vec<Candidate>,
}

/// A token that may be drawn, with its unnormalised probability: the best one has 1.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    token: u32,
    weight: f32,
}

/// Tokens that are summed before one of them is looked for.
const RUN: usize = 512;

/// Draws from all tokens, in the order of their ids. `None` when no weight is a positive number.
fn draw_any(weights: &[f32], sums: &mut Vec<f64>, uniform: f64) -> Option<u32> {
    let sum = |run: &[f32]| -> f64 { run.iter().map(|w| f64::from(w.max(0.0))).sum() };
    sums.clear();
    sums.extend(weights.chunks(RUN).map(sum));
    let mut left = uniform * sums.iter().sum::<f64>();
    let run = sums.iter().position(|sum| {
        left -= sum;
        left < 0.0
    });
    // Rounding may leave something after the last one: then it is the last token that has a chance.
    let Some(run) = run else { return weights.iter().rposition(|w| *w > 0.0).map(|id| id as u32) };
    left += sums[run];
    let first = run * RUN;
    let run = &weights[first..weights.len().min(first + RUN)];
    let at = run.iter().position(|weight| {
        left -= f64::from(weight.max(0.0));
        left < 0.0
    });
    let at = at.or_else(|| run.iter().rposition(|w| *w > 0.0))?;
    Some((first + at) as u32)
}

/// Draws from what was kept.
fn draw_kept(kept: &[Candidate], uniform: f64) -> Option<u32> {
    let mut left = uniform * kept.iter().map(|c| f64::from(c.weight)).sum::<f64>();
    for candidate in kept {
        left -= f64::from(candidate.weight);
        if left < 0.0 {
            return Some(candidate.token);
        }
    }
    kept.last().map(|last| last.token)
}

/// What `top_k`, `top_p` and `min_p` leave of `weights`, best first.
fn candidates<'a>(weights: &[f32], s: &Sampling, kept: &'a mut Vec<Candidate>) -> &'a [Candidate] {
    let floor = floor(weights, s);
    let may = |&(_, weight): &(u32, &f32)| *weight >= floor;
    kept.clear();
    kept.extend((0..).zip(weights).filter(may).map(|(token, &weight)| Candidate { token, weight }));
    kept.sort_unstable_by(better);
    if s.top_k > 0 {
        kept.truncate(s.top_k as usize);
    }
    if s.top_p < 1.0 {
        // With `top_k` the share is of what that left.
        let all =
            if s.top_k > 0 { kept.iter().map(|c| f64::from(c.weight)).sum() } else { total(weights, 0.0).1 };
        let mut missing = f64::from(s.top_p) * all;
        let end = kept.iter().position(|candidate| {
            missing -= f64::from(candidate.weight);
            missing <= 0.0
        });
        kept.truncate(end.map_or(kept.len(), |end| end + 1));
    }
    if s.min_p > 0.0 {
        kept.retain(|c| c.weight >= s.min_p);
    }
    kept
}

/// A weight that everything to be kept has at least: most choices are among few tokens, and looking for a bound is faster
/// than putting the whole vocabulary in order.
fn floor(weights: &[f32], s: &Sampling) -> f32 {
    // The share of `top_p` is of all that `top_k` left, `min_p` comes after it.
    let min_p = if s.top_k > 0 && s.top_p < 1.0 { 0.0 } else { s.min_p };
    let least = min_p.max(f32::MIN_POSITIVE);
    let wanted_mass =
        if s.top_k == 0 && s.top_p < 1.0 { f64::from(s.top_p) * total(weights, 0.0).1 } else { 0.0 };
    if s.top_k == 0 && wanted_mass == 0.0 {
        return least;
    }
    let mut floor = 1.0 / 16.0;
    while floor > least {
        let (count, mass) = total(weights, floor);
        if count >= s.top_k as usize && mass >= wanted_mass {
            return floor;
        }
        floor /= 16.0;
    }
    least
}

/// How many weights are at least `floor`, and their sum.
fn total(weights: &[f32], floor: f32) -> (usize, f64) {
    let mut all = (0, 0.0);
    for run in weights.chunks(RUN) {
        let (mut count, mut sum) = (0u32, 0.0f64);
        for &weight in run {
            let counts = weight >= floor;
            count += u32::from(counts);
            sum += if counts { f64::from(weight) } else { 0.0 };
        }
        all = (all.0 + count as usize, all.1 + sum);
    }
    all
}

/// Heavier first; equal weights by token id, so that an order is never left to chance.
fn better(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.weight.total_cmp(&a.weight).then(a.token.cmp(&b.token))
}

/// The natural logarithm of a token's probability.
pub(crate) fn logprob(logits: &[f32], token: u32) -> f32 {
    logits[token as usize] - log_sum(logits)
}

/// What is to be taken from a logit to make a log-probability of it.
fn log_sum(logits: &[f32]) -> f32 {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&l| f64::from(l - best).exp()).sum();
    best + sum.ln() as f32
}

/// Log-probabilities taken before anything was changed.
struct RawLogprobs {
    log_sum: f32,
    logits: Vec<f32>,
    top: Vec<(u32, f32)>,
}

impl RawLogprobs {
    fn of(logits: &[f32], top: u32) -> Self {
        let log_sum = log_sum(logits);
        let mut ids: Vec<u32> = (0..logits.len() as u32).collect();
        let by_logit = |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
        let top = (top as usize).min(ids.len());
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
        let (cpu, mut desk) = (Cpu::new(1), Desk::default());
        (0..times).map(|_| sampler.choose(&cpu, logits, &mut desk).token).collect()
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
        let weights: Vec<f32> = [0.5f32, 0.25, 0.15, 0.1].iter().map(|p| p / 0.5).collect();
        let left = |change: fn(&mut Sampling)| {
            let mut sampling = Sampling::default();
            change(&mut sampling);
            candidates(&weights, &sampling, &mut Vec::new()).iter().map(|c| c.token).collect::<Vec<_>>()
        };
        assert_eq!(left(|s| s.top_k = 2), [0, 1]);
        assert_eq!(left(|s| s.top_p = 0.7), [0, 1]);
        assert_eq!(left(|s| s.top_p = 0.8), [0, 1, 2]);
        assert_eq!(left(|s| s.min_p = 0.29), [0, 1, 2]);
        assert_eq!(left(|s| s.top_p = 1e-9), [0]);
        assert_eq!(left(|_| ()), [0, 1, 2, 3]);
        // The first has 0.56 of what `top_k` leaves, and would have 0.67 if `min_p` had taken the third before.
        let all_three = |s: &mut Sampling| (s.top_k, s.top_p, s.min_p) = (3, 0.65, 0.4);
        assert_eq!(left(all_three), [0, 1]);
    }

    #[test]
    fn a_bound_is_found_below_the_first_guess() {
        let flat = vec![1.0f32; 1000];
        let sampling = Sampling { top_p: 0.5, ..Sampling::default() };
        assert_eq!(candidates(&flat, &sampling, &mut Vec::new()).len(), 500);
        // One heavy token, and many light ones that have half of all together.
        let mut long_tail = vec![1e-3f32; 1001];
        long_tail[7] = 1.0;
        let left = |top_k, top_p| {
            let sampling = Sampling { top_k, top_p, ..Sampling::default() };
            candidates(&long_tail, &sampling, &mut Vec::new()).len()
        };
        assert_eq!(left(0, 0.4), 1);
        assert!((495..=505).contains(&left(0, 0.75)), "{}", left(0, 0.75));
        assert_eq!(left(100, 1.0), 100);
        assert_eq!(left(5000, 1.0), 1001);
    }

    #[test]
    fn a_draw_from_all_is_the_draw_of_its_number() {
        let mut weights = vec![0.0f32; 3 * RUN];
        for (place, weight) in [(0, 0.25), (RUN + 3, 0.5), (RUN + 4, f32::NAN), (3 * RUN - 1, 0.25)] {
            weights[place] = weight;
        }
        let draw = |uniform| draw_any(&weights, &mut Vec::new(), uniform).map(|id| id as usize);
        assert_eq!(draw(0.0), Some(0));
        assert_eq!(draw(0.24), Some(0));
        assert_eq!(draw(0.25), Some(RUN + 3));
        assert_eq!(draw(0.74), Some(RUN + 3));
        assert_eq!(draw(0.75), Some(3 * RUN - 1));
        assert_eq!(draw(1.0), Some(3 * RUN - 1));
        assert_eq!(draw_any(&[0.0, f32::NAN], &mut Vec::new(), 0.5), None);
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
        let logits: Vec<f32> = probabilities.iter().map(|p| p.ln() + 5.0).collect();
        let chosen = s.choose(&Cpu::new(1), &logits, &mut Desk::default());
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
