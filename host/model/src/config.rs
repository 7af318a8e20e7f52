//! The numbers of a model, read once from the file's metadata and checked.

use crate::arch::{self, Architecture};
use crate::error::LoadError;
use crate::gguf::{Fault, Gguf};

/// A model's sizes and constants.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Row of the table of architectures.
    pub architecture: &'static str,
    /// The file's name for the model, or its architecture.
    pub name: String,
    /// Decoder layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Width inside the feed-forward.
    pub ffn: usize,
    /// Query heads.
    pub heads: usize,
    /// Heads of keys and values; divides `heads`.
    pub kv_heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// Positions the model can take: its training context, or its attention window where that is smaller, for the
    /// decoder attends to everything and a longer context would leave what the model was trained on.
    pub context: usize,
    /// Tokens in the vocabulary.
    pub vocab: usize,
    /// Added to the mean square in norms.
    pub rms_eps: f32,
    /// Base of the rotary frequencies.
    pub rope_base: f32,
    /// Dimensions of a head that turn.
    pub rotary_dim: usize,
    /// What positions are multiplied with before turning: below 1 where the context was extended linearly.
    pub rope_position_scale: f32,
    /// The attention window that `context` was cut to, where the file has one.
    pub sliding_window: Option<usize>,
    /// Elements of all tensors.
    pub parameters: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

/// Sizes above this are not a model's, and products of a few of them still fit 64 bits.
const MAX_SIZE: u64 = 1 << 20;
/// Contexts above this are not a model's.
const MAX_CONTEXT: u64 = 1 << 24;

/// Keys whose presence means arithmetic that the decoder does not do.
const UNSUPPORTED: &[&str] = &[
    "attention.scale",
    "attention.clamp_kqv",
    "attention.max_alibi_bias",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "embedding_scale",
    "residual_scale",
    "logit_scale",
    "expert_count",
    "expert_used_count",
];

/// Reads keys below one architecture's prefix.
struct Keys<'a> {
    gguf: &'a Gguf,
    prefix: &'static str,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    fn optional_size(&self, name: &str, limit: u64) -> Result<Option<usize>, LoadError> {
        let key = self.key(name);
        let Some(n) = self.gguf.unsigned(&key)? else { return Ok(None) };
        if n == 0 || n > limit {
            return Err(self
                .gguf
                .error(&key, Fault::Value(format!("{n} is not between 1 and {limit}")))
                .into());
        }
        Ok(Some(n as usize))
    }

    fn size(&self, name: &str, limit: u64) -> Result<usize, LoadError> {
        let missing = || self.gguf.error(&self.key(name), Fault::Missing);
        Ok(self.optional_size(name, limit)?.ok_or_else(missing)?)
    }

    fn positive(&self, name: &str, default: Option<f32>) -> Result<f32, LoadError> {
        let key = self.key(name);
        let found =
            self.gguf.float(&key)?.or(default).ok_or_else(|| self.gguf.error(&key, Fault::Missing))?;
        if !found.is_finite() || found <= 0.0 {
            return Err(self.bad(name, format!("{found} is not a positive number")));
        }
        Ok(found)
    }

    fn bad(&self, name: &str, what: String) -> LoadError {
        self.gguf.error(&self.key(name), Fault::Value(what)).into()
    }
}

/// The row of the file's architecture.
pub(crate) fn architecture(gguf: &Gguf) -> Result<&'static Architecture, LoadError> {
    let key = "general.architecture";
    let found = gguf.text(key)?.ok_or_else(|| gguf.error(key, Fault::Missing))?;
    arch::find(found).ok_or_else(|| LoadError::Architecture { found: found.to_owned(), known: arch::known() })
}

