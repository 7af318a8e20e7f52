//! Sharing the prefill budget of one step.

use std::collections::HashSet;

use crate::prefix::BlockHash;
use crate::request::SequenceId;
use crate::scheduler::Scheduler;

/// Tokens of one sequence in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) key: SequenceId,
    pub(crate) tokens: usize,
}

impl Scheduler {
    /// Splits `budget` tokens over the sequences with more than one token to compute.
    ///
    /// Half is for the first in rank, so that everyone's turn comes and a long prompt takes at most twice its time. The
    /// other half goes to the most urgent and then the shortest of the rest, so that a short prompt never waits for a
    /// long one. What is over goes to the first again.
    pub(crate) fn share_prefill(&mut self, budget: usize) -> Vec<Share> {
        let ranked = self.prefilling();
        let Some((first, rest)) = ranked.split_first() else { return Vec::new() };
        let mut filling = HashSet::new();
        let mut head = Share { key: *first, tokens: self.remaining(*first).min(budget.div_ceil(2)) };
        self.note_filling(&head, &mut filling);

        let mut left = budget - head.tokens;
        let mut shares = Vec::new();
        for key in self.shortest_first(rest) {
            let share = Share { key, tokens: self.remaining(key).min(left) };
            if share.tokens == 0 {
                break;
            }
            if self.comes_by_itself(key, &filling) {
                continue;
            }
            left -= share.tokens;
            self.note_filling(&share, &mut filling);
            shares.push(share);
        }
        head.tokens += (self.remaining(*first) - head.tokens).min(left);
        shares.insert(0, head);
        shares
    }

    /// Counts tokens that came from the cache. A request is told of those of its first pass over the prompt only.
    pub(crate) fn count_hit(&mut self, key: SequenceId, tokens: usize, first_pass: bool) {
        self.counters.hit_tokens += tokens as u64;
        let Some(sequence) = self.sequences.get_mut(&key) else { return };
        sequence.reached = sequence.reached.max(sequence.computed);
        if first_pass && let Some(pending) = self.requests.get_mut(&sequence.request) {
            pending.usage.cached_tokens += tokens;
        }
    }

    /// In rank order. What others have published since the last step is taken over first.
    fn prefilling(&mut self) -> Vec<SequenceId> {
        let running: Vec<_> =
            self.running.iter().map(|rank| rank.id).filter(|key| self.remaining(*key) > 1).collect();
        for key in &running {
            while self.adopt(*key) {}
        }
        running
    }

    fn remaining(&self, key: SequenceId) -> usize {
        self.sequences.get(&key).map_or(0, |sequence| sequence.remaining())
    }

    fn shortest_first(&self, keys: &[SequenceId]) -> Vec<SequenceId> {
        let mut keys = keys.to_vec();
        keys.sort_by_key(|key| self.sequences.get(key).map(|s| (s.priority, s.remaining(), s.rank)));
        keys
    }

    /// The hash of the block a sequence is about to begin, when it might come from elsewhere.
    fn next_block(&mut self, key: SequenceId) -> Option<(usize, BlockHash)> {
        let block_size = self.config.block_size;
        let sequence = self.sequences.get_mut(&key).filter(|_| self.config.prefix_cache)?;
        let block = sequence.computed / block_size;
        let begins =
            sequence.computed.is_multiple_of(block_size) && block < sequence.cacheable_blocks(block_size);
        Some((block, sequence.hash_of(block, block_size).filter(|_| begins)?))
    }

    /// Replaces the next, still empty block of a sequence by a published one of the same prefix.
    fn adopt(&mut self, key: SequenceId) -> bool {
        let Some((block, prefix)) = self.next_block(key) else { return false };
        let Some(found) = self.blocks.share_found(&prefix) else { return false };
        let Some(sequence) = self.sequences.get_mut(&key) else { return false };
        let blank = std::mem::replace(&mut sequence.table[block], found);
        let first_pass = sequence.reached == sequence.computed;
        sequence.computed += self.config.block_size;
        self.blocks.pool.release(blank);
        self.count_hit(key, self.config.block_size, first_pass);
        true
    }

    /// Somebody computes the same block in this very step: it can be adopted in the next one.
    fn comes_by_itself(&mut self, key: SequenceId, filling: &HashSet<BlockHash>) -> bool {
        self.next_block(key).is_some_and(|(_, prefix)| filling.contains(&prefix))
    }

    fn note_filling(&mut self, share: &Share, filling: &mut HashSet<BlockHash>) {
        let block_size = self.config.block_size;
        let Some(sequence) = self.sequences.get_mut(&share.key).filter(|_| self.config.prefix_cache) else {
            return;
        };
        let blocks = sequence.computed / block_size..(sequence.computed + share.tokens).div_ceil(block_size);
        filling.extend(blocks.map_while(|block| sequence.hash_of(block, block_size)));
    }
}
