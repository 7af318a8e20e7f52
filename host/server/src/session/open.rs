//! The session a turn belongs to: loaded before it, committed after it, one turn at a time.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use jackfield_dialog::{
    Change, Dialog, Embedding, Found, Message, PastTurn, Role, Session, SessionKey, SessionStore, StoreError,
    Version,
};
use tokio::task::{AbortHandle, JoinHandle};

use super::line::{Lines, Place};
use super::messages::{Sent, sent};
use super::recall::{NoVector, Recall};
use crate::config::{OnConflict, OnExpired, SessionConfig};
use crate::error::ApiError;
use crate::openai;

/// So often a turn is added to what others have committed in between before it is given up.
const MOST_MERGES: u32 = 8;

/// A turn in progress is a use of its session, however long it waits, thinks or writes. Dropping this ends the renewing.
struct Renewal(AbortHandle);

impl Renewal {
    fn start(store: Arc<dyn SessionStore>, key: SessionKey) -> Renewal {
        // A store that says zero must not keep a thread busy.
        let every = store.touch_every().max(Duration::from_millis(1));
        let renew = async move {
            loop {
                tokio::time::sleep(every).await;
                if let Err(error) = store.touch(&key).await {
                    tracing::warn!(%error, "a session could not be renewed");
                }
            }
        };
        Renewal(tokio::spawn(renew).abort_handle())
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A session in the hands of one turn. Dropping it without a commit leaves the session as it was.
pub(crate) struct OpenSession {
    store: Arc<dyn SessionStore>,
    key: SessionKey,
    on_conflict: OnConflict,
    _place: Place,
    _renewal: Renewal,
    version: Version,
    /// As it was loaded.
    pub(super) session: Session,
    /// It had been there before, and expired.
    restarted: bool,
    /// What this turn adds.
    sent: Sent,
    pub(super) recall: Option<Arc<Recall>>,
    /// The turn that this one follows, where it goes back.
    pub(super) resumes: Option<u32>,
    /// Somebody wanted it to go back.
    pub(super) was_asked_back: bool,
    /// The vector of this turn, in the making.
    pub(super) summary: Option<JoinHandle<Result<Embedding, NoVector>>>,
    /// The state that will be committed.
    pub(crate) dialog: Dialog,
}

/// How a turn ended.
pub(crate) struct Outcome {
    /// What was sent to the client; none when nothing of a conversation was.
    pub(crate) answer: Option<String>,
    /// The generation of policies that it ran under.
    pub(crate) generation: u64,
    /// When.
    pub(crate) unix_ms: i64,
}

/// Where sessions are and how they are treated.
pub(crate) struct Sessions {
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) lines: Arc<Lines>,
    pub(crate) config: SessionConfig,
    /// None where no turn goes back to an earlier topic.
    pub(crate) recall: Option<Arc<Recall>>,
}

impl Sessions {
    /// The key of a client's id.
    ///
    /// # Errors
    /// 400 for an id that is none.
    pub(crate) fn key(&self, tenant: &str, id: &str) -> Result<SessionKey, ApiError> {
        SessionKey::new(tenant, id)
            .map_err(|error| ApiError::invalid("session", "invalid_value", format!("`session`: {error}")))
    }

    /// The session's turn, waited for.
    ///
    /// # Errors
    /// 409 while others have it, where nobody may wait or too many do.
    pub(crate) async fn place(&self, key: &SessionKey) -> Result<Place, ApiError> {
        let place = self.lines.enter(key, self.config.waiting_turns).await;
        place.map_err(|_| conflict("Another turn of this session is in progress"))
    }

    /// Loads a session for a turn; a new one where there is none.
    ///
    /// # Errors
    /// 400 for an id that is none, 409 while other turns of it run, 410 for one that expired, 503 when the store does not
    /// answer.
    pub(crate) async fn open(&self, tenant: &str, id: &str, unix_ms: i64) -> Result<OpenSession, ApiError> {
        let key = self.key(tenant, id)?;
        let place = self.place(&key).await?;
        let found = self.store.load(&key).await.map_err(store_error)?;
        let restarted = found == Found::Expired;
        let (session, version) = match found {
            Found::Held(session, version) => (session, version),
            Found::Expired if self.config.on_expired == OnExpired::Refuse => return Err(expired(id)),
            Found::New | Found::Expired => (Session::new(Vec::new(), unix_ms), Version::NEW),
        };
        let renewal = Renewal::start(Arc::clone(&self.store), key.clone());
        Ok(OpenSession {
            store: Arc::clone(&self.store),
            key,
            on_conflict: self.config.on_conflict,
            _place: place,
            _renewal: renewal,
            version,
            dialog: session.dialog.clone(),
            session,
            restarted,
            sent: Sent { instructions: None, messages: Vec::new() },
            recall: self.recall.clone(),
            resumes: None,
            was_asked_back: false,
            summary: None,
        })
    }
}

impl OpenSession {
    /// Takes the messages of a request as this turn's, and gives the whole conversation. A client that sends all that was
    /// said before its new messages is understood.
    pub(crate) fn take(&mut self, messages: &[openai::Message]) -> Vec<openai::Message> {
        let mut new = Sent::of(messages);
        if let Some(beyond) = self.session.beyond_history(&new.messages) {
            new.messages = beyond.to_vec();
        }
        self.sent = new;
        self.messages()
    }

