//! What every store promises, held against each of them.

mod common;

use std::{collections::HashSet, future::Future, pin::Pin, sync::Arc, time::Duration};

use common::{Stepped, begin, count_one, held, key, server::Server, state};
use jackfield_dialog::{
    DiskLimits, DiskStore, Found, MemoryLimits, MemoryStore, RedisConfig, Session, SessionKey, SessionStore,
    StoreError, Version,
};

/// A store, and how time passes for it.
struct Subject {
    store: Arc<dyn SessionStore>,
    /// Lets a quarter of the time to live pass.
    pass: Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()>>>>,
    /// What the store lives in.
    _place: Box<dyn std::any::Any>,
}

/// Long enough that a busy machine does not use up the other three quarters.
const TTL: Duration = Duration::from_secs(4);
const MAX_BYTES: usize = 4096;

async fn memory() -> Option<Subject> {
    let clock = Stepped::new();
    let limits = MemoryLimits { ttl: TTL, max_session_bytes: MAX_BYTES, ..MemoryLimits::default() };
    let store = Arc::new(MemoryStore::with_clock(limits, clock.clock()));
    Some(Subject { store, pass: stepping(clock), _place: Box::new(()) })
}

async fn disk() -> Option<Subject> {
    let (clock, folder) = (Stepped::new(), tempfile::tempdir().expect("a folder"));
    let limits = DiskLimits { ttl: TTL, max_session_bytes: MAX_BYTES, ..DiskLimits::default() };
    let store = DiskStore::open_with_clocks(folder.path(), limits, clock.clocks()).expect("opens");
    Some(Subject { store: Arc::new(store), pass: stepping(clock), _place: Box::new(folder) })
}

async fn redis() -> Option<Subject> {
    let server = Server::start()?;
    let config = RedisConfig { ttl: TTL, max_session_bytes: MAX_BYTES, ..server.config() };
    let store = Arc::new(server.connect(config).await);
    let pass = Box::new(|| Box::pin(tokio::time::sleep(TTL / 4)) as Pin<Box<dyn Future<Output = ()>>>);
    Some(Subject { store, pass, _place: Box::new(server) })
}

fn stepping(clock: Stepped) -> Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()>>>> {
    Box::new(move || {
        clock.step(TTL / 4);
        Box::pin(std::future::ready(()))
    })
}

macro_rules! held_against_each_store {
    ($($promise:ident)*) => {
        held_against_each_store!(memory: $($promise)*);
        held_against_each_store!(disk: $($promise)*);
        held_against_each_store!(redis: $($promise)*);
    };
    ($store:ident: $($promise:ident)*) => {
        mod $store {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $promise() {
                    if let Some(subject) = super::$store().await {
                        super::$promise(subject).await;
                    }
                }
            )*
        }
    };
}

held_against_each_store! {
    what_was_committed_is_found_again
    the_second_of_two_commits_on_one_version_is_refused
    a_turn_cannot_bring_back_a_deleted_session
    an_unused_session_expires_and_that_is_told_for_a_while
    every_use_renews
    what_expired_can_be_made_again
    a_list_is_in_order_and_goes_on
    a_session_that_is_too_large_is_refused_and_the_old_one_stays
    of_many_turns_at_once_each_is_counted_exactly_once
    tenants_never_meet
    versions_never_repeat
}

async fn what_was_committed_is_found_again(Subject { store, .. }: Subject) {
    assert_eq!(store.load(&key("a")).await, Ok(Found::New));
    let first = begin(&*store, &key("a"), "asked").await;
    assert_ne!(first, Version::NEW);
    assert_eq!(store.load(&key("a")).await, Ok(Found::Held(state("asked"), first)));
    let second = store.commit(&key("a"), first, state("told")).await.expect("commits");
    assert!(second > first);
    assert_eq!(store.load(&key("a")).await, Ok(Found::Held(state("told"), second)));
    assert_eq!(store.ttl(), TTL);
}

