//! The tensors of a model, repacked into memory of their own: nothing here points into the file.

use std::collections::HashSet;

use jackfield_kernels::{Cpu, Matrix, Rope, dequantize};

use crate::arch::{Architecture, Part};
use crate::config::ModelConfig;
use crate::error::LoadError;
use crate::gguf::{Fault, Gguf, TensorInfo};

/// One decoder layer.
pub(crate) struct Layer {
    /// `[width]`.
    pub(crate) attn_norm: Vec<f32>,
    /// `[heads * head_dim, width]`.
    pub(crate) q: Matrix,
    /// `[kv_heads * head_dim, width]`.
    pub(crate) k: Matrix,
    /// `[kv_heads * head_dim, width]`.
    pub(crate) v: Matrix,
    pub(crate) q_bias: Option<Vec<f32>>,
    pub(crate) k_bias: Option<Vec<f32>>,
    pub(crate) v_bias: Option<Vec<f32>>,
    /// `[head_dim]`, over each head of the queries.
    pub(crate) q_norm: Option<Vec<f32>>,
    /// `[head_dim]`, over each head of the keys.
    pub(crate) k_norm: Option<Vec<f32>>,
    /// `[width, heads * head_dim]`.
    pub(crate) o: Matrix,
    pub(crate) o_bias: Option<Vec<f32>>,
    /// `[width]`.
    pub(crate) ffn_norm: Vec<f32>,
    /// `[ffn, width]`.
    pub(crate) gate: Matrix,
    /// `[ffn, width]`.
    pub(crate) up: Matrix,
    /// `[width, ffn]`.
    pub(crate) down: Matrix,
}

/// All weights of a decoder.
pub(crate) struct Weights {
    /// `[vocab, width]`.
    pub(crate) embedding: Matrix,
    pub(crate) layers: Vec<Layer>,
    /// `[width]`.
    pub(crate) output_norm: Vec<f32>,
    /// `[vocab, width]`; none where the embedding is used again.
    head: Option<Matrix>,
    pub(crate) rope: Rope,
}

impl Weights {
    pub(crate) fn load(
        gguf: &Gguf,
        config: &ModelConfig,
        arch: &'static Architecture,
        cpu: &Cpu,
    ) -> Result<Self, LoadError> {
        let mut loader = Loader { gguf, cpu, used: HashSet::new() };
        let (vocab, width) = (config.vocab, config.width);
        let embedding = loader.matrix("token_embd.weight", vocab, width)?;
        let head = match gguf.tensor("output.weight") {
            Some(_) => Some(loader.matrix("output.weight", vocab, width)?),
            None => None,
        };
        let layers = (0..config.layers)
            .map(|i| load_layer(&mut loader, i, config, arch))
            .collect::<Result<Vec<_>, _>>()?;
        let output_norm = loader.vector("output_norm.weight", width)?;
        let rope = load_rope(&mut loader, config, arch)?;
        loader.all_used(arch)?;
        Ok(Self { embedding, layers, output_norm, head, rope })
    }

    /// The matrix that makes logits.
    pub(crate) fn head(&self) -> &Matrix {
        self.head.as_ref().unwrap_or(&self.embedding)
    }

    /// Whether any matrix is multiplied as floats.
    pub(crate) fn has_floats(&self) -> bool {
        let layer =
            |l: &Layer| [&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down].iter().any(|m| m.is_float());
        self.head().is_float() || self.layers.iter().any(layer)
    }

    /// Resident bytes.
    pub(crate) fn bytes(&self) -> usize {
        let layer = |l: &Layer| -> usize {
            [&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down].iter().map(|m| m.bytes()).sum()
        };
        let head = self.head.as_ref().map_or(0, Matrix::bytes);
        self.embedding.bytes() + head + self.layers.iter().map(layer).sum::<usize>()
    }
}

