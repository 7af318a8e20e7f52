//! The forward pass against llama.cpp: see golden/README.md.

#[path = "golden/runner.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod runner;
#[path = "golden/support.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;
#[path = "golden/tiny.rs"]
mod tiny;

use std::sync::OnceLock;

use jackfield_model::{ChatMessage, Cpu, Gguf, Model, RenderOptions};
use runner::{Runner, argmax};
use serde::Deserialize;

/// Where llama.cpp's two largest logits are closer than this, it has no opinion of its own: another batch size or
/// flash attention moves the distance of the two by up to 0.83 (golden/README.md).
const NEAR_TIE: f32 = 0.8;
/// How far the five largest logits of a first step may be from llama.cpp's, whose own configurations are up to 2.15
/// from one another.
const LOGIT_TOLERANCE: f32 = 1.5;
/// Steps that may part at a near-tie, of all; llama.cpp's configurations part at 2.8 to 4.2 % of them.
const PARTED_AT_MOST: f32 = 0.05;
/// Full precision is a distance away because activations are rounded to 8 bits: by llama.cpp all of them, here all but a few.
/// Over the stored positions the mean may be this much of llama.cpp's: its standard error is 5 %.
const OF_LLAMA_CPPS_DISTANCE: f64 = 0.4;
/// Prompts up to this length also run free, all in one batch.
const SHORT: usize = 400;

