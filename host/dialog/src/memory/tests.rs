//! What is exact in this store alone; what all promise is in `tests/conformance.rs`.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use super::*;
use crate::Dialog;

/// The memory store's futures are ready at once.
fn now<T>(mut future: BoxFuture<'_, T>) -> T {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store never waits"),
    }
}

fn key(id: &str) -> SessionKey {
    SessionKey::new("acme", id).expect("a good id")
}

fn state(text: &str) -> Session {
    let dialog = Dialog { state: text.into(), ..Dialog::default() };
    Session { dialog, ..Session::default() }
}

fn held(store: &MemoryStore, id: &str) -> (Session, Version) {
    match now(store.load(&key(id))) {
        Ok(Found::Held(session, version)) => (session, version),
        Ok(Found::New) => (Session::default(), Version::NEW),
        other => panic!("{other:?}"),
    }
}

/// A store whose clock the test steps, in seconds.
fn stepped(limits: MemoryLimits) -> (MemoryStore, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(0));
    let (start, read) = (Instant::now(), seconds.clone());
    let clock: Clock = Arc::new(move || start + Duration::from_secs(read.load(Ordering::SeqCst)));
    (MemoryStore::with_clock(limits, clock), seconds)
}

#[test]
fn of_many_turns_at_once_each_is_counted_exactly_once() {
    let store = MemoryStore::new(MemoryLimits::default());
    let conflicts = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    count_one_turn(&store, &conflicts);
                }
            });
        }
    });
    let (session, version) = held(&store, "shared");
    assert_eq!(session.dialog.turns, 1600);
    assert_eq!(version, Version(1600), "a refused commit gives no version");
}

fn count_one_turn(store: &MemoryStore, conflicts: &AtomicUsize) {
    loop {
        let (mut session, version) = held(store, "shared");
        session.dialog.turns += 1;
        match now(store.commit(&key("shared"), version, session)) {
            Ok(_) => return,
            Err(StoreError::Conflict { .. }) => conflicts.fetch_add(1, Ordering::SeqCst),
            Err(other) => panic!("{other}"),
        };
    }
}

#[test]
fn the_session_longest_unused_goes_first() {
    let store = MemoryStore::new(MemoryLimits { max_sessions: 2, ..MemoryLimits::default() });
    for id in ["a", "b"] {
        now(store.commit(&key(id), Version::NEW, state(id))).expect("commits");
    }
    now(store.load(&key("a"))).expect("loads");
    now(store.commit(&key("c"), Version::NEW, state("c"))).expect("commits");
    assert_eq!(store.len(), 2);
    assert_eq!(now(store.load(&key("b"))), Ok(Found::New), "pushed out is not expired");
    assert_eq!(held(&store, "a").0, state("a"));
}

#[test]
fn committing_again_does_not_push_another_out() {
    let store = MemoryStore::new(MemoryLimits { max_sessions: 2, ..MemoryLimits::default() });
    now(store.commit(&key("a"), Version::NEW, state("a"))).expect("commits");
    let mut version = now(store.commit(&key("b"), Version::NEW, state("b"))).expect("commits");
    for _ in 0..5 {
        version = now(store.commit(&key("b"), version, state("b"))).expect("commits");
    }
    assert_eq!(store.len(), 2);
}

#[test]
fn a_session_expires_unused_and_every_use_renews_it() {
    let (store, seconds) = stepped(MemoryLimits { ttl: Duration::from_secs(2), ..MemoryLimits::default() });
    let version = now(store.commit(&key("a"), Version::NEW, state("a"))).expect("commits");
    seconds.store(1, Ordering::SeqCst);
    assert_eq!(now(store.touch(&key("a"))), Ok(true));
    seconds.store(2, Ordering::SeqCst);
    assert_eq!(now(store.load(&key("a"))), Ok(Found::Held(state("a"), version)));
    seconds.store(4, Ordering::SeqCst);
    assert_eq!(now(store.touch(&key("a"))), Ok(false));
    assert!(store.is_empty());
    let late = now(store.commit(&key("a"), version, state("late")));
    assert_eq!(late, Err(StoreError::Conflict { expected: version, found: Version::NEW }));
    assert_eq!(now(store.load(&key("a"))), Ok(Found::Expired));
    seconds.store(6, Ordering::SeqCst);
    assert_eq!(now(store.load(&key("a"))), Ok(Found::New), "for as long again");
}

#[test]
fn what_expired_can_be_made_again_and_is_told_of_no_more() {
    let (store, seconds) = stepped(MemoryLimits { ttl: Duration::from_secs(2), ..MemoryLimits::default() });
    now(store.commit(&key("a"), Version::NEW, state("a"))).expect("commits");
    now(store.commit(&key("b"), Version::NEW, state("b"))).expect("commits");
    seconds.store(2, Ordering::SeqCst);
    now(store.commit(&key("a"), Version::NEW, state("again"))).expect("commits");
    assert_eq!(held(&store, "a").0, state("again"));
    assert_eq!(now(store.load(&key("b"))), Ok(Found::Expired));
    assert_eq!(now(store.delete(&key("b"))), Ok(false));
    assert_eq!(now(store.load(&key("b"))), Ok(Found::New));
    // It expires a second time while the note of the first is still there.
    seconds.store(4, Ordering::SeqCst);
    assert_eq!(now(store.load(&key("a"))), Ok(Found::Expired));
}
