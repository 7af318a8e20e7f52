//! A policy in a turn: the version that is called, and who looks on.

use std::sync::{
    Arc,
    mpsc::{SyncSender, TrySendError},
};

use super::{candidate::Candidate, deployed::Deployed, shadow::ShadowCall, unix_ms};
use crate::{
    Fault, HostServices, Kind, Outcome, Policy, PolicyVersion,
    call::Call,
    dialog_rules::{Fit, reads_schema, restarted},
    policy::Called,
    record::{Noting, Record, Recorder},
    types::{
        Budget, Decision, Dialog, Edit, Message, Part, RouteRequest, Target, Transition, Turn, Verdict,
        Window,
    },
};

/// Who looks on at calls.
#[derive(Clone, Default)]
pub(super) struct Observers {
    /// Where calls are handed in that a candidate is to make as well.
    pub(super) shadows: Option<SyncSender<ShadowCall>>,
    pub(super) recorder: Option<Arc<Recorder>>,
}

impl std::fmt::Debug for Observers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observers").field("records", &self.recorder.is_some()).finish_non_exhaustive()
    }
}

/// A policy in a turn. Calls are synchronous and may take up to the deadline: make them off the threads that serve
/// connections.
pub struct Member {
    deployed: Arc<Deployed>,
    shadow: Option<Arc<Candidate>>,
    observers: Observers,
    generation: u64,
    /// Those before it, the latest first, where it may leave dialogs to them.
    earlier: Vec<Arc<Deployed>>,
}

/// How a dialog came to be one that the policy can read.
#[derive(Debug)]
pub struct Fitted {
    /// The version that goes on with it in the member's place.
    pub instead: Option<Member>,
    /// What was done, for the trace; none where nothing was.
    pub did: Option<String>,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Member").field(self.deployed.policy().version()).finish()
    }
}

impl Member {
    pub(super) fn new(
        deployed: Arc<Deployed>,
        shadow: Option<Arc<Candidate>>,
        observers: &Observers,
        generation: u64,
    ) -> Member {
        let shadow = shadow.filter(|shadow| shadow.is_compared(unix_ms()));
        Member { deployed, shadow, observers: observers.clone(), generation, earlier: Vec::new() }
    }

