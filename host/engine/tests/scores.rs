//! Texts that are scored: as the engine itself tells log-probabilities, in any company, and without a trace.

mod support;

use std::time::Duration;

use jackfield_engine::{Engine, InvalidJob, Job, ScoreError, SubmitError};
use support::{BLOCK, engine, job, kv_bytes, read, run, seeded, settle};

const TEXT: &str =
    "you and the system are in the world; the user is hello and it is that for you; one two three";
const PATIENCE: Duration = Duration::from_secs(60);

fn scores(engine: &Engine, tokens: &[u32]) -> Vec<f32> {
    engine.score(tokens.to_vec()).expect("taken").wait(PATIENCE).expect("scored")
}

#[tokio::test]
async fn a_score_is_the_logprob_that_the_engine_told() {
    let engine = engine(|_| ());
    let mut job = Job { sampling: seeded(7), max_new_tokens: 40, ..job(&engine, TEXT) };
    job.sampling.logprobs = Some(0);
    let prompt = job.prompt.clone();
    let said = run(&engine, job).await.choices.remove(0).tokens;
    let tokens: Vec<u32> = prompt.iter().copied().chain(said.iter().map(|token| token.id)).collect();
    assert!(said.len() > 20);
    let scores = scores(&engine, &tokens);
    assert_eq!(scores.len(), tokens.len() - 1);
    let told: Vec<f32> = said.iter().map(|token| token.logprob).collect();
    assert_eq!(scores[prompt.len() - 1..], told);
}

#[tokio::test]
async fn texts_share_steps_and_each_gets_its_own_scores() {
    // A step of few rows, so that texts are read in pieces and side by side.
    let engine = engine(|config| {
        config.max_running = 8;
        config.max_step_tokens = 24;
    });
    let texts: Vec<Vec<u32>> = (2..10)
        .map(|words| {
            let text = TEXT.split_inclusive(' ').take(words).collect::<String>();
            engine.tokenizer().encode(&text).expect("tokens")
        })
        .collect();
    let alone: Vec<_> = texts.iter().map(|text| scores(&engine, text)).collect();
    let steps = |engine: &Engine| engine.stats().scheduler.scored_tokens;
    let before = steps(&engine);
    let writer = engine.submit(job(&engine, TEXT)).expect("taken");
    let together: Vec<_> = texts.iter().map(|text| engine.score(text.clone()).expect("taken")).collect();
    for (scores, alone) in together.into_iter().zip(&alone) {
        assert_eq!(&scores.wait(PATIENCE).expect("scored"), alone);
    }
    read(writer).await;
    let rows: usize = texts.iter().map(|text| text.len() - 1).sum();
    assert_eq!(steps(&engine) - before, rows as u64, "each row once");
    settle(&engine);
}

#[tokio::test]
async fn a_scored_text_neither_finds_nor_leaves_blocks() {
    let engine = engine(|_| ());
    let text = TEXT.repeat(3);
    let prompt = job(&engine, &text).prompt;
    assert!(prompt.len() > 3 * BLOCK);
    let first = scores(&engine, &prompt);
    assert_eq!(engine.cached_prefix(&prompt, &[0; 32]), 0, "nothing is left");
    run(&engine, job(&engine, &text)).await;
    assert!(engine.cached_prefix(&prompt, &[0; 32]) > 0);
    assert_eq!(scores(&engine, &prompt), first, "nothing is found");
    settle(&engine);
}

#[tokio::test]
async fn who_writes_takes_the_blocks_of_a_text_and_it_is_scored_all_the_same() {
    let engine = engine(|config| config.kv_bytes = kv_bytes(9));
    let prompt = job(&engine, TEXT).prompt;
    let alone = scores(&engine, &prompt);
    for _ in 0..20 {
        let scores = engine.score(prompt.clone()).expect("taken");
        let writer = engine.submit(Job { max_new_tokens: 60, ..job(&engine, "hello") }).expect("taken");
        assert_eq!(read(writer).await.usage.completion_tokens, 60);
        assert_eq!(scores.wait(PATIENCE), Ok(alone.clone()));
    }
    settle(&engine);
}

#[test]
fn who_does_not_wait_leaves_nothing_behind() {
    let engine = engine(|config| config.max_scoring = 3);
    let prompt = job(&engine, TEXT).prompt;
    for _ in 0..50 {
        let scores = engine.score(prompt.clone()).expect("a place is free again");
        match scores.wait(Duration::ZERO) {
            Err(ScoreError::Busy) | Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
        support::eventually(&engine, "its place", |stats| stats.scoring == 0);
    }
    settle(&engine);
}

#[test]
fn texts_that_cannot_be_scored_are_refused_at_once() {
    let engine = engine(|config| config.max_scoring = 0);
    let invalid = |tokens: Vec<u32>| match engine.score(tokens) {
        Err(SubmitError::Invalid(InvalidJob { field, problem })) => format!("{field} {problem}"),
        other => panic!("{other:?}"),
    };
    assert!(invalid(vec![]).contains("has 0 tokens"));
    assert!(invalid(vec![1]).contains("has 1 tokens"));
    assert!(invalid(vec![1, u32::MAX]).contains("outside 0.."));
    let context = engine.model().context;
    let long = engine.score(vec![1; context + 1]).expect_err("too long");
    assert_eq!(long, SubmitError::TooLong { prompt_tokens: context + 1, limit: context });
    let full = engine.score(vec![1; context]).expect_err("no place");
    assert_eq!(full, SubmitError::QueueFull { in_flight: 0 });
}
