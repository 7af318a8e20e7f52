//! Sessions in Redis: several hosts, and a server that goes away and comes back.

mod common;

use std::{collections::HashSet, sync::Arc, time::Duration};

use common::{begin, count_one, held, key, server::Server, state};
use jackfield_dialog::{ConnectError, Found, RedisConfig, RedisStore, SessionStore, StoreError};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_count_each_turn_once() {
    let Some(server) = Server::start() else { return };
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let host = Arc::new(server.connect(server.config()).await);
        for _ in 0..3 {
            let host = host.clone();
            tasks.push(tokio::spawn(async move {
                let mut given = Vec::new();
                for _ in 0..50 {
                    given.push(count_one(&*host, &key("shared")).await);
                }
                given
            }));
        }
    }
    let mut given = HashSet::new();
    for task in tasks {
        given.extend(task.await.expect("counts"));
    }
    assert_eq!(given.len(), 300, "each version once");
    let third = server.connect(server.config()).await;
    assert_eq!(held(&third, &key("shared")).await.0.dialog.turns, 300);
}

#[tokio::test]
async fn a_server_that_was_killed_comes_back_with_what_was_acknowledged() {
    let Some(mut server) = Server::start() else { return };
    let store = server.connect(server.config()).await;
    let version = begin(&store, &key("a"), "a").await;
    server.kill();
    let gone = store.load(&key("a")).await;
    assert!(matches!(gone, Err(StoreError::Unavailable(_))), "{gone:?}");
    server.run();
    let found = until_available(|| store.load(&key("a"))).await;
    assert_eq!(found, Found::Held(state("a"), version));
    // The scripts are gone from the server; it is sent them again.
    assert!(store.commit(&key("a"), version, state("b")).await.expect("commits") > version);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_an_error_in_time_and_then_answers_again() {
    let Some(server) = Server::start() else { return };
    server.connect(server.config()).await;
    let config = RedisConfig { timeout: Duration::from_millis(300), ..server.config() };
    let store = server.connect(config.clone()).await;
    let version = begin(&store, &key("a"), "a").await;
    server.signal("STOP");
    // Without a limit of its own, this would wait for ever.
    let stuck = store.commit(&key("a"), version, state("b")).await;
    assert!(matches!(stuck, Err(StoreError::Unavailable(_))), "{stuck:?}");
    assert!(matches!(store.load(&key("a")).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(RedisStore::connect(config).await, Err(ConnectError::Unreachable(_))));
    server.signal("CONT");
    // What was sent may have been done or not.
    match until_available(|| store.load(&key("a"))).await {
        Found::Held(session, found) if found == version => assert_eq!(session, state("a")),
        Found::Held(session, _) => assert_eq!(session, state("b")),
        other => panic!("{other:?}"),
    }
}

async fn until_available<'a, T>(
    mut ask: impl FnMut() -> jackfield_dialog::BoxFuture<'a, Result<T, StoreError>>,
) -> T {
    for _ in 0..200 {
        match ask().await {
            Ok(answer) => return answer,
            Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("it does not come back");
}

#[tokio::test]
async fn versions_do_not_repeat_when_the_server_lost_everything() {
    let Some(server) = Server::start() else { return };
    let store = server.connect(server.config()).await;
    let before = begin(&store, &key("a"), "a").await;
    let mut raw = connect(&server).await;
    redis::cmd("FLUSHALL").query_async::<()>(&mut raw).await.expect("empties");
    assert!(begin(&store, &key("a"), "a").await > before);
}

#[tokio::test]
async fn what_is_not_ours_or_damaged_is_an_error_that_names_the_session() {
    let Some(server) = Server::start() else { return };
    let store = server.connect(server.config()).await;
    begin(&store, &key("a"), "a").await;
    let mut raw = connect(&server).await;
    let session = "jackfield:{acme}:session:a";
    let mut damage = redis::cmd("HSET");
    damage.arg(session).arg("body").arg("\u{9}nothing").query_async::<()>(&mut raw).await.expect("sets");
    let damaged = store.load(&key("a")).await;
    assert!(matches!(&damaged, Err(StoreError::Unavailable(why)) if why.contains("\"a\"")), "{damaged:?}");
    redis::cmd("SET").arg(session).arg("x").query_async::<()>(&mut raw).await.expect("sets");
    assert!(matches!(store.load(&key("a")).await, Err(StoreError::Unavailable(_))));
    assert_eq!(store.delete(&key("a")).await, Ok(true));
    assert_eq!(store.load(&key("a")).await, Ok(Found::New));
}

#[tokio::test]
async fn everything_has_a_time_to_live_and_nothing_old_stays() {
    let Some(server) = Server::start() else { return };
    let store = server.connect(RedisConfig { ttl: Duration::from_millis(100), ..server.config() }).await;
    for at in 0..20 {
        begin(&store, &key(&format!("s{at}")), "x").await;
    }
    let mut raw = connect(&server).await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut raw).await.expect("lists");
    assert!(keys.len() >= 3, "{keys:?}");
    for key in keys {
        let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut raw).await.expect("says");
        assert_ne!(left, -1, "{key} lives for ever");
    }
    // Once nothing is to be told of them, the next commit takes their ids away.
    for _ in 0..100 {
        begin(&store, &key("last"), "x").await;
        store.delete(&key("last")).await.expect("deletes");
        let ids: usize =
            redis::cmd("ZCARD").arg("jackfield:{acme}:ids").query_async(&mut raw).await.expect("counts");
        if ids == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("their ids stay");
}

async fn connect(server: &Server) -> redis::aio::MultiplexedConnection {
    let client = redis::Client::open(server.config().url).expect("an address");
    client.get_multiplexed_async_connection().await.expect("connects")
}

#[tokio::test]
async fn a_wrong_configuration_is_said() {
    let wrong = |config| async { RedisStore::connect(config).await.err() };
    let prefix = RedisConfig { prefix: "a{b".into(), ..RedisConfig::default() };
    assert!(matches!(wrong(prefix).await, Some(ConnectError::Config(_))));
    let url = RedisConfig { url: "http://x".into(), ..RedisConfig::default() };
    assert!(matches!(wrong(url).await, Some(ConnectError::Config(_))));
    let nobody = RedisConfig { url: "redis://127.0.0.1:1".into(), ..RedisConfig::default() };
    assert!(matches!(wrong(nobody).await, Some(ConnectError::Unreachable(_))));
    let secret = RedisConfig { url: "redis://:hidden@host".into(), ..RedisConfig::default() };
    assert!(!format!("{secret:?}").contains("hidden"));
}
