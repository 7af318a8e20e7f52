//! `jackfield policy push | promote | rollback | status | diff`: a client of the admin API.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;

use jackfield_testkit::admin::manifest;
use jackfield_testkit::command::{command, fails, prints, run};
use jackfield_testkit::guest::{Guest, World};
use jackfield_testkit::host::{HostOptions, RunningHost, tiny_model_file};
use serde_json::{Value, json};

/// A built policy's folder under `home`, with a case that holds.
fn greeting(home: &Path, folder: &str, text: &str) -> PathBuf {
    let folder = home.join(folder);
    fs::create_dir_all(folder.join("cases")).expect("a folder");
    fs::write(folder.join("policy.toml"), manifest("greet", World::Router)).expect("written");
    fs::write(folder.join("policy.wasm"), Guest::answering(text).build()).expect("written");
    let case = json!({"name": "a greeting", "input": {"text": "x"}, "expect": {"answer": text}});
    fs::write(folder.join("cases/all.json"), case.to_string()).expect("written");
    folder
}

#[test]
fn recorded_calls_are_a_gate_for_the_next_version() {
    let home = tempfile::tempdir().expect("a folder");
    let state = home.path().join("state");
    let host = RunningHost::start(&HostOptions {
        model: tiny_model_file(),
        config: "[record]\ntenants = [\"*\"]\n".into(),
        state: Some(state.clone()),
        ..HostOptions::default()
    });
    let admin = url(host.admin.address);
    greeting(home.path(), "one", "hello");
    greeting(home.path(), "two", "good day");
    prints(home.path(), &at(&admin, &["push", "greet", "one"]));
    for _ in 0..4 {
        let body = json!({"model": "default", "messages": [{"role": "user", "content": "x"}]});
        assert_eq!(host.api.post("/v1/chat/completions", &body).status, 200);
    }
    let log = state.join("replay").to_string_lossy().into_owned();
    let replay = |folder: &str| run(home.path(), &["policy", "replay", folder, "--against", &log]);
    host.eventually("four calls", std::time::Duration::from_secs(60), |_| {
        replay("one").out.starts_with("4 calls")
    });
    assert!(replay("one").out.contains("4 calls made again, 0 changed (0.00%)"), "{:?}", replay("one"));
    let changed = replay("two");
    assert_eq!(changed.code, Some(1), "{changed:?}");
    for words in ["4 × answer", "hello", "good day"] {
        assert!(changed.out.contains(words), "{words} is not in {}", changed.out);
    }
    assert!(changed.error.contains("4 of 4 calls changed, 100.00%; at most 0.00% may"), "{}", changed.error);
    let gated = ["push", "greet", "two", "--replay", &log, "--max-changed", "2%"];
    fails(home.path(), &at(&admin, &gated), 1, &["4 of 4 calls changed", "at most 2.00% may"]);
    let shown = host.admin.get("/admin/policies/greet").json();
    assert_eq!(shown["earlier"].as_array().map(Vec::len), Some(0), "nothing was sent");
    prints(home.path(), &at(&admin, &["push", "greet", "two", "--replay", &log, "--max-changed", "100%"]));
    fs::write(home.path().join("empty.jsonl"), "").expect("written");
    let empty = ["policy", "replay", "one", "--against", "empty.jsonl"];
    fails(home.path(), &empty, 2, &["no call of `greet`", "[record]"]);
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// `jackfield policy` with these arguments, for this server.
fn at<'a>(admin: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    [&["policy"], arguments, &["--admin", admin]].concat()
}

