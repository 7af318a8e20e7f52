//! A vector for a text: a sentence transformer of BERT's architecture, its word pieces' mean as a vector of length 1.
//!
//! Apart from the rest of this crate on purpose: it is asked rarely and for short texts, so that a library runs it, on the
//! threads of the rayon pool that its caller is in.

use std::fs;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use tokenizers::{Tokenizer, TruncationParams};

/// What a text is cut at, in word pieces, the two that begin and end it among them: what the model was trained for.
const MAX_PIECES: usize = 256;
/// More bytes than so many word pieces have.
const MAX_BYTES: usize = 16 << 10;

/// One in so many pieces that the vocabulary lacks, and the model does not know the text.
const MOST_UNKNOWN: usize = 4;
/// What such a piece is called.
const UNKNOWN: &str = "[UNK]";

/// A model that gives vectors.
pub struct Embedder {
    tokenizer: Tokenizer,
    bert: BertModel,
    /// The piece that stands for what is not in the vocabulary.
    unknown: Option<u32>,
    fingerprint: u64,
}

/// No model, or no vector.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// A file of the model cannot be read.
    #[error("{file}: {cause}")]
    File {
        /// Which.
        file: &'static str,
        /// Why.
        cause: std::io::Error,
    },
    /// A file of the model is not what it should be.
    #[error("{file}: {what}")]
    Model {
        /// Which.
        file: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The text is too long to be cut into pieces.
    #[error("the text has {bytes} bytes; vectors are for texts of {MAX_BYTES} at most")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The model does not go through.
    #[error("the text has no vector: {0}")]
    Run(String),
}

impl Embedder {
    /// Loads `config.json`, `tokenizer.json` and `model.safetensors` of a folder.
    pub fn load(folder: &Path) -> Result<Embedder, EmbedError> {
        let mut hasher = blake3::Hasher::new();
        let mut read = |file| read(folder, file).inspect(|bytes| _ = hasher.update_rayon(bytes));
        let config: Config =
            serde_json::from_slice(&read("config.json")?).map_err(|error| wrong("config.json", error))?;
        let tokenizer = tokenizer(&read("tokenizer.json")?)?;
        let weights = read("model.safetensors")?;
        let weights = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu)
            .map_err(|error| wrong("model.safetensors", error))?;
        let bert = BertModel::load(weights, &config).map_err(|error| wrong("model.safetensors", error))?;
        let digest = *hasher.finalize().as_bytes();
        // 0 is for no model.
        let fingerprint = digest.iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte)).max(1);
        Ok(Embedder { unknown: tokenizer.token_to_id(UNKNOWN), tokenizer, bert, fingerprint })
    }

    /// Of its files: vectors of models with another one are not to be compared.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Whether its vocabulary has the words of a text, and a vector says what it is about.
    pub fn knows(&self, text: &str) -> bool {
        let (Ok(pieces), Some(unknown)) = (self.tokenizer.encode(text, false), self.unknown) else {
            return true;
        };
        let ids = pieces.get_ids();
        ids.iter().filter(|id| **id == unknown).count() * MOST_UNKNOWN < ids.len().max(1)
    }

    /// The vector of a text, of length 1. What is beyond 256 word pieces is not looked at.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        if text.len() > MAX_BYTES {
            return Err(EmbedError::TooLong { bytes: text.len() });
        }
        let pieces = self.tokenizer.encode(text, true).map_err(|error| EmbedError::Run(error.to_string()))?;
        self.run(pieces.get_ids()).map_err(|error| EmbedError::Run(error.to_string()))
    }

    /// From the ids of word pieces, `[pieces]`, to a vector, `[width]`.
    fn run(&self, ids: &[u32]) -> candle_core::Result<Vec<f32>> {
        let ids = Tensor::new(ids, &Device::Cpu)?.unsqueeze(0)?;
        let hidden = self.bert.forward(&ids, &ids.zeros_like()?, None)?;
        let mean = hidden.squeeze(0)?.mean(0)?;
        let length = mean.sqr()?.sum_all()?.sqrt()?;
        mean.broadcast_div(&length)?.to_vec1()
    }
}

impl std::fmt::Debug for Embedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedder").finish_non_exhaustive()
    }
}

/// One text at a time, cut where the model ends; the names of control tokens in it are text.
fn tokenizer(file: &[u8]) -> Result<Tokenizer, EmbedError> {
    let mut tokenizer = Tokenizer::from_bytes(file).map_err(|error| wrong("tokenizer.json", error))?;
    tokenizer.with_padding(None);
    tokenizer
        .with_truncation(Some(TruncationParams { max_length: MAX_PIECES, ..TruncationParams::default() }))
        .map_err(|error| wrong("tokenizer.json", error))?;
    tokenizer.set_encode_special_tokens(true);
    Ok(tokenizer)
}

fn read(folder: &Path, file: &'static str) -> Result<Vec<u8>, EmbedError> {
    fs::read(folder.join(file)).map_err(|cause| EmbedError::File { file, cause })
}

fn wrong(file: &'static str, error: impl std::fmt::Display) -> EmbedError {
    EmbedError::Model { file, what: error.to_string() }
}
