//! The invariants, checked from scratch.

use std::collections::{BTreeMap, BTreeSet};

use crate::request::BlockId;
use crate::scheduler::Scheduler;

impl Scheduler {
    /// Checks everything that must hold between two calls, by counting it all again. For tests and for debugging: takes
    /// time with everything the scheduler holds.
    ///
    /// # Errors
    /// The first thing that is wrong, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.audit_queues()?;
        self.audit_tables()?;
        self.audit_owners()?;
        self.audit_cache()
    }

    fn audit_queues(&self) -> Result<(), String> {
        let in_requests: BTreeSet<_> =
            self.requests.values().flat_map(|pending| &pending.sequences).copied().collect();
        let all: BTreeSet<_> = self.sequences.keys().copied().collect();
        ensure(in_requests == all, || format!("requests name {in_requests:?}, there are {all:?}"))?;
        let mut choices = BTreeMap::new();
        for (key, sequence) in &self.sequences {
            let rank = sequence.rank;
            let queued =
                usize::from(self.waiting.contains(&rank)) + usize::from(self.running.contains(&rank));
            ensure(queued == 1, || format!("{key} is in {queued} queues"))?;
            ensure(rank.id == *key, || format!("{key} has the rank of {}", rank.id))?;
            ensure(!sequence.choices.is_empty(), || format!("{key} stands for nobody"))?;
            choices.extend(sequence.choices.iter().map(|choice| (*choice, sequence.request)));
        }
        ensure(self.waiting.len() + self.running.len() == all.len(), || {
            "a queue names what is gone".to_owned()
        })?;
        let known: BTreeMap<_, _> =
            self.choices.iter().map(|(choice, request)| (*choice, *request)).collect();
        ensure(known == choices, || format!("choices are {choices:?}, known are {known:?}"))?;
        let running = self.running_choices();
        ensure(running <= self.config.max_running, || format!("{running} sequences run"))
    }

    fn audit_tables(&self) -> Result<(), String> {
        for (key, sequence) in &self.sequences {
            let held = sequence.table.len();
            if self.waiting.contains(&sequence.rank) {
                ensure(held == 0 && sequence.computed == 0, || format!("{key} waits with {held} blocks"))?;
                continue;
            }
            ensure(sequence.remaining() > 0, || format!("{key} has nothing to compute"))?;
            ensure(sequence.known() < sequence.limit, || format!("{key} is over its limit"))?;
            let (least, most) =
                (self.config.blocks_for(sequence.computed), self.config.blocks_for(sequence.known()));
            ensure((least..=most).contains(&held), || {
                format!("{key} holds {held} blocks, not {least} to {most}")
            })?;
        }
        Ok(())
    }

    fn audit_owners(&self) -> Result<(), String> {
        let mut owners: BTreeMap<BlockId, u32> = BTreeMap::new();
        for (key, sequence) in &self.sequences {
            let distinct: BTreeSet<_> = sequence.table.iter().collect();
            ensure(distinct.len() == sequence.table.len(), || format!("{key} has a block twice"))?;
            sequence.table.iter().for_each(|block| *owners.entry(*block).or_default() += 1);
        }
        let free: BTreeSet<_> = self.blocks.pool.free_in_order().collect();
        let listed = self.blocks.pool.free_in_order().count();
        let (pool, total) = (&self.blocks.pool, self.blocks.pool.len());
        ensure(listed == free.len() && listed == pool.free(), || format!("{listed} free blocks are listed"))?;
        ensure(owners.len() + listed == total, || {
            format!("{} used and {listed} free of {total}", owners.len())
        })?;
        for block in (0..total as u32).map(BlockId) {
            let (counted, said) = (owners.get(&block).copied().unwrap_or(0), pool.owners(block));
            ensure(counted == said, || format!("{block} has {counted} owners, not {said}"))?;
            ensure((counted == 0) == free.contains(&block), || format!("{block} is used and free"))?;
        }
        Ok(())
    }

    fn audit_cache(&self) -> Result<(), String> {
        let (pool, cache) = (&self.blocks.pool, &self.blocks.cache);
        let holding =
            (0..pool.len() as u32).map(BlockId).filter_map(|block| Some((block, pool.holds(block)?)));
        let mut published = 0;
        for (block, held) in holding {
            published += 1;
            ensure(cache.find(&held.name) == Some(block), || {
                format!("what {block} holds is not found there")
            })?;
        }
        ensure(published == cache.len(), || format!("{published} blocks for {} prefixes", cache.len()))?;
        let cached = pool.free_in_order().filter(|block| pool.holds(*block).is_some()).count();
        ensure(cached == pool.cached(), || format!("{cached} cached blocks, not {}", pool.cached()))
    }
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
