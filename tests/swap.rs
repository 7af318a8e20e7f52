//! Policies changed while the host serves: nothing is cut, nothing is mixed, nothing acknowledged is lost.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use jackfield_testkit::admin::{accepted, generation, manifest, put, put_guest};
use jackfield_testkit::answer::{CHAT, chat, open, read, whole, with};
use jackfield_testkit::ask::{WORD, text_of, words};
use jackfield_testkit::guest::{Guest, World};
use jackfield_testkit::host::{HostOptions, RunningHost, tiny_model_file};
use jackfield_testkit::tiny_model::TinyModel;
use serde_json::{Value, json};

fn host() -> RunningHost {
    let model = TinyModel { context: 16_384, ..TinyModel::default() };
    RunningHost::with_model(&model.bytes(), "[engine]\nkv_mib = 64\nmax_running = 160\n")
}

/// A filter that replaces the one word of the model's answers by its own version.
fn filter(version: u32) -> Guest {
    let mut guest = Guest::masking("the", &format!("<{version}>"));
    guest.version(&format!("1.0.{version}"));
    guest
}

/// The one version that an answer was made under.
fn version_of(text: &str, count: usize) -> u32 {
    let versions: Vec<&str> = text.split_whitespace().collect();
    let distinct: BTreeSet<_> = versions.iter().collect();
    assert_eq!((versions.len(), distinct.len()), (count, 1), "all words under one version: {text}");
    let version = versions[0].strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    version.and_then(|version| version.parse().ok()).unwrap_or_else(|| panic!("no version in {text}"))
}

fn answer(host: &RunningHost) -> String {
    whole(&host.api, CHAT, &words(&host.api, 2)).text().to_owned()
}

/// What runs beside the swaps.
struct Load {
    streams: usize,
    stream_words: usize,
    /// Threads that ask for short answers, and the time from one to the next of each.
    short: (usize, Duration),
    swaps: u32,
    pause: Duration,
}

