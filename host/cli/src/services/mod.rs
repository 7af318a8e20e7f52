//! What policies may ask of the host's models.

mod embeddings;

use std::sync::Arc;
use std::time::Duration;

use jackfield_engine::{Engine, ScoreError, SubmitError};
use jackfield_model::Tokenizer;
use jackfield_policy::{Grant, HostServices, LogLevel, Scored};
use jackfield_server::Embed;

pub(crate) use embeddings::Embeddings;

/// The longest text that is scored. A second or so on a small machine, several steps on any.
const MAX_SCORED_TOKENS: usize = 1024;
/// More bytes than so many tokens have.
const MAX_SCORED_BYTES: usize = 16 << 10;

/// The imports of policies, by the engine's model and one that gives vectors.
pub(crate) struct ModelServices {
    engine: Engine,
    embeddings: Embeddings,
}

impl ModelServices {
    pub(crate) fn new(engine: Engine, embeddings: Embeddings) -> ModelServices {
        ModelServices { engine, embeddings }
    }

    /// Vectors for the host itself, to find earlier topics by. Loads the model where it is there.
    pub(crate) fn embed_for_recall(self: &Arc<Self>) -> Embed {
        self.embeddings.prepare("sessions.recall finds nothing");
        let services = Arc::clone(self);
        Arc::new(move |text, patience| services.embeddings.embed_known(text, patience))
    }

    fn tokenizer(&self) -> &Tokenizer {
        self.engine.tokenizer()
    }

    /// Surprisal in bits of each token but the first of some.
    fn surprisal(&self, tokens: Vec<u32>, left: Duration) -> Result<Vec<f32>, String> {
        if tokens.len() < 2 {
            return Ok(Vec::new());
        }
        let scores = self.engine.score(tokens).map_err(|error| match error {
            SubmitError::QueueFull { .. } => busy(),
            other => other.to_string(),
        })?;
        let logprobs = scores.wait(patience(left)).map_err(|error| match error {
            ScoreError::Busy => busy(),
            ScoreError::Failed(fault) => fault.to_string(),
        })?;
        Ok(logprobs.into_iter().map(|logprob| -logprob / std::f32::consts::LN_2).collect())
    }
}

/// How long a guest is let wait, of what is left of its deadline: so that it has time to do without.
fn patience(left: Duration) -> Duration {
    left / 4 * 3
}

fn busy() -> String {
    "busy: the host has no time for it within this call's deadline".into()
}

impl HostServices for ModelServices {
    fn prepare(&self, grant: Grant) {
        if grant == Grant::Embeddings {
            self.embeddings.prepare("a policy is granted embeddings");
        }
    }

    fn count_tokens(&self, text: &str) -> u32 {
        self.tokenizer().encode(text).map_or(0, |tokens| tokens.len() as u32)
    }

    fn token_boundaries(&self, text: &str) -> Vec<u32> {
        self.tokenizer().boundaries(text).unwrap_or_default()
    }

    fn encode_tokens(&self, text: &str) -> Vec<u32> {
        self.tokenizer().encode(text).unwrap_or_default()
    }

    fn log(&self, policy: &str, level: LogLevel, text: &str) {
        match level {
            LogLevel::Debug => tracing::debug!(policy, "{text}"),
            LogLevel::Info => tracing::info!(policy, "{text}"),
            LogLevel::Warn => tracing::warn!(policy, "{text}"),
            LogLevel::Error => tracing::error!(policy, "{text}"),
        }
    }

    fn score(&self, text: &str, left: Duration) -> Result<Vec<Scored>, String> {
        if text.len() > MAX_SCORED_BYTES {
            return Err(format!("the text has {} bytes; at most {MAX_SCORED_BYTES} are scored", text.len()));
        }
        let tokenizer = self.tokenizer();
        let tokens = tokenizer.encode_completion(text).map_err(|error| error.to_string())?;
        let ends = tokenizer.boundaries(text).map_err(|error| error.to_string())?;
        if ends.len() > MAX_SCORED_TOKENS {
            return Err(format!(
                "the text has {} tokens; at most {MAX_SCORED_TOKENS} are scored",
                ends.len()
            ));
        }
        let bits = self.surprisal(tokens, left)?;
        // Without a token that begins texts nothing is known of the first: it is one of all.
        let any = (self.engine.model().vocab as f32).log2();
        let first = std::iter::repeat_n(any, ends.len().saturating_sub(bits.len()));
        let scored = ends.into_iter().zip(first.chain(bits));
        Ok(scored.map(|(end, surprisal_bits)| Scored { end, surprisal_bits }).collect())
    }

    fn embed(&self, text: &str, left: Duration) -> Result<Vec<f32>, String> {
        self.embeddings.embed(text, patience(left))
    }
}
