//! Blocks on their way between the arena and the tiers below it, on the engine thread.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use jackfield_scheduler::{BlockHash, BlockId, Demoted, tail_hashes};

use crate::runner::ModelRunner;
use crate::shared::Shared;
use crate::tiers::{Tiers, ToKeep};

/// Blocks that are copied because they are to be kept, before each step: who writes waits for them.
const KEPT_BEFORE_A_STEP: usize = 8;
/// Blocks that may wait to be copied.
const WAITING: usize = 1 << 16;

/// Moves blocks. Each of its calls is to be made between two plans, or two layers: then what the scheduler says is cached is
/// whole in the arena, and nobody writes to what is free.
pub(crate) struct Mover {
    shared: Arc<Shared>,
    keeping: VecDeque<ToKeep>,
}

impl Mover {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Mover { shared, keeping: VecDeque::new() }
    }

    /// Nothing waits to be copied.
    pub(crate) fn is_idle(&self) -> bool {
        self.keeping.is_empty()
    }

    /// Copies out what a plan or an adoption takes from the cache, before anything is written there.
    pub(crate) fn save(&self, runner: &ModelRunner, demoted: &[Demoted]) {
        let Some(tiers) = self.shared.tiers() else { return };
        for Demoted { block, prefix, whole } in demoted {
            if !tiers.is_in_memory(prefix) {
                tiers.demote(*prefix, exported(tiers, runner, *block), *whole);
            }
        }
    }

    /// Brings back what memory has of a prompt and the arena has not. `chain`: its blocks that need not be computed, to which the
    /// beginning of another may be added.
    pub(crate) fn adopt(
        &self,
        runner: &mut ModelRunner,
        chain: &[BlockHash],
        prompt: &[u32],
        salt: &[u8; 32],
    ) {
        let Some(tiers) = self.shared.tiers() else { return };
        let mut absent: Vec<usize> = {
            let scheduler = self.shared.scheduler();
            (0..chain.len()).filter(|link| scheduler.find(&chain[*link]).is_none()).collect()
        };
        let mut payloads = tiers.leading(absent.iter().map(|link| chain[*link]));
        let whole = absent.get(payloads.len()).copied().unwrap_or(chain.len());
        let (begun, payload) = tiers.first(&self.begun(chain, whole, prompt, salt)).unzip();
        absent.truncate(payloads.len());
        absent.push(whole);
        payloads.extend(payload);
        if payloads.is_empty() {
            return;
        }
        let payload = |link: &usize| absent.binary_search(link).ok().and_then(|at| payloads.get(at));
        let adoption = self.shared.scheduler().adopt(&chain[..whole], begun, |link| payload(&link).is_some());
        self.save(runner, &adoption.demoted);
        for adopted in &adoption.adopted {
            if let Some(payload) = payload(&adopted.link) {
                runner.import(adopted.block, tiers.store(), payload);
            }
        }
        if let Some(name) = begun.filter(|_| adoption.adopted.last().is_some_and(|last| last.link == whole)) {
            // Whoever takes it writes on in it.
            tiers.forget(&name);
        }
        tiers.count_promoted(adoption.adopted.len());
    }

    /// What the beginning of the block after `whole` ones may be known by, as far as there is more of it than the arena has.
    fn begun(&self, chain: &[BlockHash], whole: usize, prompt: &[u32], salt: &[u8; 32]) -> Vec<BlockHash> {
        let usable = &prompt[..prompt.len().saturating_sub(1)];
        let mut names = tail_hashes(usable, salt, self.shared.block_size, chain, whole);
        let scheduler = self.shared.scheduler();
        let more = names.iter().take_while(|name| scheduler.find(name).is_none()).count();
        names.truncate(more);
        names
    }

    /// Takes note of blocks that are to be copied down.
    pub(crate) fn keep(&mut self, blocks: Vec<ToKeep>) {
        let room = WAITING.saturating_sub(self.keeping.len());
        if let Some(tiers) = self.shared.tiers() {
            tiers.count_dropped(blocks.len().saturating_sub(room));
        }
        self.keeping.extend(blocks.into_iter().take(room));
    }

    /// Copies some of them.
    pub(crate) fn keep_some(&mut self, runner: &ModelRunner) {
        let some = self.keeping.len().min(KEPT_BEFORE_A_STEP);
        self.keep_first(runner, some);
    }

    /// Copies all of them.
    pub(crate) fn keep_all(&mut self, runner: &ModelRunner) {
        self.keep_first(runner, self.keeping.len());
    }

    fn keep_first(&mut self, runner: &ModelRunner, blocks: usize) {
        let Some(tiers) = self.shared.tiers() else { return self.keeping.clear() };
        for block in self.keeping.drain(..blocks) {
            tiers.keep(block, || {
                let block = self.shared.scheduler().find(&block.prefix)?;
                Some(exported(tiers, runner, block))
            });
        }
    }
}

fn exported(tiers: &Tiers, runner: &ModelRunner, block: BlockId) -> Bytes {
    let mut bytes = vec![0; tiers.block_bytes()];
    runner.export(block, tiers.store(), &mut bytes);
    bytes.into()
}
