//! Processes killed while they commit: what was acknowledged is there, whole.

mod common;

use std::{env, time::Duration};

use common::{
    counting::{Acknowledged, WHERE, count_on, keys, rounds, some_micros, start},
    held,
    server::Server,
};
use jackfield_dialog::{DiskLimits, DiskStore, RedisConfig, RedisStore, SessionStore};

/// Not a test: the process that is killed.
#[tokio::test]
#[ignore = "started by the other tests"]
async fn count_on_disk() {
    if let Ok(folder) = env::var(WHERE) {
        // Syncs often, so that some are killed in the middle of one.
        let limits = DiskLimits { sync_every: Duration::from_millis(20), ..DiskLimits::default() };
        count_on(&DiskStore::open(folder, limits).expect("opens")).await;
    }
}

/// Not a test: the process that is killed.
#[tokio::test]
#[ignore = "started by the other tests"]
async fn count_in_redis() {
    if let Ok(url) = env::var(WHERE) {
        count_on(
            &RedisStore::connect(RedisConfig { url, ..RedisConfig::default() }).await.expect("connects"),
        )
        .await;
    }
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_was_acknowledged_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("sessions");
    let mut known = Acknowledged::default();
    for round in 0..rounds(30, 200) {
        let counting = start("count_on_disk", &place.display().to_string());
        // Every third one at any instant of its start, or of the first commits.
        let after_first = round % 3 != 0;
        known.kill(counting, some_micros(round, 60_000), after_first);
        let store = DiskStore::open(&place, DiskLimits::default()).expect("opens");
        assert_eq!(store.moved_aside(), 0);
        known.check(&store).await;
    }
    assert!(!known.is_empty());
}

#[tokio::test]
async fn a_killed_client_leaves_whole_sessions_in_redis() {
    let Some(server) = Server::start() else { return };
    let store = server.connect(server.config()).await;
    let mut known = Acknowledged::default();
    for round in 0..rounds(8, 50) {
        known.kill(start("count_in_redis", &server.config().url), some_micros(round, 40_000), true);
        // What it had sent is done before what comes after.
        store.list("acme", None, 9).await.expect("lists");
        known.check(&store).await;
    }
    // The next host goes on where the killed one was.
    for key in keys() {
        let (session, version) = held(&store, &key).await;
        store.commit(&key, version, session).await.expect("commits");
    }
}