#[test]
fn swaps_cut_no_stream_and_mix_no_versions() {
    let load = if std::env::var_os("JACKFIELD_LONG").is_some() {
        let short = (25, Duration::from_millis(500));
        Load { streams: 100, stream_words: 1000, short, swaps: 61, pause: Duration::from_secs(1) }
    } else {
        let short = (4, Duration::from_millis(100));
        Load { streams: 20, stream_words: 300, short, swaps: 41, pause: Duration::from_millis(200) }
    };
    let host = host();
    put_guest(&host.admin, "mask", &filter(1));
    let (long, short) = (words(&host.api, load.stream_words), words(&host.api, 2));
    let (over, streams, shorts) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let stream = || {
        while !over.load(Ordering::Relaxed) {
            let answer = read(CHAT, open(&host.api, CHAT, &long)).answer;
            version_of(answer.text(), load.stream_words);
            assert_eq!(answer.finish(), "length");
            streams.fetch_add(1, Ordering::Relaxed);
        }
    };
    let ask = || {
        let mut next = Instant::now();
        while !over.load(Ordering::Relaxed) {
            let reply = host.api.with_header("x-jackfield-trace", "1").post(CHAT, &short);
            assert_eq!(reply.status, 200, "{}", reply.text());
            let version =
                version_of(reply.json()["choices"][0]["message"]["content"].as_str().expect("a text"), 2);
            let trace: Value =
                serde_json::from_str(reply.header("x-jackfield-trace").expect("a trace")).expect("JSON");
            assert_eq!(trace["policies"][0]["policy"], format!("mask@1.0.{version}"));
            shorts.fetch_add(1, Ordering::Relaxed);
            next += load.short.1;
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    };
    let swap = || {
        for version in 2..=load.swaps {
            thread::sleep(load.pause);
            let applied = put_guest(&host.admin, "mask", &filter(version));
            assert_eq!((&applied["generation"], &applied["changed"]), (&json!(version), &json!(true)));
            assert_eq!(version_of(&answer(&host), 2), version, "in force when it is acknowledged");
        }
    };
    thread::scope(|scope| {
        (0..load.streams).for_each(|_| drop(scope.spawn(stream)));
        (0..load.short.0).for_each(|_| drop(scope.spawn(ask)));
        let swapped = scope.spawn(swap).join();
        over.store(true, Ordering::Relaxed);
        swapped.expect("every swap was taken");
    });
    let (streams, shorts) = (streams.into_inner(), shorts.into_inner());
    println!("{streams} streams and {shorts} short answers over {} swaps", load.swaps - 1);
    assert!(streams >= load.streams && shorts >= load.short.0);
    assert_eq!(host.metric("jackfield_cancelled_turns_total", ""), 0.0);
    assert_eq!(host.metric("jackfield_policy_faults_total", ""), 0.0);
    host.settle();
}

#[test]
fn a_stream_ends_under_the_version_it_began_with() {
    const MANY: usize = 3_000;
    let host = host();
    put_guest(&host.admin, "mask", &filter(1));
    let mut old = host.api.stream(CHAT, &with(words(&host.api, MANY), json!({"stream": true})));
    let mut begun = Vec::new();
    while text_of(&begun).is_empty() {
        begun.push(serde_json::from_str(&old.next_data().expect("more")).expect("JSON"));
    }
    put_guest(&host.admin, "mask", &filter(2));
    assert_eq!(version_of(&answer(&host), 2), 2);
    accepted(host.admin.delete("/admin/policies/mask"));
    assert_eq!(answer(&host), WORD.repeat(2));
    begun.extend(old.rest());
    assert_eq!(version_of(&text_of(&begun), MANY), 1);
}

#[test]
fn the_same_again_changes_nothing() {
    let host = host();
    let first = put_guest(&host.admin, "mask", &filter(1));
    assert_eq!((&first["generation"], &first["changed"]), (&json!(1), &json!(true)));
    let again = put_guest(&host.admin, "mask", &filter(1));
    assert_eq!(
        (&again["generation"], &again["changed"], &again["version"]),
        (&json!(1), &json!(false), &first["version"])
    );
    let bytes = host.admin.send("PUT", "/admin/policies/mask", "application/wasm", filter(1).build());
    assert_eq!(accepted(bytes)["changed"], false);
    let other = host.admin.send("PUT", "/admin/policies/mask", "application/wasm", filter(2).build());
    assert_eq!(accepted(other)["changed"], true, "bytes alone keep the manifest");
    assert_eq!(answer(&host), " <2> <2>");
}

#[test]
fn what_is_broken_is_refused_and_the_old_one_serves_on() {
    let host = host();
    put_guest(&host.admin, "mask", &filter(1));
    let good = filter(2).build();
    for broken in [&good[..good.len() / 2], b"", b"#!/bin/sh"] {
        let reply = put(&host.admin, "mask", &manifest("mask", World::OutputFilter), broken);
        assert_eq!(
            (reply.status, &reply.json()["error"]["param"]),
            (422, &json!("component")),
            "{}",
            reply.text()
        );
        assert_eq!((generation(&host.admin), answer(&host).as_str()), (1, " <1> <1>"));
    }
    assert_eq!(host.metric("jackfield_policy_swaps_total", "outcome=\"refused\""), 3.0);
    put_guest(&host.admin, "other", &Guest::new(World::Compressor));
    assert_eq!(generation(&host.admin), 2, "other policies are not blocked");
}

#[test]
fn one_can_go_back_take_out_and_look_what_happened() {
    let host = host();
    (1..=3).for_each(|version| drop(put_guest(&host.admin, "mask", &filter(version))));
    let rollback = || host.admin.send("POST", "/admin/policies/mask/rollback", "", Vec::new());
    for expected in [" <2> <2>", " <1> <1>"] {
        accepted(rollback());
        assert_eq!(answer(&host), expected);
    }
    let reply = rollback();
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (409, &json!("nothing_to_roll_back_to")));
    accepted(host.admin.delete("/admin/policies/mask"));
    assert_eq!(answer(&host), WORD.repeat(2));
    assert_eq!(host.admin.get("/admin/policies").json()["policies"], json!([]));
    for gone in [host.admin.delete("/admin/policies/mask"), host.admin.get("/admin/policies/mask")] {
        assert_eq!((gone.status, &gone.json()["error"]["code"]), (404, &json!("policy_not_found")));
    }
    accepted(rollback());
    assert_eq!(answer(&host), " <1> <1>", "what was taken out can be had back");
    let list = host.admin.get("/admin/generations").json();
    let list = list["generations"].as_array().expect("generations");
    let changes: Vec<&str> = list.iter().filter_map(|entry| entry["change"].as_str()).collect();
    assert_eq!(changes, ["start", "put", "put", "put", "rollback", "rollback", "delete", "rollback"]);
    let numbers: Vec<u64> = list.iter().filter_map(|entry| entry["generation"].as_u64()).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(list[3]["from"]["version"], "1.0.2");
    assert_eq!(list[3]["to"]["version"], "1.0.3");
}