    /// With the versions before it, the latest first.
    pub(super) fn after<'a>(self, earlier: impl Iterator<Item = &'a Arc<Deployed>>) -> Member {
        let keeps = self.policy().manifest().dialog.keeps();
        Member { earlier: earlier.filter(|_| keeps).cloned().collect(), ..self }
    }

    /// Makes `dialog` one that can be read, by what the manifest says of other schemas: or names the earlier version that goes
    /// on with it.
    pub fn fit(&self, dialog: &mut Dialog) -> Fitted {
        let policy = self.policy();
        let description = policy.description();
        let (own, from) = (description.dialog_schema, dialog.schema);
        let (after, did) = match policy.manifest().dialog.fit(dialog, own, &description.reads_dialog_schemas)
        {
            Fit::AsIs => return Fitted { instead: None, did: None },
            Fit::Migrated(after) => (after, format!("dialog migrated from schema {from} to {own}")),
            Fit::Kept => match self.earlier.iter().find(|earlier| reads(earlier.policy(), from)) {
                Some(earlier) => {
                    let instead = Member::new(earlier.clone(), None, &self.observers, self.generation);
                    let did = format!("dialog of schema {from} left to {}", earlier.policy().version());
                    return Fitted { instead: Some(instead), did: Some(did) };
                }
                None => (restarted(dialog), restart_note(from)),
            },
            Fit::Restarted(after) => (after, restart_note(from)),
        };
        *dialog = after;
        Fitted { instead: None, did: Some(did) }
    }

    /// The policy. Calls made through it are not watched, and pass its breaker by.
    pub fn policy(&self) -> &Arc<Policy> {
        self.deployed.policy()
    }

    /// Which version it is.
    pub fn version(&self) -> &PolicyVersion {
        self.policy().version()
    }

    /// As [`Policy::extract`].
    ///
    /// # Errors
    /// Any [`Fault`].
    pub fn extract(
        &self,
        turn: &Turn,
        recent: &[Message],
        dialog: &Dialog,
    ) -> Result<Called<Transition>, Fault> {
        let call = || Call::SlotExtractor { recent: recent.to_vec(), dialog: dialog.clone() };
        self.watched(turn, call, Outcome::of_transition, |policy| policy.extract(turn, recent, dialog))
    }

    /// As [`Policy::route`].
    ///
    /// # Errors
    /// Any [`Fault`].
    pub fn route(
        &self,
        turn: &Turn,
        request: &RouteRequest,
        fleet: &[Target],
    ) -> Result<Called<Decision>, Fault> {
        let call = || Call::Router { request: request.clone(), fleet: fleet.to_vec() };
        self.watched(turn, call, Outcome::of_decision, |policy| policy.route(turn, request, fleet))
    }

    /// As [`Policy::compress`].
    ///
    /// # Errors
    /// Any [`Fault`].
    pub fn compress(&self, turn: &Turn, parts: &[Part], budget: &Budget) -> Result<Called<Vec<Edit>>, Fault> {
        let call = || Call::Compressor { parts: parts.to_vec(), budget: *budget };
        let outcome = |called: &_| Outcome::of_edits(called, parts);
        self.watched(turn, call, outcome, |policy| policy.compress(turn, parts, budget))
    }

    /// As [`Policy::review`], for windows of one tenant. Who looks on is told of whole answers, by
    /// [`Member::saw_answer`].
    ///
    /// # Errors
    /// Any [`Fault`].
    pub fn review(&self, tenant: &str, windows: &[Window]) -> Result<Called<Vec<Verdict>>, Fault> {
        self.deployed.call(tenant, |policy| policy.review(windows))
    }

    /// Whether answers that an output filter let through should be told to [`Member::saw_answer`].
    pub fn wants_answers(&self, tenant: &str) -> bool {
        self.policy().manifest().kind == Kind::OutputFilter && (self.shadow.is_some() || self.records(tenant))
    }

    /// An answer went through this filter, from its beginning to its end: `text` came in, `sent` went out.
    pub fn saw_answer(&self, turn: &Turn, text: String, sent: &str, stop: Option<&str>) {
        let outcome = Outcome::of_stream(sent, stop);
        self.tell(turn, || Call::OutputFilter { text }, outcome, None, 0);
    }

    fn records(&self, tenant: &str) -> bool {
        self.observers.recorder.as_ref().is_some_and(|recorder| recorder.wants(tenant))
    }

    fn watched<T>(
        &self,
        turn: &Turn,
        call: impl FnOnce() -> Call,
        outcome: impl FnOnce(&Result<Called<T>, Fault>) -> Outcome,
        make: impl FnOnce(&Policy) -> Result<Called<T>, Fault>,
    ) -> Result<Called<T>, Fault> {
        let records = self.records(&turn.tenant);
        if !records && self.shadow.is_none() {
            return self.deployed.call(&turn.tenant, make);
        }
        let noting = records.then(|| Arc::new(Noting::new(self.policy().services().clone())));
        let called = self.deployed.call(&turn.tenant, |policy| match &noting {
            Some(noting) => make(&policy.with_services(Arc::clone(noting) as Arc<dyn HostServices>)),
            None => make(policy),
        });
        // What no call was made for has nothing to be compared with.
        if !matches!(called, Err(Fault::Tripped | Fault::Busy { .. })) {
            let micros = called.as_ref().map_or(0, |called| called.micros);
            self.tell(turn, call, outcome(&called), noting, micros);
        }
        called
    }

    fn tell(
        &self,
        turn: &Turn,
        call: impl FnOnce() -> Call,
        outcome: Outcome,
        noting: Option<Arc<Noting>>,
        micros: u32,
    ) {
        let recorder = self.observers.recorder.as_ref().filter(|recorder| recorder.wants(&turn.tenant));
        if recorder.is_none() && self.shadow.is_none() {
            return;
        }
        let call = call();
        if let Some(recorder) = recorder {
            recorder.record(Record {
                generation: self.generation,
                policy: self.version().clone(),
                turn: turn.clone(),
                call: call.clone(),
                outcome: outcome.clone(),
                imports: noting.map(|noting| noting.take()).unwrap_or_default(),
                micros,
            });
        }
        if let Some((shadow, shadows)) = self.shadow.as_ref().zip(self.observers.shadows.as_ref()) {
            let job = ShadowCall { candidate: shadow.clone(), turn: turn.clone(), call, active: outcome };
            // Live turns go first: what there is no room for is not compared.
            if let Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) = shadows.try_send(job) {
                job.candidate.comparison.drop_one();
            }
        }
    }
}

fn reads(policy: &Policy, schema: u32) -> bool {
    let description = policy.description();
    reads_schema(schema, description.dialog_schema, &description.reads_dialog_schemas)
}

fn restart_note(from: u32) -> String {
    format!("dialog restarted: nothing reads its schema {from}")
}
