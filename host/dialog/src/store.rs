//! What a store of sessions promises.

use std::{future::Future, pin::Pin, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Session, SessionKey};

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Numbers the states of a session: each commit gives a new one, never given before by that store to that tenant.
/// [`Version::NEW`] is the version of a session that does not exist yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version(pub u64);

impl Version {
    /// Of a session that was never committed, was deleted, or expired.
    pub const NEW: Version = Version(0);
}

/// What a store holds under a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Nothing, and nothing is known of it: to be committed at [`Version::NEW`].
    New,
    /// Nothing any more: it was not used for too long. Told for as long again. To be committed at [`Version::NEW`].
    Expired,
    /// A session, at this version.
    Held(Session, Version),
}

/// One line of a list of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its id within the tenant.
    pub id: String,
    /// Turns committed.
    pub turns: u32,
    /// When it was made, in milliseconds since 1970 UTC.
    pub created_unix_ms: i64,
    /// When it last changed.
    pub updated_unix_ms: i64,
}

impl Listed {
    /// The line of a session.
    pub fn of(key: &SessionKey, session: &Session) -> Listed {
        Listed {
            id: key.id().to_owned(),
            turns: session.dialog.turns,
            created_unix_ms: session.created_unix_ms,
            updated_unix_ms: session.updated_unix_ms,
        }
    }
}

/// Why a store could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another turn of the session committed (or deleted it, or it expired) since it was loaded: load again.
    #[error(
        "the session changed while this turn ran: it is at version {}, not {}", found.0, expected.0
    )]
    Conflict {
        /// What the caller had loaded.
        expected: Version,
        /// What the store holds now.
        found: Version,
    },
    /// The session is larger than the store keeps: branch it off, or begin another.
    #[error("the session takes {bytes} bytes; the store keeps at most {max}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The store's limit.
        max: usize,
    },
    /// The store itself cannot be reached or read.
    #[error("the session store failed: {0}")]
    Unavailable(String),
}

/// Refuses a session that is too large.
pub(crate) fn check_size(session: &Session, max: usize) -> Result<(), StoreError> {
    let bytes = session.size_bytes();
    if bytes > max { Err(StoreError::TooLarge { bytes, max }) } else { Ok(()) }
}

/// Where sessions are kept between turns.
pub trait SessionStore: Send + Sync {
    /// What is held under this key. Counts as a use of the session.
    fn load(&self, key: &SessionKey) -> BoxFuture<'_, Result<Found, StoreError>>;

    /// Put `session` in the place of the state at `expected`, wholly or not at all.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the session is not at `expected`. [`StoreError::TooLarge`].
    fn commit(
        &self,
        key: &SessionKey,
        expected: Version,
        session: Session,
    ) -> BoxFuture<'_, Result<Version, StoreError>>;

    /// Forget the session, and that it ever was. Whether there was one.
    fn delete(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Count as a use, so that a session does not expire under a long answer. Whether there is one.
    fn touch(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// The sessions of a tenant in the order of their ids, those after `after`, `limit` of them at most. Not a use.
    fn list(
        &self,
        tenant: &str,
        after: Option<&str>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Listed>, StoreError>>;

    /// A session not used for so long is forgotten.
    fn ttl(&self) -> Duration;

    /// How often a session in use is to be touched: well below the time after which this store forgets one.
    fn touch_every(&self) -> Duration {
        self.ttl() / 4
    }
}
