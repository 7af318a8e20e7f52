//! Continuous batching, block pool and prefix cache; pure, without IO, clock, randomness or tensors.
//!
//! The engine's loop is three calls: [`Scheduler::schedule`] says what the next step computes, the engine runs it and
//! samples, [`Scheduler::commit`] takes the sampled tokens and says what happened.
//!
//! ```
//! use jackfield_scheduler::{Config, Millis, Request, RequestId, Sampled, Scheduler};
//!
//! let mut scheduler = Scheduler::new(Config { blocks: 64, ..Config::default() }).unwrap();
//! let request = Request { prompt: vec![1, 2, 3], max_new_tokens: 2, ..Request::new(RequestId(7)) };
//! scheduler.add(request, Millis(0)).unwrap();
//! while !scheduler.is_idle() {
//!     let plan = scheduler.schedule(Millis(0));
//!     // Here the engine runs `plan.copies`, then the rows of `plan.work`, and samples for each id in `work.sample`.
//!     let sampled: Vec<_> = plan.sampling().map(|sequence| Sampled { sequence, token: 42, stop: false }).collect();
//!     let mut events = Vec::new();
//!     scheduler.commit(&plan, &sampled, Millis(1), &mut events);
//!     events.iter().for_each(|event| println!("{event}"));
//!     scheduler.recycle(plan);
//! }
//! assert_eq!(scheduler.stats().used_blocks, 0);
//! ```
//!
//! # How it decides
//! - **Order.** A request of priority `p` ranks as if it had arrived `p * ageing_ms` later than it did. The rank never
//!   changes, so whatever waits is overtaken only by requests that arrive within that time: nothing starves, and
//!   nothing is sorted twice.
//! - **Step.** Every decoding sequence gets its token first. The rest of the budget goes to prefill: an eighth to the
//!   first in rank, so that a long prompt keeps moving, all else to the most urgent and then the shortest, so that a long
//!   prompt blocks nobody. The budget counts what attention costs, so that steps take about as long deep in a prompt as
//!   at its beginning; and it is smaller while several requests are there, since who comes waits for the step that runs.
//! - **Interposed steps.** While a step reads the middle of a long prompt, [`Scheduler::interpose`] gives a step of short
//!   prompts that came meanwhile, to be run between two layers: they do not wait for the step that runs.
//! - **Scoring.** A request of which only the logits of its prompt's rows are wanted is a prompt behind all others: it takes
//!   what they leave of a step, gives way when they need blocks, and shares none.
//! - **Memory.** A sequence gets the blocks of all its known tokens when it is admitted, and one more at a time while
//!   it decodes. When none is left the last in rank is preempted: its blocks go, its tokens stay, and it is computed
//!   again later, mostly from the prefix cache.
//! - **Sharing.** Whole, computed blocks are published under a salted hash chain. The `n` choices of a request share
//!   the blocks of its prompt; who writes into a block that others read gets a copy first.
//! - **Tails.** The last block of a sequence that ends is published as well, full or not, under the name of what is in it. Who goes
//!   on with just these tokens, as the next turn of a dialog does, takes that block over and writes on in it.
//! - **Tiers.** A plan says what the cache loses to it ([`Plan::demoted`]), while that is still in place to be copied
//!   elsewhere. [`Scheduler::adopt`] makes room for blocks that come back, and publishes them: to all else they are cached as if
//!   they had been computed here.
//!
//! # What is not here
//! - No clock: time is an argument. No randomness, no thread, no channel, no tensor.
//! - No iteration over a hash map: the same calls give the same plans.
//! - No work that grows with all the tokens in flight: a step touches the tokens it computes.
//! - No idea of what a block contains: its type, its scales, its layout and the device it is on are the engine's.
//!
//! # What it leaves room for
//! - Drafted tokens: rows after the known ones. A commit takes as many samples of a sequence as its rows allow, and only
//!   what it took counts as computed.

mod admission;
mod adopt;
mod audit;
mod blocks;
mod commit;
mod config;
mod event;
mod interpose;
mod plan;
mod planning;
mod pool;
mod prefill;
mod prefix;
mod request;
mod scheduler;
mod sequence;
mod spare;

pub use adopt::{Adopted, Adoption};
pub use config::{Config, ConfigError, LINGER_MS};
pub use event::{Event, FinishReason, Sampled, Stats, Usage};
pub use plan::{CopyBlock, Demoted, Plan, Work};
pub use prefix::{BlockHash, block_hashes, tail_hashes};
pub use request::{AddError, BlockId, Millis, Request, RequestId, SequenceId};
pub use scheduler::Scheduler;
