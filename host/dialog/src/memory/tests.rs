use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    task::{Context, Poll, Waker},
    thread,
};

use super::*;

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

fn state(text: &str) -> Dialog {
    Dialog { state: text.into(), ..Dialog::default() }
}

/// A store whose clock the test steps, in seconds.
fn stepped(limits: MemoryLimits) -> (MemoryStore, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(0));
    let (start, read) = (Instant::now(), seconds.clone());
    let clock: Clock = Arc::new(move || start + Duration::from_secs(read.load(Ordering::SeqCst)));
    (MemoryStore::with_clock(limits, clock), seconds)
}

#[test]
fn a_new_session_is_empty_and_a_commit_is_found_again() {
    let store = MemoryStore::new(MemoryLimits::default());
    let (dialog, version) = now(store.load(&key("a"))).expect("loads");
    assert_eq!((dialog, version), (Dialog::default(), Version::NEW));
    let committed = now(store.commit(&key("a"), version, state("asked"))).expect("commits");
    assert_eq!(now(store.load(&key("a"))), Ok((state("asked"), committed)));
}

#[test]
fn the_second_of_two_commits_on_one_version_is_refused() {
    let store = MemoryStore::new(MemoryLimits::default());
    let first = now(store.commit(&key("a"), Version::NEW, state("first"))).expect("commits");
    let second = now(store.commit(&key("a"), Version::NEW, state("second")));
    assert_eq!(second, Err(StoreError::Conflict { expected: Version::NEW, found: first }));
    assert_eq!(now(store.load(&key("a"))), Ok((state("first"), first)));
}

#[test]
fn a_turn_cannot_bring_back_a_deleted_session() {
    let store = MemoryStore::new(MemoryLimits::default());
    let old = now(store.commit(&key("a"), Version::NEW, state("x"))).expect("commits");
    assert_eq!(now(store.delete(&key("a"))), Ok(true));
    assert_eq!(now(store.delete(&key("a"))), Ok(false));
    // Made anew in between: its version is not the old one again.
    now(store.commit(&key("a"), Version::NEW, state("anew"))).expect("commits");
    let late = now(store.commit(&key("a"), old, state("late")));
    assert!(matches!(late, Err(StoreError::Conflict { .. })), "{late:?}");
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
    let (dialog, version) = now(store.load(&key("shared"))).expect("loads");
    assert_eq!(dialog.turns, 1600);
    assert_eq!(version, Version(1600), "a refused commit gives no version");
}

fn count_one_turn(store: &MemoryStore, conflicts: &AtomicUsize) {
    loop {
        let (mut dialog, version) = now(store.load(&key("shared"))).expect("loads");
        dialog.turns += 1;
        match now(store.commit(&key("shared"), version, dialog)) {
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
    assert_eq!(now(store.load(&key("b"))), Ok((Dialog::default(), Version::NEW)));
    assert_eq!(now(store.load(&key("a"))).expect("loads").0, state("a"));
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
    assert_eq!(now(store.load(&key("a"))), Ok((state("a"), version)));
    seconds.store(4, Ordering::SeqCst);
    assert_eq!(now(store.touch(&key("a"))), Ok(false));
    assert!(store.is_empty());
    let late = now(store.commit(&key("a"), version, state("late")));
    assert_eq!(late, Err(StoreError::Conflict { expected: version, found: Version::NEW }));
}

#[test]
fn a_dialog_above_the_limit_is_refused_and_the_old_one_stays() {
    let store = MemoryStore::new(MemoryLimits { max_dialog_bytes: 1024, ..MemoryLimits::default() });
    let version = now(store.commit(&key("a"), Version::NEW, state("small"))).expect("commits");
    let large = now(store.commit(&key("a"), version, state(&"x".repeat(2000))));
    assert!(matches!(large, Err(StoreError::TooLarge { max: 1024, .. })));
    assert_eq!(now(store.load(&key("a"))), Ok((state("small"), version)));
}