fn load_layer(
    loader: &mut Loader<'_>,
    i: usize,
    config: &ModelConfig,
    arch: &Architecture,
) -> Result<Layer, LoadError> {
    let name = |part: &str| format!("blk.{i}.{part}");
    let (width, ffn) = (config.width, config.ffn);
    let (q_dim, kv_dim) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
    Ok(Layer {
        attn_norm: loader.vector(&name("attn_norm.weight"), width)?,
        q: loader.matrix(&name("attn_q.weight"), q_dim, width)?,
        k: loader.matrix(&name("attn_k.weight"), kv_dim, width)?,
        v: loader.matrix(&name("attn_v.weight"), kv_dim, width)?,
        q_bias: loader.part(arch.qkv_bias, &name("attn_q.bias"), q_dim)?,
        k_bias: loader.part(arch.qkv_bias, &name("attn_k.bias"), kv_dim)?,
        v_bias: loader.part(arch.qkv_bias, &name("attn_v.bias"), kv_dim)?,
        q_norm: loader.part(arch.head_norm, &name("attn_q_norm.weight"), config.head_dim)?,
        k_norm: loader.part(arch.head_norm, &name("attn_k_norm.weight"), config.head_dim)?,
        o: loader.matrix(&name("attn_output.weight"), width, q_dim)?,
        o_bias: loader.part(Part::Optional, &name("attn_output.bias"), width)?,
        ffn_norm: loader.vector(&name("ffn_norm.weight"), width)?,
        gate: loader.matrix(&name("ffn_gate.weight"), ffn, width)?,
        up: loader.matrix(&name("ffn_up.weight"), ffn, width)?,
        down: loader.matrix(&name("ffn_down.weight"), width, ffn)?,
    })
}

fn load_rope(loader: &mut Loader<'_>, config: &ModelConfig, arch: &Architecture) -> Result<Rope, LoadError> {
    let name = "rope_freqs.weight";
    let factors = loader.part(Part::Optional, name, config.rotary_dim / 2)?;
    let factors = factors.as_deref();
    Rope::new(arch.rope, config.rotary_dim, config.rope_base, config.rope_position_scale, factors)
        .map_err(|source| LoadError::Tensor { name: name.to_owned(), source })
}

struct Loader<'a> {
    gguf: &'a Gguf,
    cpu: &'a Cpu,
    used: HashSet<&'a str>,
}

impl<'a> Loader<'a> {
    fn find(&mut self, name: &str, shape: &[usize]) -> Result<&'a TensorInfo, LoadError> {
        let gguf = self.gguf;
        let info = gguf.tensor(name).ok_or_else(|| gguf.tensor_error(name, Fault::Missing))?;
        let wanted: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
        if info.shape != wanted {
            let from = match name {
                "token_embd.weight" | "output.weight" => "width by number of tokens in the tokenizer",
                _ => "from the architecture's metadata",
            };
            let (name, found) = (name.to_owned(), info.shape.clone());
            return Err(LoadError::Shape { name, found, wanted, from });
        }
        self.used.insert(&info.name);
        Ok(info)
    }

    fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> Result<Matrix, LoadError> {
        let info = self.find(name, &[cols, rows])?;
        Matrix::pack(self.cpu, info.quantisation, self.gguf.data(info), rows, cols)
            .map_err(|source| LoadError::Tensor { name: name.to_owned(), source })
    }

    fn vector(&mut self, name: &str, len: usize) -> Result<Vec<f32>, LoadError> {
        let info = self.find(name, &[len])?;
        let mut out = vec![0.0; len];
        dequantize(info.quantisation, self.gguf.data(info), &mut out)
            .map_err(|source| LoadError::Tensor { name: name.to_owned(), source })?;
        Ok(out)
    }

    fn part(&mut self, part: Part, name: &str, len: usize) -> Result<Option<Vec<f32>>, LoadError> {
        match (part, self.gguf.tensor(name)) {
            (Part::Never, _) | (Part::Optional, None) => Ok(None),
            (Part::Optional, Some(_)) | (Part::Always, _) => self.vector(name, len).map(Some),
        }
    }

    fn all_used(&self, arch: &Architecture) -> Result<(), LoadError> {
        let unused =
            |info: &&TensorInfo| !self.used.contains(info.name.as_str()) && !is_ignorable(&info.name);
        match self.gguf.tensors().iter().find(unused) {
            None => Ok(()),
            Some(info) => Err(LoadError::UnknownTensor { name: info.name.clone(), architecture: arch.name }),
        }
    }
}

/// Frequencies that old converters wrote out for each layer, which follow from the metadata.
fn is_ignorable(name: &str) -> bool {
    name.ends_with(".attn_rot_embd")
        || name.ends_with(".attn_rot_embd.weight")
        || name.ends_with(".rotary_emb.inv_freq")
}
