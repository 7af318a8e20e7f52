//! Random load: whatever comes, every stream is what it would have been alone.

use std::fmt::Write;
use std::num::NonZero;

use jackfield_scheduler::{AddError, Config, Millis, Request, RequestId, SequenceId};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::stream::{StopAt, text};
use crate::world::World;

#[derive(Debug, Clone)]
enum Op {
    Add(Asked),
    Steps(u8),
    Later(u16),
    Cancel(u8),
    CancelChoice(u8),
    /// The same two between plan and commit.
    CancelDuring(u8),
    CancelChoiceDuring(u8),
    /// A step in the middle of which others come, somebody may be cancelled, and short prompts pass.
    Interpose(Vec<Asked>, Option<u8>),
    /// A plan that is dropped, run or not.
    Lose(bool),
    /// A step in which every so-manieth sample is missing.
    Mute(u8),
    /// What was evicted of somebody's tokens comes back, but for every so-manieth block; between steps.
    Adopt(u8, Option<u8>),
    /// The same between plan and commit.
    AdoptDuring(u8, Option<u8>),
}

#[derive(Debug, Clone)]
struct Asked {
    /// Which of a few texts the prompt begins with, and how many tokens of it.
    stem: (u8, usize),
    /// Tokens of its own after that.
    own: usize,
    n: u32,
    max_new_tokens: usize,
    priority: u8,
    salt: u8,
    stop: u32,
    score: bool,
}

fn configs() -> impl Strategy<Value = Config> {
    let sizes = (1..6usize, 1..25usize, 1..7usize, 1..14usize);
    let prefill = (1..14usize, 0..20usize);
    (sizes, prefill, 1..8usize, 2..60usize, 0..40u64, any::<bool>()).prop_map(
        |(sizes, (busy_prefill_tokens, depth), max_waiting, max_context, ageing_ms, prefix_cache)| {
            let (block_size, blocks, max_running, more) = sizes;
            Config {
                block_size,
                blocks,
                max_step_tokens: max_running + more,
                busy_prefill_tokens,
                positions_per_token: NonZero::new(depth),
                max_running,
                max_waiting,
                max_context,
                ageing_ms,
                prefix_cache,
            }
        },
    )
}

fn asked() -> impl Strategy<Value = Asked> {
    ((0..3u8, 0..24usize), 0..12usize, 1..4u32, 1..16usize, 0..4u8, 0..2u8, 5..40u32, 0..6u8).prop_map(
        |(stem, own, n, max_new_tokens, priority, salt, stop, score)| Asked {
            stem,
            own,
            n: if score == 0 { 1 } else { n },
            max_new_tokens,
            priority,
            salt,
            stop,
            score: score == 0,
        },
    )
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => asked().prop_map(Op::Add),
        8 => (1..6u8).prop_map(Op::Steps),
        2 => (1..30u16).prop_map(Op::Later),
        1 => any::<u8>().prop_map(Op::Cancel),
        1 => any::<u8>().prop_map(Op::CancelChoice),
        1 => any::<u8>().prop_map(Op::CancelDuring),
        1 => any::<u8>().prop_map(Op::CancelChoiceDuring),
        4 => (vec(asked(), 0..4), option::weighted(0.2, any::<u8>()))
            .prop_map(|(asked, leaves)| Op::Interpose(asked, leaves)),
        1 => any::<bool>().prop_map(Op::Lose),
        1 => (1..4u8).prop_map(Op::Mute),
        4 => (any::<u8>(), option::weighted(0.3, 1..5u8)).prop_map(|(which, lost)| Op::Adopt(which, lost)),
        2 => (any::<u8>(), option::weighted(0.3, 1..5u8)).prop_map(|(which, lost)| Op::AdoptDuring(which, lost)),
    ];
    vec(op, 1..60)
}

/// Applies everything, runs to the end, and writes down every plan and event.
fn play(config: &Config, ops: &[Op]) -> String {
    let mut world = World::new(config.clone());
    let mut log = String::new();
    for (at, op) in ops.iter().enumerate() {
        apply(&mut world, at as u64, op, &mut log);
    }
    world.finish(|plan, events| writeln!(log, "{plan} {events:?}").unwrap());
    writeln!(log, "{:?}", world.scheduler.stats()).unwrap();
    log
}

