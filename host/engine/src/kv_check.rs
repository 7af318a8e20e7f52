//! Whether a model bears a cache in 8 bits: the same tokens over both kinds of cache, the distributions compared.
//!
//! Some models have a few dimensions of K that are many times as large as the others, which then share what is left of
//! the 8 bits. Such a model still writes fluent text: it is to be told by figures, before it serves.

use jackfield_kernels::{KernelError, KvArena, KvSpan, KvType, argmax};
use jackfield_model::{Batch, ForwardError, Model, Scratch};

/// Text of several kinds, so that most of a vocabulary's regions are touched.
const TEXT: &str = "The harbour was quiet that morning. Two fishermen mended their nets, and the older one said: \
    \"If the wind turns before noon, we go; if not, we wait until 5:30.\" Order #48213 (3 × 19.99 EUR) ships to \
    42 Rue de la Paix, Paris.\nfn area(w: f64, h: f64) -> f64 { w * h } // metres\n订单已经发货，预计三天后到达。\n\
    In 1815 the lighthouse burned down; what was left of it is a ring of stones which the tide covers twice a day.";
/// Tokens of it that are read.
const TOKENS: usize = 128;
/// The first so many see too little to be compared.
const SKIPPED: usize = 32;
const BLOCK: usize = 16;

/// A mean divergence beyond this, in nats, is worth a warning: ten times what was seen with fast
/// activations of a model that bears it well.
const DIVERGENCE: f64 = 0.02;

/// How far the distributions over the two caches are apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KvCheck {
    /// Positions compared.
    pub(crate) positions: usize,
    /// Mean Kullback-Leibler divergence, in nats; not a number where the logits are not.
    pub(crate) divergence: f64,
    /// Share of positions whose most likely token is the same.
    pub(crate) agreement: f64,
}

impl KvCheck {
    /// Whether a cache in 8 bits does no harm to speak of.
    pub(crate) fn is_good(&self) -> bool {
        self.divergence <= DIVERGENCE
    }
}

/// Why there is nothing to compare.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error("the tokenizer makes too few tokens of the check's text")]
    NoText,
    #[error(transparent)]
    Kv(#[from] KernelError),
    #[error(transparent)]
    Forward(#[from] ForwardError),
}

/// Reads a short text over both kinds of cache: twice the time of a prompt of 128 tokens.
pub(crate) fn check(model: &Model) -> Result<KvCheck, CheckError> {
    let mut tokens = model.tokenizer.encode(TEXT).map_err(|_| CheckError::NoText)?;
    tokens.truncate(TOKENS.min(model.config.context));
    if tokens.len() <= SKIPPED {
        return Err(CheckError::NoText);
    }
    let logits = |kv_type| logits(model, &tokens, kv_type);
    let (exact, rough) = (logits(KvType::F16)?, logits(KvType::Int8)?);
    let (mut divergence, mut agreed, positions) = (0.0, 0, tokens.len() - SKIPPED);
    let vocab = model.config.vocab;
    for (exact, rough) in exact.chunks_exact(vocab).zip(rough.chunks_exact(vocab)) {
        divergence += divergence_of(exact, rough);
        agreed += usize::from(argmax(exact) == argmax(rough));
    }
    Ok(KvCheck {
        positions,
        divergence: divergence / positions as f64,
        agreement: agreed as f64 / positions as f64,
    })
}

/// The logits of all tokens that are compared.
fn logits(model: &Model, tokens: &[u32], kv_type: KvType) -> Result<Vec<f32>, CheckError> {
    let blocks = tokens.len().div_ceil(BLOCK);
    let mut kv = KvArena::with_type(model.kv_shape(blocks, BLOCK), kv_type)?;
    let table: Vec<u32> = (0..blocks as u32).collect();
    let positions: Vec<u32> = (0..tokens.len() as u32).collect();
    let wanted: Vec<usize> = (SKIPPED..tokens.len()).collect();
    let spans = [KvSpan { table: &table, start: 0, len: tokens.len(), row: 0 }];
    let batch = Batch { tokens, positions: &positions, spans: &spans, logits_for: &wanted };
    let mut logits = Vec::new();
    let mut scratch = Scratch::new(model, tokens.len());
    model.forward(&batch, &mut kv, &mut scratch, &mut logits)?;
    Ok(logits)
}

/// The Kullback-Leibler divergence of `rough` from `exact`, both logits, in nats.
fn divergence_of(exact: &[f32], rough: &[f32]) -> f64 {
    let normal = |logits: &[f32]| {
        let most = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        most + logits.iter().map(|x| (f64::from(*x) - most).exp()).sum::<f64>().ln()
    };
    let (p, q) = (normal(exact), normal(rough));
    let terms = exact.iter().zip(rough).map(|(a, b)| {
        let (a, b) = (f64::from(*a) - p, f64::from(*b) - q);
        a.exp() * (a - b)
    });
    terms.sum()
}

#[cfg(test)]
mod tests {
    use jackfield_model::{Cpu, Gguf};
    use jackfield_tiny::tiny_model::{LAYERS, TinyModel};

    use super::*;

    #[test]
    fn the_divergence_of_two_coins() {
        let logits = |p: f32| [p.ln() + 3.0, (1.0 - p).ln() + 3.0];
        assert_eq!(divergence_of(&logits(0.3), &logits(0.3)), 0.0);
        let by_hand = 0.5 * (0.5f64 / 0.25).ln() + 0.5 * (0.5f64 / 0.75).ln();
        assert!((divergence_of(&logits(0.5), &logits(0.25)) - by_hand).abs() < 1e-6);
        assert!(divergence_of(&[f32::NAN, 0.0], &[0.0, 0.0]).is_nan());
    }

    /// With this bias on one dimension of K.
    fn model(outlier: f32) -> Model {
        let mut writer = TinyModel::of("qwen2").writer();
        for layer in 0..LAYERS {
            let bias = &mut writer.tensor_mut(&format!("blk.{layer}.attn_k.bias")).data;
            bias[4 * 15..4 * 16].copy_from_slice(&outlier.to_le_bytes());
        }
        let gguf = Gguf::from_bytes(writer.build()).expect("a file");
        Model::from_gguf(gguf, Cpu::new(1)).expect("a model")
    }

    #[test]
    fn a_dimension_that_outshines_the_others_is_noticed() {
        let (plain, outlier) =
            (check(&model(0.0)).expect("it runs"), check(&model(1000.0)).expect("it runs"));
        assert!(plain.is_good(), "{plain:?}");
        assert!(!outlier.is_good(), "{outlier:?}");
    }
}