async fn the_second_of_two_commits_on_one_version_is_refused(Subject { store, .. }: Subject) {
    let first = begin(&*store, &key("a"), "first").await;
    let second = store.commit(&key("a"), Version::NEW, state("second")).await;
    assert_eq!(second, Err(StoreError::Conflict { expected: Version::NEW, found: first }));
    let unknown = store.commit(&key("b"), first, state("b")).await;
    assert_eq!(unknown, Err(StoreError::Conflict { expected: first, found: Version::NEW }));
    assert_eq!(store.load(&key("a")).await, Ok(Found::Held(state("first"), first)));
}

async fn a_turn_cannot_bring_back_a_deleted_session(Subject { store, .. }: Subject) {
    let old = begin(&*store, &key("a"), "x").await;
    assert_eq!(store.delete(&key("a")).await, Ok(true));
    assert_eq!(store.delete(&key("a")).await, Ok(false));
    assert_eq!(store.load(&key("a")).await, Ok(Found::New), "not expired");
    let late = store.commit(&key("a"), old, state("late")).await;
    assert_eq!(late, Err(StoreError::Conflict { expected: old, found: Version::NEW }));
    // Made anew in between: its version is not the old one again.
    let anew = begin(&*store, &key("a"), "anew").await;
    let late = store.commit(&key("a"), old, state("late")).await;
    assert_eq!(late, Err(StoreError::Conflict { expected: old, found: anew }));
}

/// Lets time pass until the tenant's list is empty, which is no use of a session.
async fn until_none_is_listed(subject: &Subject) {
    for _ in 0..40 {
        if subject.store.list("acme", None, 9).await.expect("lists").is_empty() {
            return;
        }
        (subject.pass)().await;
    }
    panic!("it never expires");
}

async fn an_unused_session_expires_and_that_is_told_for_a_while(subject: Subject) {
    let store = &*subject.store;
    let version = begin(store, &key("a"), "a").await;
    until_none_is_listed(&subject).await;
    assert_eq!(store.touch(&key("a")).await, Ok(false));
    assert_eq!(store.load(&key("a")).await, Ok(Found::Expired));
    let late = store.commit(&key("a"), version, state("late")).await;
    assert_eq!(late, Err(StoreError::Conflict { expected: version, found: Version::NEW }));
    for _ in 0..40 {
        match store.load(&key("a")).await {
            Ok(Found::Expired) => (subject.pass)().await,
            Ok(Found::New) => return,
            other => panic!("{other:?}"),
        }
    }
    panic!("it is told for ever");
}

async fn every_use_renews(subject: Subject) {
    let store = &*subject.store;
    let version = begin(store, &key("a"), "a").await;
    for _ in 0..6 {
        (subject.pass)().await;
        assert_eq!(store.touch(&key("a")).await, Ok(true));
    }
    for _ in 0..6 {
        (subject.pass)().await;
        assert_eq!(store.load(&key("a")).await, Ok(Found::Held(state("a"), version)));
    }
    assert_eq!(store.touch(&key("b")).await, Ok(false), "there is none");
}

async fn what_expired_can_be_made_again(subject: Subject) {
    let store = &*subject.store;
    begin(store, &key("a"), "a").await;
    begin(store, &key("b"), "b").await;
    until_none_is_listed(&subject).await;
    let again = begin(store, &key("a"), "again").await;
    assert_eq!(store.load(&key("a")).await, Ok(Found::Held(state("again"), again)));
    assert_eq!(store.load(&key("b")).await, Ok(Found::Expired));
    assert_eq!(store.delete(&key("b")).await, Ok(false));
    assert_eq!(store.load(&key("b")).await, Ok(Found::New));
}

/// The tenant's ids as its list gives them.
async fn ids(store: &dyn SessionStore, after: Option<&str>, limit: usize) -> Vec<String> {
    let listed = store.list("acme", after, limit).await.expect("lists");
    listed.into_iter().map(|line| line.id).collect()
}

