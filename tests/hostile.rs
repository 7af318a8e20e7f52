//! Policies that mean harm: each turn ends as the policy's manifest says, and the next one is not touched.

use std::thread;

use jackfield_testkit::admin::{accepted, manifest, put, put_guest, put_parts};
use jackfield_testkit::answer::{CHAT, RAW, chat, raw, twin, whole, with};
use jackfield_testkit::ask::{WORD, finish_of, text_of, words};
use jackfield_testkit::guest::{CONTRACT, Guest, LOOP, MARKER, World};
use jackfield_testkit::host::RunningHost;
use jackfield_testkit::http::{Client, Reply};
use jackfield_testkit::reciter::Reciter;
use jackfield_testkit::tiny_model::TinyModel;
use serde_json::{Value, json};

const DOWN: &str = "(func $down (param i32) (result i32)
    (i32.add (call $down (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))";
const GROW: &str =
    "(loop $more (br_if $more (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0)))) (unreachable)";

fn host() -> RunningHost {
    RunningHost::with_model(
        &TinyModel::default().bytes(),
        "[engine]\nkv_mib = 16\n[server]\nmax_upload_bytes = 1048576\n",
    )
}

/// Guests of a world that break in one way each, and the name of their fault.
fn broken(world: World) -> Vec<(&'static str, Guest)> {
    let doing = |work: &str| {
        let mut guest = Guest::new(world);
        guest.work = work.into();
        guest
    };
    let with = |write: fn(&mut Guest) -> String| {
        let mut guest = Guest::new(world);
        guest.work = write(&mut guest);
        guest
    };
    let mut recursive = doing("(call $down (i32.const 0))");
    recursive.module = DOWN.into();
    let mut guests = vec![
        ("deadline", doing(LOOP)),
        ("trap", doing("(unreachable)")),
        ("trap", doing("(i32.load (i32.const -4))")),
        ("trap", recursive),
        ("memory", doing(GROW)),
        ("refused", with(|guest| guest.error("no rule for this"))),
    ];
    match world {
        World::Router => guests.extend([
            ("invalid", with(|guest| guest.answer_at(u32::MAX, 1))),
            ("invalid", with(|guest| guest.answer(""))),
            (
                "output-too-large",
                with(|guest| format!("(drop (memory.grow (i32.const 64))) {}", guest.answer_at(0, 2 << 20))),
            ),
        ]),
        World::SlotExtractor => guests.extend([
            ("invalid", with(|guest| guest.transition(&[(0, 1000)]))),
            ("invalid", with(|guest| guest.transition(&[(4, 5)]))),
        ]),
        World::Compressor => guests.extend([
            ("invalid", with(|guest| guest.edits(&[(0, 0, 1000)]))),
            ("invalid", with(|guest| guest.edits(&[(0, 0, 5)]))),
            ("invalid", with(|guest| guest.list(1024, 10_000_000))),
        ]),
        World::OutputFilter => guests.extend([
            ("invalid", with(|guest| guest.verdicts(&[(0, Some((0, 1000)), 0)]))),
            ("invalid", with(|guest| guest.verdicts(&[(0, Some((1, 2)), 0)]))),
            ("invalid", with(|guest| guest.list(u32::MAX - 8, 1))),
        ]),
    }
    guests
}

/// Uploads a guest that may use half a second and fail as often as it will, with what happens when it does.
fn put_broken(admin: &Client, guest: &Guest, on_fault: &str) {
    let manifest = format!(
        "name = \"guest\"\nkind = \"{}\"\non-fault = \"{on_fault}\"\n[limits]\ndeadline-ms = 500\n\
         [breaker]\nmax-fault-percent = 100\nmax-slow-percent = 100\n",
        guest.world.name()
    );
    accepted(put(admin, "guest", &manifest, &guest.build()));
}

fn faults(host: &RunningHost, fault: &str) -> f64 {
    host.metric("jackfield_policy_faults_total", &format!("policy=\"guest\",fault=\"{fault}\""))
}

fn is_policy_fault(reply: &Reply) {
    let error = reply.json()["error"].clone();
    assert_eq!(
        (reply.status, &error["type"], &error["code"]),
        (500, &json!("policy_error"), &json!("policy_fault"))
    );
    assert!(error["message"].as_str().is_some_and(|message| message.contains("guest@1.0.0")), "{error}");
}

/// A turn on which the guest does what it should not: the marker, and a character of three bytes.
fn marked() -> Value {
    chat(&format!("{MARKER}汉字"), json!({"max_tokens": 8}))
}

fn calm() -> Value {
    chat("calm words", json!({"max_tokens": 8}))
}

#[test]
fn a_turn_whose_policy_breaks_ends_as_its_manifest_says_and_the_next_is_unhurt() {
    let host = host();
    let [unhurt_marked, unhurt_calm] =
        [marked(), calm()].map(|body| whole(&host.api, CHAT, &body).text().to_owned());
    for world in [World::SlotExtractor, World::Router, World::Compressor] {
        let calm_answer = if world == World::Router { "fine" } else { &unhurt_calm };
        for (fault, guest) in broken(world) {
            let guest = guest.only_on_marker();
            let what = format!("{world:?}, {fault}");
            let before = faults(&host, fault);
            put_broken(&host.admin, &guest, "open");
            assert_eq!(
                whole(&host.api, CHAT, &marked()).text(),
                unhurt_marked,
                "{what}: as if it was not there"
            );
            assert_eq!(whole(&host.api, CHAT, &calm()).text(), calm_answer, "{what}");
            put_broken(&host.admin, &guest, "closed");
            for stream in [false, true] {
                is_policy_fault(&host.api.post(CHAT, &with(marked(), json!({"stream": stream}))));
            }
            assert_eq!(whole(&host.api, CHAT, &calm()).text(), calm_answer, "{what}");
            assert_eq!(faults(&host, fault) - before, 3.0, "{what}: counted by its kind");
        }
        accepted(host.admin.delete("/admin/policies/guest"));
    }
    host.settle();
}

#[test]
fn a_filter_that_breaks_lets_nothing_pass_unless_it_is_open() {
    let pieces = ["汉", "BO", "OM", " one", " two"].map(|piece| piece.as_bytes().to_vec());
    let reciter = Reciter::of_pieces(pieces.to_vec());
    let host = RunningHost::with_model(&reciter.bytes(), "[engine]\nkv_mib = 8\n");
    let ways = [(CHAT, chat("go on", json!({}))), (RAW, raw("go on\n", json!({"max_tokens": 40})))];
    for (fault, mut guest) in broken(World::OutputFilter) {
        guest.watch(&["汉BOOM"]);
        for (path, body) in &ways {
            let before = faults(&host, fault);
            put_broken(&host.admin, &guest, "open");
            assert_eq!(twin(&host.api, path, body).answer.text(), "汉BOOM one two", "{fault}");
            put_broken(&host.admin, &guest, "closed");
            is_policy_fault(&host.api.post(path, body));
            let chunks = cut_off(&host.api, path, body);
            assert_eq!(chunks.last().expect("an error")["error"]["code"], "policy_fault", "{fault}");
            assert_eq!(finish_of(&chunks), None, "{fault}: half an answer is not finished");
            assert_eq!(text_of(&chunks), "", "{fault}");
            assert!(!chunks.iter().any(|chunk| chunk.to_string().contains("OM")), "{fault}");
            let short = twin(&host.api, path, &with(body.clone(), json!({"max_tokens": 2}))).answer;
            assert_eq!((short.text(), short.finish()), ("汉BO", "length"), "the next is unhurt");
            assert_eq!(faults(&host, fault) - before, 4.0, "{fault}");
        }
    }
    host.settle();
}

/// The chunks of a stream that ends without `[DONE]`.
fn cut_off(api: &Client, path: &str, body: &Value) -> Vec<Value> {
    let mut events = api.stream(path, &with(body.clone(), json!({"stream": true})));
    assert_eq!(events.status, 200);
    let data = std::iter::from_fn(|| events.next_data());
    data.map(|data| serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error}: {data:?}"))).collect()
}

#[test]
fn twenty_four_loops_at_once_hold_up_no_one_else() {
    let host = host();
    let mut looping = Guest::new(World::SlotExtractor);
    looping.work = LOOP.into();
    put_broken(&host.admin, &looping.only_on_marker(), "closed");
    let mut stream = host.api.stream(CHAT, &with(words(&host.api, 400), json!({"stream": true})));
    assert!(stream.next_data().is_some());
    thread::scope(|scope| {
        let loops: Vec<_> = (0..24).map(|_| scope.spawn(|| host.api.post(CHAT, &marked()))).collect();
        loops.into_iter().for_each(|reply| is_policy_fault(&reply.join().expect("an answer")));
    });
    assert_eq!(text_of(&stream.rest()), WORD.repeat(400));
    assert_eq!(faults(&host, "deadline") + faults(&host, "busy"), 24.0);
    assert_eq!(whole(&host.api, CHAT, &words(&host.api, 3)).text(), WORD.repeat(3));
    assert_eq!(host.api.get("/health/ready").status, 200);
}

#[test]
fn of_many_at_once_only_the_marked_ones_fail() {
    let host = host();
    let mut trapping = Guest::new(World::Router);
    trapping.work = "(unreachable)".into();
    put_broken(&host.admin, &trapping.only_on_marker(), "closed");
    let one_in_ten = |thread: usize| {
        for turn in 0..10 {
            if turn == thread {
                is_policy_fault(&host.api.post(CHAT, &marked()));
            } else {
                assert_eq!(whole(&host.api, CHAT, &calm()).text(), "fine");
            }
        }
    };
    thread::scope(|scope| (0..10).for_each(|thread| drop(scope.spawn(move || one_in_ten(thread)))));
    assert_eq!(faults(&host, "trap"), 10.0);
}

#[test]
fn what_is_no_policy_is_refused_by_name_and_the_old_one_serves_on() {
    let host = host();
    put_guest(&host.admin, "guest", &Guest::new(World::Router));
    let with_contract = |from: &str, to: &str| {
        assert!(CONTRACT.contains(from), "{from}");
        let mut guest = Guest::new(World::Router);
        guest.contract = CONTRACT.replace(from, to);
        guest
    };
    let mut sockets = with_contract("world router {", "world router {\n import wasi:sockets/tcp@0.2.3;");
    sockets.imports = r#"(import "wasi:sockets/tcp@0.2.3" "connect" (func))"#.into();
    let changed = |change: fn(&mut Guest)| {
        let mut guest = Guest::new(World::Router);
        change(&mut guest);
        guest.build()
    };
    let good = Guest::new(World::Router).build();
    let components = [
        ("not_a_component", "core module", Guest::new(World::Router).core()),
        ("not_a_component", "0 bytes", Vec::new()),
        ("not_a_component", "not WebAssembly", b"GIF89a..".to_vec()),
        ("component_invalid", "does not compile", good[..good.len() - 1].to_vec()),
        ("wrong_world", "but is a compressor", Guest::new(World::Compressor).build()),
        ("import_not_available", "wasi:sockets/tcp@0.2.3", sockets.build()),
        (
            "contract_version",
            "jackfield:policy/types@0.2.0",
            with_contract("policy@0.2.0", "policy@0.3.0").build(),
        ),
        ("contract_types", "differs from the contract", with_contract("status: u16", "status: u32").build()),
        (
            "setup_failed",
            "`instantiate` failed",
            changed(|guest| guest.module = format!("(func $s {LOOP}) (start $s)")),
        ),
        ("setup_failed", "`describe` failed", changed(|guest| guest.describe = "(unreachable)".into())),
        (
            "config_refused",
            "rule 3 has no pattern",
            changed(|guest| guest.configure = guest.error("rule 3 has no pattern")),
        ),
    ];
    let manifest = manifest("guest", World::Router);
    for (code, words, component) in components {
        let param = if code == "config_refused" { "config" } else { "component" };
        is_refused(&put(&host.admin, "guest", &manifest, &component), 422, code, param, words);
        assert_eq!(whole(&host.api, CHAT, &calm()).text(), "fine", "{code}: the old one serves on");
    }
    let case: &[u8] = br#"[{"name": "says fine", "input": {"text": "x"}, "expect": {"answer": "else"}}]"#;
    let new = changed(|guest| guest.version("1.0.1"));
    let parts: [(&str, &[u8]); 3] = [("manifest", manifest.as_bytes()), ("component", &new), ("cases", case)];
    is_refused(&put_parts(&host.admin, "guest", &parts), 422, "case_failed", "cases", "says fine");
    assert_eq!(host.admin.get("/admin/generations").json()["current"], 1, "nothing has changed");
}

#[test]
fn an_upload_that_is_incomplete_or_too_large_is_refused_before_it_is_tried() {
    let host = host();
    let good = Guest::new(World::Router).build();
    let manifest = manifest("guest", World::Router);
    let put = |name: &str, parts: &[(&str, &[u8])]| put_parts(&host.admin, name, parts);
    let manifest_part = ("manifest", manifest.as_bytes());
    is_refused(&put("guest", &[("component", &good)]), 404, "policy_not_found", "manifest", "manifest");
    is_refused(&put("guest", &[manifest_part]), 404, "policy_not_found", "component", "component");
    is_refused(
        &put("other", &[manifest_part, ("component", &good)]),
        400,
        "invalid_upload",
        "manifest.name",
        "other",
    );
    is_refused(&put("guest", &[("wasm", &good)]), 400, "invalid_upload", "wasm", "component");
    for (wrong, words) in [
        ("name = \"guest\"\nkind = \"roter\"\n", "roter"),
        ("name = \"guest\"\nkind = \"router\"\nlimits.deadline-ms = 0\n", "deadline-ms"),
        ("name = \"guest\"\nkind = \"router\"\ngrants = [\"sockets\"]\n", "sockets"),
        ("name = \"../guest\"\nkind = \"router\"\n", "../guest"),
        ("name = \n", "line 1"),
    ] {
        let reply = put("guest", &[("manifest", wrong.as_bytes()), ("component", &good)]);
        is_refused(&reply, 400, "invalid_upload", "manifest", words);
    }
    let large = vec![0; (1 << 20) + 1];
    let reply = put("guest", &[manifest_part, ("component", &large)]);
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (413, &json!("request_too_large")));
    let reply = host.admin.send("PUT", "/admin/policies/guest", "text/plain", good);
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (415, &json!("unsupported_content_type")));
    assert_eq!(host.admin.get("/admin/policies").json(), json!({"generation": 0, "policies": []}));
}

fn is_refused(reply: &Reply, status: u16, code: &str, param: &str, words: &str) {
    let error = reply.json()["error"].clone();
    let found = (reply.status, error["code"].as_str(), error["param"].as_str());
    assert_eq!(found, (status, Some(code), Some(param)), "{error}");
    assert!(
        error["message"].as_str().is_some_and(|message| message.contains(words)),
        "{words:?} is not in {error}"
    );
}
