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
    /// of a link by its number whether its keys and values can be written at once. Behind a chain of which nothing is missing then
    /// comes what was left [`begun`](crate::tail_hashes) of the next block, as its last link.
    ///
    /// Goes from the first link to the first that neither has, or for which no block is free. What is cached of the chain up
    /// to there is never given up for it. Nobody loses a block that is used, and as many are free afterwards as before. Does
    /// nothing while a plan on its way still writes to blocks that have become free, and without a prefix cache.
    pub fn adopt(
        &mut self,
        chain: &[BlockHash],
        begun: Option<BlockHash>,
        stored: impl Fn(usize) -> bool,
    ) -> Adoption {
        if !self.config.prefix_cache || self.writes_into_free_blocks() {
            return Adoption::default();
        }
        let blocks = &mut self.blocks;
        let names: Vec<_> = chain.iter().copied().chain(begun).collect();
        let known = |blocks: &Blocks, link: usize| blocks.cache.find(&names[link]).is_some() || stored(link);
        let reach = (0..names.len()).take_while(|link| known(blocks, *link)).count();
        // Owned before any is taken, so that none of them is.
        let found: Vec<_> = names[..reach].iter().map(|name| blocks.share_found(name)).collect();
        let mut adoption = Adoption::default();
        let mut table = Vec::with_capacity(reach);
        for (link, (name, found)) in names.iter().zip(&found).enumerate() {
            if let Some(block) = *found {
                table.push(block);
                continue;
            }
            let Some(block) = blocks.take() else { break };
            match chain.get(link) {
                Some(_) => blocks.publish(block, *name),
                None => blocks.publish_begun(block, *name),
            }
            adoption.adopted.push(Adopted { link, block });
            table.push(block);
        }
        table.extend(found.iter().skip(table.len()).flatten());
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
        let adoption = scheduler.adopt(&chain, None, |link| link != 2);
        assert_eq!((links(&adoption), adoption.demoted.len()), (vec![0, 1], 0));
        assert_eq!(
            scheduler.adopt(&chain, None, |link| link != 2),
            Adoption::default(),
            "it is there by now"
        );
        assert_eq!(links(&scheduler.adopt(&chain, None, |link| link >= 2)), [2, 3], "its beginning is there");
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
        scheduler.adopt(&one, None, |link| link < 2);
        // One blank block, then the end of the other chain and its beginning: no fourth is free.
        let adoption = scheduler.adopt(&other, None, |_| true);
        assert_eq!(links(&adoption), [0, 1, 2]);
        let demoted: Vec<_> = adoption.demoted.iter().map(|demoted| demoted.prefix).collect();
        assert_eq!(demoted, [one[1], one[0]]);
        scheduler.audit().expect("sound");
        assert_eq!(
            scheduler.adopt(&other, None, |_| true),
            Adoption::default(),
            "it would have to evict itself"
        );
        assert_eq!(scheduler.stats().cached_blocks, 3);
    }

    #[test]
    fn without_a_prefix_cache_nothing_is_adopted() {
        let config = Config { prefix_cache: false, ..Config::default() };
        let mut scheduler = Scheduler::new(config).expect("it is valid");
        assert_eq!(scheduler.adopt(&chain(0), None, |_| true), Adoption::default());
    }
}
