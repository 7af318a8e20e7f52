//! Blocks on a server that hosts share: what one kept, another finds; and what becomes of turns while the server is in trouble.

mod support;

use std::time::{Duration, Instant};

use jackfield_engine::{
    ConfigError, DiskTier, Engine, EngineConfig, Fetched, Job, KvStore, KvType, Rejection, RemoteTier,
    StartError,
};
use jackfield_model::{Cpu, Gguf, Model};
use jackfield_redis::RedisServer;
use jackfield_tiny::tiny_model::TinyModel;
use support::{
    HELD, Reply, ask, cold, engine, engine_of, eventually, kv_bytes, prompt, push_out, run, scarce,
};

const MINUTE: Duration = Duration::from_secs(60);
const NOBODYS: [u8; 32] = [0; 32];

fn tier(server: &RedisServer) -> RemoteTier {
    RemoteTier {
        server: server.url().parse().expect("a server"),
        ttl: MINUTE,
        timeout: Duration::from_secs(5),
    }
}

fn on(server: &RedisServer) -> impl Fn(&mut EngineConfig) {
    let tier = tier(server);
    move |config| config.kv_remote = Some(tier.clone())
}

/// Has a host answer a prompt and keep it.
async fn kept_by(host: &Engine, number: u32) -> Reply {
    let reply = run(host, ask(host, number)).await;
    host.keep(&prompt(number), &NOBODYS, Duration::ZERO);
    assert!(host.flush(MINUTE));
    reply
}

/// Fetches a prompt and answers it.
async fn fetched_by(host: &Engine, number: u32) -> (Fetched, Reply) {
    let fetched = host.fetch(&prompt(number), &NOBODYS).await;
    (fetched, run(host, ask(host, number)).await)
}

fn commands(server: &RedisServer, words: &[&str]) -> redis::Value {
    let mut connection =
        redis::Client::open(server.url()).and_then(|client| client.get_connection()).expect("connects");
    let mut command = redis::cmd(words[0]);
    words[1..].iter().for_each(|word| {
        command.arg(*word);
    });
    command.query(&mut connection).expect("answers")
}

#[tokio::test]
async fn what_one_host_kept_another_finds_and_says_the_same() {
    let Some(server) = RedisServer::start_with(&[]) else { return };
    let (one, other) = (engine(on(&server)), engine(on(&server)));
    let reply = kept_by(&one, 1).await;
    assert_eq!(one.stats().kv.remote.stored, 5);

    let others = other.fetch(&prompt(1), &[9; 32]).await;
    assert_eq!(others, Fetched::default(), "another group finds nothing");
    let (fetched, again) = fetched_by(&other, 1).await;
    assert_eq!(fetched, Fetched { held_tokens: 0, read_tokens: HELD, ready_tokens: HELD });
    assert_eq!((again.usage.cached_tokens, &again.choices), (HELD, &reply.choices));
    assert_eq!(&again.choices, &cold(1).await.choices);
    let stats = other.stats().kv;
    assert_eq!((stats.remote.hits, stats.remote.misses, stats.promoted_blocks), (5, 1, 5), "{stats:?}");

    // It is there, so it is not sent again.
    other.keep(&prompt(1), &NOBODYS, MINUTE);
    assert!(other.flush(MINUTE));
    assert_eq!((other.stats().kv.remote.stored, other.stats().kv.kept_blocks), (0, 0));
}

#[tokio::test]
async fn a_dialog_goes_from_host_to_host() {
    let Some(server) = RedisServer::start_with(&[]) else { return };
    let hosts = [engine(on(&server)), engine(on(&server))];
    let alone = engine(|config| config.kv_memory_bytes = 0);
    let mut said = prompt(1);
    let mut cached = Vec::new();
    for turn in 0..4 {
        let host = &hosts[turn % 2];
        host.fetch(&said, &NOBODYS).await;
        let mut job = Job { prompt: said.clone(), ..ask(host, 1) };
        job.sampling.logprobs = Some(0);
        let (reply, plain) = (run(host, job.clone()).await, run(&alone, job).await);
        assert_eq!(reply.choices, plain.choices, "turn {turn}");
        cached.push(reply.usage.cached_tokens);
        said.extend(reply.ids());
        said.extend([70 + turn as u32, 71, 72]);
        host.keep(&said, &NOBODYS, MINUTE);
        assert!(host.flush(MINUTE));
    }
    assert!(cached.is_sorted_by(|one, next| one < next), "{cached:?}");
}

