//! The policies in force, and how they change.
//!
//! What is in force is one pointer to a [`Patch`]. A turn takes it once and keeps it to its end. A change is prepared as a
//! whole beside it, written to the state folder, and then put in force by moving the pointer: at no time is half of it to
//! be seen, and when anything is wrong nothing happens.
//!
//! Changes of one policy are done one after the other, in the order in which they were asked for; changes of different
//! policies prepare at the same time.

mod patch;
mod queue;
mod store;

use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwap;
pub use patch::Patch;
use queue::Queues;
use serde::Serialize;
use serde_json::Value;
pub use store::StateError;
use store::{StateFolder, Stored};

use crate::{
    Description, Grant, Kind, Limits, OnFault, Policy, PolicyVersion, Refusal, Runtime, Stats, Strategy,
    Upload,
};

/// Earlier versions of each policy that are kept ready to go back to.
const KEPT_VERSIONS: usize = 3;
/// Generations that are remembered.
const KEPT_GENERATIONS: usize = 256;

/// The outcome of a change that was taken. It is in force when this is returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// The generation that is in force.
    pub generation: u64,
    /// Whether the change made it; not when the same was in force already.
    pub changed: bool,
    /// The version of the policy that is in force now; none after a deletion.
    pub version: Option<PolicyVersion>,
    /// From the request to in force, in milliseconds.
    pub millis: u64,
}

/// What made a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The host started with nothing.
    Start,
    /// The host started with what was in force before.
    Restore,
    /// A component was put.
    Put,
    /// A configuration was put.
    Config,
    /// A policy was taken out.
    Delete,
    /// A policy went back to its version before.
    Rollback,
}

/// A generation: what changed, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GenerationInfo {
    /// Its number; each is one more than the one before, restarts included.
    pub generation: u64,
    /// When it came into force, in milliseconds since 1970.
    pub unix_ms: u64,
    /// What made it.
    pub change: Change,
    /// The policy that changed.
    pub name: Option<String>,
    /// Its version before.
    pub from: Option<PolicyVersion>,
    /// Its version after.
    pub to: Option<PolicyVersion>,
}

/// A policy in force, for the operator.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PolicyStatus {
    /// Which version.
    pub version: PolicyVersion,
    /// Its kind.
    pub kind: Kind,
    /// Its place among those of its kind.
    pub order: i32,
    /// What happens when it faults.
    pub on_fault: OnFault,
    /// The imports it may use.
    pub grants: Vec<Grant>,
    /// What a call may use.
    pub limits: Limits,
    /// How its instances are configured.
    pub strategy: Strategy,
    /// What it says of itself.
    pub description: Description,
    /// Its configuration.
    pub config: Value,
    /// Size of its component, in bytes.
    pub component_bytes: usize,
    /// Earlier versions that it can go back to, the latest first.
    pub earlier: Vec<PolicyVersion>,
    /// Its calls so far.
    pub stats: Stats,
}

/// Why there is no registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The state folder cannot be read or made.
    #[error(transparent)]
    State(#[from] StateError),
    /// A policy that was in force is not taken any more: put a version that is, or remove it from the state folder.
    #[error("policy `{name}` was in force before and is refused now: {refusal} (its record: {})", record.display())]
    Refused {
        /// The policy.
        name: String,
        /// Why.
        refusal: Refusal,
        /// The file that names it.
        record: PathBuf,
    },
}

/// The policies in force, and how they change.
pub struct Registry {
    runtime: Arc<Runtime>,
    current: ArcSwap<Patch>,
    queues: Queues,
    book: Mutex<Book>,
    state: Option<StateFolder>,
}

/// What is known beside the patch. Held only while a change comes into force.
#[derive(Default)]
struct Book {
    /// Earlier versions by name, the latest last.
    earlier: BTreeMap<String, Vec<Arc<Policy>>>,
    generations: VecDeque<GenerationInfo>,
}

/// A change that is ready to come into force.
struct Ready {
    change: Change,
    name: String,
    to: Option<Arc<Policy>>,
    started: Instant,
}