#[test]
fn two_changes_at_once_are_done_one_after_the_other() {
    let host = host();
    put_guest(&host.admin, "mask", &filter(1));
    for round in 0..5 {
        let versions = [2 * round + 2, 2 * round + 3];
        let applied: Vec<Value> = thread::scope(|scope| {
            let puts = versions.map(|version| {
                let admin = &host.admin;
                scope.spawn(move || put_guest(admin, "mask", &filter(version)))
            });
            puts.into_iter().map(|put| put.join().expect("taken")).collect()
        });
        let mut order: Vec<(u64, u32)> = applied
            .iter()
            .map(|applied| applied["generation"].as_u64().expect("a number"))
            .zip(versions)
            .collect();
        order.sort_unstable();
        let base = u64::from(versions[0]);
        assert_eq!((order[0].0, order[1].0, generation(&host.admin)), (base, base + 1, base + 1));
        assert_eq!(version_of(&answer(&host), 2), order[1].1, "the later one is in force");
    }
}

#[test]
fn what_was_acknowledged_outlives_a_kill() {
    let state = tempfile::tempdir().expect("a folder");
    let config = "[engine]\nkv_mib = 8\n".to_owned();
    let options = HostOptions {
        model: tiny_model_file(),
        config,
        state: Some(state.path().to_owned()),
        ..HostOptions::default()
    };
    let mut acknowledged = 0;
    for version in 1..=3 {
        let host = RunningHost::start(&options);
        assert_eq!(generation(&host.admin), acknowledged, "restarts keep the number");
        if version > 1 {
            assert_eq!(version_of(&answer(&host), 2), version - 1);
        }
        acknowledged =
            put_guest(&host.admin, "mask", &filter(version))["generation"].as_u64().expect("a number");
        // SIGKILL, right after the answer.
        drop(host);
    }
    let host = RunningHost::start(&options);
    accepted(host.admin.delete("/admin/policies/mask"));
    drop(host);
    let host = RunningHost::start(&options);
    assert_eq!(answer(&host), WORD.repeat(2), "a removal is kept, too");
}

#[test]
fn only_the_key_of_the_admin_changes_policies() {
    let model = TinyModel::default().bytes();
    let keys =
        "admin_key = 'sk-admin-key'\n[[keys]]\nkey = 'sk-user-key'\ntenant = 'a'\n[engine]\nkv_mib = 8\n";
    let host = RunningHost::with_model(&model, keys);
    for admin in [host.admin.clone(), host.admin.with_key("sk-user-key")] {
        for reply in [
            admin.get("/admin/policies"),
            put(&admin, "mask", &manifest("mask", World::OutputFilter), &filter(1).build()),
            admin.delete("/admin/policies/mask"),
        ] {
            assert_eq!((reply.status, &reply.json()["error"]["code"]), (401, &json!("invalid_api_key")));
        }
    }
    put_guest(&host.admin.with_key("sk-admin-key"), "mask", &filter(1));
    let reply = host.api.with_key("sk-admin-key").post(CHAT, &chat("hello", json!({"max_tokens": 1})));
    assert_eq!(reply.status, 401, "nor does it open the API");
}
