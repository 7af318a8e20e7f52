//! Making a plan: decodes grow, the queue is admitted, prefill shares what is left.

use crate::plan::{CopyBlock, Plan, Work};
use crate::prefill::Share;
use crate::request::{Millis, SequenceId};
use crate::scheduler::{InFlight, Scheduler};
use crate::sequence::Rank;

/// A plan in the making.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    copies: Vec<CopyBlock>,
    /// Keys of the sequences that the copies are for.
    copied: Vec<SequenceId>,
    preempted: Vec<SequenceId>,
}

impl Scheduler {
    /// Decides the next step. Blocks are handed out here; tokens count as computed when the plan is committed.
    ///
    /// Something is always planned while a sequence is unfinished: the first in rank can take every block there is.
    pub fn schedule(&mut self, now: Millis) -> Plan {
        self.advance(now);
        self.forget_uncommitted();
        self.step += 1;
        let mut draft = Draft::default();
        self.grow_decodes(&mut draft);
        // What a preemption has just freed is for those that grow. Admitting in the same step would trade places.
        if draft.preempted.is_empty() {
            self.admit(&mut draft);
        }
        let decodes = self.decodes();
        let prefill = self.share_prefill(self.config.max_step_tokens.saturating_sub(decodes.len()));
        let shares = decodes.iter().map(|key| Share { key: *key, tokens: 1 }).chain(prefill);
        let (works, mut plan) = self.plan(shares);
        self.spare.put_keys(decodes);

        let Draft { copies, copied, preempted } = draft;
        let overtaken = self.overtaken(&plan.work, &works);
        let writers = plan.sampling().next().is_some();
        self.in_flight.push(InFlight { step: self.step, works, copied, overtaken, writers });
        plan.copies.extend(copies);
        plan.preempted.extend(preempted);
        plan
    }

    /// The keys and the plan of shares.
    pub(crate) fn plan(&mut self, shares: impl Iterator<Item = Share>) -> (Vec<SequenceId>, Plan) {
        let (mut works, mut plan) = (self.spare.keys(), self.spare.plan());
        plan.step = self.step;
        plan.demoted.append(&mut self.blocks.demoted);
        for share in shares {
            if let Some(work) = self.work(&share) {
                works.push(share.key);
                plan.work.push(work);
            }
        }
        (works, plan)
    }

    /// A plan that was never committed may not have run. What it would have computed is still to be computed; only a
    /// block that it would have filled by copying needs a word: it is computed from its first position.
    fn forget_uncommitted(&mut self) {
        while let Some(lost) = self.in_flight.pop() {
            self.spare.put_keys(lost.works);
            for key in lost.copied {
                if let Some(sequence) = self.sequences.get_mut(&key) {
                    sequence.computed -= sequence.computed % self.config.block_size;
                }
            }
        }
    }

    /// Running sequences that compute one token, in rank order.
    fn decodes(&mut self) -> Vec<SequenceId> {
        let mut keys = self.spare.keys();
        let running = self.running.iter().filter_map(|rank| self.sequences.get(&rank.id));
        keys.extend(running.filter(|sequence| sequence.decodes()).map(|sequence| sequence.rank.id));
        keys
    }

    /// Gives every decode a block of its own to write into; the last in rank pays.
    fn grow_decodes(&mut self, draft: &mut Draft) {
        let decodes = self.decodes();
        for &key in &decodes {
            // A victim is further down this list, or not on it.
            while self.sequences.get(&key).is_some_and(|sequence| !sequence.table.is_empty()) {
                if self.make_writable(key, draft) {
                    break;
                }
                let Some(last) = self.running.last().copied() else { break };
                self.preempt(last, draft);
            }
        }
        self.spare.put_keys(decodes);
    }

    /// Makes the block of the next position exist and belong to this sequence alone. False when that takes a block and
    /// none is free.
    fn make_writable(&mut self, key: SequenceId, draft: &mut Draft) -> bool {
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
                draft.copies.push(CopyBlock { from, to });
                draft.copied.push(key);
            }
        }
        true
    }

    /// Takes all blocks from a running sequence and queues it again, at its old rank.
    pub(crate) fn preempt(&mut self, rank: Rank, draft: &mut Draft) {
        let Some(sequence) = self.sequences.get_mut(&rank.id) else { return };
        let table = std::mem::take(&mut sequence.table);
        sequence.computed = 0;
        draft.preempted.extend(&sequence.choices);
        // A copy into a block that is free again is wasted, and two copies into one block would be hard to read.
        draft.copies.retain(|copy| !table.contains(&copy.to));
        draft.copied.retain(|key| *key != rank.id);
        self.blocks.release_all(&table);
        self.running.remove(&rank);
        self.waiting.insert(rank);
        self.counters.preemptions += 1;
    }

    /// The most urgent priority among those of whose prompts more follows.
    fn overtaken(&self, work: &[Work], keys: &[SequenceId]) -> Option<u16> {
        let read_on = work.iter().zip(keys).filter(|(work, _)| work.sample.is_empty());
        read_on.filter_map(|(_, key)| Some(self.sequences.get(key)?.priority)).min()
    }

    /// The rows of one share, as plain data.
    fn work(&mut self, share: &Share) -> Option<Work> {
        let sequence = self.sequences.get(&share.key)?;
        let (start, end) = (sequence.computed, sequence.computed + share.tokens);
        let mut work = self.spare.work(*sequence.choices.first()?, start);
        work.tokens.extend(sequence.tokens(start..end));
        work.table.extend_from_slice(&sequence.table[..self.config.blocks_for(end)]);
        work.score = sequence.score;
        if end == sequence.known() && !sequence.score {
            work.sample.extend_from_slice(&sequence.choices);
        }
        Some(work)
    }
}
