//! Versions on their way, versions that break, and a host that is killed at any instant.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use jackfield_testkit::admin::{accepted, form, generation, manifest, put, put_guest};
use jackfield_testkit::answer::{CHAT, chat};
use jackfield_testkit::guest::{Guest, World};
use jackfield_testkit::host::{HostOptions, RunningHost, tiny_model_file};
use jackfield_testkit::http::Client;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(60);

/// A manifest whose breaker decides after a few calls.
fn touchy(on_fault: &str) -> String {
    format!(
        "name = \"r\"\nkind = \"router\"\non-fault = \"{on_fault}\"\n[limits]\ndeadline-ms = 10000\n\
         [breaker]\nmin-calls = 5\ncooldown-s = 1\n"
    )
}

fn trapping() -> Guest {
    let mut guest = Guest::new(World::Router);
    guest.work = "(unreachable)".into();
    guest
}

fn push(admin: &Client, query: &str, guest: &Guest) -> Value {
    // The query is for `r` alone, so that `put` can be used as it is.
    let reply = put(admin, &format!("r{query}"), &manifest("r", World::Router), &guest.build());
    accepted(reply)
}

/// What a turn of this session is answered.
fn told(host: &RunningHost, session: &str) -> String {
    let body = chat("hello", json!({"max_tokens": 1, "session": session}));
    let reply = host.api.post(CHAT, &body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()["choices"][0]["message"]["content"].as_str().expect("a text").to_owned()
}

fn shown(host: &RunningHost) -> Value {
    host.admin.get("/admin/policies/r").json()
}

#[test]
fn sessions_stay_where_a_canary_put_them_until_it_is_promoted() {
    let host = RunningHost::tiny();
    put_guest(&host.admin, "r", &Guest::answering("old"));
    assert_eq!(push(&host.admin, "?canary=0.3", &Guest::answering("new"))["stage"], "canary");
    let sessions: Vec<String> = (0..40).map(|n| format!("session-{n}")).collect();
    let first: BTreeMap<&String, String> = sessions.iter().map(|s| (s, told(&host, s))).collect();
    let new = first.values().filter(|text| *text == "new").count();
    assert!((2..30).contains(&new), "{new} of 40");
    for session in &sessions {
        assert_eq!(told(&host, session), first[session], "{session} went from one version to the other");
    }
    let promoted = accepted(host.admin.post("/admin/policies/r/promote", &json!({})));
    assert_eq!((promoted["generation"].as_u64(), &promoted["stage"]), (Some(3), &json!("active")));
    assert!(sessions.iter().all(|session| told(&host, session) == "new"));
}

#[test]
fn a_shadow_is_told_apart_and_no_client_hears_it() {
    let host = RunningHost::tiny();
    put_guest(&host.admin, "r", &Guest::answering("old"));
    assert_eq!(push(&host.admin, "?shadow_s=600", &Guest::answering("new"))["stage"], "shadow");
    for n in 0..10 {
        assert_eq!(told(&host, &n.to_string()), "old");
    }
    host.eventually("ten comparisons", LIMIT, |host| {
        let candidate = &shown(host)["candidate"];
        candidate["compared"].as_u64() == Some(10) && candidate["differed"].as_u64() == Some(10)
    });
    for (stage, name) in [("active", "calls_total"), ("shadow", "calls_total"), ("shadow", "seconds_count")] {
        let labels = format!("stage=\"{stage}\"");
        let value = host.metric(&format!("jackfield_policy_version_{name}"), &labels);
        assert!(value >= 10.0, "{stage} {name}: {value}");
    }
    let example = shown(&host)["candidate"]["examples"][0].clone();
    assert_eq!(
        (&example["active"]["answer"]["answer"], &example["candidate"]["answer"]["answer"]),
        (&json!("old"), &json!("new"))
    );
}

/// A shadow of an output filter sees whole answers.
#[test]
fn a_filter_is_compared_by_what_it_lets_through() {
    let host = RunningHost::tiny();
    put_guest(&host.admin, "f", &Guest::masking("the", "one"));
    let manifest = manifest("f", World::OutputFilter);
    accepted(put(&host.admin, "f?shadow_s=600", &manifest, &Guest::masking("the", "two").build()));
    let asked = jackfield_testkit::ask::words(&host.api, 3);
    assert_eq!(host.api.post(CHAT, &asked).json()["choices"][0]["message"]["content"], " one one one");
    let candidate = || host.admin.get("/admin/policies/f").json()["candidate"].clone();
    host.eventually("a comparison", LIMIT, |_| candidate()["compared"] == 1);
    let example = candidate()["examples"][0].clone();
    assert_eq!(example["active"]["answer"]["sent"], " one one one");
    assert_eq!(example["candidate"]["answer"]["sent"], " two two two");
}

#[test]
fn a_version_that_breaks_gives_way_to_the_last_good_one_without_anyone_asking() {
    let host = RunningHost::tiny();
    put_guest(&host.admin, "r", &Guest::answering("good"));
    accepted(put(&host.admin, "r", &touchy("closed"), &trapping().build()));
    let ask = |host: &RunningHost| host.api.post(CHAT, &chat("hello", json!({"max_tokens": 1})));
    host.eventually("the good version", LIMIT, |host| ask(host).status == 200);
    assert_eq!(told(&host, "s"), "good");
    let generations = host.admin.get("/admin/generations").json();
    let last = generations["generations"].as_array().and_then(|all| all.last()).expect("some").clone();
    assert_eq!(last["change"], "trip");
    assert!(last["why"].as_str().is_some_and(|why| why.contains("calls faulted")), "{last}");
}

#[test]
fn without_a_good_version_the_patch_is_open_or_closed_as_the_manifest_says() {
    for (on_fault, status) in [("open", 200), ("closed", 500)] {
        let host = RunningHost::tiny();
        accepted(put(&host.admin, "r", &touchy(on_fault), &trapping().build()));
        let ask = |host: &RunningHost| host.api.post(CHAT, &chat("hello", json!({"max_tokens": 1})));
        host.eventually("the breaker", LIMIT, |host| {
            assert_eq!(ask(host).status, status);
            shown(host)["state"] == "open"
        });
        let last = shown(&host)["breaker"]["last"]["reason"].clone();
        assert!(last.as_str().is_some_and(|why| why.contains("calls faulted")), "{last}");
        // Tried again now and then, it breaks again.
        host.eventually("another trip", LIMIT, |host| {
            ask(host);
            shown(host)["breaker"]["trips"].as_u64() >= Some(2)
        });
        put_guest(&host.admin, "r", &Guest::answering("mended"));
        assert_eq!(told(&host, "s"), "mended");
    }
}

/// Changes are made as fast as they go while the host is killed at an instant that nobody chose. Whatever was acknowledged
/// is in force afterwards, and nothing else than that or the one change whose answer was not seen.
#[test]
fn what_was_acknowledged_survives_a_kill_at_any_instant() {
    const ROUNDS: u64 = 200;
    let state = tempfile::tempdir().expect("a folder");
    let options = HostOptions {
        model: tiny_model_file(),
        state: Some(state.path().to_owned()),
        ..HostOptions::default()
    };
    let mut acknowledged = 0;
    let mut version = String::new();
    for round in 0..ROUNDS {
        let host = RunningHost::start(&options);
        let current = generation(&host.admin);
        assert!(
            current == acknowledged || current == acknowledged + 1,
            "round {round}: {current} is in force, {acknowledged} was acknowledged"
        );
        if current > 0 {
            let shown = shown(&host)["description"]["version"].as_str().expect("a version").to_owned();
            assert!(current > acknowledged || shown == version, "round {round}: {shown}, not {version}");
            version = shown;
        }
        acknowledged = current;
        let dead = AtomicBool::new(false);
        thread::scope(|scope| {
            let pid = host.pid();
            // Anything from the first connection to some twenty changes.
            let instant = Duration::from_micros(round * 7919 % 120 * 1000);
            let dead = &dead;
            scope.spawn(move || {
                thread::sleep(instant);
                dead.store(true, Ordering::Relaxed);
                std::process::Command::new("kill")
                    .args(["-9", &pid.to_string()])
                    .status()
                    .expect("kill runs");
            });
            for change in 0.. {
                let mut guest = Guest::answering("x");
                let next = format!("{round}.{change}.0");
                guest.version(&next);
                let manifest = manifest("r", World::Router);
                let (kind, body) = form(&[("manifest", manifest.as_bytes()), ("component", &guest.build())]);
                let Some(reply) = host.admin.try_send("PUT", "/admin/policies/r", &kind, body) else {
                    assert!(
                        dead.load(Ordering::Relaxed),
                        "the host ended before it was killed:\n{}",
                        host.log()
                    );
                    break;
                };
                acknowledged = accepted(reply)["generation"].as_u64().expect("a generation");
                version = next;
            }
        });
    }
    assert!(acknowledged >= ROUNDS, "{acknowledged} changes in {ROUNDS} rounds");
}
