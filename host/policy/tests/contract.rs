//! Two minor versions of the contract are served side by side.

mod kit;

use jackfield_guests::{Guest, World};
use jackfield_policy::{Decision, Grant, Policy, Registry, Upload};
use kit::{route, runtime, upload};

/// The contract of the minor version before this host's, as it was.
const BEFORE: &str = include_str!("../../../wit/before/policy-0.1.0.wit");

fn before(mut guest: Guest) -> Guest {
    guest.contract = BEFORE.into();
    guest
}

#[test]
fn every_kind_of_the_version_before_is_taken_and_called() {
    let runtime = runtime();
    for world in [World::SlotExtractor, World::Router, World::Compressor, World::OutputFilter] {
        Policy::prepare(&runtime, upload(&before(Guest::new(world)))).expect("taken");
    }
    let policy = Policy::prepare(&runtime, upload(&before(Guest::answering("old")))).expect("taken");
    assert_eq!(route(&policy, 1), Ok(Decision::Answer("old".into())));
}

/// A router that first calls this function of `tokens`, through the contract it is built against.
fn asking(mut guest: Guest, function: &str, types: &str, call: &str) -> Upload {
    guest.import("tokens", function, types);
    guest.work = format!("{call} {}", guest.work);
    let mut upload = upload(&guest);
    upload.manifest.grants = vec![Grant::Tokens];
    upload
}

#[test]
fn both_are_in_force_at_once_and_have_their_imports() {
    let registry = Registry::open(runtime(), None).expect("opens");
    let counting = |guest| {
        let call = "(drop (call $count (i32.const 1024) (i32.const 5)))";
        asking(guest, "count", "(param i32 i32) (result i32)", call)
    };
    let old = counting(before(Guest::answering("old")));
    let mut new = counting(Guest::answering("new"));
    new.manifest.name = "new".into();
    for upload in [old, new] {
        registry.put(upload).expect("taken");
    }
    let patch = registry.current();
    let answers: Vec<_> = ["guest", "new"].map(|name| route(patch.get(name).expect("in force"), 1)).into();
    assert_eq!(answers, [Ok(Decision::Answer("old".into())), Ok(Decision::Answer("new".into()))]);
}

#[test]
fn what_is_new_is_there_for_the_new_alone() {
    let encoding = |guest| {
        let call = "(call $encode (i32.const 1024) (i32.const 5) (i32.const 4096))";
        asking(guest, "encode", "(param i32 i32 i32)", call)
    };
    let new = Policy::prepare(&runtime(), encoding(Guest::answering("fine"))).expect("taken");
    assert_eq!(route(&new, 1), Ok(Decision::Answer("fine".into())));
    // Nothing that is built against the old contract can ask for it.
    let old = std::panic::catch_unwind(|| encoding(before(Guest::answering("fine"))));
    assert!(old.is_err());
}
