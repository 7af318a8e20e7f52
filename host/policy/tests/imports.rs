//! The imports as guests see them: served, bounded, metered, their time the guest's own.

mod kit;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jackfield_guests::{Guest, World};
use jackfield_policy::{
    Case, CaseFailure, Decision, Fault, Grant, HostServices, ImportStats, LogLevel, Policy, Runtime,
    RuntimeConfig, Scored,
};
use kit::{route, upload};
use serde_json::json;

const LIMIT_MS: u32 = 200;
/// Of a call that comes too late.
const TOO_LONG: Duration = Duration::from_millis(250);
/// A text of this is scored late; one of another is not scored.
const SLOW: &str = "slow";

/// What the host was asked.
#[derive(Default)]
struct Host {
    prepared: Mutex<Vec<Grant>>,
    left: Mutex<Vec<Duration>>,
}

impl HostServices for Host {
    fn prepare(&self, grant: Grant) {
        self.prepared.lock().expect("not poisoned").push(grant);
    }

    fn count_tokens(&self, text: &str) -> u32 {
        text.len() as u32
    }

    fn token_boundaries(&self, _: &str) -> Vec<u32> {
        Vec::new()
    }

    fn encode_tokens(&self, _: &str) -> Vec<u32> {
        Vec::new()
    }

    fn log(&self, _: &str, _: LogLevel, _: &str) {}

    fn score(&self, text: &str, left: Duration) -> Result<Vec<Scored>, String> {
        self.left.lock().expect("not poisoned").push(left);
        if text != SLOW {
            return Err("busy".into());
        }
        std::thread::sleep(TOO_LONG);
        Ok(Vec::new())
    }
}

/// A router that has `text` scored; what goes wrong there is its own error.
fn scoring(text: &str) -> Guest {
    let mut guest = Guest::new(World::Router);
    // Of the contract's worlds only compressors have it; a host serves it to whoever it is granted to.
    guest.contract = guest.contract.replace("world router {", "world router { import saliency;");
    guest.import("saliency", "score", "(param i32 i32 i32)");
    let (at, length) = guest.text(text);
    let result = guest.words(&[0, 0, 0]);
    let fine = guest.answer("scored");
    guest.work = format!(
        "(call $score (i32.const {at}) (i32.const {length}) (i32.const {result}))
         (if (result i32) (i32.load8_u (i32.const {result})) (then (i32.const {result})) (else {fine}))"
    );
    guest
}

/// A router that has this many zeros counted.
fn counting(bytes: usize) -> Guest {
    let mut guest = Guest::new(World::Router);
    guest.import("tokens", "count", "(param i32 i32) (result i32)");
    guest.min_pages = 16;
    let fine = guest.answer("counted");
    guest.work = format!("(drop (call $count (i32.const {}) (i32.const {bytes}))) {fine}", 256 << 10);
    guest
}

fn prepared(guest: &Guest, grants: &[Grant]) -> (Policy, Arc<Host>) {
    let host = Arc::new(Host::default());
    let services = Arc::clone(&host) as Arc<dyn HostServices>;
    let runtime = Runtime::new(RuntimeConfig::default(), services).expect("an engine");
    let mut upload = upload(guest);
    upload.manifest.grants = grants.to_vec();
    upload.manifest.limits.deadline_ms = LIMIT_MS;
    upload.manifest.limits.instances = 1;
    (Policy::prepare(&runtime, upload).expect("accepted"), host)
}

#[test]
fn a_slow_import_ends_in_a_deadline_fault_and_no_place_is_lost() {
    let (policy, host) = prepared(&scoring(SLOW).only_on_seed(666), &[Grant::Saliency]);
    for _ in 0..3 {
        assert_eq!(route(&policy, 666), Err(Fault::Deadline { limit_ms: LIMIT_MS }));
        // There is one place for its calls.
        assert_eq!(route(&policy, 1), Ok(Decision::Answer("fine".into())));
    }
    let left = host.left.lock().expect("not poisoned");
    assert!(left.iter().all(|left| (1..=LIMIT_MS.into()).contains(&left.as_millis())), "{left:?}");
    let [stats] = policy.stats().imports[..] else { panic!("{:?}", policy.stats()) };
    assert_eq!((stats.import, stats.calls, stats.errors), ("saliency", 3, 0));
    assert!(u128::from(stats.micros) >= 3 * TOO_LONG.as_micros(), "{stats:?}");
}

#[test]
fn a_host_that_is_busy_tells_the_guest_and_is_counted() {
    let (policy, _) = prepared(&scoring("any"), &[Grant::Saliency]);
    assert_eq!(route(&policy, 1), Err(Fault::Refused { message: "busy".into() }));
    let imports = policy.stats().imports;
    assert!(
        matches!(imports[..], [ImportStats { import: "saliency", calls: 1, errors: 1, .. }]),
        "{imports:?}"
    );
}

#[test]
fn a_case_answers_imports_itself_and_fails_when_it_is_asked_for_more() {
    let (policy, host) = prepared(&scoring("any"), &[Grant::Saliency]);
    let case = |asked: &str, expect: &str| {
        let imports = json!([{"import": "score", "text": asked, "scored": {"Ok": [{"end": 3, "surprisal_bits": 1.5}]}}]);
        let case =
            json!({"name": "a", "input": {"text": "x"}, "imports": imports, "expect": {"answer": expect}});
        Case::parse_file(&case.to_string()).expect("reads").remove(0)
    };
    assert_eq!(policy.run_case(&case("any", "scored")), Ok(json!({"answer": "scored"})));
    assert!(policy.run_case(&case("any", "other")).is_err());
    assert!(policy.time_case(&case("any", "scored")).is_ok());
    assert!(host.left.lock().expect("not poisoned").is_empty(), "the host was not asked");
    let Err(CaseFailure::NoAnswer { why }) = policy.run_case(&case("other", "scored")) else {
        panic!("not recorded")
    };
    assert!(why.contains("saliency.score of \"any\""), "{why}");
}

#[test]
fn a_text_to_tokenise_has_a_bound() {
    let most = 256 << 10;
    let (policy, _) = prepared(&counting(most), &[Grant::Tokens]);
    assert_eq!(route(&policy, 1), Ok(Decision::Answer("counted".into())));
    let (policy, _) = prepared(&counting(most + 1), &[Grant::Tokens]);
    let what = format!("`tokens` was asked for a text of {} bytes; it takes {most}", most + 1);
    assert_eq!(route(&policy, 1), Err(Fault::Invalid { what }));
}

#[test]
fn what_is_granted_is_prepared_before_the_policy_is_called() {
    let grants = [Grant::Tokens, Grant::Embeddings];
    let (_, host) = prepared(&Guest::new(World::Router), &grants);
    assert_eq!(*host.prepared.lock().expect("not poisoned"), grants);
}