#[test]
fn a_policy_goes_to_a_server_and_back() {
    let home = tempfile::tempdir().expect("a folder");
    let host = RunningHost::tiny();
    let admin = url(host.admin.address);
    greeting(home.path(), "one", "hello");
    greeting(home.path(), "two", "good day");

    let pushed = run(home.path(), &at(&admin, &["push", "greet", "one"]));
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    assert!(pushed.error.contains("its manifest") && pushed.error.contains("1 case"), "{}", pushed.error);
    assert!(pushed.out.contains("greet@1.0.0") && pushed.out.contains("in force"), "{}", pushed.out);
    let again = prints(home.path(), &at(&admin, &["push", "greet", "one/policy.wasm"]));
    assert!(again.contains("nothing changed"), "{again}");

    let digest = |host: &RunningHost| host.admin.get("/admin/policies/greet").json()["digest"].to_string();
    let first = digest(&host);
    prints(home.path(), &at(&admin, &["push", "greet", "two"]));
    assert_ne!(digest(&host), first);
    let status = prints(home.path(), &at(&admin, &["status"]));
    let row = status.lines().find(|line| line.starts_with("greet")).expect("a row");
    assert!(
        row.contains("1.0.0") && row.contains("router") && row.contains(&digest(&host)[1..13]),
        "{status}"
    );
    let more = prints(home.path(), &at(&admin, &["status", "greet"]));
    assert!(more.contains("deadline-ms 10000") && more.contains(&first[1..13]), "{more}");
    let back = prints(home.path(), &at(&admin, &["rollback", "greet"]));
    assert!(back.contains("in force"), "{back}");
    assert_eq!(digest(&host), first);

    // What the server refuses is shown in its words, with its code, and changes nothing.
    let wrong = json!({"name": "other", "input": {"text": "x"}, "expect": {"answer": "bye"}});
    fs::write(home.path().join("two/cases/all.json"), wrong.to_string()).expect("written");
    let refused = ["case `other` failed", "bye", "case_failed", "422"];
    fails(home.path(), &at(&admin, &["push", "greet", "two"]), 1, &refused);
    fails(home.path(), &at(&admin, &["push", "greet", "one", "--cases", "two/cases"]), 1, &refused);
    fails(home.path(), &at(&admin, &["push", "other", "two"]), 2, &["greet", "other"]);
    fails(home.path(), &at(&admin, &["status", "other"]), 1, &["other"]);
    fails(home.path(), &at(&admin, &["rollback", "other"]), 1, &["other", "policy_not_found"]);
    fails(home.path(), &at(&admin, &["rollback", "../generations"]), 2, &["../generations"]);
    assert_eq!(digest(&host), first);
}

#[test]
fn the_key_of_the_admin_api_is_asked_for() {
    let home = tempfile::tempdir().expect("a folder");
    let host = RunningHost::start(&HostOptions {
        model: tiny_model_file(),
        config: "admin_key = 'adm-secret'\n".into(),
        ..HostOptions::default()
    });
    let admin = url(host.admin.address);
    let status = ["policy", "status", "--admin", admin.as_str()];
    fails(home.path(), &status, 1, &["401", "--admin-key", "JACKFIELD_ADMIN_KEY"]);
    let wrong = [&status[..], &["--admin-key", "adm-other"]].concat();
    fails(home.path(), &wrong, 1, &["401"]);
    assert!(
        prints(home.path(), &[&status[..], &["--admin-key", "adm-secret"]].concat()).contains("no policies")
    );
    let by_environment = command(home.path(), &status).env("JACKFIELD_ADMIN_KEY", "adm-secret").output();
    assert!(by_environment.expect("the binary starts").status.success());
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let home = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = url(listener.local_addr().expect("an address"));
    drop(listener);
    for arguments in [&["status"][..], &["promote", "greet"], &["diff", "greet@1.0.0", "greet"]] {
        fails(home.path(), &at(&nobody, arguments), 1, &[&nobody, "--admin-listen"]);
    }
}

/// A request as the stand-in saw it.
#[derive(Debug, Clone)]
struct Seen {
    line: String,
    body: String,
}

/// Stands in for a server with candidates: answers by the beginning of the request line.
struct StandIn {
    admin: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl StandIn {
    fn start(answers: Vec<(&'static str, Value)>) -> StandIn {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let admin = url(listener.local_addr().expect("an address"));
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let kept = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &answers, &kept);
            }
        });
        StandIn { admin, seen }
    }

    fn policy<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        at(&self.admin, arguments)
    }

    fn last(&self) -> Seen {
        self.seen.lock().expect("requests").last().cloned().expect("a request")
    }
}

