//! A loaded model: everything needed to turn text into logits, and nothing that points into the file.

use std::path::Path;
use std::sync::Arc;

use jackfield_kernels::{Cpu, KvShape};

use crate::config::{self, ModelConfig};
use crate::error::LoadError;
use crate::gguf::Gguf;
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;
use crate::weights::Weights;

/// A model in memory.
pub struct Model {
    /// Its sizes and constants.
    pub config: ModelConfig,
    /// From text to tokens and back.
    pub tokenizer: Arc<Tokenizer>,
    /// From messages to a prompt.
    pub template: Arc<ChatTemplate>,
    /// BLAKE3 of the whole file: weights, tokenizer and template. Whatever is cached for one model is no other's.
    pub fingerprint: [u8; 32],
    pub(crate) weights: Weights,
    pub(crate) cpu: Arc<Cpu>,
}

impl Model {
    /// Loads a GGUF file. The weights are repacked into memory and the file is closed: what happens to it later
    /// does not touch the model.
    pub fn load(path: &Path, cpu: Arc<Cpu>) -> Result<Model, LoadError> {
        Self::from_gguf(Gguf::open(path)?, cpu)
    }

    /// Loads a file that is already open, and closes it.
    pub fn from_gguf(gguf: Gguf, cpu: Arc<Cpu>) -> Result<Model, LoadError> {
        let arch = config::architecture(&gguf)?;
        let tokenizer = Tokenizer::from_gguf(&gguf)?;
        let config = ModelConfig::read(&gguf, arch, tokenizer.vocab_size())?;
        let template = ChatTemplate::from_gguf(&gguf, &tokenizer)?;
        let weights = Weights::load(&gguf, &config, arch, &cpu)?;
        let fingerprint = *blake3::Hasher::new().update_rayon(gguf.bytes()).finalize().as_bytes();
        Ok(Model {
            config,
            tokenizer: Arc::new(tokenizer),
            template: Arc::new(template),
            fingerprint,
            weights,
            cpu,
        })
    }

    /// The shape of a cache for this model: `blocks` blocks of `block_size` positions.
    pub fn kv_shape(&self, blocks: usize, block_size: usize) -> KvShape {
        let ModelConfig { layers, kv_heads, head_dim, .. } = self.config;
        KvShape { layers, blocks, block_size, kv_heads, head_dim }
    }

    /// The threads and instructions that it runs on.
    pub fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// Resident bytes of the weights.
    pub fn weight_bytes(&self) -> usize {
        self.weights.bytes()
    }
}
