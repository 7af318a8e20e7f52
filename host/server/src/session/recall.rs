//! Back to what was said before: who asks for it, what comes of it, and the vector by which a turn is found again.

use std::sync::Arc;
use std::time::Duration;

use jackfield_dialog::{ANSWER_BYTES, Embedding, Recalled, SAID_BYTES, Sought};

use super::open::OpenSession;
use super::phrases::Phrases;
use crate::config::{RecallBy, SessionConfig};
use crate::metrics::NoVectors;
use crate::openai;

/// The vector of a text, of length 1, or why there is none, within the time given. Blocks its thread.
pub type Embed = Arc<dyn Fn(&str, Duration) -> Result<Embedding, NoVector> + Send + Sync>;

/// Why a text has no vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoVector {
    /// The model does not know its words.
    Foreign,
    /// There is no model, or no time.
    Failed(String),
}

/// How long a turn waits for the vector of what it is to go back to. It takes milliseconds; this is for a host that is full.
const RECALL_PATIENCE: Duration = Duration::from_millis(500);
/// How long the end of a turn waits for each of the two vectors of what was said, where they are not there yet.
const SUMMARY_PATIENCE: Duration = Duration::from_millis(500);

/// What recall needs of the host.
pub(crate) struct Recall {
    embed: Embed,
    phrases: Option<Phrases>,
    no_vectors: NoVectors,
}

/// What is to be gone back to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// In words.
    text: String,
    /// Of these, those that name it.
    named: String,
    /// And those beside them.
    beside: String,
    /// It may be what is spoken of already.
    may_stay: bool,
}

/// What came of it.
#[derive(Debug, PartialEq)]
pub(crate) enum Went {
    /// To an earlier segment.
    Back(Recalled),
    /// Nowhere: no other segment is like it.
    Nowhere,
    /// Nowhere, since there was no vector.
    Failed(String),
    /// Nowhere, since this host keeps no vectors.
    Off,
}

impl Recall {
    /// None where nothing is recalled.
    pub(crate) fn new(
        config: &SessionConfig,
        embed: Option<Embed>,
        no_vectors: NoVectors,
    ) -> Option<Arc<Recall>> {
        let phrases = match config.recall {
            RecallBy::Nobody => return None,
            RecallBy::Request => None,
            RecallBy::Phrases => Phrases::new(&config.recall_phrases),
        };
        let absent = || NoVector::Failed("this host has no embeddings".into());
        let embed = embed.unwrap_or_else(|| Arc::new(move |_: &str, _| Err(absent())));
        Some(Arc::new(Recall { embed, phrases, no_vectors }))
    }
}

impl Went {
    /// For the trace.
    pub(crate) fn did(&self) -> String {
        match self {
            Went::Back(Recalled { turn, likeness, by_words: false }) => {
                format!("back to turn {turn}, likeness {likeness:.2}")
            }
            Went::Back(Recalled { turn, likeness, .. }) => {
                format!("back to turn {turn}, by words: {likeness:.2}")
            }
            Went::Nowhere => "nothing: no other segment is like it".into(),
            Went::Failed(why) => format!("nothing: {why}"),
            Went::Off => "nothing: recall is off".into(),
        }
    }

    /// For the count of outcomes.
    pub(crate) fn outcome(&self) -> &'static str {
        match self {
            Went::Back(_) => "found",
            Went::Nowhere => "nothing",
            Went::Failed(_) => "failed",
            Went::Off => "off",
        }
    }
}

impl OpenSession {
    /// What this turn is to go back to: as the request says, else as a phrase in it does. None where nobody wants it.
    pub(crate) fn wanted(&self, request: Option<&openai::Recall>) -> Option<Wanted> {
        let phrases = self.recall.as_ref().and_then(|recall| recall.phrases.as_ref());
        match request {
            Some(openai::Recall::Never) => None,
            Some(openai::Recall::Said) => Some(self.wanted_as("")),
            Some(openai::Recall::About(text)) => Some(self.wanted_as(text)),
            None => {
                let text = self.utterance()?;
                let (named, beside) = phrases?.around(head(text, SAID_BYTES))?;
                // A phrase alone does not tell whether it is this topic that is meant.
                Some(Wanted { text: text.to_owned(), named, beside, may_stay: true })
            }
        }
    }

