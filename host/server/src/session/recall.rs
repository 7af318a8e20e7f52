//! Back to what was said before: who asks for it, what comes of it, and the vector by which a turn is found again.

use std::sync::Arc;
use std::time::Duration;

use aho_corasick::{AhoCorasick, MatchKind};
use jackfield_dialog::Recalled;

use super::open::OpenSession;
use crate::config::{RecallBy, SessionConfig};
use crate::openai;

/// The vector of a text, of length 1, or why there is none, within the time given. Blocks its thread.
pub type Embed = Arc<dyn Fn(&str, Duration) -> Result<Vec<f32>, String> + Send + Sync>;

/// How long a turn waits for the vector of what it is to go back to. It takes milliseconds; this is for a host that is full.
const RECALL_PATIENCE: Duration = Duration::from_millis(500);
/// How long the end of a turn waits for each of the two vectors of what was said, where they are not there yet.
const SUMMARY_PATIENCE: Duration = Duration::from_millis(500);
/// Of what a user says, the bytes that are looked at: the topic is named early, and long texts take long.
const SAID_BYTES: usize = 600;
/// The same of an answer.
const ANSWER_BYTES: usize = 200;

/// What recall needs of the host.
pub(crate) struct Recall {
    embed: Embed,
    phrases: Option<Phrases>,
}

/// What is to be gone back to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// In words.
    text: String,
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
    pub(crate) fn new(config: &SessionConfig, embed: Option<Embed>) -> Option<Arc<Recall>> {
        let phrases = match config.recall {
            RecallBy::Nobody => return None,
            RecallBy::Request => None,
            RecallBy::Phrases => Phrases::new(&config.recall_phrases),
        };
        let embed = embed.unwrap_or_else(|| Arc::new(|_: &str, _| Err("this host has no embeddings".into())));
        Some(Arc::new(Recall { embed, phrases }))
    }
}

impl Went {
    /// For the trace.
    pub(crate) fn did(&self) -> String {
        match self {
            Went::Back(Recalled { turn, likeness }) => format!("back to turn {turn}, likeness {likeness:.2}"),
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
                let said = self.utterance().filter(|said| phrases.is_some_and(|them| them.are_in(said)))?;
                // A phrase alone does not tell whether it is this topic that is meant.
                Some(Wanted { text: said.to_owned(), may_stay: true })
            }
        }
    }

    /// The same for somebody who knows that another segment is meant. What the user says, where `text` is empty.
    pub(crate) fn wanted_as(&self, text: &str) -> Wanted {
        let text = if text.is_empty() { self.utterance().unwrap_or_default() } else { text };
        Wanted { text: text.to_owned(), may_stay: false }
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
        match (recall.embed)(head(&wanted.text, SAID_BYTES), RECALL_PATIENCE) {
            Ok(vector) => self.session.recall(&vector, wanted.may_stay).map_or(Went::Nowhere, Went::Back),
            Err(why) => Went::Failed(why),
        }
    }

    /// Takes notice of the answer as far as it has come: once that is enough, its vector is made beside the rest.
    pub(crate) fn hear(&mut self, answer: &str) {
        if answer.len() >= ANSWER_BYTES {
            self.summarise(answer);
        }
    }

    /// The vector of what was said in this turn, where there is one.
    pub(super) async fn summary(&mut self, answer: &str) -> Option<Vec<f32>> {
        self.summarise(answer);
        match tokio::time::timeout(2 * SUMMARY_PATIENCE, self.summary.take()?).await {
            Ok(Ok(Ok(vector))) => Some(vector),
            Ok(Ok(Err(why))) => {
                tracing::debug!(why, "a turn has no vector");
                None
            }
            // No thread for it in time, or a panic there.
            Ok(Err(_)) | Err(_) => None,
        }
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
fn exchange(embed: &Embed, said: &str, answer: &str) -> Result<Vec<f32>, String> {
    let question = embed(said, SUMMARY_PATIENCE)?;
    let both = embed(&format!("{said}\n{answer}"), SUMMARY_PATIENCE)?;
    Ok(question.iter().zip(&both).map(|(question, both)| question + both).collect())
}

/// Words that say that something said before is meant, in any case.
struct Phrases(AhoCorasick);

impl Phrases {
    /// None when nothing can be searched for with these.
    fn new(phrases: &[String]) -> Option<Phrases> {
        let phrases = phrases.iter().map(|phrase| phrase.to_lowercase());
        // Overlapping matches: one that ends inside a word must not hide another.
        let built = AhoCorasick::builder().match_kind(MatchKind::Standard).build(phrases);
        built.inspect_err(|error| tracing::warn!(%error, "phrases cannot be looked for")).ok().map(Phrases)
    }

    fn are_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.0
            .find_overlapping_iter(&text)
            .any(|found| !joins_letters(&text, found.start()) && !joins_letters(&text, found.end()))
    }
}

/// Whether a letter of a script that puts spaces between words stands on both sides.
fn joins_letters(text: &str, at: usize) -> bool {
    let is_letter = |character: char| character.is_alphabetic() && character < '\u{2e80}';
    let (before, after) = text.split_at(at);
    before.chars().next_back().is_some_and(is_letter) && after.chars().next().is_some_and(is_letter)
}

/// The beginning of a text, whole characters in so many bytes at most.
fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests;
