//! A runtime for tests, and the guests that they prepare.

// Seen by the tests that name this module, each of which uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use jackfield_guests::{Guest, World};
use jackfield_policy::{
    Decision, Fault, Kind, Manifest, NoServices, Policy, Refusal, Registry, RegistryError, RouteRequest,
    Runtime, RuntimeConfig, Target, Turn, Upload,
};
use serde_json::json;

/// Long enough that a machine that is busy with other things does not make a good call late.
pub const DEADLINE_MS: u32 = 1000;
pub const SETUP_DEADLINE_MS: u32 = 2000;

pub fn runtime() -> Arc<Runtime> {
    let config = RuntimeConfig { setup_deadline_ms: SETUP_DEADLINE_MS, ..RuntimeConfig::default() };
    Runtime::new(config, Arc::new(NoServices)).expect("an engine")
}

/// The guest as it would be uploaded, with a patient deadline.
pub fn upload(guest: &Guest) -> Upload {
    let kind = match guest.world {
        World::SlotExtractor => Kind::SlotExtractor,
        World::Router => Kind::Router,
        World::Compressor => Kind::Compressor,
        World::OutputFilter => Kind::OutputFilter,
    };
    let mut manifest = Manifest::new("guest", kind);
    manifest.limits.deadline_ms = DEADLINE_MS;
    Upload { manifest, component: guest.build().into(), config: json!({}), cases: Vec::new() }
}

pub fn prepare(runtime: &Arc<Runtime>, guest: &Guest) -> Result<Policy, Refusal> {
    Policy::prepare(runtime, upload(guest))
}

pub fn turn(seed: u32) -> Turn {
    Turn { seed, ..Turn::default() }
}

pub fn fleet() -> Vec<Target> {
    vec![Target { model: "small".into(), ..Target::default() }]
}

/// Route with this seed.
pub fn route(policy: &Policy, seed: u32) -> Result<Decision, Fault> {
    let called = policy.route(&turn(seed), &RouteRequest::default(), &fleet());
    called.map(|called| called.answer)
}

/// A router under a name, that answers with a text.
pub fn answering(name: &str, text: &str) -> Upload {
    let mut guest = Guest::new(World::Router);
    guest.work = guest.answer(text);
    let mut upload = upload(&guest);
    upload.manifest.name = name.into();
    upload
}

pub fn registry() -> Arc<Registry> {
    Registry::open(runtime(), None).expect("opens")
}

pub fn says(policy: &Policy) -> String {
    match route(policy, 1) {
        Ok(Decision::Answer(text)) => text,
        other => panic!("{other:?}"),
    }
}

pub fn in_force(registry: &Registry, name: &str) -> Option<String> {
    registry.current().get(name).map(|policy| says(policy))
}

pub fn open(dir: &Path) -> Result<Arc<Registry>, RegistryError> {
    Registry::open(runtime(), Some(dir.to_owned()))
}

/// What a turn of this session gets of `r`.
pub fn says_to(registry: &Registry, session: &str) -> Result<String, Fault> {
    let turn = Turn { session: Some(session.into()), ..Turn::default() };
    let lineup = registry.current().lineup(&turn, "model");
    let router = lineup.of_kind(Kind::Router).first().expect("in force");
    match router.route(&turn, &RouteRequest::default(), &fleet())?.answer {
        Decision::Answer(text) => Ok(text),
        other => panic!("{other:?}"),
    }
}

/// Waits for what happens on other threads.
pub fn until(what: &str, mut happens: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happens() {
        assert!(begun.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
