//! A runtime for tests, and the guests that they prepare.

// Seen by the tests that name this module, each of which uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;

use jackfield_guests::{Guest, World};
use jackfield_policy::{
    Decision, Fault, Kind, Manifest, NoServices, Policy, Refusal, RouteRequest, Runtime, RuntimeConfig,
    Target, Turn, Upload,
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
