//! A step of the model: from a plan of sequences to a row of logits for each that samples.

use std::sync::Arc;

use jackfield_kernels::{KvArena, KvSpan, KvStore};
use jackfield_model::{Batch, ForwardError, Model, Pass, Scratch};
use jackfield_scheduler::{BlockId, Plan, Work};

use crate::config::EngineConfig;

/// The model with its KV and its working memory.
pub(crate) struct ModelRunner {
    model: Arc<Model>,
    kv: KvArena,
    /// What no step uses now.
    memory: Vec<Memory>,
    logits: Vec<f32>,
    /// Of a few rows that are scored.
    piece: Vec<f32>,
}

/// What a step works in, kept between steps so that none allocates.
pub(crate) struct Memory {
    pub(crate) scratch: Scratch,
    pub(crate) inputs: Inputs,
    /// Empty between steps.
    pub(crate) spans: Vec<KvSpan<'static>>,
}

/// The rows of a step.
#[derive(Default)]
pub(crate) struct Inputs {
    tokens: Vec<u32>,
    positions: Vec<u32>,
    tables: Vec<u32>,
    rows: Vec<usize>,
}

impl ModelRunner {
    pub(crate) fn new(model: Arc<Model>, kv: KvArena, config: &EngineConfig) -> Self {
        let memory = vec![Memory::new(&model, config.max_step_tokens)];
        ModelRunner { model, kv, memory, logits: Vec::new(), piece: Vec::new() }
    }

    /// Copies the blocks that `plan` wants copied, and gives memory with its rows, to be [put back](Self::put_back) after it.
    pub(crate) fn prepare(&mut self, plan: &Plan) -> Memory {
        for copy in &plan.copies {
            self.kv.copy_block(copy.from.0, copy.to.0);
        }
        let new = || Memory::new(&self.model, 0);
        let mut memory = self.memory.pop().unwrap_or_else(new);
        memory.inputs.fill(&plan.work);
        memory
    }

    pub(crate) fn begin<'a>(
        &self,
        batch: Batch<'a>,
        scratch: &'a mut Scratch,
    ) -> Result<Pass<'a>, ForwardError> {
        self.model.begin(batch, &self.kv, scratch)
    }

    /// Runs the next layer; true when it was the last: then [`logits`](Self::logits) has a row for each work that samples,
    /// in plan order, until another step goes on.
    pub(crate) fn advance(&mut self, pass: &mut Pass<'_>) -> bool {
        self.model.advance(pass, &mut self.kv, &mut self.logits)
    }

    /// Copies a block out of the cache, all layers.
    pub(crate) fn export(&self, block: BlockId, store: KvStore, bytes: &mut [u8]) {
        self.kv.export_block(self.model.cpu(), block.0, store, bytes);
    }

    /// Overwrites a block of the cache by one that was copied out of it.
    pub(crate) fn import(&mut self, block: BlockId, store: KvStore, bytes: &[u8]) {
        self.kv.import_block(self.model.cpu(), block.0, store, bytes);
    }

    /// The logits of some rows of a whole step that has run: an iterator of `[vocab]`, one for each.
    pub(crate) fn rows(&mut self, pass: &mut Pass<'_>, rows: &[usize]) -> impl Iterator<Item = &[f32]> {
        self.model.row_logits(pass, rows, &mut self.piece);
        self.piece.chunks_exact(self.model.config.vocab)
    }

    pub(crate) fn put_back(&mut self, memory: Memory) {
        self.memory.push(memory);
    }

    /// The `row`-th row of logits of the last step: `[vocab]`.
    pub(crate) fn logits(&self, row: usize) -> &[f32] {
        let vocab = self.model.config.vocab;
        &self.logits[row * vocab..][..vocab]
    }
}

impl Memory {
    fn new(model: &Model, rows: usize) -> Self {
        Memory { scratch: Scratch::new(model, rows), inputs: Inputs::default(), spans: Vec::new() }
    }
}

/// The same list, empty, for references of another life. (Collecting in place keeps the allocation; a test counts.)
pub(crate) fn emptied<'a>(mut spans: Vec<KvSpan<'_>>) -> Vec<KvSpan<'a>> {
    spans.clear();
    spans.into_iter().map(|span| KvSpan { table: &[], ..span }).collect()
}

impl Inputs {
    fn fill(&mut self, work: &[Work]) {
        self.tokens.clear();
        self.positions.clear();
        self.tables.clear();
        self.rows.clear();
        for item in work {
            self.tokens.extend_from_slice(&item.tokens);
            self.positions.extend((item.start..item.start + item.tokens.len()).map(|p| p as u32));
            self.tables.extend(item.table.iter().map(|block| block.0));
            if !item.sample.is_empty() {
                self.rows.push(self.tokens.len() - 1);
            }
        }
    }

    /// Which rows belong to whom, in the memory of an empty list; `work` as in [`fill`](Self::fill).
    pub(crate) fn spans<'a>(&'a self, work: &[Work], list: Vec<KvSpan<'static>>) -> Vec<KvSpan<'a>> {
        let (mut row, mut tables) = (0, &self.tables[..]);
        let mut spans = emptied(list);
        spans.extend(work.iter().map(|item| {
            let (table, rest) = tables.split_at(item.table.len());
            tables = rest;
            let span = KvSpan { table, start: item.start, len: item.tokens.len(), row };
            row += item.tokens.len();
            span
        }));
        spans
    }

    pub(crate) fn batch<'a>(&'a self, spans: &'a [KvSpan<'a>]) -> Batch<'a> {
        Batch { tokens: &self.tokens, positions: &self.positions, spans, logits_for: &self.rows }
    }
}
