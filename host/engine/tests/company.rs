//! Other sequences in the step, and having to give way to them, change nothing of an answer.

mod support;

use std::collections::HashSet;

use jackfield_engine::{Engine, EngineConfig, Job, Sampling};
use support::{Reply, engine, eventually, greedy, job, kv_bytes, long_engine, read, run, seeded, settle};

/// Always the same numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// Sixteen jobs of different prompts, lengths and ways to draw.
fn sixteen(engine: &Engine) -> Vec<Job> {
    let one = |i: usize| Job {
        max_new_tokens: [5, 200, 17, 64][i % 4] + i,
        sampling: if i.is_multiple_of(3) { seeded(i as u64) } else { greedy() },
        ..job(engine, &format!("{i}: {} codeword {i}", "hello world ".repeat(i % 5)))
    };
    (0..16).map(one).collect()
}

async fn alone(jobs: &[Job], config: impl Fn(&mut EngineConfig) + Copy) -> Vec<Reply> {
    let mut replies = Vec::new();
    for job in jobs {
        replies.push(run(&engine(config), job.clone()).await);
    }
    replies
}

#[tokio::test]
async fn sixteen_at_once_with_some_who_leave_say_what_each_says_alone() {
    let engine = engine(|config| {
        config.max_running = 12;
        config.max_step_tokens = 48;
        config.kv_bytes = kv_bytes(100);
    });
    let jobs = sixteen(&engine);
    let alone = alone(&jobs, |_| ()).await;
    let texts: HashSet<&str> = alone.iter().map(Reply::text).collect();
    assert_eq!(texts.len(), 16, "each has a text of its own to be told apart by");
    let mut dice = Dice(0x5eed);
    let mut left = 0;
    for round in 0..50 {
        let mut tickets: Vec<_> = jobs.iter().map(|job| Some(engine.submit(job.clone()).unwrap())).collect();
        for ticket in &mut tickets {
            if dice.roll(4) == 0 {
                let mut leaving = ticket.take().expect("still here");
                for _ in 0..dice.roll(4) {
                    leaving.next().await;
                }
                left += 1;
            }
        }
        for (i, ticket) in tickets.into_iter().enumerate() {
            let Some(ticket) = ticket else { continue };
            assert_eq!(read(ticket).await.choices, alone[i].choices, "job {i}, round {round}");
        }
        settle(&engine);
    }
    assert!(left > 100, "some did leave: {left}");
}

/// Every way of writing that has a memory, in pairs that do not fit together.
fn pairs(engine: &Engine) -> Vec<[Job; 2]> {
    let penalties = |sampling: Sampling| Sampling {
        presence_penalty: 0.5,
        frequency_penalty: 0.7,
        repetition_penalty: 1.2,
        logprobs: Some(3),
        ..sampling
    };
    let long =
        |prompt: &str, sampling: Sampling| Job { max_new_tokens: 300, sampling, ..job(engine, prompt) };
    vec![
        [long("hello", greedy()), long("world", greedy())],
        [long("hello", penalties(greedy())), long("world", penalties(seeded(7)))],
        [long("hello", seeded(1)), long("hello", seeded(2))],
        [
            Job { n: 2, max_new_tokens: 150, ..long("one", penalties(seeded(3))) },
            long("two", penalties(seeded(4))),
        ],
    ]
}

/// A stop string at about nine tenths of a text, there for the first time.
fn late_stop(text: &str) -> Option<String> {
    let starts = text.char_indices().map(|(at, _)| at).skip(text.chars().count() * 9 / 10);
    let stop = |at: usize| text[at..].chars().take(5).collect::<String>();
    starts.map(|at| (stop(at), at)).find(|(stop, at)| text.find(stop) == Some(*at)).map(|(stop, _)| stop)
}

