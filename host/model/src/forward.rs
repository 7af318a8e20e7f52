//! One step of the decoder, over the rows of all sequences at once.

use jackfield_kernels::{Angles, KvArena, KvSpan, Projection, Quantized};

use crate::config::ModelConfig;
use crate::error::ForwardError;
use crate::model::Model;
use crate::weights::Layer;

/// The rows of one step. Rows of one sequence are neighbours; `spans` says which and where they live in the cache.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// `[rows]`: the token of each row.
    pub tokens: &'a [u32],
    /// `[rows]`: the position of each row in its sequence.
    pub positions: &'a [u32],
    /// Which rows belong to one sequence: spans in the order of their rows, without gaps.
    pub spans: &'a [KvSpan<'a>],
    /// Rows whose logits are wanted, in the order in which they are wanted.
    pub logits_for: &'a [usize],
}

/// Buffers of a step, reused from step to step: they grow to the largest step seen and then nothing is allocated.
pub struct Scratch {
    /// `[rows, width]`: the residual stream.
    x: Vec<f32>,
    /// `[rows, width]`: its norm.
    normed: Vec<f32>,
    /// `[rows, heads, head_dim]`.
    q: Vec<f32>,
    /// `[rows, kv_heads, head_dim]`.
    k: Vec<f32>,
    /// `[rows, kv_heads, head_dim]`.
    v: Vec<f32>,
    /// `[rows, heads, head_dim]`: what attention gives.
    mixed: Vec<f32>,
    /// `[rows, ffn]`.
    gate: Vec<f32>,
    /// `[rows, ffn]`.
    up: Vec<f32>,
    quantized: Quantized,
    angles: Angles,
}

impl Scratch {
    /// Buffers for steps of up to `rows` rows; a larger step makes them grow.
    pub fn new(model: &Model, rows: usize) -> Self {
        let quantized =
            if model.weights.has_floats() { Quantized::new() } else { Quantized::without_floats() };
        let none = Vec::new;
        let mut scratch = Self {
            x: none(),
            normed: none(),
            q: none(),
            k: none(),
            v: none(),
            mixed: none(),
            gate: none(),
            up: none(),
            quantized,
            angles: Angles::default(),
        };
        scratch.fit(&model.config, rows);
        scratch
    }

    /// Makes every buffer exactly as long as `rows` rows; what they hold is overwritten by the step.
    fn fit(&mut self, config: &ModelConfig, rows: usize) {
        let (q_dim, kv_dim) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        self.x.resize(rows * config.width, 0.0);
        self.normed.resize(rows * config.width, 0.0);
        self.q.resize(rows * q_dim, 0.0);
        self.k.resize(rows * kv_dim, 0.0);
        self.v.resize(rows * kv_dim, 0.0);
        self.mixed.resize(rows * q_dim, 0.0);
        self.gate.resize(rows * config.ffn, 0.0);
        self.up.resize(rows * config.ffn, 0.0);
    }
}

/// A step on its way, layer by layer. Between two layers its caller may do something else, another step of other sequences
/// among it.
pub struct Pass<'a> {
    batch: Batch<'a>,
    scratch: &'a mut Scratch,
    /// The next one to run.
    layer: usize,
    /// The last layer runs for every row, whoever wants logits.
    whole: bool,
}

impl Pass<'_> {
    /// The same to the end of its last layer, even where nobody's logits are wanted: then [`Model::row_logits`] can be asked.
    #[must_use]
    pub fn whole(self) -> Self {
        Self { whole: true, ..self }
    }
}

impl Model {
    /// Runs one step: writes the keys and values of every row to `kv` and leaves in `logits` one row of `vocab` values for
    /// each of `logits_for`, `[logits_for, vocab]`. A row's result depends on its own sequence alone.
    pub fn forward(
        &self,
        batch: &Batch<'_>,
        kv: &mut KvArena,
        scratch: &mut Scratch,
        logits: &mut Vec<f32>,
    ) -> Result<(), ForwardError> {
        let mut pass = self.begin(*batch, kv, scratch)?;
        while !self.advance(&mut pass, kv, logits) {}
        Ok(())
    }

