//! Blocks that come back from elsewhere.

use crate::blocks::Blocks;
use crate::plan::Demoted;
use crate::prefix::BlockHash;
use crate::request::BlockId;
use crate::scheduler::Scheduler;

/// What [`Scheduler::adopt`] made room for. Save `demoted` where that is wanted, then write all of `adopted`, before anything
/// else is asked of the scheduler: others may find those blocks from then on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Adoption {
    /// As in [`Plan::demoted`](crate::Plan::demoted): in place until `adopted` is written.
    pub demoted: Vec<Demoted>,
    /// In the order of the chain.
    pub adopted: Vec<Adopted>,
}

/// A block to be filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adopted {
    /// Which link of the chain.
    pub link: usize,
    /// Where its keys and values are to be written.
    pub block: BlockId,
}

impl Scheduler {
    /// Takes free blocks for those of a chain that the cache has not and somebody else has, and publishes them. `stored` says
    /// of a link by its number whether its keys and values can be written at once.
    ///
    /// Goes from the first link to the first that neither has, or for which no block is free. What is cached of the chain up
    /// to there is never given up for it. Nobody loses a block that is used, and as many are free afterwards as before. Does
    /// nothing while a plan on its way still writes to blocks that have become free, and without a prefix cache.
    pub fn adopt(&mut self, chain: &[BlockHash], stored: impl Fn(usize) -> bool) -> Adoption {
        if !self.config.prefix_cache || self.writes_into_free_blocks() {
            return Adoption::default();
        }
        let blocks = &mut self.blocks;
        let known = |blocks: &Blocks, link: usize| blocks.cache.find(&chain[link]).is_some() || stored(link);
        let reach = (0..chain.len()).take_while(|link| known(blocks, *link)).count();
        let chain = &chain[..reach];
        // Owned before any is taken, so that none of them is.
        let found: Vec<_> = chain.iter().map(|prefix| blocks.share_found(prefix)).collect();
        let mut adoption = Adoption::default();
        for (link, prefix) in chain.iter().enumerate().filter(|(link, _)| found[*link].is_none()) {
            let Some(block) = blocks.take() else { break };
            blocks.publish(block, *prefix);
            adoption.adopted.push(Adopted { link, block });
        }
        let mut adopted = adoption.adopted.iter().peekable();
        let mut table = Vec::with_capacity(reach);
        for (link, found) in found.iter().enumerate() {
            let new = adopted.next_if(|adopted| adopted.link == link).map(|adopted| adopted.block);
            table.extend(found.or(new));
        }
        blocks.release_all(&table);
        adoption.demoted.append(&mut blocks.demoted);
        adoption
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::prefix::block_hashes;

    fn scheduler(blocks: usize) -> Scheduler {
        let config = Config { blocks, block_size: 2, max_running: 4, ..Config::default() };
        Scheduler::new(config).expect("it is valid")
    }

    fn chain(first: u32) -> Vec<BlockHash> {
        let tokens: Vec<u32> = (first..first + 8).collect();
        block_hashes(&tokens, &[0; 32], 2)
    }

    fn links(adoption: &Adoption) -> Vec<usize> {
        adoption.adopted.iter().map(|adopted| adopted.link).collect()
    }

    #[test]
    fn a_chain_is_adopted_up_to_its_first_gap() {
        let mut scheduler = scheduler(8);
        let chain = chain(0);
        let adoption = scheduler.adopt(&chain, |link| link != 2);
        assert_eq!((links(&adoption), adoption.demoted.len()), (vec![0, 1], 0));
        assert_eq!(scheduler.adopt(&chain, |link| link != 2), Adoption::default(), "it is there by now");
        assert_eq!(links(&scheduler.adopt(&chain, |link| link >= 2)), [2, 3], "its beginning is there");
        scheduler.audit().expect("sound");
        assert_eq!((scheduler.stats().free_blocks, scheduler.stats().cached_blocks), (8, 4));
        let found: Vec<_> = chain.iter().map(|prefix| scheduler.find(prefix)).collect();
        assert_eq!(found[1], Some(adoption.adopted[1].block));
        assert!(found.iter().all(Option::is_some));
    }

    #[test]
    fn it_evicts_others_and_never_itself() {
        let mut scheduler = scheduler(3);
        let (one, other) = (chain(0), chain(100));
        scheduler.adopt(&one, |link| link < 2);
        // One blank block, then the end of the other chain and its beginning: no fourth is free.
        let adoption = scheduler.adopt(&other, |_| true);
        assert_eq!(links(&adoption), [0, 1, 2]);
        let demoted: Vec<_> = adoption.demoted.iter().map(|demoted| demoted.prefix).collect();
        assert_eq!(demoted, [one[1], one[0]]);
        scheduler.audit().expect("sound");
        assert_eq!(scheduler.adopt(&other, |_| true), Adoption::default(), "it would have to evict itself");
        assert_eq!(scheduler.stats().cached_blocks, 3);
    }

    #[test]
    fn without_a_prefix_cache_nothing_is_adopted() {
        let config = Config { prefix_cache: false, ..Config::default() };
        let mut scheduler = Scheduler::new(config).expect("it is valid");
        assert_eq!(scheduler.adopt(&chain(0), |_| true), Adoption::default());
    }
}
