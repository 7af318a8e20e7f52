//! Vectors of texts, on threads of their own behind those that serve.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jackfield_model::Embedder;
use jackfield_policy::step_aside;
use jackfield_server::{Embedding, NoVector};

use crate::Failure;
use crate::config::EmbeddingsRef;
use crate::dirs::Dirs;
use crate::model::{self, EMBEDDINGS_MODEL};

/// Threads that a text is worked on by.
const THREADS: usize = 2;
/// Texts that may wait.
const MAX_WAITING: usize = 16;

/// The model that gives vectors, once somebody wants it.
pub(crate) struct Embeddings {
    source: Source,
    inbox: Mutex<Option<SyncSender<Text>>>,
}

/// Where its files are.
enum Source {
    Cache(Dirs),
    Folder(PathBuf),
}

/// A text, and until when somebody waits for its vector.
struct Text {
    text: String,
    /// It has none where the model does not know its words.
    only_known: bool,
    until: Instant,
    responder: SyncSender<Result<Embedding, NoVector>>,
}

impl Embeddings {
    /// Loads what the configuration asks for; else nothing, until somebody does.
    pub(crate) fn new(reference: &EmbeddingsRef, dirs: &Dirs) -> Result<Embeddings, Failure> {
        let source = match reference {
            EmbeddingsRef::IfPulled => {
                return Ok(Embeddings { source: Source::Cache(dirs.clone()), inbox: Mutex::new(None) });
            }
            EmbeddingsRef::Catalogue(model) => model::locate(model, dirs).map_err(Failure::failed)?,
            EmbeddingsRef::Folder(folder) => folder.clone(),
        };
        let inbox = load(&source).map_err(|why| Failure::failed(format!("{}: {why}", source.display())))?;
        Ok(Embeddings { source: Source::Folder(source), inbox: Mutex::new(Some(inbox)) })
    }

    /// Loads the model where it is there and not loaded yet; `who` wants it.
    pub(crate) fn prepare(&self, who: &str) {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        if inbox.is_some() {
            return;
        }
        match self.source.folder().and_then(|folder| load(&folder)) {
            Ok(loaded) => *inbox = Some(loaded),
            Err(why) => tracing::warn!("{who}: {why}"),
        }
    }

    /// The vector of a text, or why there is none; within `patience`.
    pub(crate) fn embed(&self, text: &str, patience: Duration) -> Result<Vec<f32>, String> {
        match self.ask(text, false, patience) {
            Ok(Embedding { vector, .. }) => Ok(vector),
            Err(NoVector::Failed(why)) => Err(why),
            Err(NoVector::Foreign) => Err("the model does not know the text".into()),
        }
    }

    /// The same where the model knows the text.
    pub(crate) fn embed_known(&self, text: &str, patience: Duration) -> Result<Embedding, NoVector> {
        self.ask(text, true, patience)
    }

    fn ask(&self, text: &str, only_known: bool, patience: Duration) -> Result<Embedding, NoVector> {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let inbox = inbox.ok_or_else(|| NoVector::Failed(absent()))?;
        let (responder, vector) = sync_channel(1);
        let text = Text { text: text.into(), only_known, until: Instant::now() + patience, responder };
        inbox.try_send(text).map_err(|error| match error {
            TrySendError::Full(_) => NoVector::Failed(super::busy()),
            TrySendError::Disconnected(_) => NoVector::Failed(stopped()),
        })?;
        vector.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => NoVector::Failed(super::busy()),
            RecvTimeoutError::Disconnected => NoVector::Failed(stopped()),
        })?
    }
}

impl Source {
    fn folder(&self) -> Result<PathBuf, String> {
        match self {
            Source::Folder(folder) => Ok(folder.clone()),
            Source::Cache(dirs) => {
                model::cached_embeddings(dirs).map_err(|error| error.to_string())?.ok_or_else(absent)
            }
        }
    }
}

fn absent() -> String {
    format!(
        "this host has no embeddings; run `jackfield model pull {EMBEDDINGS_MODEL}` and push the policy again"
    )
}

fn stopped() -> String {
    "the host's embeddings have stopped; its log says why".into()
}

/// The model in a thread of its own, which ends with the last sender.
fn load(folder: &Path) -> Result<SyncSender<Text>, String> {
    let begun = Instant::now();
    let embedder = Embedder::load(folder).map_err(|error| error.to_string())?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(THREADS)
        .thread_name(|thread| format!("embeddings-{thread}"))
        .start_handler(|_| step_aside())
        .build()
        .map_err(|error| format!("no threads for embeddings: {error}"))?;
    let (inbox, texts) = sync_channel(MAX_WAITING);
    std::thread::Builder::new()
        .name("embeddings".into())
        .spawn(move || serve(&embedder, &pool, &texts))
        .map_err(|error| format!("no thread for embeddings: {error}"))?;
    let ms = begun.elapsed().as_millis() as u64;
    tracing::info!(folder = %folder.display(), ms, "embeddings loaded");
    Ok(inbox)
}

fn serve(embedder: &Embedder, pool: &rayon::ThreadPool, texts: &Receiver<Text>) {
    for Text { text, only_known, until, responder } in texts {
        // Nobody waits any more.
        if Instant::now() >= until {
            continue;
        }
        let embedding = match only_known && !embedder.knows(&text) {
            true => Err(NoVector::Foreign),
            false => pool
                .install(|| embedder.embed(&text))
                .map(|vector| Embedding { vector, model: embedder.fingerprint() })
                .map_err(|error| NoVector::Failed(error.to_string())),
        };
        let _ = responder.send(embedding);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_model_the_answer_says_how_to_get_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let nowhere = Dirs::under(folder.path());
        let embeddings = Embeddings::new(&EmbeddingsRef::IfPulled, &nowhere).expect("nothing is loaded");
        embeddings.prepare("a test");
        let error = embeddings.embed("a text", Duration::from_secs(1)).expect_err("no model");
        assert!(error.contains("`jackfield model pull minilm`"), "{error}");
    }

    #[test]
    fn a_folder_that_is_named_and_holds_no_model_refuses_the_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = EmbeddingsRef::Folder(folder.path().to_owned());
        let refused = Embeddings::new(&named, &Dirs::under(folder.path())).map(drop);
        let Err(Failure::Failed(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("config.json"), "{why}");
    }
}
