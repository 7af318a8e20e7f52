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

/// Of a step's prefill, this part is for the first in rank, whoever else is there.
const PART_OF_THE_FIRST: usize = 8;

/// What is left of a step for prefill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    rows: usize,
    /// Where attention counts: positions that may be attended to, a token itself counted as [`per_token`](Self::per_token).
    work: u64,
    per_token: u64,
}

impl Left {
    /// How many tokens from position `start` fit, at most `most`.
    fn fits(&self, start: usize, most: usize) -> usize {
        let most = most.min(self.rows);
        if self.per_token == 0 {
            return most;
        }
        let (mut fits, mut over) = (0, most + 1);
        while over - fits > 1 {
            let middle = fits + (over - fits) / 2;
            if self.cost(start, middle) <= self.work { fits = middle } else { over = middle }
        }
        fits
    }

    pub(crate) fn take(&mut self, start: usize, tokens: usize) {
        self.rows = self.rows.saturating_sub(tokens);
        self.work = self.work.saturating_sub(self.cost(start, tokens));
    }

    fn cost(&self, start: usize, tokens: usize) -> u64 {
        let (start, tokens) = (start as u64, tokens as u64);
        tokens.saturating_mul(self.per_token + start + tokens / 2)
    }

    fn at_most(self, other: &Left) -> Left {
        Left { rows: self.rows.min(other.rows), work: self.work.min(other.work), ..self }
    }

    fn part_of_the_first(self) -> Left {
        let part = PART_OF_THE_FIRST as u64;
        Left { rows: self.rows.div_ceil(PART_OF_THE_FIRST), work: self.work.div_ceil(part), ..self }
    }
}

/// What is left for pieces of prompts, and for prompts that end in the step: nobody gains when those are cut.
struct Budget {
    pieces: Left,
    whole: Left,
}

impl Budget {
    fn take(&mut self, start: usize, tokens: usize) {
        self.pieces.take(start, tokens);
        self.whole.take(start, tokens);
    }
}

impl Scheduler {
    /// Splits what `rows` of a step leave for prefill over the sequences with more than one token to compute.
    ///
    /// The first in rank has an eighth for sure, and one token at least, so that everyone's turn comes and a long prompt
    /// takes at most eight times its time. All else goes to the most urgent and then the shortest, so that a short prompt
    /// hardly waits for a long one. One that ends in this step is not cut to make room for a piece of another.
    pub(crate) fn share_prefill(&mut self, rows: usize) -> Vec<Share> {
        let ranked = self.prefilling();
        let Some(first) = ranked.first().copied() else { return Vec::new() };
        let pieces = self.left_for(self.rows_for_pieces(rows));
        let mut left = Budget { pieces, whole: self.left_for(rows) };
        let mut filling = HashSet::new();
        let mut head = Share { key: first, tokens: 0 };
        head.tokens = self.next_tokens(&head, &pieces.part_of_the_first()).max(1);
        left.take(self.computed(first), head.tokens);
        if rows < self.config.max_step_tokens {
            // Who writes beside them waits for whole prompts too. (The part of the first comes on top, or it would cut one of
            // just that size.)
            left.whole = left.whole.at_most(&pieces);
        }
        self.note_filling(&head, &mut filling);

        let mut shares = Vec::new();
        for key in self.shortest_first(&ranked) {
            if key == first {
                self.lengthen(&mut head, &mut left);
                self.note_filling(&head, &mut filling);
                continue;
            }
            let mut share = Share { key, tokens: 0 };
            if self.comes_by_itself(key, &filling) {
                continue;
            }
            self.lengthen(&mut share, &mut left);
            if share.tokens > 0 {
                self.note_filling(&share, &mut filling);
                shares.push(share);
            }
        }
        // What others left for a block to come by itself.
        self.lengthen(&mut head, &mut left);
        shares.insert(0, head);
        shares
    }

    /// For pieces of prompts: who comes next waits for them, or at least for a layer of them.
    pub(crate) fn rows_for_pieces(&self, rows: usize) -> usize {
        if self.has_company() { rows.min(self.config.busy_prefill_tokens) } else { rows }
    }

    pub(crate) fn left_for(&self, tokens: usize) -> Left {
        let per_token = self.config.positions_per_token.map_or(0, |positions| positions.get() as u64);
        Left { rows: tokens, work: (tokens as u64).saturating_mul(per_token), per_token }
    }

    /// How many more tokens of a sequence fit beyond its share.
    pub(crate) fn next_tokens(&self, share: &Share, left: &Left) -> usize {
        let Some(sequence) = self.sequences.get(&share.key) else { return 0 };
        left.fits(sequence.computed + share.tokens, sequence.remaining() - share.tokens)
    }

    fn lengthen(&self, share: &mut Share, left: &mut Budget) {
        let remaining = self.remaining(share.key) - share.tokens;
        let whole = self.next_tokens(share, &left.whole);
        let more = if whole == remaining { whole } else { self.next_tokens(share, &left.pieces) };
        left.take(self.computed(share.key) + share.tokens, more);
        share.tokens += more;
    }

    pub(crate) fn computed(&self, key: SequenceId) -> usize {
        self.sequences.get(&key).map_or(0, |sequence| sequence.computed)
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
        let reads = |key: &SequenceId| self.sequences.get(key).is_some_and(|sequence| !sequence.decodes());
        let running: Vec<_> = self.running.iter().map(|rank| rank.id).filter(reads).collect();
        for key in &running {
            while self.take_over(*key) {}
        }
        running
    }

    pub(crate) fn remaining(&self, key: SequenceId) -> usize {
        self.sequences.get(&key).map_or(0, |sequence| sequence.remaining())
    }

    pub(crate) fn shortest_first(&self, keys: &[SequenceId]) -> Vec<SequenceId> {
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
    pub(crate) fn take_over(&mut self, key: SequenceId) -> bool {
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

    /// Somebody computes the same block in this very step: it can be taken over in the next one.
    pub(crate) fn comes_by_itself(&mut self, key: SequenceId, filling: &HashSet<BlockHash>) -> bool {
        self.next_block(key).is_some_and(|(_, prefix)| filling.contains(&prefix))
    }

    pub(crate) fn note_filling(&mut self, share: &Share, filling: &mut HashSet<BlockHash>) {
        let block_size = self.config.block_size;
        let Some(sequence) = self.sequences.get_mut(&share.key).filter(|_| self.config.prefix_cache) else {
            return;
        };
        let blocks = sequence.computed / block_size..(sequence.computed + share.tokens).div_ceil(block_size);
        filling.extend(blocks.map_while(|block| sequence.hash_of(block, block_size)));
    }
}
