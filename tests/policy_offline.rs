//! `jackfield policy check | test | bench | inspect`: what an author is told before anything is deployed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use jackfield_testkit::admin::manifest;
use jackfield_testkit::command::{command, fails, prints, run};
use jackfield_testkit::guest::{CONTRACT, Guest, World};
use serde_json::{Value, json};
use tempfile::TempDir;

const NAMED: &str = r#"{"type": "object", "required": ["words"], "properties": {
    "words": {"type": "array", "items": {"type": "string"}}, "level": {"type": "integer"}}}"#;

/// A built policy's folder under `home`.
fn built(home: &Path, name: &str, manifest: &str, guest: &Guest) -> PathBuf {
    let folder = home.join(name);
    fs::create_dir_all(folder.join("cases")).expect("a folder");
    fs::write(folder.join("policy.toml"), manifest).expect("written");
    fs::write(folder.join("policy.wasm"), guest.build()).expect("written");
    folder
}

fn cases(folder: &Path, cases: Value) {
    fs::write(folder.join("cases/all.json"), cases.to_string()).expect("written");
}

fn home() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A filter that masks `secret`, with cases that hold.
fn masking(home: &Path) -> PathBuf {
    let folder =
        built(home, "mask", &manifest("mask", World::OutputFilter), &Guest::masking("secret", "***"));
    cases(
        &folder,
        json!([
            {"name": "a word", "input": {"text": "a secret."}, "expect": {"sent": "a ***."}},
            {"name": "no word", "input": {"text": "nothing"}, "expect": {"sent": "nothing"}},
            {"name": "in pieces", "input": {"stream": ["a sec", "ret", " again"]}, "expect": {"sent": "a *** again"}},
        ]),
    );
    folder
}

/// A router that answers `fine`, with cases of which two expect something else.
fn answering(home: &Path) -> PathBuf {
    let folder = built(home, "greet", &manifest("greet", World::Router), &Guest::answering("it is fine"));
    cases(
        &folder,
        json!([
            {"name": "another text", "input": {"text": "x"}, "expect": {"answer": "it was fine"}},
            {"name": "as it is", "input": {"text": "x"}, "expect": {"answer": "it is fine"}},
            {"name": "two places", "input": {"text": "x"}, "expect": {"answer": 1, "run": {"model": "small"}}},
        ]),
    );
    folder
}

#[test]
fn a_component_says_what_it_is_without_a_manifest() {
    let home = home();
    let mut guest = Guest::masking("secret", "***");
    guest.imports = r#"(import "jackfield:policy/log@0.2.0" "write" (func (param i32 i32 i32)))"#.into();
    guest.schema(NAMED);
    let bytes = guest.build();
    fs::write(home.path().join("mask.wasm"), &bytes).expect("written");
    let said = prints(home.path(), &["policy", "inspect", "mask.wasm"]);
    for words in [
        "output-filter",
        "jackfield:policy 0.2.0",
        "jackfield:policy/log@0.2.0",
        "jackfield:policy/output-filtering@0.2.0",
        "1.0.0",
        "\"words\"",
        "--config FILE",
        &format!("{} bytes", bytes.len()),
    ] {
        assert!(said.contains(words), "{words} is not in\n{said}");
    }
    fs::write(home.path().join("rules.toml"), "words = ['a']").expect("written");
    let arguments = ["policy", "inspect", "mask.wasm", "--config", "rules.toml", "--json"];
    let said: Value = serde_json::from_str(&prints(home.path(), &arguments)).expect("JSON");
    assert_eq!((&said["kind"], &said["strategy"]), (&json!("output-filter"), &json!("frozen")));
    assert_eq!(said["digest"].as_str().map(str::len), Some(64));
    assert_eq!(said["description"]["config-schema"]["required"], json!(["words"]));
}

#[test]
fn what_no_server_takes_can_be_looked_into_as_well() {
    let home = home();
    let mut guest = Guest::new(World::Router);
    guest.contract = CONTRACT.replace("world router {", "world router {\n import wasi:sockets/tcp@0.2.3;");
    guest.imports = r#"(import "wasi:sockets/tcp@0.2.3" "connect" (func))"#.into();
    fs::write(home.path().join("sockets.wasm"), guest.build()).expect("written");
    let said = prints(home.path(), &["policy", "inspect", "sockets.wasm"]);
    assert!(said.contains("wasi:sockets/tcp@0.2.3") && said.contains("1.0.0"), "{said}");
    let newer = CONTRACT.replace("package jackfield:policy@0.2.0", "package jackfield:policy@0.3.0");
    let mut guest = Guest::new(World::Router);
    guest.contract = newer;
    fs::write(home.path().join("newer.wasm"), guest.build()).expect("written");
    let said = prints(home.path(), &["policy", "inspect", "newer.wasm"]);
    assert!(said.contains("jackfield:policy 0.3.0") && said.contains("router"), "{said}");
    fs::write(home.path().join("core.wasm"), Guest::new(World::Router).core()).expect("written");
    fails(home.path(), &["policy", "inspect", "core.wasm"], 1, &["core.wasm", "core module"]);
    fs::write(home.path().join("text.wasm"), "hello, world").expect("written");
    fails(home.path(), &["policy", "inspect", "text.wasm"], 1, &["not WebAssembly"]);
}

