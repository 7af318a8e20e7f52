//! Urgent requests without end: the one that is not urgent has its turn.

use jackfield_scheduler::{Config, Millis, Request, RequestId};
use proptest::prelude::*;

use crate::stream::{StopAt, text};
use crate::world::World;

const LOW: RequestId = RequestId(u64::MAX);
/// Tokens of prompt and continuation of each request, at most.
const LONGEST: usize = 16;

fn request(id: RequestId, priority: u8, prompt: usize) -> Request {
    let prompt = text(&id.0.to_string(), prompt).collect();
    Request { prompt, priority, max_new_tokens: LONGEST - 12, ..Request::new(id) }
}

/// Milliseconds until the request of the given priority was done, under a full queue of the most urgent ones and one
/// step per millisecond.
fn time_to_finish(
    config: &Config,
    priority: u8,
    prompt: usize,
    urgent_prompt: usize,
    most_ms: u64,
) -> Option<u64> {
    let mut world = World::new(config.clone());
    let mut next = 0;
    let mut fill = |world: &mut World| {
        while world.add(request(RequestId(next), 0, urgent_prompt), StopAt::Never).is_ok() {
            next += 1;
        }
    };
    world.add(request(LOW, priority, prompt), StopAt::Never).unwrap();
    for now in 0..most_ms {
        world.now = Millis(now);
        fill(&mut world);
        world.step();
        if world.requests[&LOW].done.is_some() {
            return Some(now);
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// When its priority is waited out, only what is in the queue by then may go before it; and each of those takes no
    /// more steps than it has tokens once it is the first in rank.
    #[test]
    fn it_waits_for_its_priority_and_for_what_came_before(
        priority in 0..6u8,
        ageing_ms in 0..60u64,
        max_running in 1..5usize,
        max_waiting in 2..5usize,
        blocks in 4..12usize,
        prompts in (1..12usize, 1..12usize),
        prefix_cache in any::<bool>(),
    ) {
        let config = Config {
            block_size: 4, blocks, max_step_tokens: max_running + 3, max_running, max_waiting,
            max_context: 32, ageing_ms, prefix_cache, ..Config::default()
        };
        let before = (max_waiting + max_running + 1) * LONGEST;
        let most = u64::from(priority) * ageing_ms + before as u64;
        let took = time_to_finish(&config, priority, prompts.0, prompts.1, most);
        prop_assert!(took.is_some(), "not done after {most} ms");
    }
}

/// The other half: priority does hold the less urgent one back, so that the property above is about something.
#[test]
fn it_does_wait() {
    let config = Config {
        block_size: 4,
        blocks: 8,
        max_step_tokens: 8,
        max_running: 1,
        max_waiting: 3,
        max_context: 32,
        ageing_ms: 50,
        prefix_cache: true,
        ..Config::default()
    };
    let urgent = time_to_finish(&config, 0, 4, 4, 1000).unwrap();
    let low = time_to_finish(&config, 4, 4, 4, 1000).unwrap();
    assert!(urgent < 10 && (200..250).contains(&low), "{urgent} and {low}");
}
