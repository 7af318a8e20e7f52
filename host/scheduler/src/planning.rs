//! Making a plan: decodes grow, the queue is admitted, prefill shares what is left.

use std::ops::Bound;

use crate::plan::{CopyBlock, Plan, Work};
use crate::prefill::Share;
use crate::request::{BlockId, Millis, SequenceId};
use crate::scheduler::{InFlight, Scheduler};
use crate::sequence::Rank;

/// How many that do not fit are looked past in one step; each look costs a walk over its cached blocks.
const LOOK_PAST: usize = 4;

impl Scheduler {
    /// Decides the next step. Blocks are handed out here; tokens count as computed when the plan is committed.
    ///
    /// Something is always planned while a sequence is unfinished: the first in rank can take every block there is.
    pub fn schedule(&mut self, now: Millis) -> Plan {
        self.advance(now);
        self.forget_uncommitted();
        self.step += 1;
        let mut plan = Plan { step: self.step, ..Plan::default() };
        let mut copied = Vec::new();
        self.grow_decodes(&mut plan, &mut copied);
        // What a preemption has just freed is for those that grow. Admitting in the same step would trade places.
        if plan.preempted.is_empty() {
            self.admit(&mut plan, &mut copied);
        }
        let decodes = self.decodes();
        let shares = self.share_prefill(self.config.max_step_tokens.saturating_sub(decodes.len()));
        let shares = decodes.into_iter().map(|key| Share { key, tokens: 1 }).chain(shares);
        let works: Vec<_>;
        (works, plan.work) = shares.filter_map(|share| Some((share.key, self.work(&share)?))).unzip();
        self.in_flight = Some(InFlight { step: self.step, works, copied });
        plan
    }

    /// A plan that was never committed may not have run. What it would have computed is still to be computed; only a
    /// block that it would have filled by copying needs a word: it is computed from its first position.
    fn forget_uncommitted(&mut self) {
        let Some(lost) = self.in_flight.take() else { return };
        for key in lost.copied {
            if let Some(sequence) = self.sequences.get_mut(&key) {
                sequence.computed -= sequence.computed % self.config.block_size;
            }
        }
    }

    /// Running sequences that compute one token, in rank order.
    fn decodes(&self) -> Vec<SequenceId> {
        let running = self.running.iter().filter_map(|rank| self.sequences.get(&rank.id));
        running.filter(|sequence| sequence.remaining() == 1).map(|sequence| sequence.rank.id).collect()
    }

    /// Gives every decode a block of its own to write into; the last in rank pays.
    fn grow_decodes(&mut self, plan: &mut Plan, copied: &mut Vec<SequenceId>) {
        for key in self.decodes() {
            // A victim is further down this list, or not on it.
            while self.sequences.get(&key).is_some_and(|sequence| !sequence.table.is_empty()) {
                if self.make_writable(key, plan, copied) {
                    break;
                }
                let Some(last) = self.running.last().copied() else { break };
                self.preempt(last, plan, copied);
            }
        }
    }

    /// Makes the block of the next position exist and belong to this sequence alone. False when that takes a block and
    /// none is free.
    fn make_writable(&mut self, key: SequenceId, plan: &mut Plan, copied: &mut Vec<SequenceId>) -> bool {
        let Some(sequence) = self.sequences.get_mut(&key) else { return true };
        let block = sequence.computed / self.config.block_size;
        let shared = match sequence.table.get(block) {
            Some(own) if self.blocks.pool.owners(*own) == 1 => return true,
            Some(shared) => Some(*shared),
            None => None,
        };
        let Some(to) = self.blocks.take() else { return false };
        match shared {
            None => sequence.table.push(to),
            Some(from) => {
                sequence.table[block] = to;
                self.blocks.pool.release(from);
                plan.copies.push(CopyBlock { from, to });
                copied.push(key);
            }
        }
        true
    }

    /// Takes all blocks from a running sequence and queues it again, at its old rank.
    fn preempt(&mut self, rank: Rank, plan: &mut Plan, copied: &mut Vec<SequenceId>) {
        let Some(sequence) = self.sequences.get_mut(&rank.id) else { return };
        let table = std::mem::take(&mut sequence.table);
        sequence.computed = 0;
        plan.preempted.extend(&sequence.choices);
        // A copy into a block that is free again is wasted, and two copies into one block would be hard to read.
        plan.copies.retain(|copy| !table.contains(&copy.to));
        copied.retain(|key| *key != rank.id);
        self.blocks.release_all(&table);
        self.running.remove(&rank);
        self.waiting.insert(rank);
        self.counters.preemptions += 1;
    }

