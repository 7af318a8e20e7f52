//! The dialog a turn belongs to: loaded before it, committed after it, one turn at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use jackfield_dialog::{Dialog, SessionKey, SessionStore, StoreError, Version};
use tokio::task::AbortHandle;

use crate::error::ApiError;

/// Sessions that have a turn in progress on this host.
#[derive(Debug, Default)]
pub(crate) struct Busy(Mutex<HashSet<SessionKey>>);

/// Holds a session's place in [`Busy`].
#[derive(Debug)]
struct Place {
    busy: Arc<Busy>,
    key: SessionKey,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.busy.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

impl Busy {
    fn take(self: &Arc<Self>, key: &SessionKey) -> Option<Place> {
        let new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        new.then(|| Place { busy: Arc::clone(self), key: key.clone() })
    }
}

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
    place: Place,
    _renewal: Renewal,
    version: Version,
    /// The state that will be committed.
    pub(crate) dialog: Dialog,
}

impl OpenSession {
    /// Loads the dialog `id` of a tenant.
    ///
    /// # Errors
    /// 400 for an id that is none, 409 while another turn of it runs, 503 when the store does not answer.
    pub(crate) async fn open(
        store: &Arc<dyn SessionStore>,
        busy: &Arc<Busy>,
        tenant: &str,
        id: &str,
    ) -> Result<OpenSession, ApiError> {
        let key = SessionKey::new(tenant, id)
            .map_err(|error| ApiError::invalid("session", "invalid_value", format!("`session`: {error}")))?;
        let place = busy.take(&key).ok_or_else(|| conflict("Another turn of this session is in progress"))?;
        let (dialog, version) = store.load(&key).await.map_err(store_error)?;
        let renewal = Renewal::start(Arc::clone(store), key);
        Ok(OpenSession { store: Arc::clone(store), place, _renewal: renewal, version, dialog })
    }

    /// Makes this turn's state the session's.
    ///
    /// # Errors
    /// 409 when someone else committed in between; then nothing of this turn is kept.
    pub(crate) async fn commit(self) -> Result<(), ApiError> {
        let mut dialog = self.dialog;
        dialog.turns = dialog.turns.saturating_add(1);
        let committed = self.store.commit(&self.place.key, self.version, dialog).await;
        committed.map(|_| ()).map_err(store_error)
    }
}

fn conflict(message: &str) -> ApiError {
    let message = format!("{message}; send it again");
    ApiError::new(StatusCode::CONFLICT, "invalid_request_error", "session_conflict", message)
        .with_param("session")
        .with_retry(1)
}

fn store_error(error: StoreError) -> ApiError {
    match error {
        StoreError::Conflict { .. } => conflict("The session changed while this turn ran"),
        StoreError::TooLarge { .. } => ApiError::internal("session_too_large", error.to_string()),
        StoreError::Unavailable(why) => {
            tracing::error!(why, "the session store failed");
            ApiError::unavailable("session_store_unavailable", "The session store does not answer")
        }
    }
}

#[cfg(test)]
mod tests {
    use jackfield_dialog::{MemoryLimits, MemoryStore};

    use super::*;

    async fn open(store: &Arc<dyn SessionStore>, busy: &Arc<Busy>, tenant: &str) -> Result<OpenSession, u16> {
        OpenSession::open(store, busy, tenant, "s").await.map_err(|error| error.status.as_u16())
    }

    #[tokio::test]
    async fn one_turn_at_a_time_and_none_half() {
        let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new(MemoryLimits::default()));
        let busy = Arc::new(Busy::default());
        let mut first = open(&store, &busy, "a").await.unwrap();
        assert_eq!(open(&store, &busy, "a").await.err(), Some(409));
        assert!(open(&store, &busy, "b").await.is_ok(), "the same id of another tenant is another session");
        first.dialog.state = "asked".into();
        drop(first);
        let mut second = open(&store, &busy, "a").await.unwrap();
        assert_eq!(second.dialog.state, "", "a turn that was given up leaves nothing");
        second.dialog.state = "asked".into();
        second.commit().await.unwrap();
        let third = open(&store, &busy, "a").await.unwrap();
        assert_eq!((third.dialog.state.as_str(), third.dialog.turns), ("asked", 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_longer_than_a_session_lives_keeps_it_alive() {
        let ttl = Duration::from_secs(60);
        let limits = MemoryLimits { ttl, ..MemoryLimits::default() };
        let clock = Arc::new(|| tokio::time::Instant::now().into_std());
        let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::with_clock(limits, clock));
        let busy = Arc::new(Busy::default());
        let mut first = open(&store, &busy, "a").await.unwrap();
        first.dialog.state = "asked".into();
        first.commit().await.unwrap();
        let long = open(&store, &busy, "a").await.unwrap();
        tokio::time::sleep(ttl * 10).await;
        long.commit().await.unwrap();
        tokio::time::sleep(ttl * 2).await;
        let later = open(&store, &busy, "a").await.unwrap();
        assert_eq!(later.dialog, Dialog::default(), "without a turn it is forgotten as before");
        drop(later);
        let key = SessionKey::new("a", "s").unwrap();
        let renewal = Renewal::start(Arc::clone(&store), key);
        let task = renewal.0.clone();
        drop(renewal);
        tokio::time::sleep(ttl).await;
        assert!(task.is_finished(), "nothing is left of a turn that has ended");
    }

    #[tokio::test]
    async fn a_session_deleted_in_between_is_a_conflict() {
        let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new(MemoryLimits::default()));
        let busy = Arc::new(Busy::default());
        open(&store, &busy, "a").await.unwrap().commit().await.unwrap();
        let second = open(&store, &busy, "a").await.unwrap();
        store.delete(&SessionKey::new("a", "s").unwrap()).await.unwrap();
        assert_eq!(second.commit().await.unwrap_err().status, 409);
    }
}
