//! Calls that a candidate makes beside the active version: on a thread of their own, one at a time, behind everything else.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use cpu_time::ThreadTime;

use super::candidate::Candidate;
use crate::{Outcome, Runtime, background, call::Call, types::Turn};

/// Calls that wait; what comes when there are so many is not compared.
const MOST_WAITING: usize = 64;

/// A call that the active version has made.
pub(super) struct ShadowCall {
    pub(super) candidate: Arc<Candidate>,
    pub(super) turn: Turn,
    pub(super) call: Call,
    pub(super) active: Outcome,
}

/// Starts the thread; it ends with the last sender. None when the system gives no thread: then nothing is compared.
pub(super) fn start(runtime: Arc<Runtime>) -> Option<SyncSender<ShadowCall>> {
    let (sender, calls) = sync_channel(MOST_WAITING);
    let work = move || {
        background::step_back();
        run(&runtime, &calls);
    };
    match thread::Builder::new().name("policy-shadow".into()).spawn(work) {
        Ok(_) => Some(sender),
        Err(error) => {
            tracing::error!(%error, "no thread for candidates: none will be compared");
            None
        }
    }
}

fn run(runtime: &Runtime, calls: &Receiver<ShadowCall>) {
    for ShadowCall { candidate, turn, call, active } in calls {
        if !runtime.has_room() {
            candidate.comparison.drop_one();
            continue;
        }
        let policy = candidate.deployed.policy();
        let processor = ThreadTime::now();
        let outcome = call.make(policy, &turn);
        // This thread comes last: a deadline that it did not have half the processor for is not the candidate's fault.
        let deadline = Duration::from_millis(policy.manifest().limits.deadline_ms.into());
        if outcome.is_late() && 2 * processor.elapsed() < deadline {
            candidate.comparison.drop_one();
            continue;
        }
        candidate.deployed.looked_on(&turn.tenant, matches!(outcome, Outcome::Fault(_)));
        candidate.comparison.note(&turn, &active, &outcome);
    }
}