    /// Starts what waits, in rank order. One that does not fit is passed by others only while it is young: after
    /// `ageing_ms` everything behind it waits with it, so that its blocks come together.
    fn admit(&mut self, plan: &mut Plan, copied: &mut Vec<SequenceId>) {
        let mut after = Bound::Unbounded;
        let mut passed = 0;
        while let Some(rank) = self.waiting.range((after, Bound::Unbounded)).next().copied() {
            after = Bound::Excluded(rank);
            if self.try_admit(rank, plan, copied) {
                continue;
            }
            passed += 1;
            let waited =
                self.sequences.get(&rank.id).map_or(0, |sequence| self.now().since(sequence.arrived));
            if waited >= self.config.ageing_ms || passed == LOOK_PAST {
                return;
            }
        }
    }

    /// Admits one sequence with blocks for all its known tokens, the beginning of them from the cache.
    fn try_admit(&mut self, rank: Rank, plan: &mut Plan, copied: &mut Vec<SequenceId>) -> bool {
        let Some(sequence) = self.sequences.get(&rank.id) else { return false };
        let (known, choices, fresh) = (sequence.known(), sequence.choices.len(), !sequence.started);
        // Most that do not fit are told so here, without a walk over their cached blocks.
        if !self.fits(1, choices) && self.enough_victims(rank, 1, choices).is_none() {
            return false;
        }
        // Shared before anything is counted or evicted: a block found here must neither be taken from under it, nor
        // counted as free.
        let mut table = self.share_cached(rank.id);
        let missing = self.config.blocks_for(known) - table.len();
        if !self.fits(missing, choices) && !self.make_room(rank, missing, choices, plan, copied) {
            self.blocks.release_all(&table);
            return false;
        }
        let hit_tokens = table.len() * self.config.block_size;
        table.extend((0..missing).map_while(|_| self.blocks.take()));
        self.counters.looked_up_tokens += known as u64;
        self.start(rank, table, hit_tokens);
        self.count_hit(rank.id, hit_tokens, fresh);
        true
    }

    fn start(&mut self, rank: Rank, table: Vec<BlockId>, computed: usize) {
        let Some(sequence) = self.sequences.get_mut(&rank.id) else { return };
        sequence.table = table;
        sequence.computed = computed;
        sequence.started = true;
        self.waiting.remove(&rank);
        self.running.insert(rank);
    }

    /// The longest cached beginning of a sequence, owned.
    fn share_cached(&mut self, key: SequenceId) -> Vec<BlockId> {
        let block_size = self.config.block_size;
        let Some(sequence) = self.sequences.get_mut(&key).filter(|_| self.config.prefix_cache) else {
            return Vec::new();
        };
        let blocks = &mut self.blocks;
        (0..sequence.cacheable_blocks(block_size))
            .map_while(|block| blocks.share_found(&sequence.hash_of(block, block_size)?))
            .collect()
    }

    /// Whether so many blocks and choices fit now. Beside running sequences one block for each of them is left, and one
    /// for each fork to come; else the newcomer would be the first to go when they grow. Alone, all may be used.
    fn fits(&self, missing: usize, choices: usize) -> bool {
        let running = self.running_choices();
        let reserve = if running == 0 { 0 } else { running + choices - 1 };
        running + choices <= self.config.max_running && missing + reserve <= self.blocks.pool.free()
    }

    /// Preempts running sequences of less urgent priority and rank, if that is enough to fit; else nothing.
    fn make_room(
        &mut self,
        rank: Rank,
        missing: usize,
        choices: usize,
        plan: &mut Plan,
        copied: &mut Vec<SequenceId>,
    ) -> bool {
        let Some(victims) = self.enough_victims(rank, missing, choices) else { return false };
        for victim in victims {
            self.preempt(victim, plan, copied);
        }
        self.fits(missing, choices)
    }

    fn enough_victims(&self, rank: Rank, missing: usize, choices: usize) -> Option<Vec<Rank>> {
        let priority = self.sequences.get(&rank.id)?.priority;
        let mut running = self.running_choices();
        let mut free = self.blocks.pool.free();
        let mut victims = Vec::new();
        for victim in self.running.range((Bound::Excluded(rank), Bound::Unbounded)).rev() {
            let sequence = self.sequences.get(&victim.id)?;
            if sequence.priority <= priority {
                continue;
            }
            victims.push(*victim);
            running -= sequence.choices.len();
            // Blocks with other owners are not freed for sure, so they are not counted.
            free += sequence.table.iter().filter(|block| self.blocks.pool.owners(**block) == 1).count();
            let reserve = if running == 0 { 0 } else { running + choices - 1 };
            if running + choices <= self.config.max_running && missing + reserve <= free {
                return Some(victims);
            }
        }
        None
    }

    /// The rows of one share, as plain data.
    fn work(&self, share: &Share) -> Option<Work> {
        let sequence = self.sequences.get(&share.key)?;
        let (start, end) = (sequence.computed, sequence.computed + share.tokens);
        Some(Work {
            sequence: *sequence.choices.first()?,
            start,
            tokens: sequence.tokens(start..end),
            table: sequence.table[..self.config.blocks_for(end)].to_vec(),
            sample: if end == sequence.known() { sequence.choices.clone() } else { Vec::new() },
        })
    }
}
