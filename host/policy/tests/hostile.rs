//! Policies that mean harm, or are broken: each call ends in a typed fault, and the next is not touched by it.

mod kit;

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use jackfield_guests::{Guest, LOOP, World};
use jackfield_policy::{
    Budget, Decision, Dialog, Fault, Grant, HostServices, Kind, LogLevel, Message, Part, Policy, Refusal,
    Registry, Role, RouteRequest, Runtime, RuntimeConfig, Strategy, Turn, Verdict, Window,
};
use kit::{DEADLINE_MS, SETUP_DEADLINE_MS, fleet, prepare, route, runtime, turn, upload};

/// A router that misbehaves on the marker; then the fault, after checking that calls before and after it are fine.
fn fault_of(runtime: &Arc<Runtime>, guest: Guest) -> Fault {
    let policy = prepare(runtime, &guest.only_on_seed(666)).expect("accepted");
    let fine = Ok(Decision::Answer("fine".into()));
    assert_eq!(route(&policy, 1), fine);
    let fault = route(&policy, 666).expect_err("misbehaves");
    assert_eq!(route(&policy, 2), fine);
    let stats = policy.stats();
    assert_eq!((stats.calls, stats.faults), (3, vec![(fault.label(), 1)]));
    fault
}

fn router(work: &str) -> Guest {
    let mut guest = Guest::new(World::Router);
    guest.work = work.into();
    guest
}

#[test]
fn a_loop_ends_at_the_deadline() {
    let fault = fault_of(&runtime(), router(LOOP));
    assert_eq!(fault, Fault::Deadline { limit_ms: DEADLINE_MS });
}

#[test]
fn a_loop_in_the_allocator_ends_at_the_deadline() {
    let runtime = runtime();
    let mut guest = Guest::new(World::Router);
    guest.realloc = LOOP.into();
    // Reached with the first argument that has text: the configuration.
    let refused = prepare(&runtime, &guest).expect_err("refused");
    assert_eq!(
        refused,
        Refusal::Setup { call: "configure", fault: Fault::Deadline { limit_ms: SETUP_DEADLINE_MS } }
    );
}

