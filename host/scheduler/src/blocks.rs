//! The pool and the cache over it, kept in step with each other.

use crate::plan::Demoted;
use crate::pool::{BlockPool, Held};
use crate::prefix::{BlockHash, PrefixCache};
use crate::request::BlockId;

/// Blocks to own, and the prefixes found in them.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub(crate) pool: BlockPool,
    pub(crate) cache: PrefixCache,
    /// Counter: cached blocks given to something else.
    pub(crate) evicted: u64,
    /// Those of them that nobody was told of: what they held is in place until something is written there.
    pub(crate) demoted: Vec<Demoted>,
}

impl Blocks {
    pub(crate) fn new(count: usize) -> Self {
        Blocks { pool: BlockPool::new(count), cache: PrefixCache::default(), evicted: 0, demoted: Vec::new() }
    }

    /// A block with one owner and no content.
    pub(crate) fn take(&mut self) -> Option<BlockId> {
        let taken = self.pool.take()?;
        if let Some(Held { name, whole }) = taken.evicted {
            self.cache.forget(&name);
            self.evicted += 1;
            self.demoted.push(Demoted { block: taken.block, prefix: name, whole });
        }
        Some(taken.block)
    }

    /// One more owner for the block that holds this prefix, if there is one.
    pub(crate) fn share_found(&mut self, prefix: &BlockHash) -> Option<BlockId> {
        let block = self.cache.find(prefix)?;
        self.pool.share(block);
        Some(block)
    }

    /// One more owner for a block that nobody owns and that holds what goes by this name, if there is one.
    pub(crate) fn share_unowned(&mut self, name: &BlockHash) -> Option<BlockId> {
        let block = self.cache.find(name).filter(|block| self.pool.owners(*block) == 0)?;
        self.pool.share(block);
        Some(block)
    }

    /// Nobody finds this block any more, so that its owner may write behind what it holds.
    pub(crate) fn conceal(&mut self, block: BlockId) {
        if let Some(held) = self.pool.conceal(block) {
            self.cache.forget(&held.name);
        }
    }

    /// Gives up a table. The last block goes first, so that of a prefix that nobody uses the end is evicted before the
    /// beginning, without which the end could not be found.
    pub(crate) fn release_all(&mut self, table: &[BlockId]) {
        for block in table.iter().rev() {
            self.pool.release(*block);
        }
    }

    /// Lets others find a whole, computed block. Does nothing when another block holds the same prefix, or this block
    /// has been published before.
    pub(crate) fn publish(&mut self, block: BlockId, prefix: BlockHash) {
        self.publish_as(block, Held { name: prefix, whole: true });
    }

    /// The same of the beginning of a block, to which nobody writes any more until it is [concealed](Self::conceal).
    pub(crate) fn publish_begun(&mut self, block: BlockId, name: BlockHash) {
        self.publish_as(block, Held { name, whole: false });
    }

    fn publish_as(&mut self, block: BlockId, held: Held) {
        if self.pool.holds(block).is_none() && self.cache.publish(held.name, block) {
            self.pool.publish(block, held);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefix::Chain;

    #[test]
    fn the_end_of_an_unused_prefix_is_evicted_first() {
        let mut blocks = Blocks::new(3);
        let mut chain = Chain::new(&[0; 32], 1);
        let table: Vec<_> = (0..3).map(|_| blocks.take().unwrap()).collect();
        let links: Vec<_> = (0..3).map(|token| chain.push([token].into_iter())).collect();
        table.iter().zip(&links).for_each(|(block, link)| blocks.publish(*block, *link));
        blocks.release_all(&table);

        assert_eq!(blocks.take(), Some(table[2]));
        assert_eq!(blocks.share_found(&links[2]), None);
        assert_eq!(blocks.share_found(&links[1]), Some(table[1]));
        assert_eq!(blocks.evicted, 1);
        assert_eq!(blocks.demoted, [Demoted { block: table[2], prefix: links[2], whole: true }]);
    }

    #[test]
    fn a_second_block_of_the_same_prefix_goes_blank() {
        let mut blocks = Blocks::new(2);
        let link = Chain::new(&[0; 32], 1).push([5].into_iter());
        let (first, second) = (blocks.take().unwrap(), blocks.take().unwrap());
        blocks.publish(first, link);
        blocks.publish(second, link);
        blocks.release_all(&[first, second]);
        assert_eq!((blocks.pool.free(), blocks.pool.cached(), blocks.cache.len()), (2, 1, 1));
        assert_eq!(blocks.share_found(&link), Some(first));
    }
}