    /// The conversation that is in force: the instructions, the turns that lead up to this one, and what it adds.
    pub(crate) fn messages(&self) -> Vec<openai::Message> {
        let instructions = self.sent.instructions.as_ref().unwrap_or(&self.session.instructions);
        let path = self.session.path(self.resumes);
        let said = path.into_iter().flat_map(|turn| &turn.messages);
        instructions.iter().chain(said).chain(&self.sent.messages).map(sent).collect()
    }

    /// What the user says in this turn; none where it ends in something else.
    pub(super) fn utterance(&self) -> Option<&str> {
        let last = self.sent.messages.last().filter(|last| last.role == Role::User)?;
        last.content.as_deref().filter(|text| !text.trim().is_empty())
    }

    /// For the client: the session's id, the number of this turn, whether the session had expired, and the turn that this one
    /// goes back to, where that was asked for.
    pub(crate) fn note(&self) -> String {
        let turn = self.session.turns.len() + 1;
        let restarted = if self.restarted { ";restarted" } else { "" };
        let recalled = match self.resumes {
            Some(turn) => format!(";resumes={turn}"),
            None if self.was_asked_back => ";resumes=none".into(),
            None => String::new(),
        };
        format!("{};turn={turn}{restarted}{recalled}", self.key.id())
    }

    /// Makes this turn a part of the session.
    ///
    /// # Errors
    /// 409 when another host committed a turn in between and that is not to be merged, or the session was deleted; then
    /// nothing of this turn is kept.
    pub(crate) async fn commit(mut self, outcome: Outcome) -> Result<(), ApiError> {
        let embedding = self.summary(outcome.answer.as_deref().unwrap_or_default()).await;
        let OpenSession { store, key, on_conflict, version, session, sent, dialog, resumes, recall, .. } =
            self;
        let mut messages = sent.messages;
        messages.extend(outcome.answer.map(|answer| Message::plain(Role::Assistant, answer)));
        let turn = PastTurn {
            messages,
            resumes,
            change: Change::between(&session.dialog, &dialog),
            generation: outcome.generation,
            unix_ms: outcome.unix_ms,
            ..PastTurn::default()
        };
        let known = session.turns.clone();
        let (mut next, mut expected) = (session, version);
        for _ in 0..MOST_MERGES {
            next.push_late(known.len(), turn.clone()).iter().for_each(|lost| {
                tracing::warn!(
                    session = key.id(),
                    slot = lost.name,
                    "two turns at once changed a slot; the later one holds"
                );
            });
            if recall.is_some() || !next.segments.is_empty() {
                next.place_last(embedding.as_ref());
            }
            if let Some(instructions) = &sent.instructions {
                next.instructions.clone_from(instructions);
            }
            match store.commit(&key, expected, next).await {
                Ok(_) => return Ok(()),
                Err(StoreError::Conflict { .. }) if on_conflict == OnConflict::Merge => {}
                Err(error) => return Err(store_error(error)),
            }
            match store.load(&key).await.map_err(store_error)? {
                Found::Held(newer, version) if newer.turns.starts_with(&known) && version != expected => {
                    (next, expected) = (newer, version);
                }
                // Deleted, or another session by the same name.
                _ => break,
            }
        }
        Err(conflict("The session changed while this turn ran"))
    }
}

fn conflict(message: &str) -> ApiError {
    let message = format!("{message}; send it again");
    ApiError::new(StatusCode::CONFLICT, "invalid_request_error", "session_conflict", message)
        .with_param("session")
        .with_retry(1)
}

/// A session that was there and is no more.
pub(crate) fn expired(id: &str) -> ApiError {
    let message = format!(
        "The session `{id}` was not used for too long and has been forgotten; make it anew with POST /v1/sessions, or use \
         another id"
    );
    ApiError::new(StatusCode::GONE, "invalid_request_error", "session_expired", message).with_param("session")
}

/// What a client is told of a store that failed.
pub(crate) fn store_error(error: StoreError) -> ApiError {
    match error {
        StoreError::Conflict { .. } => conflict("The session changed while this turn ran"),
        StoreError::TooLarge { .. } => {
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            ApiError::new(status, "invalid_request_error", "session_too_large", error.to_string())
                .with_param("session")
        }
        StoreError::Unavailable(why) => {
            tracing::error!(why, "the session store failed");
            ApiError::unavailable("session_store_unavailable", "The session store does not answer")
        }
    }
}

#[cfg(test)]
mod tests;
