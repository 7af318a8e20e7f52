//! A policy that is ready to be called.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Instant,
};

use cpu_time::ThreadTime;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wasmtime::{Store, component::Instance};

use crate::{
    Case, Fault, HostServices, Manifest, OnFault, Refusal, Runtime, Strategy, cases, check, convert,
    runtime::{CallState, Imports, Ready, UploadParts, micros_since},
    stats::{Counters, Stats},
    types::{
        Budget, Decision, Description, Dialog, Edit, Interest, Message, Next, Part, RouteRequest, Target,
        Transition, Turn, Verdict, Window,
    },
    watch::Watches,
    work::{self, Work},
};

/// A version of a policy: by name, by what its author calls it, and by its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PolicyVersion {
    /// The name it is deployed under.
    pub name: String,
    /// What `describe` says.
    pub version: String,
    /// BLAKE3 of the component, in hex.
    pub digest: String,
    /// BLAKE3 of the configuration, in hex.
    pub config_digest: String,
}

impl std::fmt::Display for PolicyVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.name, self.version)
    }
}

/// What is uploaded.
#[derive(Clone, Debug)]
pub struct Upload {
    /// Its manifest.
    pub manifest: Manifest,
    /// The component.
    pub component: Arc<[u8]>,
    /// Its configuration.
    pub config: Value,
    /// Recorded cases that must come out as expected.
    pub cases: Vec<Case>,
}

/// An answer, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Called<T> {
    /// The answer, checked.
    pub answer: T,
    /// From the call to the checked answer, in microseconds.
    pub micros: u32,
}

/// A policy that is ready to be called. Calls are synchronous and may take up to the deadline: make them off the threads
/// that serve connections. Clones share everything.
#[derive(Clone)]
pub struct Policy {
    core: Arc<Core>,
    /// What its imports are served with.
    services: Arc<dyn HostServices>,
    /// The manifest's; a longer one for recorded cases, which run on machines of any speed.
    deadline_ms: u32,
    counters: Arc<Counters>,
    /// Digest of the cases that it was prepared with, all of which passed.
    passed: Option<String>,
}

struct Core {
    runtime: Arc<Runtime>,
    manifest: Manifest,
    component: Arc<[u8]>,
    config: Value,
    version: PolicyVersion,
    description: Description,
    ready: Ready,
    work: Work,
    interest: Interest,
    watches: Arc<Watches>,
}

/// How many times its deadline a call may take in a recorded case.
const CASE_PATIENCE: u32 = 20;

