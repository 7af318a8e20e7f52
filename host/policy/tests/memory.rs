//! Memory of the process, which is this test's alone: versions that are swapped leave none behind.
#![cfg(target_os = "linux")]

mod kit;

use jackfield_guests::Guest;
use jackfield_policy::{Fault, Registry};
use kit::{route, runtime, upload};

/// Resident memory, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

#[test]
fn a_thousand_versions_leave_memory_as_it_was() {
    let registry = Registry::open(runtime(), None).expect("opens");
    let push = |version: u32| {
        // Each answers something else, so that each is compiled anew; and it grows by a MiB whenever it is called.
        let mut guest = Guest::answering(&format!("version {version}"));
        guest.work = format!("(drop (memory.grow (i32.const 16))) {}", guest.work);
        registry.put(upload(&guest)).expect("taken");
        for seed in 0..3 {
            route(registry.current().get("guest").expect("in force"), seed).expect("an answer");
        }
    };
    (0..200).for_each(push);
    let settled = resident();
    (200..1000).for_each(push);
    let after = resident();
    // A version's code and instance are some hundred KiB: were they kept, it would be more than a hundred MiB.
    assert!(after < settled + 24 * 1024, "{settled} KiB after 200 versions, {after} after 1000");
}

#[test]
fn ten_thousand_calls_that_take_all_they_may_leave_memory_as_it_was() {
    let mut guest = Guest::answering("fine");
    guest.work = format!(
        "(loop $more (br_if $more (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0)))) {}",
        guest.work
    );
    let registry = Registry::open(runtime(), None).expect("opens");
    registry.put(upload(&guest)).expect("taken");
    let patch = registry.current();
    let policy = patch.get("guest").expect("in force");
    let call = |seed| match route(policy, seed) {
        Ok(_) | Err(Fault::Memory { .. }) => {}
        Err(other) => panic!("{other}"),
    };
    (0..1000).for_each(call);
    let settled = resident();
    (0..10_000).for_each(call);
    let after = resident();
    assert!(after < settled + 16 * 1024, "{settled} KiB after 1000 calls, {after} after 11000");
}