#[test]
fn a_loop_after_the_answer_ends_at_the_deadline() {
    let mut guest = Guest::new(World::Router);
    guest.module =
        format!(r#"(func (export "cabi_post_jackfield:policy/routing@0.2.0#route") (param i32) {LOOP})"#);
    let policy = prepare(&runtime(), &guest).expect("accepted");
    assert_eq!(route(&policy, 1), Err(Fault::Deadline { limit_ms: DEADLINE_MS }));
}

#[test]
fn a_loop_before_the_first_call_refuses_the_upload() {
    let runtime = runtime();
    let deadline = |call| Refusal::Setup { call, fault: Fault::Deadline { limit_ms: SETUP_DEADLINE_MS } };
    let refused = |change: fn(&mut Guest)| {
        let mut guest = Guest::new(World::Router);
        change(&mut guest);
        prepare(&runtime, &guest).expect_err("refused")
    };
    let start = refused(|guest| {
        guest.module = format!("(func $start {LOOP}) (start $start)");
    });
    assert_eq!(start, deadline("instantiate"));
    assert_eq!(refused(|guest| guest.describe = LOOP.into()), deadline("describe"));
    assert_eq!(refused(|guest| guest.configure = LOOP.into()), deadline("configure"));
    let mut filter = Guest::new(World::OutputFilter);
    filter.interests = LOOP.into();
    assert!(matches!(
        prepare(&runtime, &filter),
        Err(Refusal::Setup { call: "interests", fault: Fault::Deadline { .. } })
    ));
}

#[test]
fn twenty_four_loops_at_once_end_and_no_thread_is_lost() {
    let runtime = runtime();
    let policy = prepare(&runtime, &router(LOOP).only_on_seed(666)).expect("accepted");
    std::thread::scope(|scope| {
        let looping: Vec<_> = (0..24).map(|_| scope.spawn(|| route(&policy, 666))).collect();
        for call in looping {
            let ended = call.join().expect("does not panic");
            assert_eq!(ended, Err(Fault::Deadline { limit_ms: DEADLINE_MS }));
        }
    });
    assert_eq!(route(&policy, 1), Ok(Decision::Answer("fine".into())));
    assert!(runtime.is_healthy());
    assert_eq!(runtime.ticker_starts(), 1);
}

#[test]
fn endless_recursion_is_a_trap() {
    let mut guest = router("(call $down (i32.const 0))");
    guest.module = "(func $down (param i32) (result i32)
        (i32.add (call $down (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))"
        .into();
    let fault = fault_of(&runtime(), guest);
    assert!(matches!(&fault, Fault::Trap { code } if code.contains("stack")), "{fault}");
}

#[test]
fn unreachable_code_and_bad_addresses_are_traps() {
    let runtime = runtime();
    for (work, expected) in [
        ("(unreachable)", "unreachable"),
        ("(i32.load (i32.const -4))", "out of bounds memory"),
        ("(i32.div_u (i32.const 1) (i32.const 0))", "divide by zero"),
    ] {
        let fault = fault_of(&runtime, router(work));
        assert!(matches!(&fault, Fault::Trap { code } if code.contains(expected)), "{fault}");
    }
}

#[test]
fn memory_without_end_is_cut_at_the_limit() {
    let limit_bytes = 64 << 20;
    let by_one_page =
        "(loop $more (br_if $more (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0)))) (unreachable)";
    let at_once =
        "(if (i32.lt_s (memory.grow (i32.const 1024)) (i32.const 0)) (then (unreachable))) (unreachable)";
    let runtime = runtime();
    for work in [by_one_page, at_once] {
        assert_eq!(fault_of(&runtime, router(work)), Fault::Memory { limit_bytes });
    }
}

#[test]
fn a_request_as_large_as_the_memory_faults_alone() {
    let limit_bytes = 2 << 20;
    let mut small = upload(&Guest::new(World::Router));
    small.manifest.limits.memory_bytes = limit_bytes;
    let policy = Policy::prepare(&runtime(), small).expect("accepted");
    let asked = |bytes: usize| {
        let request = RouteRequest { last_user_text: "a".repeat(bytes), ..RouteRequest::default() };
        policy.route(&turn(1), &request, &fleet()).map(|called| called.answer)
    };
    let fine = Ok(Decision::Answer("fine".into()));
    for too_large in [limit_bytes, 16 << 20] {
        assert_eq!(asked(1 << 20), fine);
        assert_eq!(asked(too_large), Err(Fault::Memory { limit_bytes }));
    }
    assert_eq!(asked(1), fine);
}

#[test]
fn a_guest_that_copes_with_less_memory_is_not_at_fault() {
    let mut guest = Guest::new(World::Router);
    let fine = guest.work.clone();
    guest.work = format!("(drop (memory.grow (i32.const 60000))) {fine}");
    let policy = prepare(&runtime(), &guest).expect("accepted");
    assert_eq!(route(&policy, 1), Ok(Decision::Answer("fine".into())));
}

#[test]
fn a_memory_that_starts_above_the_limit_refuses_the_upload() {
    let mut guest = Guest::new(World::Router);
    guest.min_pages = 2000;
    let refused = prepare(&runtime(), &guest).expect_err("refused");
    assert_eq!(
        refused,
        Refusal::Setup { call: "instantiate", fault: Fault::Memory { limit_bytes: 64 << 20 } }
    );
}

#[test]
fn answers_that_are_too_large_are_cut_off_before_they_are_copied() {
    let runtime = runtime();
    let limit_bytes = 1 << 20;
    let mut text = Guest::new(World::Router);
    text.min_pages = 64;
    text.work = text.answer_at(0, 2 << 20);
    assert_eq!(fault_of(&runtime, text), Fault::OutputTooLarge { limit_bytes });

    // Few bytes in the guest, many in the host: a list of empty texts.
    let mut list = Guest::new(World::SlotExtractor);
    list.min_pages = 64;
    let state = list.text("s");
    let at = list.words(&[0, state.0, state.1, 0, 0, 200 << 10, 100_000, 0, 0, 0, 0, 0]);
    list.work = format!("(i32.const {at})");
    let policy = prepare(&runtime, &list).expect("accepted");
    assert_eq!(extract(&policy), Err(Fault::OutputTooLarge { limit_bytes }));
}

#[test]
fn answers_that_point_outside_of_the_memory_are_invalid() {
    let runtime = runtime();
    for (pointer, length) in [(0, 1 << 30), (u32::MAX, 1), (u32::MAX - 8, 100)] {
        let mut guest = Guest::new(World::Router);
        guest.work = guest.answer_at(pointer, length);
        let fault = fault_of(&runtime, guest);
        assert!(matches!(&fault, Fault::Invalid { what } if what.contains("bounds")), "{fault}");
    }
    let mut list = Guest::new(World::Compressor);
    list.work = list.list(1024, 10_000_000);
    let policy = prepare(&runtime, &list).expect("accepted");
    assert!(matches!(compress(&policy), Err(Fault::Invalid { .. })));
}

#[test]
fn answers_that_are_no_text_or_no_variant_are_invalid() {
    let runtime = runtime();
    let mut guest = Guest::new(World::Router);
    let bytes = guest.bytes(&[0xff, 0xfe]);
    guest.work = guest.answer_at(bytes, 2);
    let fault = fault_of(&runtime, guest);
    assert!(matches!(&fault, Fault::Invalid { what } if what.contains("utf-8")), "{fault}");

    let mut guest = Guest::new(World::Router);
    let at = guest.words(&[0, 9, 0, 0]);
    guest.work = format!("(i32.const {at})");
    assert!(matches!(fault_of(&runtime, guest), Fault::Invalid { .. }));
}

#[test]
fn a_guests_own_error_is_a_fault_with_its_words() {
    let mut guest = Guest::new(World::Router);
    guest.work = guest.error("no rule for this");
    let message = "no rule for this".to_owned();
    assert_eq!(fault_of(&runtime(), guest), Fault::Refused { message });
}

const LOG_IMPORT: &str = r#"(import "jackfield:policy/log@0.2.0" "write" (func $log (param i32 i32 i32)))"#;
const COUNT_IMPORT: &str =
    r#"(import "jackfield:policy/tokens@0.2.0" "count" (func $count (param i32 i32) (result i32)))"#;

/// A router with imports, and the manifest's grants.
fn importing(
    runtime: &Arc<Runtime>,
    guest: Guest,
    grants: &[Grant],
    host_calls: u32,
) -> Result<Policy, Refusal> {
    let mut upload = upload(&guest);
    upload.manifest.grants = grants.to_vec();
    upload.manifest.limits.host_calls = host_calls;
    Policy::prepare(runtime, upload)
}

#[test]
fn endless_logging_ends_at_the_limit_of_host_calls_or_the_deadline() {
    let runtime = runtime();
    let mut guest = router(
        "(loop $more (call $log (i32.const 1) (i32.const 1024) (i32.const 5)) (br $more)) (unreachable)",
    );
    guest.imports = LOG_IMPORT.into();
    let guest = guest.only_on_seed(666);
    let policy = importing(&runtime, guest.clone(), &[Grant::Log], 10).expect("accepted");
    assert_eq!(route(&policy, 666), Err(Fault::HostCalls { limit: 10 }));
    assert_eq!(route(&policy, 1), Ok(Decision::Answer("fine".into())));
    let policy = importing(&runtime, guest, &[Grant::Log], 1_000_000).expect("accepted");
    let ended = route(&policy, 666).expect_err("ends");
    assert!(matches!(ended, Fault::Deadline { .. } | Fault::HostCalls { .. }), "{ended}");
}

/// Counts the lines that arrive.
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl HostServices for Lines {
    fn count_tokens(&self, _: &str) -> u32 {
        0
    }
    fn token_boundaries(&self, _: &str) -> Vec<u32> {
        Vec::new()
    }
    fn encode_tokens(&self, _: &str) -> Vec<u32> {
        Vec::new()
    }
    fn log(&self, _: &str, _: LogLevel, text: &str) {
        self.0.lock().expect("not poisoned").push(text.to_owned());
    }
}

#[test]
fn a_policy_logs_no_more_than_its_lines_a_second() {
    let lines = Arc::new(Lines::default());
    let mut guest = Guest::new(World::Router);
    guest.work = format!("(call $log (i32.const 1) (i32.const 1024) (i32.const 5)) {}", guest.work);
    guest.imports = LOG_IMPORT.into();
    let mut upload = upload(&guest);
    upload.manifest.grants = vec![Grant::Log];
    upload.manifest.limits.log_lines_per_s = 7;
    let policy = Policy::prepare(&runtime(), upload).expect("accepted").with_services(lines.clone());
    let begun = Instant::now();
    for seed in 0..100 {
        assert_eq!(
            route(&policy, seed),
            Ok(Decision::Answer("fine".into())),
            "the call itself is not at fault"
        );
    }
    let seconds = begun.elapsed().as_secs() as usize + 1;
    let written = lines.0.lock().expect("not poisoned").len();
    // One more a second says what was left out.
    assert!((7..=8 * seconds).contains(&written), "{written} lines in {seconds} s");
}

#[test]
fn a_tenant_and_a_policy_have_no_more_than_their_instances() {
    let mut guest = router(LOOP);
    guest = guest.only_on_seed(666);
    let mut upload = upload(&guest);
    upload.manifest.limits.instances = 3;
    upload.manifest.limits.tenant_instances = 2;
    upload.manifest.limits.deadline_ms = 1000;
    upload.manifest.breaker.max_fault_percent = 100;
    upload.manifest.breaker.max_slow_percent = 100;
    let registry = Registry::open(runtime(), None).expect("opens");
    registry.put(upload).expect("taken");
    let ask = |tenant: &str, seed: u32| {
        let turn = Turn { tenant: tenant.into(), seed, ..Turn::default() };
        let lineup = registry.current().lineup(&turn, "m");
        let called = lineup.of_kind(Kind::Router)[0].route(&turn, &RouteRequest::default(), &kit::fleet());
        called.map(|called| called.answer)
    };
    std::thread::scope(|scope| {
        let wild: Vec<_> = (0..6).map(|_| scope.spawn(|| ask("wild", 666))).collect();
        // While one tenant has both of its places taken by loops, the third is there for another.
        assert_eq!(ask("calm", 1), Ok(Decision::Answer("fine".into())));
        let faults: Vec<_> =
            wild.into_iter().map(|call| call.join().expect("ends").expect_err("a fault")).collect();
        assert!(
            faults.iter().all(|fault| matches!(fault, Fault::Deadline { .. } | Fault::Busy { .. })),
            "{faults:?}"
        );
        assert!(faults.iter().any(|fault| matches!(fault, Fault::Busy { .. })), "{faults:?}");
    });
}

#[test]
fn two_thousand_exports_are_refused_by_what_is_missing() {
    let exports: String = (0..2000).map(|n| format!("(export \"e{n}\" (type $t))")).collect();
    let component = wat::parse_str(format!("(component (type $t (func)) {exports})")).expect("a component");
    let mut upload = upload(&Guest::new(World::Router));
    upload.component = component.into();
    let refused = Policy::prepare(&runtime(), upload).expect_err("not a router");
    assert!(matches!(refused, Refusal::WrongWorld { found: None, .. }), "{refused}");
}

#[test]
fn a_log_line_that_is_too_large_is_not_copied() {
    let mut guest = router("(call $log (i32.const 1) (i32.const 0) (i32.const 3145728)) (unreachable)");
    guest.imports = LOG_IMPORT.into();
    guest.min_pages = 64;
    let policy = importing(&runtime(), guest, &[Grant::Log], 10).expect("accepted");
    assert_eq!(route(&policy, 1), Err(Fault::OutputTooLarge { limit_bytes: 1 << 20 }));
}

#[test]
fn an_import_that_is_not_granted_is_a_fault_that_names_it() {
    let runtime = runtime();
    let mut guest = Guest::new(World::Router);
    let fine = guest.work.clone();
    guest.work = format!("(drop (call $count (i32.const 1024) (i32.const 5))) {fine}");
    guest.imports = COUNT_IMPORT.into();
    let denied = importing(&runtime, guest.clone(), &[Grant::Log], 10).expect("accepted");
    let fault = route(&denied, 1).expect_err("not granted");
    assert_eq!(fault, Fault::NotGranted { import: "tokens" });
    assert!(fault.to_string().contains("add \"tokens\" to `grants`"), "{fault}");
    let granted = importing(&runtime, guest, &[Grant::Tokens], 10).expect("accepted");
    assert_eq!(route(&granted, 1), Ok(Decision::Answer("fine".into())));
}

#[test]
fn imports_but_the_log_may_not_be_called_while_configuring() {
    let runtime = runtime();
    let mut guest = Guest::new(World::Router);
    guest.imports = COUNT_IMPORT.into();
    guest.configure = format!("(drop (call $count (i32.const 0) (i32.const 0))) {}", guest.configure);
    let refused = importing(&runtime, guest, &[Grant::Tokens], 10).expect_err("refused");
    let fault = Fault::NotInSetup { import: "tokens" };
    assert_eq!(refused, Refusal::Setup { call: "configure", fault });

    let mut guest = Guest::new(World::Router);
    guest.imports = LOG_IMPORT.into();
    guest.configure = format!("(call $log (i32.const 0) (i32.const 0) (i32.const 0)) {}", guest.configure);
    assert!(importing(&runtime, guest, &[Grant::Log], 10).is_ok());
}

fn extract(policy: &Policy) -> Result<(), Fault> {
    let recent = [Message::new(Role::User, "订单 A-1")];
    policy.extract(&turn(1), &recent, &Dialog::default()).map(drop)
}

fn compress(policy: &Policy) -> Result<(), Fault> {
    let part =
        Part { message: Message::new(Role::User, "你好，查 A-1"), protected: vec![], cached_bytes: 0 };
    policy.compress(&turn(1), &[part], &Budget::default()).map(drop)
}

fn review(policy: &Policy) -> Result<Vec<Verdict>, Fault> {
    let window =
        |stream_id, pending: &str| Window { stream_id, pending: pending.into(), ..Window::default() };
    let windows = [window(1, "ab汉"), window(2, "cd")];
    policy.review(&windows).map(|called| called.answer)
}

fn invalid(outcome: Result<(), Fault>, part: &str) {
    match outcome {
        Err(Fault::Invalid { what }) => assert!(what.contains(part), "{what}"),
        other => panic!("expected an invalid answer ({part}), not {other:?}"),
    }
}

#[test]
fn spans_outside_of_the_text_and_halves_of_characters_are_invalid() {
    let runtime = runtime();
    let extractor = |spans: &[(u32, u32)]| {
        let mut guest = Guest::new(World::SlotExtractor);
        guest.work = guest.transition(spans);
        prepare(&runtime, &guest).expect("accepted")
    };
    assert_eq!(extract(&extractor(&[(0, 6), (7, 10)])), Ok(()));
    invalid(extract(&extractor(&[(0, 11)])), "0..11");
    invalid(extract(&extractor(&[(1, 3)])), "inside of a character");
    invalid(extract(&extractor(&[(6, 3)])), "ends before");
    invalid(extract(&extractor(&[(u32::MAX, u32::MAX)])), "4294967295");

    let compressor = |edits: &[(u32, u32, u32)]| {
        let mut guest = Guest::new(World::Compressor);
        guest.work = guest.edits(edits);
        prepare(&runtime, &guest).expect("accepted")
    };
    assert_eq!(compress(&compressor(&[(0, 0, 9)])), Ok(()));
    invalid(compress(&compressor(&[(0, 0, 8)])), "inside of a character");
    invalid(compress(&compressor(&[(1, 0, 0)])), "message 1 of 1");
    invalid(compress(&compressor(&[(0, 0, 9), (0, 6, 12)])), "overlap");
    invalid(compress(&compressor(&[(0, 0, 16)])), "blank");

    type Verdicts<'a> = &'a [(u32, Option<(u32, u32)>, u32)];
    let filter = |verdicts: Verdicts<'_>| {
        let mut guest = Guest::new(World::OutputFilter);
        guest.work = guest.verdicts(verdicts);
        prepare(&runtime, &guest).expect("accepted")
    };
    let fine = review(&filter(&[(0, Some((2, 5)), 0), (1, None, 1)])).expect("in order");
    assert_eq!((fine[0].replace[0].text.as_str(), fine[1].hold_bytes), ("*", 1));
    let wrong = |verdicts| review(&filter(verdicts)).map(drop);
    invalid(wrong(&[(0, Some((2, 4)), 0)]), "inside of a character");
    invalid(wrong(&[(0, None, 1)]), "inside of a character");
    invalid(wrong(&[(0, None, 6)]), "6 bytes held of 5");
    invalid(wrong(&[(2, None, 0)]), "window 2 of 2");
    invalid(wrong(&[(1, None, 0), (0, None, 0)]), "after one on window 1");
    invalid(wrong(&[(0, Some((2, 5)), 3)]), "reaches into");
}

#[test]
fn a_policy_of_one_kind_is_not_asked_for_the_answer_of_another() {
    let policy = prepare(&runtime(), &Guest::new(World::Compressor)).expect("accepted");
    let kind = Kind::Compressor;
    assert_eq!(route(&policy, 1), Err(Fault::WrongKind { kind }));
}

#[test]
fn no_state_crosses_from_one_call_to_the_next() {
    let mut guest = Guest::new(World::Router);
    // Answers with as many letters as this instance has had calls.
    let letters = guest.text("aaaaaaaa").0;
    let answer = guest.words(&[0, 1, letters, 0]);
    guest.module = "(global $calls (mut i32) (i32.const 0))".into();
    guest.work = format!(
        "(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
         (i32.store (i32.const {length}) (i32.add (i32.load (i32.const {length})) (global.get $calls)))
         (i32.const {answer})",
        length = answer + 12
    );
    let policy = prepare(&runtime(), &guest).expect("accepted");
    for _ in 0..3 {
        assert_eq!(route(&policy, 1), Ok(Decision::Answer("a".into())));
    }
}

/// A router that answers with its configuration, and refuses to work without one.
fn remembering() -> Guest {
    let mut guest = Guest::new(World::Router);
    let answer = guest.words(&[0, 1, 0, 0]);
    let ok = guest.words(&[0, 0, 0]);
    guest.configure = format!(
        "(i32.store (i32.const {pointer}) (local.get $config))
         (i32.store (i32.const {length}) (local.get $length))
         (i32.const {ok})",
        pointer = answer + 8,
        length = answer + 12,
    );
    guest.work = format!(
        "(if (i32.eqz (i32.load (i32.const {length}))) (then (unreachable))) (i32.const {answer})",
        length = answer + 12
    );
    guest
}

#[test]
fn what_configure_wrote_is_there_in_every_call() {
    let frozen = prepare(&runtime(), &remembering()).expect("accepted");
    assert_eq!(frozen.strategy(), &Strategy::Frozen);
    assert_eq!(route(&frozen, 1), Ok(Decision::Answer("{}".into())));
}

#[test]
fn a_guest_that_cannot_be_frozen_is_configured_in_each_instance() {
    let mut guest = remembering();
    // Freezing cannot save a vector register's worth of global.
    guest.module = "(global (mut v128) (v128.const i64x2 0 0))".into();
    let policy = prepare(&runtime(), &guest).expect("accepted");
    assert!(matches!(policy.strategy(), Strategy::PerCall { .. }), "{policy:?}");
    assert_eq!(route(&policy, 1), Ok(Decision::Answer("{}".into())));
    assert_eq!(route(&policy, 1), Ok(Decision::Answer("{}".into())));
}

#[test]
fn an_instance_is_configured_ahead_of_the_call_that_uses_it_up() {
    let lines = Arc::new(Lines::default());
    let runtime = Runtime::new(RuntimeConfig::default(), lines.clone()).expect("an engine");
    let mut guest = remembering();
    guest.module = "(global (mut v128) (v128.const i64x2 0 0))".into();
    guest.imports = LOG_IMPORT.into();
    guest.configure = format!("(call $log (i32.const 1) (i32.const 1024) (i32.const 5)) {}", guest.configure);
    // What a call leaves behind is gone with its instance.
    let (mark, _) = guest.text("....");
    let work = format!("(if (i32.eq (i32.load (i32.const {mark})) (i32.const 7)) (then (unreachable)))");
    guest.work = format!("{work} (i32.store (i32.const {mark}) (i32.const 7)) {}", guest.work);
    let mut upload = upload(&guest);
    upload.manifest.grants = vec![Grant::Log];
    let policy = Policy::prepare(&runtime, upload).expect("accepted");
    assert!(matches!(policy.strategy(), Strategy::PerCall { .. }), "{policy:?}");
    let configured = || lines.0.lock().expect("not poisoned").len();
    let settled = || {
        let mut before = configured();
        loop {
            std::thread::sleep(Duration::from_millis(100));
            match configured() {
                now if now == before => return now,
                now => before = now,
            }
        }
    };
    // Preparing it left one for the first call. From then on there is one more with each call, and none for nobody.
    let before = settled();
    for _ in 0..4 {
        assert_eq!(route(&policy, 1), Ok(Decision::Answer("{}".into())));
    }
    assert_eq!(settled(), before + 4);
}

#[test]
fn ten_thousand_hostile_calls_leave_the_pool_as_it_was() {
    let runtime = runtime();
    let grow = "(drop (memory.grow (i32.const 16))) (unreachable)";
    let policy = prepare(&runtime, &router(grow).only_on_seed(666)).expect("accepted");
    for _ in 0..10_000 {
        assert!(matches!(route(&policy, 666), Err(Fault::Trap { .. })));
    }
    assert_eq!(route(&policy, 1), Ok(Decision::Answer("fine".into())));
    assert_eq!(fleet().len(), 1);
}