    /// Begins the step that [`forward`](Self::forward) runs to its end. Until it is over, nobody else may write to the
    /// blocks of its spans.
    pub fn begin<'a>(
        &self,
        batch: Batch<'a>,
        kv: &KvArena,
        scratch: &'a mut Scratch,
    ) -> Result<Pass<'a>, ForwardError> {
        self.check(&batch, kv)?;
        scratch.fit(&self.config, batch.tokens.len());
        self.embed(batch.tokens, &mut scratch.x);
        scratch.angles.set(&self.weights.rope, batch.positions);
        Ok(Pass { batch, scratch, layer: 0, whole: false })
    }

    /// Runs the next layer; true when it was the last and `logits` are there. Takes the cache that the step began with.
    pub fn advance(&self, pass: &mut Pass<'_>, kv: &mut KvArena, logits: &mut Vec<f32>) -> bool {
        let Pass { batch, scratch, layer: i, whole } = pass;
        let rows = batch.tokens.len();
        let Some(layer) = self.weights.layers.get(*i).filter(|_| rows > 0) else {
            logits.clear();
            return true;
        };
        self.project(layer, scratch, rows);
        kv.write(&self.cpu, *i, batch.spans, &scratch.k, &scratch.v);
        let last = *i + 1 == self.weights.layers.len();
        if last && batch.logits_for.is_empty() && !*whole {
            logits.clear();
            return true; // the middle of a prompt: the cache is all that was wanted
        }
        self.attend(layer, *i, batch.spans, kv, scratch);
        self.feed_forward(layer, scratch, rows);
        *i += 1;
        if last {
            logits.clear();
            self.logits(batch.logits_for, scratch, logits);
        }
        last
    }

    /// Logits of some rows of a [whole](Pass::whole) step that has run, `[rows, vocab]`: as many at a time as there is memory
    /// for.
    ///
    /// # Panics
    /// When a row is not one of the step's.
    pub fn row_logits(&self, pass: &mut Pass<'_>, rows: &[usize], logits: &mut Vec<f32>) {
        logits.clear();
        self.logits(rows, pass.scratch, logits);
    }

    fn embed(&self, tokens: &[u32], x: &mut [f32]) {
        for (token, out) in tokens.iter().zip(x.chunks_exact_mut(self.config.width)) {
            self.weights.embedding.row(*token as usize, out);
        }
    }

    /// Norm, queries, keys and values, turned to their positions.
    fn project(&self, layer: &Layer, s: &mut Scratch, rows: usize) {
        let ModelConfig { heads, kv_heads, head_dim, rms_eps, .. } = self.config;
        let cpu = &self.cpu;
        cpu.rms_norm(&s.x, &layer.attn_norm, rms_eps, &mut s.normed);
        cpu.quantize(&s.normed, rows, &mut s.quantized);
        let q = Projection { weights: &layer.q, out: &mut s.q };
        let k = Projection { weights: &layer.k, out: &mut s.k };
        let v = Projection { weights: &layer.v, out: &mut s.v };
        cpu.matmul_three(&s.quantized, [q, k, v]);
        let biases = [(&layer.q_bias, &mut s.q), (&layer.k_bias, &mut s.k), (&layer.v_bias, &mut s.v)];
        for (bias, out) in biases {
            if let Some(bias) = bias {
                cpu.add_bias(out, bias);
            }
        }
        for (norm, out) in [(&layer.q_norm, &mut s.q), (&layer.k_norm, &mut s.k)] {
            if let Some(norm) = norm {
                cpu.rms_norm_in_place(out, norm, rms_eps);
            }
        }
        cpu.rope_with(&mut s.q, heads, head_dim, &self.weights.rope, &s.angles);
        cpu.rope_with(&mut s.k, kv_heads, head_dim, &self.weights.rope, &s.angles);
    }

    /// Attention over the cache, added to the residual stream.
    fn attend(&self, layer: &Layer, i: usize, spans: &[KvSpan<'_>], kv: &KvArena, s: &mut Scratch) {
        let scale = 1.0 / (self.config.head_dim as f32).sqrt();
        let rows = s.x.len() / self.config.width;
        self.cpu.attention(kv, i, spans, &s.q, self.config.heads, scale, &mut s.mixed);
        self.cpu.quantize(&s.mixed, rows, &mut s.quantized);
        self.cpu.matmul_add(&layer.o, &s.quantized, &mut s.x);
        if let Some(bias) = &layer.o_bias {
            self.cpu.add_bias(&mut s.x, bias);
        }
    }

    /// The gated feed-forward, added to the residual stream.
    fn feed_forward(&self, layer: &Layer, s: &mut Scratch, rows: usize) {
        let cpu = &self.cpu;
        cpu.rms_norm(&s.x, &layer.ffn_norm, self.config.rms_eps, &mut s.normed);
        cpu.quantize(&s.normed, rows, &mut s.quantized);
        let gate = Projection { weights: &layer.gate, out: &mut s.gate };
        let up = Projection { weights: &layer.up, out: &mut s.up };
        cpu.matmul_two(&s.quantized, [gate, up]);
        cpu.silu_mul(&mut s.gate, &s.up);
        cpu.quantize(&s.gate, rows, &mut s.quantized);
        cpu.matmul_add(&layer.down, &s.quantized, &mut s.x);
    }

    fn logits(&self, wanted: &[usize], s: &mut Scratch, logits: &mut Vec<f32>) {
        let ModelConfig { width, vocab, rms_eps, .. } = self.config;
        let rows = s.x.len() / width;
        for (i, chunk) in wanted.chunks(rows).enumerate() {
            let normed = &mut s.normed[..chunk.len() * width];
            for (&from, out) in chunk.iter().zip(normed.chunks_exact_mut(width)) {
                self.cpu.rms_norm(&s.x[from * width..][..width], &self.weights.output_norm, rms_eps, out);
            }
            self.cpu.quantize(normed, chunk.len(), &mut s.quantized);
            let start = i * rows * vocab;
            logits.resize(start + chunk.len() * vocab, 0.0);
            self.cpu.matmul(self.weights.head(), &s.quantized, &mut logits[start..]);
        }
    }

    fn check(&self, batch: &Batch<'_>, kv: &KvArena) -> Result<(), ForwardError> {
        let shape = kv.shape();
        if *shape != self.kv_shape(shape.blocks, shape.block_size) {
            return Err(ForwardError::Cache);
        }
        let tokens = batch.tokens.len();
        let rows = batch.spans.iter().fold(0usize, |all, span| all.saturating_add(span.len));
        let mut next = 0; // spans follow one another, so that none of their rows are shared
        if batch.positions.len() != tokens || rows != tokens {
            return Err(ForwardError::Lengths { tokens, positions: batch.positions.len(), rows });
        }
        let vocab = self.config.vocab;
        if let Some(row) = batch.tokens.iter().position(|&token| token as usize >= vocab) {
            return Err(ForwardError::Token { row, token: batch.tokens[row], vocab });
        }
        let mut fits = |span: &KvSpan<'_>| {
            let rows = span.row == next;
            next += span.len;
            let blocks = span.start.checked_add(span.len).map(|end| end.div_ceil(shape.block_size));
            let table = blocks.and_then(|n| span.table.get(..n));
            rows && table.is_some_and(|table| table.iter().all(|&block| (block as usize) < shape.blocks))
        };
        if let Some(span) = batch.spans.iter().position(|span| !fits(span)) {
            return Err(ForwardError::Span { span });
        }
        match batch.logits_for.iter().find(|&&row| row >= tokens) {
            Some(&row) => Err(ForwardError::LogitsRow { row, rows: tokens }),
            None => Ok(()),
        }
    }
}
