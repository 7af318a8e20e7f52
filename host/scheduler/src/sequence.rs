//! Token ids, block table, counters of one sequence; and the request it belongs to.

use std::ops::Range;
use std::sync::Arc;

use crate::event::Usage;
use crate::prefix::{BlockHash, Chain};
use crate::request::{BlockId, Millis, RequestId, SequenceId};

/// Where a sequence stands among all others, for its whole life: the smaller goes first, the largest is preempted first.
///
/// `due` is the arrival plus `priority * ageing_ms`. Comparing that is the same as comparing priorities that improve by
/// one for every `ageing_ms` of waiting, without a clock and without sorting again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) due: Millis,
    pub(crate) id: SequenceId,
}

/// Tokens and the blocks that hold their keys and values.
///
/// Until the prompt is computed one sequence stands for all choices of its request; then it forks, and each fork has one
/// choice: itself.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    pub(crate) request: RequestId,
    pub(crate) rank: Rank,
    /// That of its request; after all of those when it is only scored.
    pub(crate) priority: u16,
    /// Its rows' logits are all that is wanted.
    pub(crate) score: bool,
    pub(crate) arrived: Millis,
    /// Who samples when the known tokens end; never empty.
    pub(crate) choices: Vec<SequenceId>,
    /// The length at which it ends, in tokens of prompt and continuation.
    pub(crate) limit: usize,
    /// Blocks of the positions `0..`; empty while it waits.
    pub(crate) table: Vec<BlockId>,
    /// Positions whose keys and values are in the table, however they got there: computed here, found in the cache.
    pub(crate) computed: usize,
    /// The most that `computed` has ever been; below it, computing is recomputing.
    pub(crate) reached: usize,
    /// It has held blocks before.
    pub(crate) started: bool,
    prompt: Arc<[u32]>,
    generated: Vec<u32>,
    chain: Chain,
}

/// A request whose choices are not all done.
#[derive(Debug)]
pub(crate) struct Pending {
    /// The sequences that stand for the choices left.
    pub(crate) sequences: Vec<SequenceId>,
    pub(crate) usage: Usage,
}

impl Sequence {
    pub(crate) fn new(request: RequestId, rank: Rank, prompt: Arc<[u32]>, chain: Chain) -> Self {
        Sequence {
            request,
            rank,
            priority: 0,
            score: false,
            arrived: Millis(0),
            choices: vec![rank.id],
            limit: usize::MAX,
            table: Vec::new(),
            computed: 0,
            reached: 0,
            started: false,
            prompt,
            generated: Vec::new(),
            chain,
        }
    }

    /// The same tokens and blocks under another id. The caller counts the new owner of each block.
    pub(crate) fn fork(&self, choice: SequenceId) -> Self {
        let rank = Rank { id: choice, ..self.rank };
        Sequence { rank, choices: vec![choice], ..self.clone() }
    }

    /// Tokens there are: the prompt and what was generated.
    pub(crate) fn known(&self) -> usize {
        self.prompt.len() + self.generated.len()
    }

    /// Known tokens that are not computed. One is a decode; more is prefill.
    pub(crate) fn remaining(&self) -> usize {
        self.known() - self.computed
    }

    /// Whether its next row is its newest token's. All else is reading.
    pub(crate) fn decodes(&self) -> bool {
        self.remaining() == 1 && !self.score
    }

    /// Tokens generated.
    pub(crate) fn generated(&self) -> usize {
        self.generated.len()
    }

    /// Takes a sampled token.
    pub(crate) fn push(&mut self, token: u32) {
        self.generated.push(token);
    }

    /// Token ids of some positions, all of them known.
    pub(crate) fn tokens(&self, positions: Range<usize>) -> impl Iterator<Item = u32> + '_ {
        positions.map(|position| self.token(position))
    }

    /// The hash of everything up to the end of a block, when all tokens of it are known. Each block is hashed once in
    /// the life of a sequence, preempted or not. Blocks of one that is scored are nobody else's, and have none.
    pub(crate) fn hash_of(&mut self, block: usize, block_size: usize) -> Option<BlockHash> {
        if self.score || (block + 1).saturating_mul(block_size) > self.known() {
            return None;
        }
        while self.chain.len() <= block {
            let start = self.chain.len() * block_size;
            let Sequence { prompt, generated, chain, .. } = self;
            chain.push((start..start + block_size).map(|position| token_at(prompt, generated, position)));
        }
        self.chain.get(block)
    }

    /// The name of what is computed of the block that is not full yet, if anything is.
    pub(crate) fn tail(&mut self, block_size: usize) -> Option<BlockHash> {
        let whole = self.computed / block_size;
        self.begun_after(whole, self.computed, block_size)
    }

    /// The names under which the beginning of its block after `whole` whole ones may be found, with the number of tokens; the
    /// longest first. One token at least is not in it.
    pub(crate) fn tails_after(
        &mut self,
        whole: usize,
        block_size: usize,
    ) -> impl Iterator<Item = (usize, BlockHash)> + '_ {
        let start = whole * block_size;
        let most = (self.known() - 1).saturating_sub(start).min(block_size - 1);
        (1..=most)
            .rev()
            .filter_map(move |some| Some((some, self.begun_after(whole, start + some, block_size)?)))
    }

    fn begun_after(&mut self, whole: usize, end: usize, block_size: usize) -> Option<BlockHash> {
        let start = whole * block_size;
        if self.score || start == end {
            return None;
        }
        whole.checked_sub(1).map(|last| self.hash_of(last, block_size));
        let Sequence { prompt, generated, chain, .. } = self;
        chain.tail(whole, (start..end).map(|position| token_at(prompt, generated, position)))
    }

    /// Whole blocks that may come from the cache: at least one token must be computed, since somebody waits for logits. Of
    /// one that is scored all must be.
    pub(crate) fn cacheable_blocks(&self, block_size: usize) -> usize {
        if self.score { 0 } else { (self.known() - 1) / block_size }
    }

    fn token(&self, position: usize) -> u32 {
        token_at(&self.prompt, &self.generated, position)
    }
}

fn token_at(prompt: &[u32], generated: &[u32], position: usize) -> u32 {
    match position.checked_sub(prompt.len()) {
        None => prompt[position],
        Some(beyond) => generated[beyond],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(prompt: &[u32], generated: &[u32]) -> Sequence {
        let rank = Rank { due: Millis(0), id: SequenceId(0) };
        let mut sequence = Sequence::new(RequestId(0), rank, prompt.into(), Chain::new(&[0; 32], 2));
        generated.iter().for_each(|token| sequence.push(*token));
        sequence
    }

    #[test]
    fn the_hash_does_not_know_where_the_prompt_ended() {
        let mut whole = sequence(&[1, 2, 3, 4, 5], &[]);
        let mut grown = sequence(&[1], &[2, 3, 4, 5]);
        assert_eq!(whole.hash_of(1, 2), grown.hash_of(1, 2));
        assert!(whole.tokens(1..4).eq(grown.tokens(1..4)));
        assert_eq!(whole.hash_of(2, 2), None);
    }

    #[test]
    fn a_prompt_of_whole_blocks_leaves_its_last_one_to_compute() {
        assert_eq!(sequence(&[1, 2, 3, 4], &[]).cacheable_blocks(2), 1);
        assert_eq!(sequence(&[1, 2, 3, 4, 5], &[]).cacheable_blocks(2), 2);
        assert_eq!(sequence(&[1], &[]).cacheable_blocks(2), 0);
    }
}
