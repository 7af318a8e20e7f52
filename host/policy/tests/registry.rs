//! Swaps: atomic, ordered, acknowledged when in force, there again after a restart.

mod kit;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use jackfield_guests::{Guest, World};
use jackfield_policy::{
    BreakerSettings, BreakerState, Change, Decision, Fault, Grant, Kind, NoServices, OnFault, Outcome,
    Policy, Record, RecordSettings, Refusal, Registry, RegistryError, RegistryOptions, Replay, Rollout,
    RouteRequest, Runtime, RuntimeConfig, Share, Stage, Turn, Upload, read_log,
};
use kit::{route, runtime, upload};
use serde_json::json;

/// A router under a name, that answers with a text.
fn answering(name: &str, text: &str) -> Upload {
    let mut guest = Guest::new(World::Router);
    guest.work = guest.answer(text);
    let mut upload = upload(&guest);
    upload.manifest.name = name.into();
    upload
}

fn registry() -> Arc<Registry> {
    Registry::open(runtime(), None).expect("opens")
}

fn says(policy: &Policy) -> String {
    match route(policy, 1) {
        Ok(Decision::Answer(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn in_force(registry: &Registry, name: &str) -> Option<String> {
    registry.current().get(name).map(|policy| says(policy))
}

#[test]
fn a_put_is_in_force_when_it_returns_and_the_same_again_changes_nothing() {
    let registry = registry();
    assert_eq!(registry.current().generation(), 0);
    let first = registry.put(answering("r", "one")).expect("taken");
    assert_eq!((first.generation, first.changed), (1, true));
    assert_eq!(in_force(&registry, "r"), Some("one".into()));
    let pinned = registry.current();
    let again = registry.put(answering("r", "one")).expect("taken");
    assert_eq!((again.generation, again.changed), (1, false));
    assert!(Arc::ptr_eq(&pinned, &registry.current()));
    let second = registry.put(answering("r", "two")).expect("taken");
    assert_eq!((second.generation, second.changed), (2, true));
    assert_ne!(first.version, second.version);
    // A turn that began before keeps what it began with.
    assert_eq!(pinned.get("r").map(|policy| says(policy)), Some("one".into()));
    assert_eq!(in_force(&registry, "r"), Some("two".into()));
}

#[test]
fn a_change_of_the_manifest_alone_is_a_change() {
    let registry = registry();
    registry.put(answering("r", "one")).expect("taken");
    let mut upload = answering("r", "one");
    upload.manifest.grants = vec![Grant::Log];
    assert!(registry.put(upload).expect("taken").changed);
}

#[test]
fn a_refused_change_changes_nothing() {
    let registry = registry();
    registry.put(answering("r", "one")).expect("taken");
    let mut broken = answering("r", "two");
    broken.component = broken.component[..100].into();
    assert!(registry.put(broken).is_err());
    assert_eq!(registry.current().generation(), 1);
    assert_eq!(in_force(&registry, "r"), Some("one".into()));
    registry.put(answering("s", "other")).expect("others are not in the way");
}

#[test]
fn policies_of_a_kind_run_in_their_order() {
    let registry = registry();
    for (name, order) in [("late", 5), ("b", 0), ("a", 0), ("early", -1)] {
        let mut upload = answering(name, name);
        upload.manifest.order = order;
        registry.put(upload).expect("taken");
    }
    let patch = registry.current();
    let names: Vec<&str> =
        patch.of_kind(Kind::Router).map(|policy| policy.manifest().name.as_str()).collect();
    assert_eq!(names, ["early", "a", "b", "late"]);
    assert_eq!(patch.of_kind(Kind::OutputFilter).count(), 0);
}

#[test]
fn rollback_goes_back_one_version_at_a_time() {
    let registry = registry();
    let unknown = registry.rollback("r").expect_err("nothing there");
    assert!(matches!(unknown, Refusal::Unknown { .. }));
    for text in ["one", "two", "three"] {
        registry.put(answering("r", text)).expect("taken");
    }
    for expected in ["two", "one"] {
        registry.rollback("r").expect("goes back");
        assert_eq!(in_force(&registry, "r"), Some(expected.into()));
    }
    let end = registry.rollback("r").expect_err("nothing left");
    assert!(matches!(end, Refusal::NothingToRollBackTo { .. }));
    registry.delete("r").expect("taken out");
    assert_eq!(in_force(&registry, "r"), None);
    assert!(matches!(registry.delete("r"), Err(Refusal::Unknown { .. })));
    registry.rollback("r").expect("goes back");
    assert_eq!(in_force(&registry, "r"), Some("one".into()));
    let changes: Vec<_> = registry.generations().iter().map(|g| g.change).collect();
    let (p, r) = (Change::Put, Change::Rollback);
    assert_eq!(changes, [Change::Start, p, p, p, r, r, Change::Delete, r]);
    let last = registry.generations().pop().expect("some");
    assert_eq!((last.generation, last.from), (7, None));
    assert_eq!(last.to.map(|version| version.name), Some("r".into()));
}

#[test]
fn a_configuration_is_swapped_like_a_component() {
    let registry = registry();
    registry.put(answering("r", "one")).expect("taken");
    let changed = registry.put_config("r", json!({ "a": 1 }), Rollout::default()).expect("taken");
    assert_eq!((changed.generation, changed.changed), (2, true));
    let again = registry.put_config("r", json!({ "a": 1 }), Rollout::default()).expect("taken");
    assert_eq!((again.generation, again.changed), (2, false));
    let unknown = registry.put_config("q", json!({}), Rollout::default());
    assert!(matches!(unknown, Err(Refusal::Unknown { .. })));
    let status = &registry.policies()[0];
    assert_eq!(status.config, json!({ "a": 1 }));
    assert_eq!(status.earlier.len(), 1);
    assert_eq!(status.earlier[0].digest, status.version.digest);
    assert_ne!(status.earlier[0].config_digest, status.version.config_digest);
    serde_json::to_value(status).expect("for the API");
}

#[test]
fn many_at_once_are_ordered_and_none_is_lost() {
    let registry = registry();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let registry = &registry;
            scope.spawn(move || {
                for round in 0..5 {
                    let text = format!("{thread} {round}");
                    registry.put(answering("shared", &text)).expect("taken");
                    registry.put(answering(&format!("own{thread}"), &text)).expect("taken");
                }
            });
        }
    });
    assert_eq!(registry.current().generation(), 40);
    let generations: Vec<u64> = registry.generations().iter().map(|g| g.generation).collect();
    assert_eq!(generations, (0..=40).collect::<Vec<_>>());
    for thread in 0..4 {
        let own = in_force(&registry, &format!("own{thread}"));
        assert_eq!(own, Some(format!("{thread} 4")));
    }
    assert!(in_force(&registry, "shared").is_some_and(|text| text.ends_with(" 4")));
}

#[test]
fn old_versions_are_let_go() {
    let registry = registry();
    let mut swapped = Vec::new();
    for round in 0..100 {
        registry.put(answering("r", &round.to_string())).expect("taken");
        let patch = registry.current();
        swapped.push(Arc::downgrade(patch.get("r").expect("in force")));
    }
    let alive = swapped.iter().filter(|policy| policy.strong_count() > 0);
    // The one in force, and those that can be gone back to.
    assert_eq!(alive.count(), 4);
    assert!(registry.generations().len() <= 256);
}

fn open(dir: &Path) -> Result<Arc<Registry>, RegistryError> {
    Registry::open(runtime(), Some(dir.to_owned()))
}

#[test]
fn what_was_acknowledged_is_in_force_after_a_restart() {
    let dir = tempfile::tempdir().expect("a folder");
    let registry = open(dir.path()).expect("opens");
    for text in ["one", "two"] {
        registry.put(answering("r", text)).expect("taken");
    }
    let mut other = answering("s", "other");
    other.config = json!({ "x": [1, 2] });
    other.manifest.order = 3;
    registry.put(other.clone()).expect("taken");
    registry.put(answering("gone", "gone")).expect("taken");
    registry.delete("gone").expect("taken out");
    drop(registry);

    let registry = open(dir.path()).expect("opens again");
    assert_eq!(registry.current().generation(), 5);
    assert_eq!(in_force(&registry, "r"), Some("two".into()));
    assert_eq!(in_force(&registry, "gone"), None);
    let patch = registry.current();
    let held = patch.get("s").expect("in force");
    assert_eq!((held.manifest(), held.config()), (&other.manifest, &other.config));
    assert_eq!(registry.generations().last().map(|g| g.change), Some(Change::Restore));
    assert!(!registry.put(answering("r", "two")).expect("taken").changed);
    assert_eq!(registry.put(answering("r", "new")).expect("taken").generation, 6);
    // What is in force is kept, and what can be gone back to: r's three, s, and the one that was taken out.
    let kept = std::fs::read_dir(dir.path().join("policies/components")).expect("a folder");
    assert_eq!(kept.count(), 5);
    let changes: Vec<_> = registry.generations().iter().map(|g| g.change).collect();
    let p = Change::Put;
    assert_eq!(changes, [Change::Start, p, p, p, p, Change::Delete, Change::Restore, p]);
    drop(registry);
    let registry = open(dir.path()).expect("opens once more");
    for text in ["two", "one"] {
        registry.rollback("r").expect("goes back over restarts");
        assert_eq!(in_force(&registry, "r"), Some(text.into()));
    }
    registry.rollback("gone").expect("comes back");
    assert_eq!(in_force(&registry, "gone"), Some("gone".into()));
}

#[test]
fn a_half_written_change_is_never_seen() {
    let dir = tempfile::tempdir().expect("a folder");
    let registry = open(dir.path()).expect("opens");
    registry.put(answering("r", "one")).expect("taken");
    drop(registry);
    // As a crash leaves them: temporary files, and a component that no record names.
    let policies = dir.path().join("policies");
    std::fs::write(policies.join("patch.new"), b"{\"generation\": 9, \"pol").expect("writes");
    let components = policies.join("components");
    std::fs::write(components.join("0123.new"), b"half").expect("writes");
    std::fs::write(components.join("0123.wasm"), b"whole, and not named").expect("writes");
    let registry = open(dir.path()).expect("opens");
    assert_eq!(registry.current().generation(), 1);
    assert_eq!(in_force(&registry, "r"), Some("one".into()));
    registry.put(answering("r", "two")).expect("taken");
    assert_eq!(std::fs::read_dir(components).expect("a folder").count(), 2);
}

#[test]
fn a_component_that_was_changed_on_disk_is_not_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let registry = open(dir.path()).expect("opens");
    registry.put(answering("r", "one")).expect("taken");
    drop(registry);
    let components = dir.path().join("policies/components");
    let file = std::fs::read_dir(components).expect("a folder").next().expect("one").expect("readable");
    std::fs::write(file.path(), &answering("r", "evil").component[..]).expect("writes");
    let error = open(dir.path()).err().expect("refused");
    assert!(matches!(error, RegistryError::State(_)), "{error}");
    assert!(error.to_string().contains("digest"), "{error}");
}