fn answer(mut stream: TcpStream, answers: &[(&str, Value)], seen: &Mutex<Vec<Seen>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).expect("a request");
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).expect("headers");
        if header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let body = String::from_utf8_lossy(&body).into_owned();
    let found =
        answers.iter().find(|(start, _)| line.starts_with(start)).map(|(_, answer)| answer.to_string());
    seen.lock().expect("requests").push(Seen { line: line.trim().to_owned(), body });
    let (status, text) = match found {
        Some(text) => ("200 OK", text),
        None => ("404 Not Found", r#"{"error": {"message": "no such thing", "code": "not_found"}}"#.into()),
    };
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len());
    // A client that has gone is its own business.
    let _ = stream.write_all(head.as_bytes());
}

fn applied(stage: &str) -> Value {
    let version =
        json!({"name": "greet", "version": "1.0.0", "digest": "aaaabbbbccccdddd", "config_digest": "0"});
    json!({"generation": 8, "changed": true, "version": version, "millis": 12, "stage": stage})
}

#[test]
fn a_candidate_is_asked_for_and_promoted() {
    let home = tempfile::tempdir().expect("a folder");
    greeting(home.path(), "one", "hello");
    let server = StandIn::start(vec![
        ("PUT /admin/policies/greet?shadow_s=600&canary=0.05 ", applied("shadow")),
        ("PUT /admin/policies/greet?canary=0.05 ", applied("canary")),
        ("PUT /admin/policies/greet?shadow_s=90 ", applied("active")),
        ("POST /admin/policies/greet/promote ", applied("active")),
    ]);
    let push = ["push", "greet", "one", "--shadow", "10m", "--canary", "5%"];
    let said = prints(home.path(), &server.policy(&push));
    assert!(said.contains("greet@1.0.0") && said.contains("shadow"), "{said}");
    let body = server.last().body;
    for part in ["component", "manifest", "config", "cases"] {
        assert!(body.contains(&format!("name=\"{part}\"")), "{part} is not in {body}");
    }
    assert!(body.contains("a greeting") && body.contains("kind = \"router\""), "{body}");
    let said = prints(home.path(), &server.policy(&["push", "greet", "one", "--canary", "0.05"]));
    assert!(said.contains("share of the sessions"), "{said}");
    let unheard = server.policy(&["push", "greet", "one", "--shadow", "90s"]);
    fails(home.path(), &unheard, 1, &["put it in force", "rollback greet"]);
    let said = prints(home.path(), &server.policy(&["promote", "greet"]));
    assert!(said.contains("in force as generation 8"), "{said}");
    assert!(server.last().line.starts_with("POST "), "{:?}", server.last());
}

