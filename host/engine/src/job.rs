//! What goes into the engine and what comes out of it: plain data.

use std::ops::RangeInclusive;
use std::time::Duration;

/// One request: a prompt, and `n` answers wanted.
#[derive(Debug, Clone)]
pub struct Job {
    /// Token ids, beginning-of-text included where the model wants one.
    pub prompt: Vec<u32>,
    /// Answers wanted; they share the prompt's KV.
    pub n: u32,
    /// Tokens each answer may have; the context bounds it as well.
    pub max_new_tokens: usize,
    /// 0 is the most urgent.
    pub priority: u8,
    /// The trust group: prompts are found in the prefix cache only under the same salt.
    pub salt: [u8; 32],
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Strings that end an answer; nothing of them is delivered.
    pub stop: Vec<String>,
    /// Token ids that end an answer, beside the model's own.
    pub stop_tokens: Vec<u32>,
    /// Has the blocks of prompt and answer [kept](crate::Engine::keep) for so long once the answer is complete, for a dialog
    /// that goes on.
    pub keep_for: Option<Duration>,
}

/// How the next token is chosen from the logits.
///
/// Applied in this order: `logit_bias`, `repetition_penalty`, `presence_penalty` and `frequency_penalty`,
/// `temperature`, `top_k`, `top_p`, `min_p`. Reported log-probabilities are the model's own, before all of these.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// 0 always takes the most likely token.
    pub temperature: f32,
    /// Keep this many candidates; 0 keeps all.
    pub top_k: u32,
    /// Keep the smallest set of candidates that has this much probability; 1 keeps all.
    pub top_p: f32,
    /// Drop candidates below this share of the best one's probability; 0 drops none.
    pub min_p: f32,
    /// The same seed gives the same draws, whatever else is in the batch; none takes one from the system.
    pub seed: Option<u64>,
    /// Subtracted once from the logit of each token that the answer already has.
    pub presence_penalty: f32,
    /// Subtracted from a token's logit for each time the answer already has it.
    pub frequency_penalty: f32,
    /// Divides positive and multiplies negative logits of tokens in the prompt or the answer; 1 is off.
    pub repetition_penalty: f32,
    /// Added to the logits of these token ids.
    pub logit_bias: Vec<(u32, f32)>,
    /// Report log-probabilities, with this many alternatives per token.
    pub logprobs: Option<u32>,
    /// Go on past the model's end-of-text tokens.
    pub ignore_end: bool,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed: None,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            repetition_penalty: 1.0,
            logit_bias: Vec::new(),
            logprobs: None,
            ignore_end: false,
        }
    }
}

/// A job that cannot be run as it is; the field says which part to mend.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct InvalidJob {
    /// The field of [`Job`] or [`Sampling`].
    pub field: &'static str,
    /// What is wrong with it and what would be right.
    pub problem: String,
}

impl Job {
    pub(crate) fn check(&self, vocab: usize, max_choices: usize) -> Result<(), InvalidJob> {
        ensure(!self.prompt.is_empty(), "prompt", || "is empty; give at least one token".into())?;
        let choices = 1..=max_choices;
        ensure(choices.contains(&(self.n as usize)), "n", || {
            format!("is {}; ask for 1 to {max_choices}", self.n)
        })?;
        ensure(self.max_new_tokens >= 1, "max_new_tokens", || "is 0; ask for at least one token".into())?;
        ensure(self.stop.iter().all(|s| !s.is_empty()), "stop", || "has an empty string".into())?;
        let known = |id: &u32| (*id as usize) < vocab;
        ensure(self.prompt.iter().all(known), "prompt", || format!("has a token id outside 0..{vocab}"))?;
        self.sampling.check(vocab)
    }
}

impl Sampling {
    /// Whether tokens are left out before one is drawn.
    pub(crate) fn cuts(&self) -> bool {
        self.top_k > 0 || self.top_p < 1.0 || self.min_p > 0.0
    }

    fn check(&self, vocab: usize) -> Result<(), InvalidJob> {
        within("temperature", self.temperature, 0.0..=100.0)?;
        within("top_p", self.top_p, f32::MIN_POSITIVE..=1.0)?;
        within("min_p", self.min_p, 0.0..=1.0)?;
        within("presence_penalty", self.presence_penalty, -100.0..=100.0)?;
        within("frequency_penalty", self.frequency_penalty, -100.0..=100.0)?;
        within("repetition_penalty", self.repetition_penalty, 0.01..=100.0)?;
        for &(id, bias) in &self.logit_bias {
            ensure((id as usize) < vocab, "logit_bias", || format!("names token {id}, outside 0..{vocab}"))?;
            within("logit_bias", bias, -1000.0..=1000.0)?;
        }
        Ok(())
    }
}

fn within(field: &'static str, value: f32, range: RangeInclusive<f32>) -> Result<(), InvalidJob> {
    ensure(range.contains(&value), field, || {
        format!("is {value}; it must be between {} and {}", range.start(), range.end())
    })
}

fn ensure(ok: bool, field: &'static str, problem: impl FnOnce() -> String) -> Result<(), InvalidJob> {
    if ok { Ok(()) } else { Err(InvalidJob { field, problem: problem() }) }
}

/// What a [`Ticket`](crate::Ticket) yields, in order: deltas and one `Finished` per choice that was not cancelled, then
/// `Done`; or `Failed` at any point, after which nothing follows.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// More of one answer.
    Delta(Delta),
    /// One answer is complete.
    Finished {
        /// Which of the `n`.
        choice: u32,
        /// Why it ended.
        reason: Finish,
    },
    /// All answers are complete.
    Done(Usage),
    /// The engine could not go on.
    Failed(EngineFault),
}

/// More of one answer: whole characters, and the tokens whose text has now been delivered in full.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Delta {
    /// Which of the `n`.
    pub choice: u32,
    /// Text to append.
    pub text: String,
    /// Tokens completed by this text; only when log-probabilities were asked for.
    pub tokens: Vec<TokenInfo>,
}

/// One token and what the model thought of it.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenInfo {
    /// Its id.
    pub id: u32,
    /// The bytes it adds to the text.
    pub bytes: Vec<u8>,
    /// Natural logarithm of the probability the model gave it.
    pub logprob: f32,
    /// The most likely tokens at this place, best first.
    pub top: Vec<(u32, f32)>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model ended it, or a stop string or token did.
    Stop,
    /// It reached `max_new_tokens` or the end of the context.
    Length,
}

/// What a job cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the prompt, counted once.
    pub prompt_tokens: usize,
    /// Tokens sampled, all choices together, an ending token and those of cancelled choices included.
    pub completion_tokens: usize,
    /// Tokens of the prompt that were found in the prefix cache.
    pub cached_tokens: usize,
}

/// The engine could not finish a job through no fault of the job's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the engine failed: {message}")]
pub struct EngineFault {
    /// What happened.
    pub message: String,
}