    /// The same for somebody who knows that another segment is meant. What the user says, where `text` is empty.
    pub(crate) fn wanted_as(&self, text: &str) -> Wanted {
        let text = if text.is_empty() { self.utterance().unwrap_or_default() } else { text };
        let named = head(text, SAID_BYTES).to_owned();
        Wanted { text: text.to_owned(), named, beside: String::new(), may_stay: false }
    }

    /// Goes back, where there is a segment to go back to: the turn follows its last one then. Waits for a vector, on a thread
    /// that may block.
    pub(crate) fn go_back(&mut self, wanted: &Wanted) -> Went {
        let went = self.find(wanted);
        self.resumes = match &went {
            Went::Back(found) => Some(found.turn),
            _ => self.resumes,
        };
        self.was_asked_back = true;
        went
    }

    fn find(&self, wanted: &Wanted) -> Went {
        let Some(recall) = &self.recall else { return Went::Off };
        let embedding = (recall.embed)(head(&wanted.text, SAID_BYTES), RECALL_PATIENCE);
        let Wanted { named, beside, may_stay, .. } = wanted;
        let sought = Sought { embedding: embedding.as_ref().ok(), named, beside, may_stay: *may_stay };
        match (self.session.recall(&sought), embedding) {
            (Some(found), _) => Went::Back(found),
            (None, Err(NoVector::Failed(why))) => Went::Failed(why),
            (None, _) => Went::Nowhere,
        }
    }

    /// Takes notice of the answer as far as it has come: once that is enough, its vector is made beside the rest.
    pub(crate) fn hear(&mut self, answer: &str) {
        if answer.len() >= ANSWER_BYTES {
            self.summarise(answer);
        }
    }

    /// The vector of what was said in this turn, where there is one.
    pub(super) async fn summary(&mut self, answer: &str) -> Option<Embedding> {
        self.summarise(answer);
        let why = match tokio::time::timeout(2 * SUMMARY_PATIENCE, self.summary.take()?).await {
            Ok(Ok(Ok(embedding))) => return Some(embedding),
            Ok(Ok(Err(NoVector::Foreign))) => "foreign",
            Ok(Ok(Err(NoVector::Failed(why)))) => {
                tracing::debug!(why, "a turn has no vector");
                "failed"
            }
            // No thread for it in time, or a panic there.
            Ok(Err(_)) | Err(_) => "late",
        };
        self.recall.iter().for_each(|recall| recall.no_vectors.count(why));
        None
    }

    fn summarise(&mut self, answer: &str) {
        let Some(recall) = self.recall.as_ref().filter(|_| self.summary.is_none()) else { return };
        let Some(said) = self.utterance() else { return };
        let (said, answer) = (head(said, SAID_BYTES).to_owned(), head(answer, ANSWER_BYTES).to_owned());
        let embed = Arc::clone(&recall.embed);
        self.summary = Some(tokio::task::spawn_blocking(move || exchange(&embed, &said, &answer)));
    }
}

/// A vector of the question, added to one of question and answer. A question that goes on ("and how long?") does not name its
/// topic, its answer mostly does; and where the model is lost in what was said before, its answer is about that, whatever is
/// asked.
fn exchange(embed: &Embed, said: &str, answer: &str) -> Result<Embedding, NoVector> {
    let question = embed(said, SUMMARY_PATIENCE)?;
    let Embedding { mut vector, model } = embed(&format!("{said}\n{answer}"), SUMMARY_PATIENCE)?;
    vector.iter_mut().zip(&question.vector).for_each(|(both, question)| *both += question);
    Ok(Embedding { vector, model })
}

/// The beginning of a text, whole characters in so many bytes at most.
fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests;
