//! What the tests of stores share. Each of them uses a part of it.
#![allow(dead_code)]

pub(crate) mod counting;
pub(crate) mod net;
pub(crate) mod server;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use jackfield_dialog::{
    Clock, Dialog, DiskClocks, Found, Session, SessionKey, SessionStore, Slot, StoreError, Value, Version,
};

/// A key of the tenant `acme`.
pub(crate) fn key(id: &str) -> SessionKey {
    SessionKey::new("acme", id).expect("a good id")
}

/// A session whose state is this text, with a number that JSON would not bring back.
pub(crate) fn state(text: &str) -> Session {
    let mut dialog = Dialog { state: text.into(), turns: 1, ..Dialog::default() };
    let value = Value::Number(0.1 + 0.2);
    dialog.set(Slot {
        name: "n".into(),
        value,
        source: None,
        confidence: 0.7,
        turn: 1,
        policy: "p@1".into(),
    });
    Session { dialog, ..Session::new(vec![], 5) }
}

/// What is held, or an empty session at the version of a new one.
pub(crate) async fn held(store: &dyn SessionStore, key: &SessionKey) -> (Session, Version) {
    match store.load(key).await {
        Ok(Found::Held(session, version)) => (session, version),
        Ok(Found::New) => (Session::default(), Version::NEW),
        other => panic!("{other:?}"),
    }
}

/// Commits a new session.
pub(crate) async fn begin(store: &dyn SessionStore, key: &SessionKey, text: &str) -> Version {
    store.commit(key, Version::NEW, state(text)).await.expect("commits")
}

/// Counts one turn, against all others that do so, and says the versions given.
pub(crate) async fn count_one(store: &dyn SessionStore, key: &SessionKey) -> Version {
    loop {
        let (mut session, version) = held(store, key).await;
        session.dialog.turns += 1;
        match store.commit(key, version, session).await {
            Ok(version) => return version,
            Err(StoreError::Conflict { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// A clock that stands still until the test steps it.
#[derive(Clone)]
pub(crate) struct Stepped {
    start: Instant,
    ms: Arc<AtomicU64>,
}

impl Stepped {
    pub(crate) fn new() -> Stepped {
        Stepped { start: Instant::now(), ms: Arc::default() }
    }

    pub(crate) fn step(&self, by: Duration) {
        self.ms.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> Clock {
        let this = self.clone();
        Arc::new(move || this.start + Duration::from_millis(this.ms.load(Ordering::SeqCst)))
    }

    pub(crate) fn clocks(&self) -> DiskClocks {
        let this = self.clone();
        let unix_ms = move || 1_700_000_000_000 + this.ms.load(Ordering::SeqCst) as i64;
        DiskClocks { monotonic: self.clock(), unix_ms: Arc::new(unix_ms) }
    }
}