#[test]
fn a_folder_that_cannot_be_written_refuses_the_change() {
    let dir = tempfile::tempdir().expect("a folder");
    let registry = open(dir.path()).expect("opens");
    registry.put(answering("r", "one")).expect("taken");
    std::fs::remove_dir_all(dir.path().join("policies")).expect("removes");
    std::fs::write(dir.path().join("policies"), b"in the way").expect("writes");
    let refused = registry.put(answering("r", "two")).expect_err("refused");
    assert!(matches!(refused, Refusal::State { .. }), "{refused}");
    assert_eq!(in_force(&registry, "r"), Some("one".into()));
}

#[test]
fn a_runtime_serves_several_registries() {
    let runtime = Runtime::new(RuntimeConfig::default(), Arc::new(NoServices)).expect("an engine");
    for text in ["one", "two"] {
        let registry = Registry::open(runtime.clone(), None).expect("opens");
        registry.put(answering("r", text)).expect("taken");
        assert_eq!(in_force(&registry, "r"), Some(text.into()));
    }
}

/// What a turn of this session gets of `r`.
fn says_to(registry: &Registry, session: &str) -> Result<String, Fault> {
    let turn = Turn { session: Some(session.into()), ..Turn::default() };
    let lineup = registry.current().lineup(&turn, "model");
    let router = lineup.of_kind(Kind::Router).first().expect("in force");
    match router.route(&turn, &RouteRequest::default(), &kit::fleet())?.answer {
        Decision::Answer(text) => Ok(text),
        other => panic!("{other:?}"),
    }
}