async fn a_list_is_in_order_and_goes_on(Subject { store, .. }: Subject) {
    let other = SessionKey::new("acmf", "0").expect("a good id");
    begin(&*store, &other, "x").await;
    for id in ["c", "a", "d", "b", "B", "a-1", "a.1", "a:1"] {
        begin(&*store, &key(id), id).await;
    }
    let all = ["B", "a", "a-1", "a.1", "a:1", "b", "c", "d"];
    assert_eq!(ids(&*store, None, 9).await, all);
    assert_eq!(ids(&*store, None, 0).await, Vec::<String>::new());
    assert_eq!(ids(&*store, Some("bb"), 1).await, ["c"], "after an id that is not there");
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = ids(&*store, after.as_deref(), 3).await;
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        found.extend(page);
    }
    assert_eq!(found, all);
    assert!(store.list("acm", None, 9).await.expect("lists").is_empty());
    let lines = store.list("acmf", None, 9).await.expect("lists");
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((line.turns, line.created_unix_ms, line.updated_unix_ms), (1, 5, 5));
    store.delete(&other).await.expect("deletes");
    assert!(store.list("acmf", None, 9).await.expect("lists").is_empty());
}

async fn a_session_that_is_too_large_is_refused_and_the_old_one_stays(Subject { store, .. }: Subject) {
    let version = begin(&*store, &key("a"), "small").await;
    let large = store.commit(&key("a"), version, state(&"x".repeat(MAX_BYTES))).await;
    assert!(matches!(large, Err(StoreError::TooLarge { max: MAX_BYTES, .. })), "{large:?}");
    assert_eq!(store.load(&key("a")).await, Ok(Found::Held(state("small"), version)));
}

async fn of_many_turns_at_once_each_is_counted_exactly_once(Subject { store, .. }: Subject) {
    let tasks: Vec<_> = (0..8)
        .map(|task: u32| {
            let store = store.clone();
            tokio::spawn(async move {
                for turn in 0..50 {
                    count_one(&*store, &key("shared")).await;
                    // Others beside it, so that locks and scripts see more than one key.
                    count_one(&*store, &key(&format!("own-{task}-{}", turn % 5))).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("counts");
    }
    assert_eq!(held(&*store, &key("shared")).await.0.dialog.turns, 400);
    assert_eq!(held(&*store, &key("own-3-2")).await.0.dialog.turns, 10);
}

async fn tenants_never_meet(Subject { store, .. }: Subject) {
    let pairs =
        [("a", "bc"), ("ab", "c"), ("a:b", "c"), ("a", "b:c"), ("{a}", "x"), ("a\0", "x"), ("é%", "x")];
    let named = |(tenant, id): (&str, &str)| SessionKey::new(tenant, id).expect("a good id");
    for (at, pair) in pairs.into_iter().enumerate() {
        begin(&*store, &named(pair), &at.to_string()).await;
    }
    for (at, pair) in pairs.into_iter().enumerate() {
        assert_eq!(held(&*store, &named(pair)).await.0, state(&at.to_string()), "{pair:?}");
    }
    assert_eq!(store.delete(&named(pairs[0])).await, Ok(true));
    assert_eq!(held(&*store, &named(pairs[1])).await.0, state("1"));
    assert_eq!(store.list("a", None, 9).await.expect("lists").len(), 1);
}

async fn versions_never_repeat(Subject { store, .. }: Subject) {
    let mut given = HashSet::from([Version::NEW]);
    for _ in 0..20 {
        let mut version = Version::NEW;
        for _ in 0..3 {
            version = store.commit(&key("a"), version, Session::default()).await.expect("commits");
            assert!(given.insert(version), "{version:?} came twice");
        }
        store.delete(&key("a")).await.expect("deletes");
    }
}