fn apply(world: &mut World, at: u64, op: &Op, log: &mut String) {
    match op {
        Op::Add(asked) => add(world, at, asked),
        Op::Steps(steps) => (0..*steps).for_each(|_| step(world, log, |_| ())),
        Op::Later(ms) => world.now = Millis(world.now.0 + u64::from(*ms)),
        Op::Cancel(which) => cancel(world, *which),
        Op::CancelChoice(which) => cancel_choice(world, *which),
        Op::Adopt(which, lost) => adopt(world, *which, *lost),
        Op::AdoptDuring(which, lost) => step(world, log, |world| adopt(world, *which, *lost)),
        Op::CancelDuring(which) => step(world, log, |world| cancel(world, *which)),
        Op::CancelChoiceDuring(which) => step(world, log, |world| cancel_choice(world, *which)),
        Op::Interpose(asked, leaves) => interpose(world, at, asked, *leaves, log),
        Op::Lose(runs) => writeln!(log, "lost {}", world.lose(*runs)).unwrap(),
        Op::Mute(every) => {
            let plan = world.plan();
            let mut sampled = world.run(&plan);
            let mut at = 0;
            sampled.retain(|_| {
                at += 1;
                at % every != 0
            });
            let events = world.commit(&plan, &sampled);
            writeln!(log, "{plan} {events:?}").unwrap();
        }
    }
}

fn step(world: &mut World, log: &mut String, between: impl FnOnce(&mut World)) {
    let plan = world.plan();
    between(world);
    let sampled = world.run(&plan);
    let events = world.commit(&plan, &sampled);
    writeln!(log, "{plan} {events:?}").unwrap();
}

/// The rows of the outer step are written before and after: it is somewhere between its layers.
fn interpose(world: &mut World, at: u64, asked: &[Asked], leaves: Option<u8>, log: &mut String) {
    let outer = world.plan();
    world.run(&outer);
    for (nth, asked) in (1..).zip(asked) {
        add(world, at + 1000 * nth, asked);
        adopt(world, asked.own as u8, None);
        if let Some((plan, events)) = world.interpose(&outer) {
            writeln!(log, "meanwhile {plan} {events:?}").unwrap();
        }
    }
    if let Some(which) = leaves {
        cancel(world, which);
        // Its blocks are free, and written to until the step is over.
        adopt(world, which.rotate_left(3), None);
    }
    if let Some((plan, events)) = world.interpose(&outer) {
        writeln!(log, "meanwhile {plan} {events:?}").unwrap();
    }
    let sampled = world.run_rows(&outer);
    let events = world.commit(&outer, &sampled);
    writeln!(log, "{outer} {events:?}").unwrap();
}

fn add(world: &mut World, at: u64, asked: &Asked) {
    let stem = text(["x", "y", "z"][usize::from(asked.stem.0)], asked.stem.1);
    let request = Request {
        id: RequestId(at),
        prompt: stem.chain(text(&at.to_string(), asked.own)).collect(),
        n: asked.n,
        max_new_tokens: asked.max_new_tokens,
        priority: asked.priority,
        salt: [asked.salt; 32],
        score: asked.score,
    };
    let refused = world.add(request, StopAt::Multiple(asked.stop)).err();
    assert!(!matches!(
        refused,
        Some(AddError::DuplicateId(_) | AddError::ZeroChoices | AddError::ZeroNewTokens)
    ));
}

fn adopt(world: &mut World, which: u8, lost: Option<u8>) {
    let everybody: Vec<_> = world.requests.values().flat_map(|watched| watched.everybody()).collect();
    if let Some((id, salt)) = pick(&everybody, which) {
        let tokens = world.tokens(id).to_vec();
        world.adopt(&tokens, &salt, lost.map(usize::from));
    }
}

fn cancel(world: &mut World, which: u8) {
    let ids: Vec<_> = world.requests.keys().copied().collect();
    if let Some(id) = pick(&ids, which) {
        world.cancel(id);
    }
}

fn cancel_choice(world: &mut World, which: u8) {
    let ids: Vec<SequenceId> =
        world.requests.values().flat_map(|watched| watched.open().collect::<Vec<_>>()).collect();
    if let Some(id) = pick(&ids, which) {
        world.cancel_sequence(id);
    }
}

fn pick<T: Copy>(items: &[T], which: u8) -> Option<T> {
    items.get(usize::from(which) % items.len().max(1)).copied()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    /// The checks are in `World`: budgets, owners, contents of every slot read, streams, usage, nothing left at the end.
    #[test]
    fn every_stream_is_what_it_would_have_been_alone(config in configs(), ops in ops()) {
        play(&config, &ops);
    }

    #[test]
    fn the_same_calls_give_the_same_plans(config in configs(), ops in ops()) {
        prop_assert_eq!(play(&config, &ops), play(&config, &ops));
    }
}