/// Waits for what happens on other threads.
fn until(what: &str, mut happens: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happens() {
        assert!(begun.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn shadow(seconds: u64) -> Rollout {
    Rollout { shadow: Some(Duration::from_secs(seconds)), canary: None }
}

fn canary(share: f64) -> Rollout {
    Rollout { shadow: None, canary: Share::new(share) }
}

#[test]
fn a_shadow_is_compared_and_never_heard() {
    let registry = registry();
    registry.put(answering("r", "one")).expect("taken");
    let staged = registry.push(answering("r", "two"), shadow(600)).expect("taken");
    assert_eq!((staged.generation, staged.stage), (2, Some(Stage::Shadow)));
    for session in 0..10 {
        assert_eq!(says_to(&registry, &session.to_string()), Ok("one".into()));
    }
    let compared = || registry.policies()[0].candidate.as_ref().expect("on its way").compared.clone();
    until("ten comparisons", || compared().compared + compared().dropped == 10);
    let compared = compared();
    assert_eq!(compared.differed, compared.compared);
    let example = compared.examples.last().expect("differences");
    assert_eq!(example.active, json!({"answer": {"answer": "one"}}));
    assert_eq!(example.candidate, json!({"answer": {"answer": "two"}}));
    let promoted = registry.promote("r").expect("promoted");
    assert_eq!((promoted.generation, promoted.stage), (3, Some(Stage::Active)));
    assert_eq!(says_to(&registry, "s"), Ok("two".into()));
    assert!(matches!(registry.promote("r"), Err(Refusal::NoCandidate { .. })));
    registry.rollback("r").expect("goes back");
    assert_eq!(says_to(&registry, "s"), Ok("one".into()));
}

#[test]
fn a_canary_has_its_share_of_sessions_and_keeps_them() {
    let registry = registry();
    registry.put(answering("r", "one")).expect("taken");
    registry.push(answering("r", "two"), canary(0.3)).expect("taken");
    let heard: Vec<String> =
        (0..200).map(|s| says_to(&registry, &s.to_string()).expect("an answer")).collect();
    let theirs = heard.iter().filter(|text| *text == "two").count();
    assert!((30..95).contains(&theirs), "{theirs} of 200");
    registry.put(answering("s", "other")).expect("another change in between");
    for (session, text) in heard.iter().enumerate() {
        assert_eq!(says_to(&registry, &session.to_string()).as_ref(), Ok(text));
    }
    // One generation, and everyone is where the active version is again.
    assert_eq!(registry.rollback("r").expect("withdrawn").generation, 4);
    assert_eq!(registry.generations().last().map(|g| g.change), Some(Change::Withdraw));
    assert!((0..200).all(|s| says_to(&registry, &s.to_string()) == Ok("one".into())));
}

#[test]
fn a_shadow_becomes_a_canary_when_its_time_is_over() {
    let registry = registry();
    registry.put(answering("r", "one")).expect("taken");
    let rollout = Rollout { shadow: Some(Duration::from_millis(100)), canary: Share::new(1.0) };
    registry.push(answering("r", "two"), rollout).expect("taken");
    until("the canary", || says_to(&registry, "s") == Ok("two".into()));
    assert_eq!(registry.policies()[0].candidate.as_ref().map(|c| c.stage), Some(Stage::Canary));
    assert_eq!(in_force(&registry, "r"), Some("one".into()), "not promoted by itself");
}

#[test]
fn a_candidate_needs_something_to_be_compared_with() {
    let registry = registry();
    let refused = registry.push(answering("r", "one"), canary(0.5)).expect_err("nothing in force");
    assert!(matches!(refused, Refusal::NothingToCompareWith { .. }), "{refused}");
    registry.put(answering("r", "one")).expect("taken");
    let mut other = upload(&Guest::new(World::OutputFilter));
    other.manifest.name = "r".into();
    let refused = registry.push(other, shadow(1)).expect_err("another kind");
    assert!(matches!(refused, Refusal::NothingToCompareWith { .. }), "{refused}");
}

#[test]
fn a_candidate_is_there_again_after_a_restart() {
    let dir = tempfile::tempdir().expect("a folder");
    let registry = open(dir.path()).expect("opens");
    registry.put(answering("r", "one")).expect("taken");
    registry.push(answering("r", "two"), canary(0.5)).expect("taken");
    let heard = |registry: &Registry| -> Vec<_> {
        (0..50).map(|s| says_to(registry, &s.to_string()).expect("an answer")).collect()
    };
    let before = heard(&registry);
    assert!(before.contains(&"one".into()) && before.contains(&"two".into()));
    drop(registry);
    let registry = open(dir.path()).expect("opens again");
    assert_eq!(heard(&registry), before, "each session is where it was");
    registry.promote("r").expect("promoted");
    assert_eq!(in_force(&registry, "r"), Some("two".into()));
}

/// A router that traps when it is asked.
fn trapping() -> Upload {
    let mut guest = Guest::new(World::Router);
    guest.work = "(unreachable)".into();
    let mut upload = upload(&guest);
    upload.manifest.name = "r".into();
    upload.manifest.breaker = BreakerSettings { min_calls: 4, ..BreakerSettings::default() };
    upload
}

#[test]
fn a_version_that_breaks_gives_way_to_the_last_good_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let registry = open(dir.path()).expect("opens");
    registry.put(answering("r", "good")).expect("taken");
    registry.put(trapping()).expect("taken: it breaks only when it is asked");
    let mut calls = 0;
    until("the good one", || {
        calls += 1;
        says_to(&registry, "s") == Ok("good".into())
    });
    assert!(calls > 4);
    let last = registry.generations().pop().expect("some");
    assert_eq!((last.change, last.generation), (Change::Trip, 3));
    assert!(last.why.is_some_and(|why| why.contains("calls faulted")));
    assert!(!registry.versions("r").iter().any(|version| version.quarantined), "it is not held any more");
    drop(registry);
    let registry = open(dir.path()).expect("opens again");
    assert_eq!(says_to(&registry, "s"), Ok("good".into()));
}

#[test]
fn a_canary_that_breaks_is_withdrawn() {
    let registry = registry();
    registry.put(answering("r", "good")).expect("taken");
    registry.push(trapping(), canary(1.0)).expect("taken");
    until("the good one", || says_to(&registry, "s") == Ok("good".into()));
    assert!(registry.policies()[0].candidate.is_none());
    assert_eq!(registry.generations().last().map(|g| g.change), Some(Change::Trip));
}

#[test]
fn without_a_good_version_calls_are_kept_from_it() {
    let registry = registry();
    let mut upload = trapping();
    upload.manifest.on_fault = OnFault::Closed;
    registry.put(upload).expect("taken");
    until("the breaker", || says_to(&registry, "s") == Err(Fault::Tripped));
    let status = &registry.policies()[0];
    assert_eq!((status.breaker.state, status.breaker.trips), (BreakerState::Open, 1));
    let calls = status.stats.calls;
    assert_eq!(says_to(&registry, "s"), Err(Fault::Tripped));
    assert_eq!(registry.policies()[0].stats.calls, calls, "it is not called");
    // Better bytes come into force as ever.
    registry.put(answering("r", "good")).expect("taken");
    assert_eq!(says_to(&registry, "s"), Ok("good".into()));
}

#[test]
fn a_tenant_whose_input_breaks_a_policy_loses_it_alone() {
    let registry = registry();
    let mut guest = Guest::new(World::Router);
    guest.work = "(unreachable)".into();
    let mut upload = upload(&guest.only_on_marker());
    upload.manifest.name = "r".into();
    upload.manifest.breaker =
        BreakerSettings { min_calls: 4, per_tenant: true, ..BreakerSettings::default() };
    registry.put(upload).expect("taken");
    let ask = |tenant: &str, text: &str| {
        let turn = Turn { tenant: tenant.into(), ..Turn::default() };
        let lineup = registry.current().lineup(&turn, "model");
        let request = RouteRequest { last_user_text: text.into(), ..RouteRequest::default() };
        lineup.of_kind(Kind::Router)[0].route(&turn, &request, &kit::fleet()).map(drop)
    };
    for _ in 0..8 {
        assert_eq!(ask("calm", "fine"), Ok(()));
    }
    let marker = jackfield_guests::MARKER;
    let faults: Vec<_> = (0..6).map(|_| ask("wild", marker).expect_err("a fault")).collect();
    assert_eq!(faults.iter().filter(|fault| **fault == Fault::Tripped).count(), 2, "{faults:?}");
    assert_eq!(ask("calm", "fine"), Ok(()));
    assert_eq!(registry.generations().len(), 2, "nothing was changed for the others");
}

#[test]
fn turns_get_the_policies_that_are_for_them() {
    let registry = registry();
    for (name, scope) in [("acme", "tenants = ['acme']"), ("rest", ""), ("triage", "tasks = ['triage']")] {
        let mut upload = answering(name, name);
        upload.manifest.scope = toml::from_str(scope).expect("a scope");
        registry.put(upload).expect("taken");
    }
    let patch = registry.current();
    let names = |tenant: &str, task: Option<&str>| -> Vec<String> {
        let turn = Turn { tenant: tenant.into(), task: task.map(Into::into), ..Turn::default() };
        let lineup = patch.lineup(&turn, "m");
        lineup.of_kind(Kind::Router).iter().map(|member| member.version().name.clone()).collect()
    };
    assert_eq!(names("acme", None), ["acme", "rest"]);
    assert_eq!(names("other", None), ["rest"]);
    assert_eq!(names("other", Some("triage")), ["rest", "triage"]);
}

#[test]
fn a_set_comes_into_force_whole_or_not_at_all() {
    let registry = registry();
    registry.put(answering("kept", "kept")).expect("taken");
    let mut broken = answering("b", "b");
    broken.component = broken.component[..100].into();
    let refused =
        registry.set(vec![answering("a", "a"), broken], &["kept".into()]).expect_err("one is broken");
    assert_eq!(refused.0, "b");
    assert_eq!(registry.current().generation(), 1);
    assert_eq!(in_force(&registry, "kept"), Some("kept".into()));
    let set = vec![answering("a", "a"), answering("b", "b")];
    let applied = registry.set(set.clone(), &["kept".into(), "never".into()]).expect("taken");
    assert_eq!((applied.generation, applied.changed), (2, true));
    assert_eq!(in_force(&registry, "b"), Some("b".into()));
    assert_eq!(in_force(&registry, "kept"), None);
    assert!(!registry.set(set, &["kept".into()]).expect("taken").changed);
    registry.rollback("kept").expect("what was taken out can be had back");
}

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
    lineup.of_kind(Kind::Router)[0].route(&turn, &RouteRequest::default(), &kit::fleet()).expect("an answer");
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
