//! Runs a model over whole sequences, with the cache cut into blocks that lie in no order.

use jackfield_model::{Batch, KvArena, KvSpan, KvStore, KvType, Model, Scratch};

pub(crate) const BLOCK: usize = 16;
/// Rows of one step of a long prompt: not a multiple of the block, so that chunks end inside blocks.
const CHUNK: usize = 300;

pub(crate) struct Runner<'a> {
    model: &'a Model,
    kv: KvArena,
    scratch: Scratch,
    blocks: usize,
    taken: usize,
}

/// One sequence: its blocks and how many positions of them are filled.
pub(crate) struct Sequence {
    table: Vec<u32>,
    len: usize,
}

impl<'a> Runner<'a> {
    /// A cache for `positions` positions in all.
    pub(crate) fn new(model: &'a Model, positions: usize) -> Self {
        Self::with_type(model, positions, KvType::F16)
    }

    /// The same with a cache of this type.
    pub(crate) fn with_type(model: &'a Model, positions: usize, kv_type: KvType) -> Self {
        let blocks = positions.div_ceil(BLOCK) + 1;
        let shape = model.kv_shape(blocks, BLOCK);
        let kv = KvArena::with_type(shape, kv_type).expect("the cache fits in memory");
        Self { model, kv, scratch: Scratch::new(model, CHUNK), blocks, taken: 0 }
    }

    /// Forgets all sequences.
    pub(crate) fn clear(&mut self) {
        self.taken = 0;
    }

    /// A new sequence that may grow to `positions`.
    pub(crate) fn sequence(&mut self, positions: usize) -> Sequence {
        let count = positions.div_ceil(BLOCK);
        assert!(self.taken + count <= self.blocks, "the cache is too small for this test");
        // An odd stride that shares no factor with the number of blocks visits each block once, out of order.
        let stride = (self.blocks / 2..).find(|&it| gcd(it, self.blocks) == 1).unwrap_or(1);
        let table = (self.taken..self.taken + count).map(|i| (i * stride % self.blocks) as u32).collect();
        self.taken += count;
        Sequence { table, len: 0 }
    }

    /// Appends `tokens`; the logits of the last `keep` of them, `[keep, vocab]`.
    pub(crate) fn feed(&mut self, sequence: &mut Sequence, tokens: &[u32], keep: usize) -> Vec<f32> {
        let mut out = Vec::new();
        let first_kept = tokens.len() - keep;
        for (i, chunk) in tokens.chunks(CHUNK).enumerate() {
            let begin = i * CHUNK;
            let wanted: Vec<usize> = (0..chunk.len()).filter(|row| begin + row >= first_kept).collect();
            out.extend(self.step(&mut [(&mut *sequence, chunk)], &wanted));
        }
        out
    }

    /// Appends one token to each sequence, in one step; the logits of each, `[sequences, vocab]`.
    pub(crate) fn decode(&mut self, sequences: &mut [Sequence], tokens: &[u32]) -> Vec<f32> {
        let wanted: Vec<usize> = (0..sequences.len()).collect();
        let mut rows: Vec<_> = sequences.iter_mut().zip(tokens.chunks(1)).collect();
        self.step(&mut rows, &wanted)
    }

    /// Copies of the first `whole` blocks of a sequence, as they are stored outside of a cache.
    pub(crate) fn export(&self, sequence: &Sequence, whole: usize, store: KvStore) -> Vec<Vec<u8>> {
        let copy = |block: &u32| {
            let mut bytes = vec![0; self.kv.stored_bytes(store)];
            self.kv.export_block(self.model.cpu(), *block, store, &mut bytes);
            bytes
        };
        sequence.table[..whole].iter().map(copy).collect()
    }

    /// Overwrites a block of a sequence by such a copy.
    pub(crate) fn import(&mut self, sequence: &Sequence, block: usize, store: KvStore, bytes: &[u8]) {
        self.kv.import_block(self.model.cpu(), sequence.table[block], store, bytes);
    }

    /// Goes on from an earlier position.
    pub(crate) fn rewind(&mut self, sequence: &mut Sequence, len: usize) {
        sequence.len = len;
    }

    fn step(&mut self, rows: &mut [(&mut Sequence, &[u32])], logits_for: &[usize]) -> Vec<f32> {
        let mut tokens = Vec::new();
        let mut positions = Vec::new();
        let mut spans = Vec::new();
        for (sequence, new) in rows.iter() {
            spans.push(KvSpan {
                table: &sequence.table,
                start: sequence.len,
                len: new.len(),
                row: tokens.len(),
            });
            positions.extend((sequence.len..sequence.len + new.len()).map(|it| it as u32));
            tokens.extend_from_slice(new);
        }
        let batch = Batch { tokens: &tokens, positions: &positions, spans: &spans, logits_for };
        let mut logits = Vec::new();
        self.model
            .forward(&batch, &mut self.kv, &mut self.scratch, &mut logits)
            .expect("the batch is well formed");
        for (sequence, new) in rows.iter_mut() {
            sequence.len += new.len();
        }
        logits
    }
}

/// The first index of the largest value.
pub(crate) fn argmax(row: &[f32]) -> u32 {
    let best = row.iter().enumerate().fold(0, |best, (i, it)| if *it > row[best] { i } else { best });
    best as u32
}

/// The logarithms of the probabilities.
pub(crate) fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let most = f64::from(logits[argmax(logits) as usize]);
    let sum: f64 = logits.iter().map(|x| (f64::from(*x) - most).exp()).sum();
    logits.iter().map(|x| f64::from(*x) - most - sum.ln()).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