impl ModelConfig {
    pub(crate) fn read(gguf: &Gguf, arch: &'static Architecture, vocab: usize) -> Result<Self, LoadError> {
        let keys = Keys { gguf, prefix: arch.name };
        refuse_unsupported(&keys)?;
        check_vocab(&keys, vocab)?;
        let width = keys.size("embedding_length", MAX_SIZE)?;
        let heads = keys.size("attention.head_count", MAX_SIZE)?;
        let kv_heads = keys.optional_size("attention.head_count_kv", MAX_SIZE)?.unwrap_or(heads);
        if heads % kv_heads != 0 {
            return Err(
                keys.bad("attention.head_count_kv", format!("{kv_heads} does not divide {heads} heads"))
            );
        }
        let head_dim = head_dim(&keys, width, heads)?;
        let window = sliding_window(&keys)?;
        let trained = keys.size("context_length", MAX_CONTEXT)?;
        Ok(Self {
            architecture: arch.name,
            name: gguf.text("general.name")?.unwrap_or(arch.name).to_owned(),
            layers: keys.size("block_count", 4096)?,
            width,
            ffn: keys.size("feed_forward_length", MAX_SIZE)?,
            heads,
            kv_heads,
            head_dim,
            context: window.map_or(trained, |window| window.min(trained)),
            vocab,
            rms_eps: keys.positive("attention.layer_norm_rms_epsilon", None)?,
            rope_base: keys.positive("rope.freq_base", Some(10_000.0))?,
            rotary_dim: rotary_dim(&keys, head_dim)?,
            rope_position_scale: position_scale(&keys)?,
            sliding_window: window,
            parameters: gguf.tensors().iter().map(|info| info.columns() * info.rows()).sum(),
            file_bytes: gguf.bytes().len() as u64,
        })
    }
}

fn refuse_unsupported(keys: &Keys<'_>) -> Result<(), LoadError> {
    let split = "split.count";
    if let Some(parts) = keys.gguf.unsigned(split)?.filter(|&n| n > 1) {
        let hint = "merge the parts into one file";
        return Err(LoadError::Unsupported { field: split.into(), value: format!("{parts} parts"), hint });
    }
    for name in UNSUPPORTED {
        let key = keys.key(name);
        let Some(value) = keys.gguf.get(&key)? else { continue };
        use crate::gguf::Value::{Float, Signed, Unsigned};
        let value = match value {
            Unsigned(0) | Signed(0) | Float(0.0) => continue, // written by converters for "not used"
            Unsigned(n) => n.to_string(),
            Signed(n) => n.to_string(),
            Float(x) => x.to_string(),
            other => format!("{other:?}"),
        };
        return Err(LoadError::Unsupported {
            field: key,
            value,
            hint: "this decoder does not have that step",
        });
    }
    Ok(())
}

fn check_vocab(keys: &Keys<'_>, vocab: usize) -> Result<(), LoadError> {
    match keys.optional_size("vocab_size", MAX_CONTEXT)? {
        Some(n) if n != vocab => {
            Err(keys.bad("vocab_size", format!("is {n}, but tokenizer.ggml.tokens has {vocab} elements")))
        }
        _ => Ok(()),
    }
}

fn head_dim(keys: &Keys<'_>, width: usize, heads: usize) -> Result<usize, LoadError> {
    let head_dim = match keys.optional_size("attention.key_length", MAX_SIZE)? {
        Some(n) => n,
        None if width.is_multiple_of(heads) => width / heads,
        None => {
            return Err(
                keys.bad("attention.head_count", format!("{heads} does not divide the width {width}"))
            );
        }
    };
    let value_length = keys.optional_size("attention.value_length", MAX_SIZE)?.unwrap_or(head_dim);
    if value_length != head_dim {
        return Err(
            keys.bad("attention.value_length", format!("{value_length} differs from key_length {head_dim}"))
        );
    }
    Ok(head_dim)
}

fn rotary_dim(keys: &Keys<'_>, head_dim: usize) -> Result<usize, LoadError> {
    let name = "rope.dimension_count";
    let rotary = keys.optional_size(name, MAX_SIZE)?.unwrap_or(head_dim);
    if rotary % 2 != 0 || rotary > head_dim {
        return Err(keys.bad(name, format!("{rotary} is odd or more than a head's {head_dim}")));
    }
    Ok(rotary)
}

fn position_scale(keys: &Keys<'_>) -> Result<f32, LoadError> {
    let field = keys.key("rope.scaling.type");
    let older = keys.positive("rope.scale_linear", Some(1.0))?;
    match keys.gguf.text(&field)? {
        None => Ok(1.0 / older),
        Some("none") => Ok(1.0),
        Some("linear") => Ok(1.0 / keys.positive("rope.scaling.factor", Some(older))?),
        Some(other) => Err(LoadError::Unsupported {
            field,
            value: format!("`{other}`"),
            hint: "`none` and `linear` are, and Llama 3's scaling through a rope_freqs tensor",
        }),
    }
}

fn sliding_window(keys: &Keys<'_>) -> Result<Option<usize>, LoadError> {
    let key = keys.key("attention.sliding_window");
    let window = keys.gguf.unsigned(&key)?.filter(|&n| n > 0);
    Ok(window.map(|n| usize::try_from(n).unwrap_or(usize::MAX)))
}
