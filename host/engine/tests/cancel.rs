//! Leaving: in the queue, in prefill, in decode; nothing stays behind.

mod support;

use std::sync::Arc;

use jackfield_engine::{Engine, Job, Output};
use support::{engine, eventually, job, long_engine, read, run, settle};

/// A job that goes on for longer than any test.
fn endless(engine: &Engine, prompt: &str) -> Job {
    Job { max_new_tokens: 1_000_000, ..job(engine, prompt) }
}

#[tokio::test]
async fn who_leaves_the_queue_is_never_run() {
    let engine = long_engine(65536, |config| config.max_running = 1);
    let running = engine.submit(endless(&engine, "hello")).unwrap();
    eventually(&engine, "the first runs", |stats| stats.scheduler.running == 1);
    let waiting = engine.submit(endless(&engine, "world")).unwrap();
    eventually(&engine, "the second waits", |stats| stats.scheduler.waiting == 1);
    drop(waiting);
    eventually(&engine, "it is gone", |stats| stats.scheduler.waiting == 0 && stats.in_flight == 1);
    assert_eq!(engine.stats().scheduler.running, 1, "the first runs on");
    drop(running);
    settle(&engine);
}

#[tokio::test]
async fn who_leaves_in_prefill_is_not_read_to_its_end() {
    let engine = long_engine(65536, |config| {
        config.max_running = 4;
        config.max_step_tokens = 8;
    });
    let prompt = vec![70; 60_000];
    let ticket = engine.submit(Job { prompt, ..job(&engine, "x") }).unwrap();
    eventually(&engine, "it is being read", |stats| stats.scheduler.computed_tokens > 64);
    drop(ticket);
    settle(&engine);
    let read = engine.stats().scheduler.computed_tokens;
    assert!(read < 60_000, "{read} tokens were read");
}

#[tokio::test]
async fn who_leaves_in_decode_frees_every_choice() {
    for n in [1, 4] {
        let engine = long_engine(65536, |config| config.kv_bytes = support::kv_bytes(4096));
        let mut ticket = engine.submit(Job { n, ..endless(&engine, "hello") }).unwrap();
        for _ in 0..3 {
            assert!(matches!(ticket.next().await, Some(Output::Delta(_))));
        }
        assert_eq!(engine.stats().scheduler.running, n as usize);
        drop(ticket);
        settle(&engine);
        assert_eq!(engine.stats().scheduler.free_blocks, 4096, "the pool is whole");
    }
}

#[tokio::test]
async fn two_hundred_who_leave_cost_nothing_and_change_nothing() {
    let engine = long_engine(4096, |config| {
        config.max_running = 8;
        config.max_waiting = 400;
        config.kv_bytes = support::kv_bytes(64);
    });
    let plain = || job(&engine, "hello world");
    let before = run(&engine, plain()).await;
    let stay = engine.submit(Job { max_new_tokens: 400, ..job(&engine, "and you") }).unwrap();
    for i in 0..200 {
        let prompt = "the system and you ".repeat(1 + i % 20);
        let mut ticket = engine.submit(Job { n: 1 + i as u32 % 3, ..endless(&engine, &prompt) }).unwrap();
        for _ in 0..i % 4 {
            assert!(ticket.next().await.is_some());
        }
    }
    let stayed = read(stay).await;
    settle(&engine);
    assert_eq!(stayed.usage.completion_tokens, 400);
    assert_eq!(run(&engine, plain()).await.choices, before.choices);
    let fresh = long_engine(4096, |_| ());
    let alone = run(&fresh, Job { max_new_tokens: 400, ..job(&fresh, "and you") }).await;
    assert_eq!(stayed.choices, alone.choices, "who stayed was not disturbed");
}

#[tokio::test]
async fn the_thread_ends_with_the_last_handle() {
    let engine = engine(|_| ());
    let tokenizer = Arc::clone(engine.tokenizer());
    let mut ticket = engine.submit(job(&engine, "hello")).unwrap();
    drop(engine);
    let mut outputs = 0;
    while ticket.next().await.is_some() {
        outputs += 1;
    }
    assert!(outputs > 2, "what was begun is finished");
    drop(ticket);
    let begun = std::time::Instant::now();
    while Arc::strong_count(&tokenizer) > 1 {
        assert!(begun.elapsed().as_secs() < 60, "the engine is still there");
        std::thread::yield_now();
    }
}