#[derive(Deserialize)]
struct Reference {
    meta: Meta,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Meta {
    file_sha256: String,
    steps: usize,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    messages: Option<Vec<Message>>,
    text: Option<String>,
    prompt: Vec<u32>,
    tokens: Vec<u32>,
    seconds: Vec<u32>,
    gaps: Vec<f32>,
    top5: Vec<(u32, f32)>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: String,
}

#[test]
fn prompts_become_the_tokens_that_llama_cpp_was_fed() {
    let model = model();
    for case in &reference().cases {
        let ids = match (&case.messages, &case.text) {
            (Some(messages), None) => {
                let messages: Vec<_> =
                    messages.iter().map(|it| ChatMessage::new(&it.role, &it.content)).collect();
                let options = RenderOptions { add_generation_prompt: true, ..RenderOptions::default() };
                let rendered = model.template.render(&messages, &options).expect("the template takes it");
                model.tokenizer.encode_prompt(&rendered)
            }
            (None, Some(text)) => model.tokenizer.encode_completion(text),
            _ => panic!("{}: a case is a chat or a text", case.name),
        };
        assert_eq!(ids.expect("it can be tokenised"), case.prompt, "{}", case.name);
    }
}

/// The reference's own tokens are fed, so that every one of its steps is compared, whatever came before.
#[test]
fn each_step_chooses_what_llama_cpp_chose() {
    let (model, reference) = (model(), reference());
    let mut runner = Runner::new(model, longest(reference));
    let (mut choices, mut furthest) = (Choices::default(), 0.0_f32);
    for case in &reference.cases {
        runner.clear();
        let forced = &case.tokens[..reference.meta.steps - 1];
        let mut sequence = runner.sequence(case.prompt.len() + forced.len());
        let mut logits = runner.feed(&mut sequence, &case.prompt, 1);
        furthest = furthest.max(distance(&logits, case));
        logits.extend(runner.feed(&mut sequence, forced, forced.len()));
        for (step, row) in logits.chunks(model.config.vocab).enumerate() {
            choices.alike(case, step, row);
        }
    }
    let Choices { steps, parted, .. } = choices;
    println!("{parted} of {steps} steps parted; the first step's logits are within {furthest:.3}");
    choices.check();
    assert_eq!(steps, reference.cases.len() * 64);
    assert!(furthest <= LOGIT_TOLERANCE, "a logit of a first step is {furthest} away");
    assert!(parted as f32 <= PARTED_AT_MOST * steps as f32, "{parted} of {steps} steps parted");
}

/// Every short prompt decodes by itself, all of them in one batch, until its first near-tie that fell the other way.
#[test]
fn a_batch_decodes_what_llama_cpp_decoded_alone() {
    let (model, reference) = (model(), reference());
    let cases: Vec<&Case> = reference.cases.iter().filter(|case| case.prompt.len() <= SHORT).collect();
    assert!(cases.len() >= 20);
    let positions = |case: &Case| case.prompt.len() + reference.meta.steps;
    let mut runner = Runner::new(model, cases.iter().map(|case| positions(case).next_multiple_of(16)).sum());
    let mut sequences = Vec::new();
    let mut logits = Vec::new();
    for case in &cases {
        let mut sequence = runner.sequence(positions(case));
        logits.extend(runner.feed(&mut sequence, &case.prompt, 1));
        sequences.push(sequence);
    }
    let mut choices = Choices::default();
    let mut alike = vec![reference.meta.steps; cases.len()];
    for step in 0..reference.meta.steps {
        let rows: Vec<&[f32]> = logits.chunks(model.config.vocab).collect();
        for (i, case) in cases.iter().enumerate() {
            if step < alike[i] && !choices.alike(case, step, rows[i]) {
                alike[i] = step;
            }
        }
        let next: Vec<u32> = rows.into_iter().map(argmax).collect();
        logits = runner.decode(&mut sequences, &next);
    }
    choices.check();
    let steps: usize = alike.iter().sum();
    println!(
        "{steps} of {} steps before the first that parted: {alike:?}",
        cases.len() * reference.meta.steps
    );
    assert!(4 * steps >= cases.len() * reference.meta.steps, "continuations part too early: {alike:?}");
}

/// Every architecture and quantisation, on files that a rule makes: see golden/make/tiny.py.
#[test]
fn tiny_models_of_every_kind_give_the_logits_of_llama_cpp() {
    let reference: tiny::Reference =
        serde_json::from_str(&support::read("tiny.json")).expect("it has this shape");
    let prompt = tiny::prompt();
    assert_eq!(reference.meta.prompt, prompt);
    let mut wrong = Vec::new();
    for case in &reference.cases {
        let gguf = Gguf::from_bytes(case.file()).expect("the file is well formed");
        let model =
            Model::from_gguf(gguf, Cpu::new(1)).unwrap_or_else(|error| panic!("{}: {error}", case.label()));
        let mut runner = Runner::new(&model, prompt.len());
        let mut sequence = runner.sequence(prompt.len());
        let logits = runner.feed(&mut sequence, &prompt, prompt.len());
        let error = case.error(&logits, &reference.meta.kept);
        println!(
            "{:20} llama.cpp itself {:.4}, ours {error:.4}, allowed {:.4}",
            case.label(),
            case.noise,
            case.tolerance()
        );
        if error.is_nan() || error > case.tolerance() {
            wrong.push(format!(
                "{}: {error:.4} of the spread, {:.4} allowed",
                case.label(),
                case.tolerance()
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), reference.cases.len(), wrong.join("\n"));
}

/// What the same weights say when nothing is rounded: see golden/make/distance.py.
#[derive(Deserialize)]
struct FullPrecision {
    meta: FullPrecisionMeta,
    /// A position, its most likely tokens after it and their log-probabilities.
    cases: Vec<(usize, Vec<u32>, Vec<f64>)>,
}

#[derive(Deserialize)]
struct FullPrecisionMeta {
    file_sha256: String,
    llama_cpp_mean_kl: f64,
    tokens: Vec<u32>,
}

/// The mean over a text of the Kullback-Leibler divergence from what the same weights say in 32-bit floats.
#[test]
fn full_precision_is_no_further_away_than_from_llama_cpp() {
    let reference: FullPrecision =
        serde_json::from_str(&support::read("distance.json")).expect("it has this shape");
    assert_eq!(reference.meta.file_sha256, support::MODEL_SHA256);
    assert!(reference.cases.len() >= 500);
    let (ours, theirs) = (mean_divergence(&reference), reference.meta.llama_cpp_mean_kl);
    println!("mean KL: {ours:.2e}, llama.cpp's {theirs:.2e}");
    assert!(ours <= theirs * OF_LLAMA_CPPS_DISTANCE, "{ours:.2e}, llama.cpp's {theirs:.2e}");
}

/// The mean over the stored positions.
fn mean_divergence(reference: &FullPrecision) -> f64 {
    let (model, tokens) = (model(), &reference.meta.tokens);
    let mut runner = Runner::new(model, tokens.len());
    let mut sequence = runner.sequence(tokens.len());
    let mut cases = reference.cases.iter().peekable();
    let mut sum = 0.0;
    for (i, part) in tokens.chunks(128).enumerate() {
        let logits = runner.feed(&mut sequence, part, part.len());
        let rows: Vec<&[f32]> = logits.chunks(model.config.vocab).collect();
        while let Some((at, best, exact)) = cases.next_if(|(at, ..)| at / 128 == i) {
            sum += divergence(rows[at % 128], best, exact);
        }
    }
    sum / reference.cases.len() as f64
}

/// Of the distributions in which all tokens but the best are one.
fn divergence(logits: &[f32], best: &[u32], exact: &[f64]) -> f64 {
    let all = logits.iter().map(|&it| f64::from(it).exp()).sum::<f64>().ln();
    let terms = best.iter().zip(exact).map(|(&id, &log_p)| (log_p, f64::from(logits[id as usize]) - all));
    let (mut rest_p, mut rest_q, mut sum) = (1.0, 1.0, 0.0);
    for (log_p, log_q) in terms {
        rest_p -= log_p.exp();
        rest_q -= log_q.exp();
        sum += log_p.exp() * (log_p - log_q);
    }
    sum + if rest_p > 0.0 && rest_q > 0.0 { rest_p * (rest_p / rest_q).ln() } else { 0.0 }
}

/// Compares choices step by step; where they part it must be a near-tie on both sides.
#[derive(Default)]
struct Choices {
    steps: usize,
    parted: usize,
    wrong: Vec<String>,
}

impl Choices {
    /// Whether our choice from `logits` is the reference's.
    fn alike(&mut self, case: &Case, step: usize, logits: &[f32]) -> bool {
        self.steps += 1;
        let (ours, theirs) = (argmax(logits), case.tokens[step]);
        if ours == theirs {
            return true;
        }
        self.parted += 1;
        let (our_gap, their_gap) = (logits[ours as usize] - logits[theirs as usize], case.gaps[step]);
        let which = if ours == case.seconds[step] { "its second" } else { "another" };
        let line = format!(
            "{}, step {step}: llama.cpp chose {theirs} by {their_gap:.3}, ours is {ours}, {which}, by {our_gap:.3}",
            case.name
        );
        println!("{line}");
        if their_gap >= NEAR_TIE || our_gap >= NEAR_TIE {
            self.wrong.push(line);
        }
        false
    }

    /// Fails where a choice was no near-tie.
    fn check(&self) {
        assert!(self.wrong.is_empty(), "these are no near-ties:\n{}", self.wrong.join("\n"));
    }
}

/// The largest distance of our logits from the reference's five largest.
fn distance(logits: &[f32], case: &Case) -> f32 {
    case.top5.iter().map(|&(id, wanted)| (logits[id as usize] - wanted).abs()).fold(0.0, f32::max)
}

fn longest(reference: &Reference) -> usize {
    reference.cases.iter().map(|case| case.prompt.len() + reference.meta.steps).max().unwrap_or(0)
}

fn reference() -> &'static Reference {
    static REFERENCE: OnceLock<Reference> = OnceLock::new();
    REFERENCE.get_or_init(|| {
        let it: Reference = serde_json::from_str(&support::read("greedy.json")).expect("it has this shape");
        assert_eq!(it.meta.file_sha256, support::MODEL_SHA256);
        assert!(it.cases.len() >= 24);
        it
    })
}

fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| Model::load(&support::model_file(), Cpu::new(2)).expect("the default model loads"))
}
