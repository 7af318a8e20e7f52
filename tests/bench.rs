//! The load generator against a running host: what it counts, never how fast it was.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use jackfield_testkit::host::{RunningHost, binary};
use serde_json::Value;

const MIXED: &str = r#"
about = "raw text and a dialog, side by side"
[[phase]]
name = "first"
[[phase.lane]]
name = "raw"
streams = 3
requests = 5
prompt_tokens = [8, 24]
output_tokens = 7
[[phase.lane]]
name = "dialogs"
streams = 1
requests = 2
turns = 3
prompt_tokens = 4
output_tokens = 5
[[phase]]
name = "second"
[[phase.lane]]
name = "by the clock"
per_second = 50.0
burst = 2
requests = 6
shared_tokens = 40
prompt_tokens = 8
output_tokens = 3
[[phase.lane]]
name = "beside"
background = true
streams = 1
prompt_tokens = 16
output_tokens = 4
"#;

fn bench(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(binary())
        .arg("bench")
        .args(arguments)
        .current_dir(folder)
        .env("HOME", folder)
        .env_remove("OPENAI_API_KEY")
        .output()
        .expect("the binary runs")
}

/// Runs this workload against the host; the exit code, standard output and the JSON report.
fn load(host: &RunningHost, workload: &str, more: &[&str]) -> (Option<i32>, String, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("mine.toml"), workload).expect("written");
    let url = format!("http://{}", host.api.address);
    let mut arguments = vec!["mine.toml", "--url", &url, "--json", "r.json", "--html", "r.html"];
    arguments.extend(more);
    let output = bench(folder.path(), &arguments);
    let json = fs::read(folder.path().join("r.json")).unwrap_or_else(|_| panic!("no report: {output:?}"));
    let page = fs::read_to_string(folder.path().join("r.html")).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.contains("mine"), "{page}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    (output.status.code(), text, serde_json::from_slice(&json).expect("JSON"))
}

/// Requests, served requests and output tokens of a lane.
fn counts(report: &Value, phase: usize, lane: usize) -> [u64; 3] {
    let lane = &report["workloads"][0]["phases"][phase]["lanes"][lane];
    ["requests", "served", "output_tokens"].map(|name| lane[name].as_u64().expect("a count"))
}

#[test]
fn every_request_is_counted_and_every_answer_has_its_length() {
    let host = RunningHost::tiny();
    let pid = host.pid().to_string();
    let (code, table, report) = load(&host, MIXED, &["--pid", &pid]);
    assert_eq!(code, Some(0), "{table}");
    assert_eq!(counts(&report, 0, 0), [5, 5, 35]);
    assert_eq!(counts(&report, 0, 1), [6, 6, 30], "two dialogs of three turns");
    assert_eq!(counts(&report, 1, 0), [6, 6, 18]);
    let [requests, served, tokens] = counts(&report, 1, 1);
    assert_eq!((requests, served * 4), (served, tokens), "what was cut off is not counted");
    assert_eq!((&report["fixed_length"], &report["endpoint"]), (&true.into(), &"/v1/completions".into()));
    for words in ["first: raw", "5/5", "second: beside", "resident memory"] {
        assert!(table.contains(words), "{words:?} is not in\n{table}");
    }
    let phases = report["workloads"][0]["phases"].as_array().expect("phases");
    for phase in phases {
        assert!(phase["resident_peak_mib"].as_f64().is_some_and(|mib| mib > 1.0), "{phase}");
        assert_eq!(phase["waste"]["preemptions"], 0.0, "{phase}");
        let ended: u64 = phase["series"].as_array().expect("windows").iter().map(ended).sum();
        let requests: u64 = phase["lanes"].as_array().expect("lanes").iter().map(requests_of).sum();
        assert_eq!(ended, requests, "every request ends in one window");
    }
    host.settle();
}

fn ended(window: &Value) -> u64 {
    window["ended"].as_u64().expect("a count")
}

fn requests_of(lane: &Value) -> u64 {
    lane["requests"].as_u64().expect("a count")
}

#[test]
fn the_servers_own_count_agrees() {
    let host = RunningHost::tiny();
    let before = host.metric("jackfield_completion_tokens_total", "");
    let (_, _, report) = load(&host, MIXED, &["--seed", "5"]);
    host.settle();
    let ours: u64 = (0..4).map(|at| counts(&report, at / 2, at % 2)[2]).sum();
    let theirs = host.metric("jackfield_completion_tokens_total", "") - before;
    // Two tokens of the first two requests; at most four of the one that was cut off.
    assert!((ours + 2..=ours + 6).contains(&(theirs as u64)), "{ours} and {theirs}");
}

#[test]
fn only_shared_text_is_found_in_a_cache() {
    let host = RunningHost::tiny();
    let lane = |shared: u32| {
        format!(
            "about = 'x'\n[[phase]]\n[[phase.lane]]\nstreams = 1\nrequests = 6\nshared_tokens = {shared}\n\
             prompt_tokens = 48\noutput_tokens = 1\n"
        )
    };
    let cached = |report: &Value| {
        report["workloads"][0]["phases"][0]["lanes"][0]["cached_tokens"].as_u64().expect("a count")
    };
    assert_eq!(cached(&load(&host, &lane(0), &["--seed", "1"]).2), 0);
    assert_eq!(cached(&load(&host, &lane(0), &["--seed", "2"]).2), 0, "another run, other prompts");
    assert!(cached(&load(&host, &lane(64), &["--seed", "3"]).2) >= 5 * 32);
    assert!(cached(&load(&host, &lane(0), &["--seed", "1"]).2) > 0, "the same seed, the same prompts");
}

#[test]
fn what_the_server_refuses_is_counted_by_kind() {
    let host = RunningHost::tiny();
    let long = "about = 'x'\n[[phase]]\n[[phase.lane]]\nname = 'long'\nstreams = 2\nrequests = 3\n\
        prompt_tokens = 5000\noutput_tokens = 4\n";
    let (code, table, report) = load(&host, long, &[]);
    assert_eq!(code, Some(1), "nothing was answered: {table}");
    assert_eq!(counts(&report, 0, 0), [3, 0, 0]);
    let lane = &report["workloads"][0]["phases"][0]["lanes"][0];
    assert_eq!(lane["errors"]["status 400"], 3);
    assert!(lane["first_error"].as_str().is_some_and(|text| text.contains("context")), "{lane}");
    assert!(table.contains("3 × status 400"), "{table}");
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let nobody = format!("http://127.0.0.1:{port}");
    fs::write(folder.path().join("bad.toml"), "about = 'x'\nphases = 3\n").expect("written");
    let cases: [(&[&str], i32, &[&str]); 6] = [
        (&["decode_1", "--url", &nobody], 1, &[&nobody, "jackfield serve"]),
        (&["decode_3"], 2, &["decode_3", "decode_16", "three_phases"]),
        (&["gone.toml"], 2, &["gone.toml"]),
        (&["bad.toml"], 2, &["bad", "phases", "line 2"]),
        (&["--url", "localhost:8080"], 2, &["localhost:8080", "http://127.0.0.1:8080"]),
        (&["--pid", "4294967295"], 2, &["4294967295"]),
    ];
    for (arguments, code, words) in cases {
        let output = bench(folder.path(), arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        for word in words {
            assert!(error.contains(word), "{arguments:?}: {word:?} is not in {error}");
        }
    }
    let listed = bench(folder.path(), &["--list"]);
    let text = String::from_utf8_lossy(&listed.stdout);
    assert!(listed.status.success() && text.contains("shared_prefix_16"), "{text}");
}
