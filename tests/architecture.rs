//! The directions of imports and the absences that ARCHITECTURE.md promises, held by reading the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Crate, folder, and the crates of this repository that it may depend on outside of its tests.
const MAY_KNOW: [(&str, &str, &[&str]); 10] = [
    ("kernels", "kernels", &[]),
    ("scheduler", "host/scheduler", &[]),
    ("dialog", "host/dialog", &[]),
    ("model", "host/model", &["kernels"]),
    ("engine", "host/engine", &["scheduler", "model", "kernels"]),
    ("policy", "host/policy", &["dialog"]),
    ("server", "host/server", &["engine", "policy", "dialog", "model"]),
    ("builder", "sdk/builder", &[]),
    ("bench", "host/bench", &[]),
    ("cli", "host/cli", &["server", "engine", "policy", "dialog", "model", "kernels", "builder", "bench"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Files under `folder` whose name ends in `.rs`.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(root()).expect("inside").display().to_string();
                found.push((name, fs::read_to_string(&path).expect("UTF-8")));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has sources");
    found
}

/// Lines of code that contain one of `words`, as `file:line`; comments do not count.
fn places(folders: &[&str], words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in folders.iter().flat_map(|folder| sources(folder)) {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if words.iter().any(|word| code.contains(word)) {
                found.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    found
}

#[track_caller]
fn absent(folders: &[&str], words: &[&str], why: &str) {
    let found = places(folders, words);
    assert!(found.is_empty(), "{why}; found in\n{}", found.join("\n"));
}

#[test]
fn arrows_point_one_way() {
    for (name, folder, allowed) in MAY_KNOW {
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).expect("a manifest");
        let manifest: toml::Table = manifest.parse().expect("TOML");
        let known: BTreeSet<&str> = manifest["dependencies"]
            .as_table()
            .expect("dependencies")
            .keys()
            .filter_map(|key| key.strip_prefix("jackfield-"))
            .collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        let surplus: Vec<_> = known.difference(&allowed).collect();
        assert!(surplus.is_empty(), "{name} must not know {surplus:?}");
    }
}

#[test]
fn the_scheduler_is_pure() {
    let impure =
        ["std::time", "Instant", "SystemTime", "std::fs", "std::net", "std::thread", "rand", "tokio"];
    absent(&["host/scheduler/src"], &impure, "the scheduler has no clock, chance, thread or IO");
}

#[test]
fn wasmtime_is_named_in_one_crate() {
    let others = [
        "kernels/src",
        "host/scheduler/src",
        "host/model/src",
        "host/engine/src",
        "host/dialog/src",
        "host/server/src",
        "host/bench/src",
        "host/cli/src",
        "sdk/builder/src",
    ];
    absent(&others, &["wasmtime"], "wasmtime lives in host/policy only");
}

#[test]
fn engine_and_policy_do_not_name_each_other() {
    absent(&["host/engine/src"], &["jackfield_policy", "policy::"], "the engine knows no policies");
    absent(&["host/policy/src"], &["jackfield_engine", "jackfield_model"], "policies know no engine");
}

#[test]
fn nothing_below_the_command_line_reads_the_environment() {
    let below = [
        "kernels/src",
        "host/scheduler/src",
        "host/model/src",
        "host/engine/src",
        "host/dialog/src",
        "host/policy/src",
        "host/server/src",
        "host/bench/src",
        "sdk/builder/src",
    ];
    absent(
        &below,
        &["env::var", "env::vars", "env::home_dir", "static mut"],
        "the environment is read in host/cli",
    );
}

#[test]
fn unsafe_stands_where_it_may() {
    let safe = [
        "host/scheduler",
        "host/engine",
        "host/dialog",
        "host/server",
        "host/bench",
        "host/cli",
        "sdk/builder",
        "plugins",
        "tests",
    ];
    let found: Vec<_> = places(&safe, &["unsafe {", "unsafe fn", "unsafe impl", "allow(unsafe"])
        .into_iter()
        .filter(|place| !place.starts_with("tests/architecture.rs"))
        .collect();
    assert!(
        found.is_empty(),
        "unsafe stands in kernels, one mapping of model and one loader of policy; found in\n{}",
        found.join("\n")
    );
    let model = places(&["host/model/src"], &["unsafe {"]);
    assert!(model.len() <= 1, "host/model maps one file, and nothing else:\n{}", model.join("\n"));
    let policy = places(&["host/policy/src"], &["unsafe {"]);
    assert!(
        policy.len() <= 1,
        "host/policy loads its own compiled code, and nothing else:\n{}",
        policy.join("\n")
    );
}
