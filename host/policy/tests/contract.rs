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

/// A router that asks for the number of tokens of a text through the contract of this version.
fn counting(guest: Guest, version: &str) -> Upload {
    let mut guest = guest;
    guest.imports = format!(
        r#"(import "jackfield:policy/tokens@{version}" "count" (func $count (param i32 i32) (result i32)))"#
    );
    guest.work = format!("(drop (call $count (i32.const 1024) (i32.const 5))) {}", guest.work);
    let mut upload = upload(&guest);
    upload.manifest.grants = vec![Grant::Tokens];
    upload
}

#[test]
fn both_are_in_force_at_once_and_have_their_imports() {
    let registry = Registry::open(runtime(), None).expect("opens");
    let old = counting(before(Guest::answering("old")), "0.1.0");
    let mut new = counting(Guest::answering("new"), "0.2.0");
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
    let encoding = |contract: &str, version: &str| {
        let mut guest = Guest::answering("fine");
        guest.contract = contract.into();
        guest.imports = format!(
            r#"(import "jackfield:policy/tokens@{version}" "encode" (func $encode (param i32 i32 i32)))"#
        );
        guest.work = format!("(call $encode (i32.const 1024) (i32.const 5) (i32.const 4096)) {}", guest.work);
        let mut upload = upload(&guest);
        upload.manifest.grants = vec![Grant::Tokens];
        upload
    };
    let new = Policy::prepare(&runtime(), encoding(jackfield_guests::CONTRACT, "0.2.0")).expect("taken");
    assert_eq!(route(&new, 1), Ok(Decision::Answer("fine".into())));
    // Nothing that is built against the old contract can ask for it.
    let old = std::panic::catch_unwind(|| encoding(BEFORE, "0.1.0"));
    assert!(old.is_err());
}
