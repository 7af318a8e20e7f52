//! What a store of sessions promises.

use std::{future::Future, pin::Pin, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Dialog, SessionKey};

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Numbers the states of a session: each commit gives a new one, never given before by that store.
/// [`Version::NEW`] is the version of a session that does not exist yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version(pub u64);

impl Version {
    /// Of a session that was never committed, was deleted, or expired.
    pub const NEW: Version = Version(0);
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
    /// The dialog is larger than the store keeps: set fewer or shorter slots.
    #[error("the dialog takes {bytes} bytes; the store keeps at most {max}")]
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

/// Where dialogs are kept between turns.
pub trait SessionStore: Send + Sync {
    /// What is held under this key, or a new dialog at [`Version::NEW`]. Counts as a use of the session.
    fn load(&self, key: &SessionKey) -> BoxFuture<'_, Result<(Dialog, Version), StoreError>>;

    /// Put `dialog` in the place of the state at `expected`, wholly or not at all.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the session is not at `expected`. [`StoreError::TooLarge`].
    fn commit(
        &self,
        key: &SessionKey,
        expected: Version,
        dialog: Dialog,
    ) -> BoxFuture<'_, Result<Version, StoreError>>;

    /// Forget the session. Whether there was one.
    fn delete(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Count as a use, so that a session does not expire under a long answer. Whether there is one.
    fn touch(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// How often a session in use is to be touched: well below the time after which this store forgets one.
    fn touch_every(&self) -> Duration;
}