impl Policy {
    /// Compile, check, describe, configure and freeze an upload, and run its cases.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn prepare(runtime: &Arc<Runtime>, upload: Upload) -> Result<Policy, Refusal> {
        let Upload { manifest, component, config, cases } = upload;
        manifest.validate()?;
        manifest.grants.iter().for_each(|grant| runtime.services().prepare(*grant));
        let (ready, description) =
            runtime.set_up(UploadParts { manifest: &manifest, component: &component, config: &config })?;
        let work = Work::find(manifest.kind, ready.pre.component())?;
        let mut core = Core {
            runtime: runtime.clone(),
            version: version(&manifest, &description, &component, &config),
            manifest,
            component,
            config,
            description,
            ready,
            work,
            interest: Interest::default(),
            watches: Watches::compile(&[], 1)?,
        };
        core.probe()?;
        core.learn_interest()?;
        let policy = Policy {
            services: runtime.services().clone(),
            deadline_ms: core.manifest.limits.deadline_ms.saturating_mul(CASE_PATIENCE),
            core: Arc::new(core),
            counters: Arc::default(),
            passed: None,
        };
        policy.run_cases(&cases)?;
        let deadline_ms = policy.manifest().limits.deadline_ms;
        Ok(Policy { deadline_ms, counters: Arc::default(), passed: digest_of(&cases), ..policy })
    }

    /// Whether these cases are those that it was prepared with: a policy is a function, they would pass again.
    pub(crate) fn has_passed(&self, cases: &[Case]) -> bool {
        self.passed.is_some() && self.passed == digest_of(cases)
    }

    /// The same policy, its imports served by something else.
    #[must_use]
    pub fn with_services(&self, services: Arc<dyn HostServices>) -> Policy {
        Policy { services, ..self.clone() }
    }

    /// The same policy, its calls counted apart.
    pub(crate) fn counted_apart(&self) -> Policy {
        Policy { counters: Arc::default(), ..self.clone() }
    }

    /// What its imports are served with.
    pub(crate) fn services(&self) -> &Arc<dyn HostServices> {
        &self.services
    }

    /// The same policy with as much time for a call as recorded cases have, which run on machines of any speed.
    #[must_use]
    pub fn patient(mut self) -> Policy {
        self.deadline_ms = self.core.manifest.limits.deadline_ms.saturating_mul(CASE_PATIENCE);
        self
    }

    /// The most linear memory that an instance has had in a call so far, in bytes.
    pub fn peak_memory_bytes(&self) -> usize {
        self.core.ready.peak_memory.load(Relaxed)
    }

    /// What the operator says of it.
    pub fn manifest(&self) -> &Manifest {
        &self.core.manifest
    }

    /// Which version it is.
    pub fn version(&self) -> &PolicyVersion {
        &self.core.version
    }

    /// What it says of itself.
    pub fn description(&self) -> &Description {
        &self.core.description
    }

    /// Its configuration.
    pub fn config(&self) -> &Value {
        &self.core.config
    }

    /// Its bytes.
    pub fn component(&self) -> &Arc<[u8]> {
        &self.core.component
    }

    /// How an instance comes to its configuration.
    pub fn strategy(&self) -> &Strategy {
        &self.core.ready.strategy
    }

    /// What happens to a turn when it faults.
    pub fn on_fault(&self) -> OnFault {
        self.core.manifest.on_fault
    }

    /// What an output filter wants to see; nothing for the other kinds.
    pub fn interest(&self) -> &Interest {
        &self.core.interest
    }

    /// The compiled patterns of an output filter.
    pub fn watches(&self) -> &Arc<Watches> {
        &self.core.watches
    }

    /// Counts since it came into force.
    pub fn stats(&self) -> Stats {
        self.counters.read()
    }

    /// Books prompt tokens that the edits of a compressor saved.
    pub fn saved(&self, tokens: usize) {
        self.counters.saved_tokens.fetch_add(tokens as u64, Relaxed);
    }

    /// Run recorded cases, each twice.
    ///
    /// # Errors
    /// The first that does not come out as expected.
    pub fn run_cases(&self, cases: &[Case]) -> Result<(), Refusal> {
        for case in cases {
            cases::run(self, case).map_err(|why| Refusal::Case { name: case.name.clone(), why })?;
        }
        Ok(())
    }

    /// Read the last of `recent`, the utterance, in the light of the dialog.
    ///
    /// # Errors
    /// Any [`Fault`].
    pub fn extract(
        &self,
        turn: &Turn,
        recent: &[Message],
        dialog: &Dialog,
    ) -> Result<Called<Transition>, Fault> {
        let Work::SlotExtractor(function) = &self.core.work else {
            return self.wrong_kind();
        };
        self.called(Some(turn), || {
            let utterance = recent.last().ok_or_else(|| Fault::invalid("no messages"))?;
            let turn = convert::turn(turn, &self.core.manifest.headers);
            let recent: Vec<_> = recent.iter().map(convert::message).collect();
            let dialog = convert::dialog(dialog);
            let answer = self
                .run(|store, instance| work::extract(function, store, instance, (&turn, &recent, &dialog)))?;
            let transition = convert::from_transition(answer);
            check::transition(&transition, &utterance.text).map_err(Fault::invalid)?;
            self.counters.answered.fetch_add(matches!(transition.next, Next::Answer(_)).into(), Relaxed);
            Ok(transition)
        })
    }

    /// Decide where and how a turn runs.
    ///
    /// # Errors
    /// Any [`Fault`].
    pub fn route(
        &self,
        turn: &Turn,
        request: &RouteRequest,
        fleet: &[Target],
    ) -> Result<Called<Decision>, Fault> {
        let Work::Router(function) = &self.core.work else {
            return self.wrong_kind();
        };
        self.called(Some(turn), || {
            let turn = convert::turn(turn, &self.core.manifest.headers);
            let request = convert::request(request);
            let targets: Vec<_> = fleet.iter().map(convert::target).collect();
            let answer = self
                .run(|store, instance| work::route(function, store, instance, (&turn, &request, &targets)))?;
            let decision = convert::from_decision(answer);
            check::decision(&decision, fleet).map_err(Fault::invalid)?;
            self.counters.answered.fetch_add((!matches!(decision, Decision::Run(_))).into(), Relaxed);
            Ok(decision)
        })
    }

    /// Decide which bytes are not worth their tokens. Edits come in order of message and start.
    ///
    /// # Errors
    /// Any [`Fault`].
    pub fn compress(&self, turn: &Turn, parts: &[Part], budget: &Budget) -> Result<Called<Vec<Edit>>, Fault> {
        let Work::Compressor(function) = &self.core.work else {
            return self.wrong_kind();
        };
        self.called(Some(turn), || {
            let turn = convert::turn(turn, &self.core.manifest.headers);
            let given: Vec<_> = parts.iter().map(convert::part).collect();
            let budget = convert::budget(budget);
            let answer = self
                .run(|store, instance| work::compress(function, store, instance, (&turn, &given, budget)))?;
            let mut edits: Vec<Edit> = answer.into_iter().map(convert::from_edit).collect();
            check::edits(&mut edits, parts).map_err(Fault::invalid)?;
            self.counters.edits.fetch_add(edits.len() as u64, Relaxed);
            Ok(edits)
        })
    }

    /// Decide what of the windows may leave. A window without a verdict passes whole.
    ///
    /// # Errors
    /// Any [`Fault`].
    pub fn review(&self, windows: &[Window]) -> Result<Called<Vec<Verdict>>, Fault> {
        let Work::OutputFilter { review: function, .. } = &self.core.work else {
            return self.wrong_kind();
        };
        self.called(None, || {
            let parts: Vec<_> = windows.iter().map(convert::window_parts).collect();
            let given = convert::windows(windows, &parts);
            let answer = self.run(|store, instance| work::review(function, store, instance, &given))?;
            let verdicts: Vec<Verdict> = answer.into_iter().map(convert::from_verdict).collect();
            let max_hold = self.core.manifest.limits.hold_bytes;
            check::verdicts(&verdicts, windows, max_hold).map_err(Fault::invalid)?;
            let (edits, held) = verdicts.iter().fold((0, 0), |(edits, held), verdict| {
                (edits + verdict.replace.len() as u64, held + u64::from(verdict.hold_bytes))
            });
            self.counters.edits.fetch_add(edits, Relaxed);
            self.counters.held_bytes.fetch_add(held, Relaxed);
            Ok(verdicts)
        })
    }

    fn run<T>(
        &self,
        call: impl FnOnce(&mut Store<CallState>, &Instance) -> wasmtime::Result<Result<T, String>>,
    ) -> Result<T, Fault> {
        let (services, meter) = (self.services.clone(), self.counters.imports.clone());
        self.core.call(self.deadline_ms, Imports { services, meter }, call)
    }

    /// Time and count a call, in a span of its own.
    fn called<T>(
        &self,
        turn: Option<&Turn>,
        call: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<Called<T>, Fault> {
        let version = &self.core.version;
        let span = tracing::debug_span!(
            "policy",
            policy = version.name,
            version = version.version,
            kind = %self.core.manifest.kind,
            turn = turn.map(|turn| turn.id.as_str()),
            outcome = tracing::field::Empty,
        );
        let _entered = span.enter();
        let (start, processor) = (Instant::now(), ThreadTime::now());
        let answer = call();
        let micros = micros_since(start);
        span.record("outcome", answer.as_ref().err().map_or("ok", Fault::label));
        let called = answer.map(|answer| Called { answer, micros });
        self.counters.count(micros, processor.elapsed(), &called);
        called
    }

    fn wrong_kind<T>(&self) -> Result<T, Fault> {
        let kind = self.core.manifest.kind;
        Err(Fault::WrongKind { kind })
    }
}

