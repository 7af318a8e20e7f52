//! One step of the model: from a plan of sequences to a row of logits for each that samples.

use std::sync::Arc;

use jackfield_kernels::{KvArena, KvSpan};
use jackfield_model::{Batch, ForwardError, Model, Scratch};
use jackfield_scheduler::{Plan, Work};

/// The model with its KV and its working memory.
pub(crate) struct ModelRunner {
    model: Arc<Model>,
    kv: KvArena,
    scratch: Scratch,
    inputs: Inputs,
    logits: Vec<f32>,
}

/// The rows of a step, kept between steps so that none allocates.
#[derive(Default)]
struct Inputs {
    tokens: Vec<u32>,
    positions: Vec<u32>,
    tables: Vec<u32>,
    rows: Vec<usize>,
}

impl ModelRunner {
    /// `rows` is the largest step.
    pub(crate) fn new(model: Arc<Model>, kv: KvArena, rows: usize) -> Self {
        let scratch = Scratch::new(&model, rows);
        ModelRunner { model, kv, scratch, inputs: Inputs::default(), logits: Vec::new() }
    }

    /// Runs `plan`; afterwards [`logits`](Self::logits) has a row for each work that samples, in plan order.
    pub(crate) fn run(&mut self, plan: &Plan) -> Result<(), ForwardError> {
        for copy in &plan.copies {
            self.kv.copy_block(copy.from.0, copy.to.0);
        }
        self.inputs.fill(&plan.work);
        let spans = spans(&plan.work, &self.inputs.tables);
        let batch = Batch {
            tokens: &self.inputs.tokens,
            positions: &self.inputs.positions,
            spans: &spans,
            logits_for: &self.inputs.rows,
        };
        self.model.forward(&batch, &mut self.kv, &mut self.scratch, &mut self.logits)
    }

    /// The `row`-th row of logits of the last step: `[vocab]`.
    pub(crate) fn logits(&self, row: usize) -> &[f32] {
        let vocab = self.model.config.vocab;
        &self.logits[row * vocab..][..vocab]
    }
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
}

fn spans<'a>(work: &[Work], mut tables: &'a [u32]) -> Vec<KvSpan<'a>> {
    let mut row = 0;
    work.iter()
        .map(|item| {
            let (table, rest) = tables.split_at(item.table.len());
            tables = rest;
            let span = KvSpan { table, start: item.start, len: item.tokens.len(), row };
            row += item.tokens.len();
            span
        })
        .collect()
}
