//! What is refused before it costs anything, and engines that do not start.

mod support;

use jackfield_engine::{ConfigError, Engine, EngineConfig, Finish, InvalidJob, Job, StartError, SubmitError};
use jackfield_model::{Cpu, Gguf, Model};
use jackfield_tiny::tiny_model::TinyModel;
use support::{engine, eventually, job, kv_bytes, long_engine, run, settle};

type Change = fn(&mut Job);

const INVALID: &[(&str, Change)] = &[
    ("prompt", |job| job.prompt.clear()),
    ("prompt", |job| job.prompt[0] = u32::MAX),
    ("n", |job| job.n = 0),
    ("n", |job| job.n = 65),
    ("max_new_tokens", |job| job.max_new_tokens = 0),
    ("stop", |job| job.stop = vec!["x".into(), String::new()]),
    ("temperature", |job| job.sampling.temperature = f32::NAN),
    ("temperature", |job| job.sampling.temperature = -0.1),
    ("temperature", |job| job.sampling.temperature = f32::INFINITY),
    ("top_p", |job| job.sampling.top_p = 0.0),
    ("top_p", |job| job.sampling.top_p = f32::NAN),
    ("top_p", |job| job.sampling.top_p = 1.1),
    ("min_p", |job| job.sampling.min_p = -0.1),
    ("presence_penalty", |job| job.sampling.presence_penalty = f32::NAN),
    ("frequency_penalty", |job| job.sampling.frequency_penalty = f32::NEG_INFINITY),
    ("repetition_penalty", |job| job.sampling.repetition_penalty = 0.0),
    ("logit_bias", |job| job.sampling.logit_bias = vec![(u32::MAX, 1.0)]),
    ("logit_bias", |job| job.sampling.logit_bias = vec![(1, f32::NAN)]),
];

#[tokio::test]
async fn a_job_out_of_range_names_its_field_and_harms_nobody() {
    let engine = engine(|_| ());
    let before = run(&engine, job(&engine, "hello")).await;
    for (field, change) in INVALID {
        let mut wrong = job(&engine, "hello");
        change(&mut wrong);
        match engine.submit(wrong.clone()) {
            Err(SubmitError::Invalid(InvalidJob { field: found, problem })) => {
                assert_eq!(found, *field);
                assert!(!problem.is_empty());
            }
            other => panic!("{field}: {:?} for {wrong:?}", other.err()),
        }
        assert_eq!(
            run(&engine, job(&engine, "hello")).await.choices,
            before.choices,
            "after a wrong {field}"
        );
    }
    settle(&engine);
}

#[tokio::test]
async fn a_prompt_must_leave_room_for_a_token() {
    let engine = engine(|_| ());
    let context = engine.model().context;
    assert_eq!(context, 512);
    for len in [context, context + 1, context * 10] {
        let refused = engine.submit(Job { prompt: vec![70; len], ..job(&engine, "x") }).err();
        assert_eq!(refused, Some(SubmitError::TooLong { prompt_tokens: len, limit: context }));
    }
    let last = run(&engine, Job { prompt: vec![70; context - 1], ..job(&engine, "x") }).await;
    assert_eq!((last.usage.completion_tokens, last.finish()), (1, Finish::Length), "one token fits");
    let room = run(&engine, Job { max_new_tokens: 10_000, ..job(&engine, "hello") }).await;
    assert_eq!(room.usage.prompt_tokens + room.usage.completion_tokens, context, "it ends with the context");
    settle(&engine);
}

#[tokio::test]
async fn the_context_is_what_all_limits_allow() {
    for (kv, cap, expected) in
        [(kv_bytes(4), None, 64), (kv_bytes(400), Some(100), 100), (kv_bytes(400), None, 512)]
    {
        let engine = engine(|config| {
            config.kv_bytes = kv;
            config.max_context = cap;
        });
        assert_eq!(engine.model().context, expected);
        let full = run(&engine, Job { max_new_tokens: 10_000, ..job(&engine, "hello") }).await;
        assert_eq!(full.usage.prompt_tokens + full.usage.completion_tokens, expected);
    }
}

#[tokio::test]
async fn one_too_many_is_refused_and_has_its_place_later() {
    let engine = long_engine(65536, |config| {
        config.max_running = 1;
        config.max_waiting = 2;
    });
    let endless = || Job { max_new_tokens: 1_000_000, ..job(&engine, "hello") };
    let mut inside: Vec<_> = (0..3).map(|_| engine.submit(endless()).unwrap()).collect();
    for _ in 0..5 {
        assert_eq!(engine.submit(endless()).err(), Some(SubmitError::QueueFull { in_flight: 3 }));
    }
    assert_eq!((engine.stats().in_flight, engine.stats().max_in_flight), (3, 3));
    inside.remove(1);
    eventually(&engine, "a place is free", |stats| stats.in_flight == 2);
    inside.push(engine.submit(endless()).unwrap());
    drop(inside);
    settle(&engine);
    assert_eq!(run(&engine, job(&engine, "hello")).await.usage.completion_tokens, 24);
}

fn start(change: impl FnOnce(&mut EngineConfig)) -> StartError {
    let cpu = Cpu::new(1);
    let file = Gguf::from_bytes(TinyModel::default().bytes()).unwrap();
    let model = Model::from_gguf(file, cpu.clone()).unwrap();
    let mut config = EngineConfig::default();
    change(&mut config);
    Engine::start(model, &cpu, &config).err().expect("refused")
}

#[test]
fn an_engine_that_cannot_serve_does_not_start() {
    let few = start(|config| config.kv_bytes = kv_bytes(2) - 1);
    let StartError::Config(ConfigError::TooFewBlocks { blocks, block_bytes, .. }) = few else {
        panic!("{few}")
    };
    assert_eq!((blocks, block_bytes), (1, kv_bytes(1)));
    for (change, word) in [
        ((|config| config.block_size = 0) as fn(&mut EngineConfig), "block_size"),
        (|config| config.max_running = 0, "max_running"),
        (|config| config.max_step_tokens = 64, "max_step_tokens"),
        (|config| config.max_context = Some(1), "max_context"),
    ] {
        let message = start(change).to_string();
        assert!(message.contains(word), "{word}: {message}");
    }
}