impl Core {
    fn call<T>(
        &self,
        deadline_ms: u32,
        imports: Imports,
        call: impl FnOnce(&mut Store<CallState>, &Instance) -> wasmtime::Result<Result<T, String>>,
    ) -> Result<T, Fault> {
        self.runtime.call(&self.ready, &self.manifest, deadline_ms, imports, call)
    }

    /// A call while it is prepared, with the runtime's own deadline.
    fn run<T>(
        &self,
        call: impl FnOnce(&mut Store<CallState>, &Instance) -> wasmtime::Result<Result<T, String>>,
    ) -> Result<T, Fault> {
        self.call(self.runtime.setup_deadline_ms(), self.runtime.imports(), call)
    }

    /// Ask an output filter what it wants to see, and compile its patterns.
    fn learn_interest(&mut self) -> Result<(), Refusal> {
        let Work::OutputFilter { interests, .. } = &self.work else {
            return Ok(());
        };
        let answer = self
            .run(|store, instance| work::interests(interests, store, instance).map(Ok))
            .map_err(|fault| Refusal::Setup { call: "interests", fault })?;
        let interest = convert::from_interest(answer);
        check::interest(&interest)
            .map_err(|what| Refusal::Setup { call: "interests", fault: Fault::invalid(what) })?;
        let bound = self.manifest.limits.hold_bytes as usize;
        self.watches = Watches::compile(&interest.watches, bound)?;
        self.interest = interest;
        Ok(())
    }

    /// Make one instance the way calls do, and find its function there: so that types that differ from the contract, and a
    /// start function that does not come through, refuse the upload rather than fault the first turn.
    fn probe(&self) -> Result<(), Refusal> {
        let probed = self.run(|store, instance| {
            Ok(self.work.check(store, instance).map_err(|error| format!("{error:#}")))
        });
        match probed {
            Ok(()) => Ok(()),
            Err(Fault::Refused { message }) => Err(Refusal::Types { message }),
            Err(fault) => Err(Refusal::Setup { call: "instantiate", fault }),
        }
    }
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policy")
            .field("version", &self.core.version)
            .field("strategy", &self.core.ready.strategy)
            .finish_non_exhaustive()
    }
}

fn version(
    manifest: &Manifest,
    description: &Description,
    component: &[u8],
    config: &Value,
) -> PolicyVersion {
    PolicyVersion {
        name: manifest.name.clone(),
        version: description.version.clone(),
        digest: digest(component),
        config_digest: digest(config.to_string().as_bytes()),
    }
}

/// None for cases that cannot be written, which are not the same as any others.
fn digest_of(cases: &[Case]) -> Option<String> {
    serde_json::to_vec(cases).ok().map(|cases| digest(&cases))
}

/// BLAKE3 in hex.
pub(crate) fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
