//! Starting what waits: who gets blocks, and who gives them up.

use std::ops::Bound;

use crate::planning::Draft;
use crate::request::{BlockId, SequenceId};
use crate::scheduler::Scheduler;
use crate::sequence::Rank;

/// How many that do not fit are looked past in one step; each look costs a walk over its cached blocks.
const LOOK_PAST: usize = 4;

/// What a newcomer needs.
#[derive(Debug, Clone, Copy)]
struct Space {
    choices: usize,
    blocks: usize,
}

/// What there is.
#[derive(Debug, Clone, Copy)]
struct Room {
    running: usize,
    max_running: usize,
    free_blocks: usize,
}

impl Room {
    /// Beside running sequences one block for each of them is left, and one for each fork to come; else the newcomer
    /// would be the first to go when they grow. Alone, all may be used.
    fn fits(&self, need: Space) -> bool {
        let reserve = if self.running == 0 { 0 } else { self.running + need.choices - 1 };
        self.running + need.choices <= self.max_running && need.blocks + reserve <= self.free_blocks
    }
}

impl Scheduler {
    /// Starts what waits, in rank order. One that does not fit is passed by others only while it is young: after
    /// `ageing_ms` everything behind it waits with it, so that its blocks come together.
    pub(crate) fn admit(&mut self, draft: &mut Draft) {
        let mut after = Bound::Unbounded;
        let mut passed = 0;
        while let Some(rank) = self.waiting.range((after, Bound::Unbounded)).next().copied() {
            after = Bound::Excluded(rank);
            if self.try_admit(rank, draft) {
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
    fn try_admit(&mut self, rank: Rank, draft: &mut Draft) -> bool {
        let Some(sequence) = self.sequences.get(&rank.id) else { return false };
        let (known, fresh) = (sequence.known(), !sequence.started);
        let mut need = Space { choices: sequence.choices.len(), blocks: 1 };
        // Most that do not fit are told so here, without a walk over their cached blocks.
        if !self.room().fits(need) && self.enough_victims(rank, need).is_none() {
            return false;
        }
        // Shared before anything is counted or evicted: a block found here must neither be taken from under it, nor
        // counted as free.
        let mut table = self.share_cached(rank.id);
        let mut hit_tokens = table.len() * self.config.block_size;
        let begun = self.share_begun(rank.id, table.len());
        if let Some((block, tokens)) = begun {
            table.push(block);
            hit_tokens += tokens;
        }
        need.blocks = self.config.blocks_for(known) - table.len();
        if !self.room().fits(need) && !self.make_room(rank, need, draft) {
            self.blocks.release_all(&table);
            return false;
        }
        if let Some((block, _)) = begun {
            self.blocks.conceal(block);
        }
        table.extend((0..need.blocks).map_while(|_| self.blocks.take()));
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

    /// The block that goes on after these, if somebody began it with the same tokens and left; owned, and how many of its positions
    /// are computed. Once it is [concealed](crate::blocks::Blocks::conceal) the rest of it may be written.
    fn share_begun(&mut self, key: SequenceId, whole: usize) -> Option<(BlockId, usize)> {
        let block_size = self.config.block_size;
        let sequence = self.sequences.get_mut(&key).filter(|_| self.config.prefix_cache)?;
        let blocks = &mut self.blocks;
        sequence
            .tails_after(whole, block_size)
            .find_map(|(tokens, name)| Some((blocks.share_unowned(&name)?, tokens)))
    }

    fn room(&self) -> Room {
        let (running, free_blocks) = (self.running_choices(), self.blocks.pool.free());
        Room { running, max_running: self.config.max_running, free_blocks }
    }

    /// Preempts running sequences of less urgent priority and rank, if that is enough to fit; else nothing.
    fn make_room(&mut self, rank: Rank, need: Space, draft: &mut Draft) -> bool {
        let Some(victims) = self.enough_victims(rank, need) else { return false };
        for victim in victims {
            self.preempt(victim, draft);
        }
        self.room().fits(need)
    }

    /// None while a step is on its way: nobody in it may lose blocks.
    fn enough_victims(&self, rank: Rank, need: Space) -> Option<Vec<Rank>> {
        if !self.in_flight.is_empty() {
            return None;
        }
        let priority = self.sequences.get(&rank.id)?.priority;
        let mut room = self.room();
        let mut victims = Vec::new();
        for victim in self.running.range((Bound::Excluded(rank), Bound::Unbounded)).rev() {
            let sequence = self.sequences.get(&victim.id)?;
            if sequence.priority <= priority {
                continue;
            }
            victims.push(*victim);
            room.running -= sequence.choices.len();
            // Blocks with other owners are not freed for sure, so they are not counted.
            let freed = sequence.table.iter().filter(|block| self.blocks.pool.owners(**block) == 1);
            room.free_blocks += freed.count();
            if room.fits(need) {
                return Some(victims);
            }
        }
        None
    }
}