#[tokio::test]
async fn who_gives_way_comes_back_as_if_nothing_had_been() {
    let roomy = engine(|config| config.prefix_cache = false);
    for prefix_cache in [false, true] {
        // 24 blocks are 384 tokens: one answer of 300 fits, two do not.
        let scarce = engine(|config| {
            config.kv_bytes = kv_bytes(24);
            config.prefix_cache = prefix_cache;
        });
        for (row, mut pair) in pairs(&scarce).into_iter().enumerate() {
            if row == 1 {
                let open = run(&roomy, pair[0].clone()).await;
                pair[0].stop = vec![late_stop(open.text()).expect("new text at the end")];
            }
            let alone = [run(&roomy, pair[0].clone()).await, run(&roomy, pair[1].clone()).await];
            until_preempted(&scarce, async || {
                let tickets = pair.clone().map(|job| scarce.submit(job).unwrap());
                for (ticket, alone) in tickets.into_iter().zip(&alone) {
                    let beside = read(ticket).await;
                    assert_eq!(beside.choices, alone.choices, "row {row}, cache {prefix_cache}");
                    assert_eq!(beside.usage.completion_tokens, alone.usage.completion_tokens, "counted once");
                }
            })
            .await;
            settle(&scarce);
        }
    }
}

/// Goes on until somebody had to give way: on a busy machine two may miss each other.
async fn until_preempted(engine: &Engine, round: impl AsyncFn()) {
    let before = engine.stats().scheduler.preemptions;
    for _ in 0..20 {
        round().await;
        if engine.stats().scheduler.preemptions > before {
            return;
        }
    }
    panic!("nobody had to give way in twenty rounds");
}

#[tokio::test]
async fn an_urgent_one_takes_the_place_and_harms_nobody() {
    let roomy = long_engine(2048, |_| ());
    let scarce = long_engine(2048, |config| config.kv_bytes = kv_bytes(130));
    let patient = Job { max_new_tokens: 1900, priority: 7, ..job(&scarce, "hello") };
    let urgent = Job { max_new_tokens: 40, priority: 0, prompt: vec![70; 1900], ..job(&scarce, "x") };
    let alone = [run(&roomy, patient.clone()).await, run(&roomy, urgent.clone()).await];
    until_preempted(&scarce, async || {
        let first = scarce.submit(patient.clone()).unwrap();
        eventually(&scarce, "the first runs", |stats| {
            stats.scheduler.used_blocks > 20 || stats.in_flight == 0
        });
        let second = run(&scarce, urgent.clone()).await;
        assert_eq!(second.choices, alone[1].choices);
        assert_eq!(read(first).await.choices, alone[0].choices);
    })
    .await;
    settle(&scarce);
}

#[tokio::test]
async fn short_prompts_pass_a_long_one_and_nobody_notices() {
    let roomy = long_engine(2048, |config| config.prefix_cache = false);
    let engine = long_engine(2048, |config| config.max_step_tokens = 512);
    let long =
        Job { max_new_tokens: 8, prompt: (0..1900).map(|i| 70 + i % 20).collect(), ..job(&engine, "x") };
    let short =
        |i: u64| Job { max_new_tokens: 5, sampling: seeded(i), ..job(&engine, &format!("hello {i}")) };
    let alone = run(&roomy, long.clone()).await;
    for round in 0..200u64 {
        let reading = engine.submit(Job { salt: [round as u8; 32], ..long.clone() }).unwrap();
        eventually(&engine, "it is read", |stats| stats.scheduler.used_blocks > 0 || stats.in_flight == 0);
        let passing: Vec<_> = (0..3).map(|i| (i, engine.submit(short(i)).unwrap())).collect();
        for (i, ticket) in passing {
            assert_eq!(
                read(ticket).await.choices,
                run(&roomy, short(i)).await.choices,
                "short {i}, round {round}"
            );
        }
        let read = read(reading).await;
        assert_eq!((read.choices, read.usage), (alone.choices.clone(), alone.usage), "round {round}");
        settle(&engine);
        if engine.stats().scheduler.interposed_steps > 10 {
            return;
        }
    }
    panic!("hardly anybody passed: {:?}", engine.stats().scheduler);
}
