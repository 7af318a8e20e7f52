//! The scheduler's state, and what callers ask of it between steps.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::blocks::Blocks;
use crate::config::{Config, ConfigError, LINGER_MS};
use crate::event::{Event, Stats, Usage};
use crate::plan::Plan;
use crate::prefix::{BlockHash, Chain};
use crate::request::{AddError, BlockId, Millis, Request, RequestId, SequenceId};
use crate::sequence::{Pending, Rank, Sequence};
use crate::spare::Spare;

/// Decides what each step computes. See the crate's documentation for how.
///
/// Every sequence is in exactly one of `waiting` and `running`; only running ones hold blocks.
#[derive(Debug)]
pub struct Scheduler {
    pub(crate) config: Config,
    pub(crate) blocks: Blocks,
    pub(crate) sequences: BTreeMap<SequenceId, Sequence>,
    pub(crate) waiting: BTreeSet<Rank>,
    pub(crate) running: BTreeSet<Rank>,
    pub(crate) requests: BTreeMap<RequestId, Pending>,
    /// The request of each choice that is not done.
    pub(crate) choices: HashMap<SequenceId, RequestId>,
    /// Events of cancellations, told by the next commit.
    pub(crate) events: Vec<Event>,
    /// Plans that are not committed: the last one, and one interposed.
    pub(crate) in_flight: Vec<InFlight>,
    pub(crate) spare: Spare,
    pub(crate) counters: Counters,
    pub(crate) step: u64,
    next_sequence: u64,
    now: Millis,
    /// Until when requests are taken to come beside each other.
    company_until: Millis,
}

/// The priority of what is only scored: one step less urgent than the least urgent of the others.
const AFTER_ALL: u16 = u8::MAX as u16 + 1;

/// What has to be known of a plan until it is committed.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) step: u64,
    /// Keys in `sequences`, one for each work of the plan. Not the ids in the plan: those may be cancelled while the
    /// sequence still stands for other choices.
    pub(crate) works: Vec<SequenceId>,
    /// Those of them whose last block is filled by a copy of this plan.
    pub(crate) copied: Vec<SequenceId>,
    /// The most urgent priority among those that read on after it; nothing may overtake when nobody does.
    pub(crate) overtaken: Option<u16>,
    /// Somebody gets a token from it.
    pub(crate) writers: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) hit_tokens: u64,
    pub(crate) looked_up_tokens: u64,
    pub(crate) computed_tokens: u64,
    pub(crate) scored_tokens: u64,
    pub(crate) recomputed_tokens: u64,
    pub(crate) preemptions: u64,
    pub(crate) interposed_steps: u64,
}