#[test]
fn a_policy_in_order_is_said_to_be() {
    let home = home();
    masking(home.path());
    let said = prints(home.path(), &["policy", "check", "mask"]);
    assert!(said.starts_with("mask: in order (output-filter 1.0.0, "), "{said}");
    assert!(said.contains("3 cases"), "{said}");
    // The same by the component's own name, and by the folder above.
    assert_eq!(prints(home.path(), &["policy", "check", "mask/policy.wasm"]), said);
    assert_eq!(prints(home.path(), &["policy", "check", "."]), said);
    fs::copy(home.path().join("mask/policy.wasm"), home.path().join("alone.wasm")).expect("copied");
    let alone = prints(home.path(), &["policy", "check", "alone.wasm"]);
    assert!(alone.contains("no policy.toml beside it"), "{alone}");
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let home = home();
    let mut guest = Guest::new(World::Router);
    guest.contract = CONTRACT.replace("world router {", "world router {\n import wasi:sockets/tcp@0.2.3;");
    guest.imports = r#"(import "wasi:sockets/tcp@0.2.3" "connect" (func))
        (import "jackfield:policy/tokens@0.2.0" "count" (func (param i32 i32) (result i32)))"#
        .into();
    guest.schema(NAMED);
    let manifest = "name = \"wrong\"\nkind = \"compressor\"\ngrants = [\"log\"]\n";
    let folder = built(home.path(), "wrong", manifest, &guest);
    fs::write(folder.join("rules.toml"), "words = [1]\nlevel = 'high'\n").expect("written");
    cases(&folder, json!([{"name": "late", "input": {}, "expects": {}}]));
    let ended = fails(home.path(), &["policy", "check", "wrong"], 1, &["1 of 1 policy would be refused"]);
    for words in [
        "wrong: 6 problems",
        "cases/all.json",
        "expects",
        "wasi:sockets/tcp@0.2.3",
        "write kind = \"router\" in policy.toml",
        "`tokens`",
        "grants = [\"log\", \"tokens\"]",
        "/words/0",
        "/level",
        "grants `log`, which it does not import",
    ] {
        assert!(ended.out.contains(words), "{words} is not in\n{}", ended.out);
    }
    fs::write(folder.join("policy.toml"), "name = \"wrong\"\nkind = \"filter\"\n").expect("written");
    let ended = fails(home.path(), &["policy", "check", "wrong"], 1, &[]);
    assert!(ended.out.contains("policy.toml") && ended.out.contains("output-filter"), "{}", ended.out);
    assert!(ended.out.contains("wasi:sockets"), "the component is looked into all the same: {}", ended.out);
}

#[test]
fn a_policy_that_does_not_start_is_refused_by_check() {
    let home = home();
    let mut guest = Guest::new(World::Router);
    guest.configure = guest.error("no rules, no work");
    built(home.path(), "lazy", &manifest("lazy", World::Router), &guest);
    let ended = fails(home.path(), &["policy", "check", "lazy"], 1, &[]);
    assert!(ended.out.contains("no rules, no work"), "{}", ended.out);
}

#[test]
fn all_cases_are_run_and_each_difference_is_shown() {
    let home = home();
    masking(home.path());
    answering(home.path());
    let ended = fails(home.path(), &["policy", "test", "."], 1, &["2 of 6 cases failed"]);
    for words in [
        "ok   a word",
        "FAIL another text",
        "/answer\n",
        "expected  \"it was fine\"",
        "found     \"it is fine\"",
        "               ^",
        "ok   as it is",
        "FAIL two places",
        "/run\n",
        "1 case passed, 2 failed",
        "3 cases passed",
    ] {
        assert!(ended.out.contains(words), "{words:?} is not in\n{}", ended.out);
    }
    assert!(!ended.out.contains('\u{1b}'), "colours are for terminals: {:?}", ended.out);
    let passed = prints(home.path(), &["policy", "test", ".", "--filter", "as it"]);
    assert!(passed.contains("1 case passed") && !passed.contains("FAIL"), "{passed}");
    fails(home.path(), &["policy", "test", ".", "--filter", "unheard of"], 1, &["unheard of"]);
    fs::remove_dir_all(home.path().join("greet")).expect("removed");
    fs::remove_dir_all(home.path().join("mask/cases")).expect("removed");
    fails(home.path(), &["policy", "test", "mask"], 1, &["no recorded cases", "cases/"]);
}

