//! Calls that are written down and made again; compiled code that is kept.

mod kit;

use std::{path::Path, sync::Arc};

use jackfield_guests::Guest;
use jackfield_policy::{
    Kind, NoServices, Outcome, Policy, Record, RecordSettings, Registry, RegistryOptions, Replay,
    RouteRequest, Runtime, RuntimeConfig, Turn, read_log,
};
use kit::{answering, fleet, runtime, says, says_to, until, upload};
use serde_json::json;

/// A registry that writes calls down.
fn recording(dir: &Path, mask: Option<&str>) -> Arc<Registry> {
    let settings =
        RecordSettings { tenants: vec!["test".into()], max_bytes: 1 << 20, mask: mask.map(Into::into) };
    let options = RegistryOptions { state_dir: Some(dir.to_owned()), record: Some(settings) };
    Registry::open_with(runtime(), options).expect("opens")
}

fn recorded(dir: &Path) -> Vec<Record> {
    let mut records = Vec::new();
    read_log(&dir.join("replay"), |record| records.push(record)).expect("reads");
    records
}

#[test]
fn recorded_calls_are_made_again_by_another_version() {
    let dir = tempfile::tempdir().expect("a folder");
    let registry = recording(dir.path(), None);
    registry.put(answering("r", "one")).expect("taken");
    for session in 0..5 {
        says_to(&registry, &session.to_string()).expect("an answer");
    }
    let turn = Turn { tenant: "someone else".into(), ..Turn::default() };
    let lineup = registry.current().lineup(&turn, "m");
    lineup.of_kind(Kind::Router)[0].route(&turn, &RouteRequest::default(), &fleet()).expect("an answer");
    until("five records", || recorded(dir.path()).len() == 5);
    let records = recorded(dir.path());
    assert_eq!(records[0].outcome, Outcome::Answer(json!({"answer": "one"})));

    let replayed = |text: &str| {
        let candidate = Policy::prepare(&runtime(), answering("r", text)).expect("taken");
        let mut replay = Replay::new(&candidate);
        records.iter().for_each(|record| replay.again(record));
        replay.done()
    };
    let same = replayed("one");
    assert_eq!((same.calls, same.changed, same.others), (5, 0, 0));
    let other = replayed("two");
    assert_eq!((other.calls, other.changed, other.asked_anew), (5, 5, 0));
    assert_eq!((other.groups[0].what.as_str(), other.groups[0].count), ("answer", 5));
    assert!((other.changed_share() - 1.0).abs() < f64::EPSILON);
}

#[test]
fn what_a_mask_hides_is_never_written() {
    let dir = tempfile::tempdir().expect("a folder");
    let registry = recording(dir.path(), Some("mask"));
    registry.put(answering("r", "the secret")).expect("taken");
    says_to(&registry, "before").expect("an answer");
    let mut mask = upload(&Guest::masking("secret", "***"));
    mask.manifest.name = "mask".into();
    registry.put(mask).expect("taken");
    says_to(&registry, "after").expect("an answer");
    until("a record", || !recorded(dir.path()).is_empty());
    let records = recorded(dir.path());
    assert_eq!(records.len(), 1, "nothing is written while the mask is not in force");
    assert_eq!(records[0].turn.session.as_deref(), Some("after"));
    assert_eq!(records[0].outcome, Outcome::Answer(json!({"answer": "the ***"})));
    let file =
        std::fs::read_dir(dir.path().join("replay")).expect("a folder").next().expect("a file").expect("one");
    assert!(!std::fs::read_to_string(file.path()).expect("text").contains("secret"));
}

#[test]
fn code_is_kept_and_what_was_changed_is_compiled_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let with_code = || {
        let config = RuntimeConfig { code_dir: Some(dir.path().to_owned()), ..RuntimeConfig::default() };
        Runtime::new(config, Arc::new(NoServices)).expect("an engine")
    };
    let files = || -> Vec<_> {
        let all = std::fs::read_dir(dir.path()).expect("a folder").map(|file| file.expect("one").path());
        all.filter(|path| path.extension().is_some_and(|ending| ending == "code")).collect()
    };
    let prepare = || Policy::prepare(&with_code(), answering("r", "one")).expect("taken");
    let (first, kept) = (prepare(), files());
    assert_eq!(kept.len(), 1);
    let again = prepare();
    assert_eq!((says(&again), again.strategy()), ("one".into(), first.strategy()));
    assert_eq!(files(), kept);
    let mut evil = std::fs::read(&kept[0]).expect("there");
    let last = evil.len() - 1;
    evil[last] ^= 1;
    std::fs::write(&kept[0], &evil).expect("writes");
    assert_eq!(says(&prepare()), "one");
    assert_ne!(std::fs::read(&kept[0]).expect("there"), evil, "it was compiled and written again");
}