impl Registry {
    /// With what was in force before, if there is a state folder; empty otherwise.
    ///
    /// # Errors
    /// When the folder cannot be used, or a policy in it is refused.
    pub fn open(runtime: Arc<Runtime>, state_dir: Option<PathBuf>) -> Result<Registry, RegistryError> {
        let state = state_dir.map(StateFolder::open).transpose()?;
        let stored = match &state {
            Some(folder) => folder.read()?,
            None => Stored::default(),
        };
        let restored = !stored.policies.is_empty();
        let mut policies = Vec::new();
        for upload in stored.policies {
            let name = upload.manifest.name.clone();
            let policy = Policy::prepare(&runtime, upload).map_err(|refusal| {
                let record = state.as_ref().map(StateFolder::record).unwrap_or_default();
                RegistryError::Refused { name, refusal, record }
            })?;
            policies.push(Arc::new(policy));
        }
        let patch = Patch::new(stored.generation, policies);
        let registry = Registry {
            runtime,
            current: ArcSwap::from_pointee(patch),
            queues: Queues::default(),
            book: Mutex::default(),
            state,
        };
        registry.book().note(GenerationInfo {
            generation: stored.generation,
            unix_ms: unix_ms(),
            change: if restored { Change::Restore } else { Change::Start },
            name: None,
            from: None,
            to: None,
        });
        Ok(registry)
    }

    /// What is in force. Take it once for a turn.
    pub fn current(&self) -> Arc<Patch> {
        self.current.load_full()
    }

    /// Whether policies' deadlines are being kept.
    pub fn is_healthy(&self) -> bool {
        self.runtime.is_healthy()
    }

    /// Put a policy in force, in the place of one of the same name. The same bytes, manifest and configuration again change
    /// nothing (but its cases are run).
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    pub fn put(&self, upload: Upload) -> Result<Applied, Refusal> {
        let started = Instant::now();
        upload.manifest.validate()?;
        let name = upload.manifest.name.clone();
        let _turn = self.queues.enter(&name);
        if let Some(held) = self.current().get(&name).filter(|held| same(held, &upload)) {
            held.run_cases(&upload.cases)?;
            return Ok(self.unchanged(held, started));
        }
        let to = Arc::new(Policy::prepare(&self.runtime, upload)?);
        self.apply(Ready { change: Change::Put, name, to: Some(to), started })
    }

