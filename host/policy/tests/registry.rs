//! Swaps: atomic, ordered, acknowledged when in force, there again after a restart.

mod kit;

use std::sync::Arc;

use jackfield_policy::{
    Change, Grant, Kind, NoServices, Refusal, Registry, RegistryError, Rollout, Runtime, RuntimeConfig, Turn,
};
use kit::{answering, in_force, open, registry, says};
use serde_json::json;

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
fn a_version_that_is_held_comes_back_without_being_made_again() {
    let registry = registry();
    let mut bad = answering("r", "one");
    bad.cases = serde_json::from_value(json!([{"name": "two", "input": {}, "expect": {"answer": "two"}}]))
        .expect("cases");
    registry.put(answering("r", "one")).expect("taken");
    registry.put(answering("r", "two")).expect("taken");
    let refused = registry.put(bad).expect_err("its cases are run all the same");
    assert!(matches!(refused, Refusal::Case { .. }), "{refused}");
    assert_eq!(in_force(&registry, "r"), Some("two".into()));
    let third = registry.put(answering("r", "one")).expect("taken");
    assert_eq!((third.generation, third.changed), (3, true));
    assert_eq!(in_force(&registry, "r"), Some("one".into()));
    assert_eq!(registry.policies()[0].stats.calls, 1, "counted anew");
    registry.delete("r").expect("taken out");
    registry.put(answering("r", "two")).expect("taken");
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
