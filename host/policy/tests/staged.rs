//! Versions on their way, and versions that break: shadow, canary, breaker.

mod kit;

use std::time::Duration;

use jackfield_guests::{Guest, World};
use jackfield_policy::{
    BreakerSettings, BreakerState, Change, Fault, Kind, OnFault, Refusal, Registry, Rollout, RouteRequest,
    Share, Stage, Turn, Upload,
};
use kit::{answering, fleet, in_force, open, registry, says_to, until, upload};
use serde_json::json;

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
fn a_shadow_that_breaks_is_withdrawn_and_never_heard() {
    let registry = registry();
    registry.put(answering("r", "one")).expect("taken");
    let rollout = Rollout { canary: Share::new(1.0), ..shadow(600) };
    registry.push(trapping(), rollout).expect("taken");
    until("the end of the candidate", || {
        assert_eq!(says_to(&registry, "s"), Ok("one".into()));
        registry.policies()[0].candidate.is_none()
    });
    let last = registry.generations().pop().expect("a change");
    assert_eq!((last.change, last.why.as_deref()), (Change::Trip, Some("4 of 4 calls faulted")));
    assert_eq!(in_force(&registry, "r"), Some("one".into()));
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
        lineup.of_kind(Kind::Router)[0].route(&turn, &request, &fleet()).map(drop)
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