    /// Give a policy another configuration. Its cases, recorded with the old one, are not run.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    pub fn put_config(&self, name: &str, config: Value) -> Result<Applied, Refusal> {
        let started = Instant::now();
        let _turn = self.queues.enter(name);
        let patch = self.current();
        let held = patch.get(name).ok_or_else(|| unknown(name))?;
        if *held.config() == config {
            return Ok(self.unchanged(held, started));
        }
        let upload = Upload {
            manifest: held.manifest().clone(),
            component: held.component().clone(),
            config,
            cases: Vec::new(),
        };
        let to = Arc::new(Policy::prepare(&self.runtime, upload)?);
        self.apply(Ready { change: Change::Config, name: name.to_owned(), to: Some(to), started })
    }

    /// Take a policy out. It can be rolled back to.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    pub fn delete(&self, name: &str) -> Result<Applied, Refusal> {
        let started = Instant::now();
        let _turn = self.queues.enter(name);
        if self.current().get(name).is_none() {
            return Err(unknown(name));
        }
        self.apply(Ready { change: Change::Delete, name: name.to_owned(), to: None, started })
    }

    /// Go back to the version before this one; again, to the one before that. What was gone back from is not kept.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    pub fn rollback(&self, name: &str) -> Result<Applied, Refusal> {
        let started = Instant::now();
        let _turn = self.queues.enter(name);
        let to = self.book().latest_earlier(name);
        let Some(to) = to else {
            let name = name.to_owned();
            return Err(match self.current().get(&name) {
                Some(_) => Refusal::NothingToRollBackTo { name },
                None => Refusal::Unknown { name },
            });
        };
        self.apply(Ready { change: Change::Rollback, name: name.to_owned(), to: Some(to), started })
    }

    /// All policies in force, in the order in which a turn meets them.
    pub fn policies(&self) -> Vec<PolicyStatus> {
        let book = self.book();
        let patch = self.current();
        let status = |policy: &Arc<Policy>| status(policy, book.earlier_versions(policy));
        patch.policies().map(status).collect()
    }

    /// What changed, the latest last.
    pub fn generations(&self) -> Vec<GenerationInfo> {
        self.book().generations.iter().cloned().collect()
    }

    /// Write a change down, then put it in force.
    fn apply(&self, ready: Ready) -> Result<Applied, Refusal> {
        let mut book = self.book();
        let before = self.current();
        let from = before.get(&ready.name).cloned();
        let generation = before.generation() + 1;
        let patch = before.with(generation, &ready.name, ready.to.clone());
        if let Some(state) = &self.state {
            state.write(&patch).map_err(|error| Refusal::State { message: error.to_string() })?;
        }
        self.current.store(Arc::new(patch));
        let version = ready.to.as_ref().map(|policy| policy.version().clone());
        book.note(GenerationInfo {
            generation,
            unix_ms: unix_ms(),
            change: ready.change,
            name: Some(ready.name.clone()),
            from: from.as_ref().map(|policy| policy.version().clone()),
            to: version.clone(),
        });
        book.keep(ready.change, &ready.name, from);
        drop(book);
        tracing::info!(generation, change = ?ready.change, policy = ready.name, "policies changed");
        Ok(Applied { generation, changed: true, version, millis: millis_since(ready.started) })
    }

    fn unchanged(&self, held: &Policy, started: Instant) -> Applied {
        Applied {
            generation: self.current().generation(),
            changed: false,
            version: Some(held.version().clone()),
            millis: millis_since(started),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn note(&mut self, info: GenerationInfo) {
        if self.generations.len() == KEPT_GENERATIONS {
            self.generations.pop_front();
        }
        self.generations.push_back(info);
    }

    fn latest_earlier(&self, name: &str) -> Option<Arc<Policy>> {
        self.earlier.get(name)?.last().cloned()
    }

    fn earlier_versions(&self, policy: &Policy) -> Vec<PolicyVersion> {
        let earlier = self.earlier.get(&policy.version().name);
        let earlier = earlier.map(Vec::as_slice).unwrap_or_default();
        earlier.iter().rev().map(|policy| policy.version().clone()).collect()
    }

    /// Keep what was in force, to go back to; a rollback uses one up instead.
    fn keep(&mut self, change: Change, name: &str, from: Option<Arc<Policy>>) {
        let earlier = self.earlier.entry(name.to_owned()).or_default();
        if change == Change::Rollback {
            earlier.pop();
        } else if let Some(from) = from {
            if earlier.len() == KEPT_VERSIONS {
                earlier.remove(0);
            }
            earlier.push(from);
        }
        if earlier.is_empty() {
            self.earlier.remove(name);
        }
    }
}

fn same(held: &Policy, upload: &Upload) -> bool {
    held.component() == &upload.component
        && *held.manifest() == upload.manifest
        && *held.config() == upload.config
}

fn status(policy: &Policy, earlier: Vec<PolicyVersion>) -> PolicyStatus {
    let manifest = policy.manifest();
    PolicyStatus {
        version: policy.version().clone(),
        kind: manifest.kind,
        order: manifest.order,
        on_fault: manifest.on_fault,
        grants: manifest.grants.clone(),
        limits: manifest.limits,
        strategy: policy.strategy().clone(),
        description: policy.description().clone(),
        config: policy.config().clone(),
        component_bytes: policy.component().len(),
        earlier,
        stats: policy.stats(),
    }
}

fn unknown(name: &str) -> Refusal {
    Refusal::Unknown { name: name.to_owned() }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn millis_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}
