//! Two hosts on one Redis: a session goes on on either, with the keys and values that the other has computed; and what becomes of
//! turns when the server is gone.

use std::time::Duration;

use jackfield_redis::RedisServer;
use jackfield_testkit::answer::{CHAT, chat};
use jackfield_testkit::host::RunningHost;
use jackfield_testkit::tiny_model::TinyModel;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(60);

fn host(config: String) -> RunningHost {
    RunningHost::with_model(&TinyModel { context: 2048, ..TinyModel::default() }.bytes(), &config)
}

/// One of several hosts, without a disk of its own.
fn on(server: &RedisServer) -> RunningHost {
    let url = server.url();
    host(format!(
        "[engine]\nkv_store = 'same'\nkv_disk_mib = 0\nkv_remote = '{url}'\n[sessions]\nstore = 'redis'\nredis_url = '{url}'"
    ))
}

fn turn(text: &str) -> Value {
    chat(text, json!({"session": "s", "max_tokens": 6, "temperature": 0}))
}

/// Tokens of a turn's prompt that were not computed, and its text.
fn answered(host: &RunningHost, body: &Value) -> (u64, String) {
    let reply = host.api.post(CHAT, body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let answer = reply.json();
    let cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64();
    let text = answer["choices"][0]["message"]["content"].as_str();
    (cached.expect("a count"), text.expect("a text").to_owned())
}

/// Waits until a host has put the blocks of so many tokens on the server.
fn stored(host: &RunningHost, tokens: u64) {
    let blocks = (tokens / 16) as f64;
    host.eventually("blocks are kept", LIMIT, |host| {
        host.metric("jackfield_kv_remote_stored_blocks_total", "") >= blocks
    });
}

#[test]
fn a_session_goes_from_host_to_host_and_outlives_the_server() {
    let Some(mut server) = RedisServer::start() else { return };
    let (one, other) = (on(&server), on(&server));
    let alone = host("[engine]\nprefix_cache = false\nkv_memory_mib = 0".into());
    let long = "the quick brown fox jumps over the lazy dog ".repeat(5);

    let begun = answered(&one, &turn(&long));
    assert_eq!(begun, answered(&alone, &turn(&long)));
    stored(&one, 112);
    let (cached, text) = answered(&other, &turn("go on"));
    assert!(cached > 100, "{cached} tokens came from the other host");
    assert_eq!(text, answered(&alone, &turn("go on")).1);
    assert!(other.metric("jackfield_kv_remote_hits_total", "") > 5.0);
    let (cached, text) = answered(&one, &turn("and on"));
    assert!(cached > 100, "{cached} tokens");
    assert_eq!(text, answered(&alone, &turn("and on")).1);

    // Without the server no session is to be had, which is said; what needs none goes on.
    server.kill();
    for host in [&one, &other] {
        let reply = host.api.post(CHAT, &turn("still there?"));
        assert_eq!(reply.status, 503, "{}", reply.text());
        assert_eq!(reply.json()["error"]["code"], "session_store_unavailable");
        // New to it, so that it asks the server for it.
        let plain = chat(&"pack my box with jugs ".repeat(9), json!({"max_tokens": 6, "temperature": 0}));
        assert_eq!(answered(host, &plain).1, answered(&alone, &plain).1);
        host.eventually("it is missed", LIMIT, |host| host.metric("jackfield_kv_remote_up", "") == 0.0);
        assert!(host.metric("jackfield_kv_remote_failures_total", "") > 0.0);
    }
    assert_eq!(one.api.get("/health/ready").status, 200);

    server.run();
    for host in [&one, &other] {
        host.eventually("it is found again", LIMIT, |host| host.metric("jackfield_kv_remote_up", "") == 1.0);
    }
    let gone_on = answered(&other, &turn("go on again")).1;
    assert_eq!(gone_on, answered(&alone, &turn("go on again")).1);

    // A third host that starts now has both: the session, and its blocks.
    let third = on(&server);
    let (cached, text) = answered(&third, &turn("and you?"));
    assert!(cached > 100, "{cached} tokens");
    assert_eq!(text, answered(&alone, &turn("and you?")).1);
}

#[test]
fn a_host_starts_without_its_server_for_blocks() {
    let config = |url: &str| format!("[engine]\nkv_remote = '{url}'");
    let host = host(config("redis://:hidden@127.0.0.1:1/0"));
    let plain = chat("hello", json!({"max_tokens": 6, "temperature": 0}));
    assert_eq!(host.api.post(CHAT, &plain).status, 200);
    assert_eq!(host.metric("jackfield_kv_remote_up", ""), 0.0);
    let log = host.log();
    assert!(log.contains("127.0.0.1:1/0") && !log.contains("hidden"), "{log}");
}
