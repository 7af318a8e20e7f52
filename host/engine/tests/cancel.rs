//! Leaving: in the queue, in prefill, in decode; nothing stays behind.

mod support;

use std::sync::Arc;

use jackfield_engine::{Engine, Job, Output, Ticket, Usage};
use support::{engine, eventually, job, long_engine, read, run, seeded, settle};

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
async fn one_choice_that_leaves_disturbs_no_other_and_is_counted_as_far_as_it_came() {
    let engine = long_engine(65536, |_| ());
    let short =
        Job { prompt: vec![70; 40], n: 3, max_new_tokens: 100, sampling: seeded(5), ..job(&engine, "x") };
    let alone = run(&engine, short.clone()).await.choices;
    let computed = engine.stats().scheduler.computed_tokens;
    let mut ticket = engine.submit(Job { max_new_tokens: 60_000, ..short }).unwrap();
    let mut texts = vec![String::new(); 3];
    while texts[1].is_empty() {
        take(&mut ticket, &mut texts).await;
    }
    ticket.cancel_choice(7);
    (0..2).for_each(|_| ticket.cancel_choice(1));
    eventually(&engine, "it holds no block", |stats| stats.scheduler.running == 2);
    while [0, 2].iter().any(|choice| texts[*choice].len() < alone[*choice].text.len()) {
        take(&mut ticket, &mut texts).await;
    }
    for choice in [0, 2] {
        assert!(texts[choice].starts_with(&alone[choice].text), "choice {choice} was disturbed");
        ticket.cancel_choice(choice as u32);
    }
    let usage = loop {
        if let Some(usage) = take(&mut ticket, &mut texts).await {
            break usage;
        }
    };
    assert_eq!(ticket.next().await, None);
    settle(&engine);
    assert_eq!((usage.prompt_tokens, usage.cached_tokens), (40, 32), "the cache is counted, too");
    // The first token of each choice is drawn from the prompt's last row, every other one from a row of its own.
    let rows = engine.stats().scheduler.computed_tokens - computed;
    assert_eq!(usage.completion_tokens, rows as usize - 8 + 3);
}

/// Takes one output into the texts; the usage at the end. Panics when a choice that nothing ends has ended.
async fn take(ticket: &mut Ticket, texts: &mut [String]) -> Option<Usage> {
    match ticket.next().await.expect("more") {
        Output::Delta(delta) => texts[delta.choice as usize].push_str(&delta.text),
        Output::Done(usage) => return Some(usage),
        other => panic!("{other:?}"),
    }
    None
}

#[tokio::test]
async fn choices_that_leave_the_queue_or_the_prefill_are_never_sampled() {
    let engine = long_engine(65536, |config| {
        config.max_running = 4;
        config.max_step_tokens = 8;
    });
    let long = Job { prompt: vec![70; 2_000], n: 2, max_new_tokens: 3, ..job(&engine, "x") };
    let ticket = engine.submit(long.clone()).unwrap();
    ticket.cancel_choice(0);
    let reply = read_some(ticket).await;
    assert_eq!(reply, (vec![1], 3), "the other is answered");
    let ticket = engine.submit(long).unwrap();
    (0..2).for_each(|choice| ticket.cancel_choice(choice));
    assert_eq!(read_some(ticket).await, (vec![], 0));
    settle(&engine);
}

/// Which choices ended, and how many tokens were sampled.
async fn read_some(mut ticket: Ticket) -> (Vec<u32>, usize) {
    let mut ended = Vec::new();
    loop {
        match ticket.next().await.expect("an end") {
            Output::Delta(_) => {}
            Output::Finished { choice, .. } => ended.push(choice),
            Output::Done(usage) => return (ended, usage.completion_tokens),
            Output::Failed(fault) => panic!("{fault}"),
        }
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