#[test]
fn bytes_alone_are_sent_alone() {
    let home = tempfile::tempdir().expect("a folder");
    let server = StandIn::start(vec![("PUT /admin/policies/greet ", applied("active"))]);
    fs::write(home.path().join("new.wasm"), Guest::answering("hello").build()).expect("written");
    fs::write(home.path().join("rules.toml"), "since = 2026-01-01\n").expect("written");
    prints(home.path(), &server.policy(&["push", "greet", "new.wasm", "--config", "rules.toml"]));
    let body = server.last().body;
    assert!(body.contains(r#"{"since":"2026-01-01"}"#), "{body}");
    for part in ["manifest", "cases"] {
        assert!(!body.contains(&format!("name=\"{part}\"")), "{part} is in {body}");
    }
}

fn status() -> Value {
    json!({"generation": 7, "policies": [{
        "name": "greet", "version": "1.0.0", "digest": "aaaabbbbccccdddd", "config_digest": "1111", "kind": "router",
        "order": 0, "on_fault": "open", "grants": [], "limits": {"deadline-ms": 50}, "component_bytes": 2048,
        "earlier": [], "stats": {"calls": 40, "micros": 400, "faults": {"trap": 2}}, "state": "active",
        "candidate": {
            "name": "greet", "version": "1.1.0", "digest": "eeee", "stage": "shadow", "share": 0.05,
            "since_unix_ms": 1, "until_unix_ms": null, "compared": 120, "differed": 3, "faults": 1, "dropped": 0,
            "examples": [{"turn": "t-17", "active": {"answer": "hello"}, "candidate": {"answer": "good day"}}],
        },
        "breaker": {"state": "half-open", "trips": 2, "last": {"unix_ms": 1, "reason": "faults", "version": "1.1.0"}},
    }]})
}

#[test]
fn a_candidate_is_seen_in_the_status() {
    let home = tempfile::tempdir().expect("a folder");
    let server = StandIn::start(vec![("GET /admin/policies ", status())]);
    let table = prints(home.path(), &server.policy(&["status"]));
    for words in
        ["generation 7", "half-open, tripped 2×", "shadow 1.1.0, 3 of 120 differ (2.5%), 1 faults", "  10  "]
    {
        assert!(table.contains(words), "{words} is not in\n{table}");
    }
    let more = prints(home.path(), &server.policy(&["status", "greet"]));
    for words in [
        "differed in turn t-17",
        "/answer",
        "active     \"hello\"",
        "candidate  \"good day\"",
        "trap 2",
        "faults (version 1.1.0)",
    ] {
        assert!(more.contains(words), "{words} is not in\n{more}");
    }
    let json: Value =
        serde_json::from_str(&prints(home.path(), &server.policy(&["status", "--json"]))).expect("JSON");
    assert_eq!(json, status());

    let mut watching = command(home.path(), &server.policy(&["status", "--watch"]))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let lines = BufReader::new(watching.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let seen = lines.filter(|line| line.starts_with("greet")).take(2).count();
    watching.kill().expect("a child");
    watching.wait().expect("a child");
    assert_eq!(seen, 2, "it is shown again and again");
}

#[test]
fn two_versions_are_compared_wherever_they_are() {
    let home = tempfile::tempdir().expect("a folder");
    greeting(home.path(), "one", "hello");
    greeting(home.path(), "two", "good day");
    fs::write(home.path().join("two/rules.toml"), "level = 2\n").expect("written");
    let version = |number: &str, state: &str, deadline: u32| {
        json!({
            "version": number, "state": state, "digest": format!("{state}0000"), "config": {"level": 1},
            "manifest": {"name": "greet", "kind": "router", "limits": {"deadline-ms": deadline}},
            "description": {"name": "guest", "version": number, "config-schema": "{}", "dialog-schema": 1},
            "component_bytes": 10, "imports": [],
        })
    };
    let versions = json!({"versions": [version("1.0.0", "active", 50), version("1.1.0", "canary", 20)]});
    let server = StandIn::start(vec![("GET /admin/policies/greet/versions ", versions)]);

    let said = prints(home.path(), &server.policy(&["diff", "greet@1.0.0", "greet@candidate"]));
    for words in
        ["greet@1.0.0 (active", "greet@1.1.0 (canary", "/limits/deadline-ms", "before  50", "after   20"]
    {
        assert!(said.contains(words), "{words} is not in\n{said}");
    }
    assert!(said.contains("the same: configuration, schema, imports, component size"), "{said}");
    let said = prints(home.path(), &server.policy(&["diff", "greet", "greet@active"]));
    assert!(said.contains("no difference"), "{said}");
    let said = prints(home.path(), &server.policy(&["diff", "greet", "two"]));
    assert!(said.contains("/level") && said.contains("/limits/host-calls"), "{said}");
    let said = prints(home.path(), &server.policy(&["diff", "one", "two/policy.wasm"]));
    assert!(
        said.contains("/level") && said.contains("the same: manifest, schema, description, imports"),
        "{said}"
    );
    fails(home.path(), &server.policy(&["diff", "greet@3.0.0", "greet"]), 1, &["3.0.0", "1.1.0 (canary"]);
    fails(home.path(), &server.policy(&["diff", "gone.wasm", "greet"]), 2, &["gone.wasm"]);
    fails(home.path(), &server.policy(&["diff", "other", "greet"]), 1, &["no such thing", "not_found"]);
}