impl Scheduler {
    /// An idle scheduler over an empty pool.
    ///
    /// # Errors
    /// When the configuration does not [validate](Config::validate).
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Scheduler {
            blocks: Blocks::new(config.blocks),
            config,
            sequences: BTreeMap::new(),
            waiting: BTreeSet::new(),
            running: BTreeSet::new(),
            requests: BTreeMap::new(),
            choices: HashMap::new(),
            events: Vec::new(),
            in_flight: Vec::new(),
            spare: Spare::default(),
            counters: Counters::default(),
            step: 0,
            next_sequence: 0,
            now: Millis(0),
            company_until: Millis(0),
        })
    }

    /// The limits it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Queues a request and names its sequences, in the order of the choices.
    ///
    /// Only the prompt must fit the context and the pool. A continuation that outgrows either ends with
    /// [`Length`](crate::FinishReason::Length), so `max_new_tokens` may be as large as the caller likes; and choices
    /// that do not fit the pool together take turns.
    ///
    /// # Errors
    /// Says which limit is in the way; nothing is kept of the request.
    pub fn add(&mut self, request: Request, now: Millis) -> Result<Vec<SequenceId>, AddError> {
        self.check(&request)?;
        self.advance(now);
        let Request { id, prompt, n, max_new_tokens, salt, score, .. } = request;
        let priority = if score { AFTER_ALL } else { request.priority.into() };
        let choices: Vec<_> =
            (0..u64::from(n)).map(|choice| SequenceId(self.next_sequence + choice)).collect();
        self.next_sequence += u64::from(n);

        let due = self.now.plus(u64::from(priority).saturating_mul(self.config.ageing_ms));
        let rank = Rank { due, id: choices[0] };
        let usage = Usage { prompt_tokens: prompt.len(), ..Usage::default() };
        let limit = self.limit(prompt.len(), max_new_tokens);
        let chain = Chain::new(&salt, self.config.block_size);
        let mut sequence = Sequence::new(id, rank, Arc::from(prompt), chain);
        sequence.priority = priority;
        sequence.score = score;
        sequence.arrived = self.now;
        sequence.choices.clone_from(&choices);
        sequence.limit = limit;

        self.sequences.insert(rank.id, sequence);
        self.waiting.insert(rank);
        self.choices.extend(choices.iter().map(|choice| (*choice, id)));
        self.requests.insert(id, Pending { sequences: vec![rank.id], usage });
        Ok(choices)
    }

    /// Drops a request wherever it stands and frees its blocks at once. No event follows. False when there is no such
    /// request (any more).
    pub fn cancel(&mut self, id: RequestId) -> bool {
        let Some(pending) = self.requests.remove(&id) else { return false };
        for key in pending.sequences {
            for choice in self.remove(key).map(|sequence| sequence.choices).unwrap_or_default() {
                self.choices.remove(&choice);
            }
        }
        true
    }

    /// Drops one choice and frees its blocks at once; the others go on. When it was the last of its request, the next
    /// commit tells [`RequestDone`](Event::RequestDone). False when there is no such sequence (any more).
    pub fn cancel_sequence(&mut self, id: SequenceId) -> bool {
        let Some(request) = self.choices.remove(&id) else { return false };
        let keys = self.requests.get(&request).map(|pending| pending.sequences.clone()).unwrap_or_default();
        for key in keys {
            let Some(sequence) = self.sequences.get_mut(&key) else { continue };
            sequence.choices.retain(|choice| *choice != id);
            if sequence.choices.is_empty() {
                self.remove(key);
                let done = self.leave_request(request, key);
                self.events.extend(done);
            }
        }
        true
    }

    /// Takes back a plan that is done, so that another is made in its memory. Optional.
    pub fn recycle(&mut self, plan: Plan) {
        self.spare.put_plan(plan);
    }

    /// Tokens of this prompt that a request of this salt would not have to compute now. Takes time with the prompt.
    pub fn cached_prefix(&self, prompt: &[u32], salt: &[u8; 32]) -> usize {
        let block_size = self.config.block_size;
        let mut chain = Chain::new(salt, block_size);
        let usable = &prompt[..prompt.len().saturating_sub(1)];
        let whole = usable
            .chunks_exact(block_size)
            .take_while(|block| self.blocks.cache.find(&chain.push(block.iter().copied())).is_some())
            .count();
        let held = whole * block_size;
        let begun = &usable[held..usable.len().min(held + block_size - 1)];
        let tail = |tokens: usize| chain.tail(whole, begun[..tokens].iter().copied());
        let is_held =
            |tokens: &usize| tail(*tokens).is_some_and(|name| self.blocks.cache.find(&name).is_some());
        held + (1..=begun.len()).rev().find(is_held).unwrap_or(0)
    }

    /// The block that holds a prefix, used or free. What it holds stays until the next plan or adoption.
    pub fn find(&self, prefix: &BlockHash) -> Option<BlockId> {
        self.blocks.cache.find(prefix)
    }

    /// Nothing to run and nothing to tell.
    pub fn is_idle(&self) -> bool {
        self.sequences.is_empty() && self.events.is_empty()
    }

    /// Gauges and counters.
    pub fn stats(&self) -> Stats {
        let waiting = self.waiting.iter().filter_map(|rank| self.sequences.get(&rank.id));
        let oldest = waiting.map(|sequence| sequence.arrived).min();
        let fresh = self.fresh_requests();
        Stats {
            waiting: fresh,
            preempted: self.waiting.len() - fresh,
            running: self.running_choices(),
            oldest_wait_ms: oldest.map_or(0, |arrived| self.now.since(arrived)),
            used_blocks: self.blocks.pool.len() - self.blocks.pool.free(),
            free_blocks: self.blocks.pool.free(),
            cached_blocks: self.blocks.pool.cached(),
            hit_tokens: self.counters.hit_tokens,
            looked_up_tokens: self.counters.looked_up_tokens,
            computed_tokens: self.counters.computed_tokens,
            scored_tokens: self.counters.scored_tokens,
            recomputed_tokens: self.counters.recomputed_tokens,
            preemptions: self.counters.preemptions,
            evicted_blocks: self.blocks.evicted,
            interposed_steps: self.counters.interposed_steps,
        }
    }

    /// Takes note of the time; it never runs backwards here.
    pub(crate) fn advance(&mut self, now: Millis) {
        self.now = self.now.max(now);
        if self.requests.len() > 1 {
            self.company_until = self.now.plus(LINGER_MS);
        }
    }

    /// Whether several requests are there, or were a moment ago.
    pub(crate) fn has_company(&self) -> bool {
        self.now < self.company_until
    }

    pub(crate) fn now(&self) -> Millis {
        self.now
    }

    /// Sequences that run, a prompt that is being computed counted once for each of its choices.
    pub(crate) fn running_choices(&self) -> usize {
        self.running.iter().filter_map(|rank| self.sequences.get(&rank.id)).map(|s| s.choices.len()).sum()
    }

    /// Takes a sequence out of everything but its request, and frees its blocks.
    pub(crate) fn remove(&mut self, key: SequenceId) -> Option<Sequence> {
        let sequence = self.sequences.remove(&key)?;
        self.waiting.remove(&sequence.rank);
        self.running.remove(&sequence.rank);
        self.blocks.release_all(&sequence.table);
        Some(sequence)
    }

    /// A removed sequence leaves its request; the last one ends it.
    pub(crate) fn leave_request(&mut self, request: RequestId, key: SequenceId) -> Option<Event> {
        let pending = self.requests.get_mut(&request)?;
        pending.sequences.retain(|sequence| *sequence != key);
        if !pending.sequences.is_empty() {
            return None;
        }
        let usage = self.requests.remove(&request)?.usage;
        Some(Event::RequestDone { request, usage })
    }

    fn fresh_requests(&self) -> usize {
        let waiting = self.waiting.iter().filter_map(|rank| self.sequences.get(&rank.id));
        waiting.filter(|sequence| !sequence.started).count()
    }

    /// Where a sequence ends. The last token of all needs no block: it is never computed.
    fn limit(&self, prompt: usize, max_new_tokens: usize) -> usize {
        let pool = self.config.pool_tokens().saturating_add(1);
        prompt.saturating_add(max_new_tokens).min(self.config.max_context).min(pool)
    }

    fn check(&self, request: &Request) -> Result<(), AddError> {
        let prompt = request.prompt.len();
        let needed_blocks = self.config.blocks_for(prompt);
        let max = self.config.max_running;
        let waiting = self.fresh_requests();
        match () {
            () if prompt == 0 => Err(AddError::PromptEmpty),
            () if request.n == 0 => Err(AddError::ZeroChoices),
            () if request.score && request.n > 1 => Err(AddError::TooManyChoices { n: request.n, max: 1 }),
            () if request.max_new_tokens == 0 => Err(AddError::ZeroNewTokens),
            () if request.n as usize > max => Err(AddError::TooManyChoices { n: request.n, max }),
            () if prompt >= self.config.max_context => {
                Err(AddError::TooLong { prompt, max: self.config.max_context - 1 })
            }
            () if needed_blocks > self.config.blocks => {
                Err(AddError::NeverFits { needed_blocks, blocks: self.config.blocks })
            }
            () if self.requests.contains_key(&request.id) => Err(AddError::DuplicateId(request.id)),
            () if waiting >= self.config.max_waiting => Err(AddError::QueueFull { waiting }),
            () => Ok(()),
        }
    }
}
