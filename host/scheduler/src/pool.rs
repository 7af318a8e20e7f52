//! The block pool: who owns which block, and in which order free ones are given out.

use crate::prefix::BlockHash;
use crate::request::BlockId;

/// All blocks with their owners. A block is *used* (one owner or more) or *free*; a free block is *blank* or *cached*,
/// that is: still full of a published prefix. Blank blocks are given out first, then the cached one unused for longest.
///
/// Constant time for every operation.
#[derive(Debug)]
pub(crate) struct BlockPool {
    blocks: Vec<Block>,
    blank: Vec<BlockId>,
    /// Free and cached blocks from the oldest to the newest, linked through `blocks`.
    oldest: Option<BlockId>,
    newest: Option<BlockId>,
    cached: usize,
}

#[derive(Debug, Clone, Default)]
struct Block {
    owners: u32,
    /// What it holds, once that is published.
    holds: Option<Held>,
    older: Option<BlockId>,
    newer: Option<BlockId>,
}

/// What others may find in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) name: BlockHash,
    /// All of its positions count; else the first of them do, which the name is of.
    pub(crate) whole: bool,
}

/// A block with one owner, and what was lost with it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) block: BlockId,
    pub(crate) evicted: Option<Held>,
}

impl BlockPool {
    /// `count` blank blocks; fits in 32 bits by [`Config::validate`](crate::Config::validate).
    pub(crate) fn new(count: usize) -> Self {
        let blank = (0..count as u32).rev().map(BlockId).collect();
        BlockPool { blocks: vec![Block::default(); count], blank, oldest: None, newest: None, cached: 0 }
    }

    /// Blocks in all.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Blocks nobody owns.
    pub(crate) fn free(&self) -> usize {
        self.blank.len() + self.cached
    }

    /// Free blocks that hold a published prefix.
    pub(crate) fn cached(&self) -> usize {
        self.cached
    }

    /// Owners of a block.
    pub(crate) fn owners(&self, block: BlockId) -> u32 {
        self.at(block).owners
    }

    /// What is published of a block.
    pub(crate) fn holds(&self, block: BlockId) -> Option<Held> {
        self.at(block).holds
    }

    /// Gives out a free block to one owner; `None` when all are used.
    pub(crate) fn take(&mut self) -> Option<Taken> {
        let taken = match self.blank.pop() {
            Some(block) => Taken { block, evicted: None },
            None => {
                let block = self.oldest?;
                self.unlink(block);
                Taken { block, evicted: self.at_mut(block).holds.take() }
            }
        };
        self.at_mut(taken.block).owners = 1;
        Some(taken)
    }

    /// One more owner for a block that is used or cached.
    pub(crate) fn share(&mut self, block: BlockId) {
        if self.at(block).owners == 0 {
            self.unlink(block);
        }
        self.at_mut(block).owners += 1;
    }

    /// One owner less. The last one leaves it blank or, when it holds a prefix, the newest of the cached.
    pub(crate) fn release(&mut self, block: BlockId) {
        let state = self.at_mut(block);
        state.owners -= 1;
        match (state.owners, state.holds) {
            (0, None) => self.blank.push(block),
            (0, Some(_)) => self.link(block),
            _ => {}
        }
    }

    /// What a used block holds stays, and is known by its name from now on.
    pub(crate) fn publish(&mut self, block: BlockId, held: Held) {
        self.at_mut(block).holds = Some(held);
    }

    /// A used block holds nothing that others know of from now on. Says what it was known by.
    pub(crate) fn conceal(&mut self, block: BlockId) -> Option<Held> {
        self.at_mut(block).holds.take()
    }

    /// The free blocks in the order in which they will be given out.
    pub(crate) fn free_in_order(&self) -> impl Iterator<Item = BlockId> + '_ {
        let cached = std::iter::successors(self.oldest, |block| self.at(*block).newer);
        self.blank.iter().rev().copied().chain(cached)
    }

    fn at(&self, block: BlockId) -> &Block {
        &self.blocks[block.0 as usize]
    }

    fn at_mut(&mut self, block: BlockId) -> &mut Block {
        &mut self.blocks[block.0 as usize]
    }

    fn link(&mut self, block: BlockId) {
        let before = self.newest.replace(block);
        let state = self.at_mut(block);
        (state.older, state.newer) = (before, None);
        match before {
            Some(before) => self.at_mut(before).newer = Some(block),
            None => self.oldest = Some(block),
        }
        self.cached += 1;
    }

    fn unlink(&mut self, block: BlockId) {
        let state = self.at_mut(block);
        let (older, newer) = (state.older.take(), state.newer.take());
        match older {
            Some(older) => self.at_mut(older).newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.at_mut(newer).older = older,
            None => self.newest = older,
        }
        self.cached -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefix::Chain;

    fn hashes(count: u32) -> Vec<Held> {
        let mut chain = Chain::new(&[0; 32], 1);
        (0..count).map(|token| Held { name: chain.push([token].into_iter()), whole: true }).collect()
    }

    fn order(pool: &BlockPool) -> Vec<u32> {
        pool.free_in_order().map(|block| block.0).collect()
    }

    #[test]
    fn blank_blocks_go_before_cached_ones_and_those_by_age() {
        let mut pool = BlockPool::new(4);
        let taken: Vec<_> = (0..4).map(|_| pool.take().unwrap().block).collect();
        assert_eq!(pool.take(), None);
        let known = hashes(3);
        for (block, hash) in taken.iter().zip(&known) {
            pool.publish(*block, *hash);
        }
        for block in [2, 0, 3, 1] {
            pool.release(BlockId(block));
        }
        assert_eq!(order(&pool), [3, 2, 0, 1]);
        assert_eq!((pool.free(), pool.cached()), (4, 3));

        pool.take();
        assert_eq!(pool.take(), Some(Taken { block: BlockId(2), evicted: Some(known[2]) }));
        assert_eq!(pool.holds(BlockId(2)), None);
    }

    #[test]
    fn a_cached_block_comes_back_with_its_content_and_is_the_newest_afterwards() {
        let mut pool = BlockPool::new(3);
        let known = hashes(3);
        for hash in &known {
            let block = pool.take().unwrap().block;
            pool.publish(block, *hash);
        }
        (0..3).for_each(|block| pool.release(BlockId(block)));
        pool.share(BlockId(1));
        assert_eq!(order(&pool), [0, 2]);
        pool.share(BlockId(1));
        pool.release(BlockId(1));
        assert_eq!((pool.owners(BlockId(1)), order(&pool)), (1, vec![0, 2]));
        pool.release(BlockId(1));
        assert_eq!((pool.holds(BlockId(1)), order(&pool)), (Some(known[1]), vec![0, 2, 1]));
    }

    #[test]
    fn the_list_survives_emptying_from_both_ends() {
        let mut pool = BlockPool::new(2);
        let known = hashes(2);
        for hash in &known {
            let block = pool.take().unwrap().block;
            pool.publish(block, *hash);
        }
        (0..2).for_each(|block| pool.release(BlockId(block)));
        pool.share(BlockId(1));
        pool.share(BlockId(0));
        assert_eq!((order(&pool), pool.free()), (vec![], 0));
        pool.release(BlockId(0));
        assert_eq!((order(&pool), pool.free()), (vec![0], 1));
    }
}