#[tokio::test]
async fn what_memory_gives_up_is_found_there() {
    let Some(server) = RedisServer::start_with(&[]) else { return };
    let host = engine(|config| {
        scarce(config);
        on(&server)(config);
        config.kv_memory_bytes = kv_bytes(12);
    });
    let first = run(&host, ask(&host, 1)).await;
    push_out(&host, 1).await;
    for other in 200..206 {
        run(&host, ask(&host, other)).await;
    }
    assert!(host.flush(MINUTE));
    let (fetched, again) = fetched_by(&host, 1).await;
    assert_eq!(fetched, Fetched { held_tokens: 0, read_tokens: HELD, ready_tokens: HELD });
    assert_eq!((again.usage.cached_tokens, &again.choices), (HELD, &first.choices));
}

#[tokio::test]
async fn the_disk_is_asked_first_and_the_server_for_what_it_lacks() {
    let Some(server) = RedisServer::start_with(&[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        engine(|config| {
            on(&server)(config);
            config.kv_disk = Some(DiskTier { folder: folder.path().to_owned(), bytes: 1 << 20 });
        })
    };
    let host = start();
    let reply = kept_by(&host, 1).await;
    let stats = host.stats().kv;
    assert_eq!((stats.disk.stored, stats.remote.stored, stats.kept_blocks), (5, 5, 5));
    drop(host);
    let host = start();
    assert_eq!(fetched_by(&host, 1).await.0.read_tokens, HELD);
    assert_eq!((host.stats().kv.disk.hits, host.stats().kv.remote.hits), (5, 0));
    drop(host);

    // Two blocks are lost on disk.
    let shards = std::fs::read_dir(folder.path()).expect("it is there").flatten();
    shards.take(2).for_each(|shard| std::fs::remove_dir_all(shard.path()).expect("removed"));
    let host = start();
    let (fetched, again) = fetched_by(&host, 1).await;
    assert_eq!((fetched.read_tokens, again.usage.cached_tokens), (HELD, HELD));
    assert_eq!(again.choices, reply.choices);
    let stats = host.stats().kv;
    assert_eq!((stats.disk.hits, stats.remote.hits, stats.disk.misses), (3, 2, 1), "{stats:?}");
}

#[tokio::test]
async fn no_answer_depends_on_a_bad_block() {
    let Some(server) = RedisServer::start_with(&[]) else { return };
    let reply = kept_by(&engine(on(&server)), 1).await;
    for key in keys(&server) {
        commands(&server, &["SETRANGE", &key, "1000", "torn"]);
    }
    let host = engine(on(&server));
    let (fetched, again) = fetched_by(&host, 1).await;
    assert_eq!(fetched, Fetched::default());
    assert_eq!((again.usage.cached_tokens, &again.choices), (0, &reply.choices));
    assert_eq!(host.stats().kv.rejected_for(Rejection::Checksum), 5);
    assert!(keys(&server).is_empty(), "they are removed");
}

fn keys(server: &RedisServer) -> Vec<String> {
    redis::from_redis_value(commands(server, &["KEYS", "jackfield:kv:*"])).expect("a list")
}

#[tokio::test]
async fn hosts_of_another_model_or_layout_find_nothing() {
    let Some(server) = RedisServer::start_with(&[]) else { return };
    kept_by(&engine(on(&server)), 1).await;
    let model = TinyModel { seed: 2, ..TinyModel::default() }.bytes();
    let changes: [fn(&mut EngineConfig); 2] =
        [|config| config.kv_store = KvStore::Int8, |config| config.kv_type = KvType::Int8];
    let layouts = changes.map(|change| {
        engine(|config| {
            on(&server)(config);
            change(config);
        })
    });
    for host in layouts.into_iter().chain([engine_of(model, on(&server))]) {
        let (fetched, reply) = fetched_by(&host, 1).await;
        assert_eq!((fetched, reply.usage.cached_tokens), (Fetched::default(), 0));
        let stats = host.stats().kv;
        assert!(stats.remote.is_up && stats.rejected.iter().all(|(_, count)| *count == 0), "{stats:?}");
    }
}

#[tokio::test]
async fn serving_goes_on_while_the_server_is_gone() {
    let Some(mut server) = RedisServer::start_with(&[]) else { return };
    server.kill();
    let host = engine(on(&server));
    let reply = kept_by(&host, 1).await;
    assert_eq!(reply.choices, cold(1).await.choices);
    assert_eq!((host.stats().kv.remote.is_up, host.stats().kv.remote.failed_writes), (false, 0));

    server.run();
    eventually(&host, "it is found", |stats| stats.kv.remote.is_up);
    kept_by(&host, 1).await;
    assert_eq!(host.stats().kv.remote.stored, 5, "what it still has");

    server.kill();
    let other = kept_by(&host, 2).await;
    assert_eq!(other.choices, cold(2).await.choices);
    eventually(&host, "it is missed", |stats| !stats.kv.remote.is_up);
    let (fetched, again) = fetched_by(&host, 3).await;
    assert_eq!((fetched, again.usage.cached_tokens), (Fetched::default(), 0));
    assert!(host.stats().kv.remote.failures > 0);
}

#[tokio::test]
async fn a_turn_is_answered_while_the_server_stands_still() {
    let Some(server) = RedisServer::start_with(&[]) else { return };
    let brief = RemoteTier { timeout: Duration::from_secs(1), ..tier(&server) };
    let start = || engine(|config| config.kv_remote = Some(brief.clone()));
    let reply = kept_by(&start(), 1).await;
    let host = start();
    assert!(host.stats().kv.remote.is_up);
    server.signal("STOP");
    let (fetched, again) = fetched_by(&host, 1).await;
    assert_eq!((fetched, &again.choices), (Fetched::default(), &reply.choices));
    kept_by(&host, 1).await;
    assert!(!host.stats().kv.remote.is_up);
    server.signal("CONT");
    eventually(&host, "it is found again", |stats| stats.kv.remote.is_up);
    assert_eq!(start().fetch(&prompt(1), &NOBODYS).await.read_tokens, HELD);
}

#[tokio::test]
async fn a_server_that_stands_still_holds_up_no_disk() {
    let Some(server) = RedisServer::start_with(&[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    // Longer than the test may take.
    let patient = RemoteTier { timeout: 10 * MINUTE, ..tier(&server) };
    let host = engine(|config| {
        config.kv_remote = Some(patient);
        config.kv_disk = Some(DiskTier { folder: folder.path().to_owned(), bytes: 1 << 20 });
    });
    server.signal("STOP");
    run(&host, ask(&host, 1)).await;
    host.keep(&prompt(1), &NOBODYS, MINUTE);
    eventually(&host, "it is on disk", |stats| stats.kv.disk.blocks == 5);
    assert_eq!((host.stats().kv.remote.stored, host.stats().kv.remote.is_up), (0, true));
    let begun = Instant::now();
    server.signal("CONT");
    assert!(host.flush(MINUTE), "{:?}", begun.elapsed());
    assert_eq!(host.stats().kv.remote.stored, 5);
}

#[test]
fn a_server_needs_memory_before_it() {
    let cpu = Cpu::new(1);
    let file = TinyModel::default().bytes();
    let model = Model::from_gguf(Gguf::from_bytes(file).expect("a file"), cpu.clone()).expect("a model");
    let remote = RemoteTier {
        server: "redis://127.0.0.1:1".parse().expect("a server"),
        ttl: MINUTE,
        timeout: Duration::from_secs(1),
    };
    let config = EngineConfig { kv_memory_bytes: 0, kv_remote: Some(remote), ..EngineConfig::default() };
    let error = Engine::start(model, &cpu, &config).err();
    assert!(matches!(error, Some(StartError::Config(ConfigError::StoreTooSmall { .. }))), "{error:?}");
}