#[test]
fn a_build_server_gets_its_file() {
    let home = home();
    masking(home.path());
    answering(home.path());
    let lazy =
        built(home.path(), "lazy", "name = \"lazy\"\nkind = \"compressor\"\n", &Guest::new(World::Router));
    cases(&lazy, json!([]));
    fails(home.path(), &["policy", "test", ".", "--junit", "out.xml"], 1, &["2 of 6 cases", "not run: lazy"]);
    let xml = fs::read_to_string(home.path().join("out.xml")).expect("written");
    for words in [
        r#"tests="7" skipped="0" failures="2" errors="1""#,
        r#"<testsuite name="greet" tests="3" skipped="0" errors="0" failures="2""#,
        r#"<testcase name="a word" classname="mask""#,
        "/answer: expected &quot;it was fine&quot;, found &quot;it is fine&quot;",
        "is not a compressor",
    ] {
        assert!(xml.contains(words), "{words} is not in\n{xml}");
    }
    let nowhere = ["policy", "test", "mask", "--junit", "gone/out.xml"];
    fails(home.path(), &nowhere, 1, &["gone/out.xml"]);
}

/// A `policy test --watch`, ended when dropped.
struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn start(home: &Path) -> Watching {
        let mut child = command(home, &["policy", "test", "mask", "--watch"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let (sender, lines) = mpsc::channel();
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().expect("piped")), Box::new(child.stderr.take().expect("piped"))];
        for stream in streams {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        Watching { child, lines }
    }

    /// Lines until one holds this.
    fn until(&self, words: &str) {
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(60)) {
            if line.contains(words) {
                return;
            }
            seen.push(line);
        }
        panic!("{words} does not come; there came {seen:#?}");
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn cases_are_run_again_when_they_are_saved() {
    let home = home();
    let folder = masking(home.path());
    let watching = Watching::start(home.path());
    watching.until("watching 1 folder");
    cases(&folder, json!([{"name": "another", "input": {"text": "x"}, "expect": {"sent": "y"}}]));
    watching.until("all.json saved");
    watching.until("FAIL another");
    cases(&folder, json!([{"name": "another", "input": {"text": "x"}, "expect": {"sent": "x"}}]));
    watching.until("ok   another");
    fs::write(folder.join("policy.wasm"), Guest::masking("x", "y").build()).expect("written");
    watching.until("FAIL another");
}

#[test]
fn what_a_call_costs_is_held_to_the_limits() {
    let home = home();
    masking(home.path());
    let arguments = ["policy", "bench", "mask", "--calls", "50", "--json", "out.json"];
    let said = prints(home.path(), &arguments);
    assert!(said.contains("P99 µs") && said.contains("mask@1.0.0") && said.contains("frozen"), "{said}");
    let json: Value =
        serde_json::from_str(&fs::read_to_string(home.path().join("out.json")).expect("written"))
            .expect("JSON");
    let figures = &json[0];
    assert_eq!((&figures["calls"], &figures["within_budget"]), (&json!(50), &json!(true)));
    assert_eq!(figures["memory_bytes"], json!(4 * 65536), "the four pages of the guest");
    let at = |name: &str| figures[name].as_f64().expect(name);
    assert!(0.0 < at("p50_us") && at("p50_us") <= at("p99_us") && at("p99_us") <= at("max_us"), "{figures}");
    cases(
        &home.path().join("mask"),
        json!([{"name": "n", "input": {"text": "none"}, "expect": {"sent": "none"}}]),
    );
    fails(home.path(), &["policy", "bench", "mask"], 1, &["mask", "never"]);
}

#[test]
fn a_call_over_its_deadline_is_measured_and_fails() {
    let home = home();
    let mut guest = Guest::new(World::Router);
    let fine = guest.answer("late");
    // Far more than a millisecond on any machine; where it is more than the twenty that a recorded case has, it faults.
    guest.work = format!(
        "(local $i i32) (loop $more (br_if $more (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 20000000)))) {fine}"
    );
    let manifest = "name = \"slow\"\nkind = \"router\"\n[limits]\ndeadline-ms = 1\n";
    let folder = built(home.path(), "slow", manifest, &guest);
    cases(&folder, json!([{"name": "n", "input": {"text": "x"}, "expect": {"answer": "late"}}]));
    let ended = run(home.path(), &["policy", "bench", "slow", "--calls", "20"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.error.contains("slow"), "{}", ended.error);
}
