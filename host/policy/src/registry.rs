//! The policies in force, and how they change.
//!
//! What is in force is one pointer to a [`Patch`]. A turn takes it once and keeps it to its end. A change is prepared as a
//! whole beside it, written to the state folder, and then put in force by moving the pointer: at no time is half of it to
//! be seen, and when anything is wrong nothing happens.
//!
//! A version comes into force at once, or by way of a [`Rollout`]: as a shadow it is called beside the active one and only
//! compared; as a canary it has a share of the turns; then it is promoted, or withdrawn. A version that goes wrong too often
//! is taken out of the way by its breaker, and the last good one comes back.
//!
//! Changes of one policy are done one after the other, in the order in which they were asked for; changes of different
//! policies prepare at the same time.

mod candidate;
mod deployed;
mod keeper;
mod member;
mod patch;
mod queue;
mod report;
mod shadow;
mod store;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        mpsc::{Sender, channel},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwap;
pub(crate) use candidate::Candidate;
pub use candidate::{Compared, Example, Rollout, Share, Stage};
use deployed::{Deployed, Tripped};
use member::Observers;
pub use member::{Fitted, Member};
use patch::Entry;
pub use patch::{Lineup, Patch};
use queue::Queues;
pub use report::{
    Applied, BreakerStatus, CandidateStatus, Change, GenerationInfo, PolicyStatus, RegistryError,
    VersionStatus,
};
use serde_json::Value;
pub use store::StateError;
use store::{StateFolder, Stored};

use crate::{Case, Policy, RecordSettings, Refusal, Runtime, Upload, record::Recorder};

/// Generations that are remembered.
const KEPT_GENERATIONS: usize = 256;

/// What a registry is opened with.
#[derive(Default)]
pub struct RegistryOptions {
    /// Where what is acknowledged is kept; nowhere when not given.
    pub state_dir: Option<PathBuf>,
    /// Which calls are written down, in the state folder; none when not given.
    pub record: Option<RecordSettings>,
}

/// The policies in force, and how they change.
pub struct Registry {
    runtime: Arc<Runtime>,
    current: ArcSwap<Patch>,
    queues: Queues,
    /// What changed, the latest last. Held while a change comes into force.
    book: Mutex<VecDeque<GenerationInfo>>,
    state: Option<StateFolder>,
    news: Sender<Tripped>,
}

/// A change that is ready to come into force.
struct Ready<'a> {
    change: Change,
    name: &'a str,
    started: Instant,
    why: Option<String>,
}

impl Registry {
    /// With what was in force before, if there is a state folder; empty otherwise.
    ///
    /// # Errors
    /// When the folder cannot be used, or a policy in it is refused.
    pub fn open(runtime: Arc<Runtime>, state_dir: Option<PathBuf>) -> Result<Arc<Registry>, RegistryError> {
        Registry::open_with(runtime, RegistryOptions { state_dir, record: None })
    }

    /// The same with everything that can be chosen.
    ///
    /// # Errors
    /// As [`Registry::open`].
    pub fn open_with(
        runtime: Arc<Runtime>,
        options: RegistryOptions,
    ) -> Result<Arc<Registry>, RegistryError> {
        let state_dir = options.state_dir;
        let state = state_dir.clone().map(StateFolder::open).transpose()?;
        let stored = match &state {
            Some(folder) => folder.read()?,
            None => Stored::default(),
        };
        let (news, heard) = channel();
        let (generation, restored) = (stored.generation, !stored.entries.is_empty());
        let mut entries = BTreeMap::new();
        for (name, entry) in stored.entries {
            let prepare = |upload| Policy::prepare(&runtime, upload).map(Arc::new);
            let restored = entry.restore(&name, prepare, &news).map_err(|refusal| {
                let record = state.as_ref().map(StateFolder::record).unwrap_or_default();
                RegistryError::Refused { name: name.clone(), refusal, record }
            })?;
            entries.insert(name, Arc::new(restored));
        }
        let mut failed = None;
        let registry = Arc::new_cyclic(|registry| {
            let recorder = options.record.and_then(|settings| {
                let started = recorder(state_dir.as_deref(), settings, registry.clone());
                started.map_err(|error| failed = Some(error)).ok()
            });
            let observers = Observers { shadows: shadow::start(runtime.clone()), recorder };
            Registry {
                runtime,
                current: ArcSwap::from_pointee(Patch::new(generation, entries, observers)),
                queues: Queues::default(),
                book: Mutex::new(stored.generations.into()),
                state,
                news,
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        note(
            &mut registry.book(),
            GenerationInfo {
                generation,
                unix_ms: unix_ms(),
                change: if restored { Change::Restore } else { Change::Start },
                name: None,
                from: None,
                to: None,
                why: None,
            },
        );
        keeper::start(Arc::downgrade(&registry), heard).map_err(RegistryError::Keeper)?;
        Ok(registry)
    }

    /// What is in force. Take it once for a turn.
    pub fn current(&self) -> Arc<Patch> {
        self.current.load_full()
    }

    /// Calls that were to be written down and were not, since there were too many.
    pub fn records_dropped(&self) -> u64 {
        self.current().observers.recorder.as_ref().map_or(0, |recorder| recorder.dropped())
    }

    /// Whether policies' deadlines are being kept.
    pub fn is_healthy(&self) -> bool {
        self.runtime.is_healthy()
    }

    /// Put a policy in force at once, in the place of one of the same name. The same bytes, manifest and configuration
    /// again change nothing (but cases that it has not passed before are run).
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    pub fn put(&self, upload: Upload) -> Result<Applied, Refusal> {
        self.push(upload, Rollout::default())
    }

    /// The same by way of a rollout: what is in force stays so until the new version is promoted.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    pub fn push(&self, upload: Upload, rollout: Rollout) -> Result<Applied, Refusal> {
        let started = Instant::now();
        upload.manifest.validate()?;
        let name = upload.manifest.name.clone();
        let _turn = self.queues.enter(&name);
        if let Some(held) = self.current().get(&name).filter(|held| same(held, &upload)) {
            prove(held, &upload.cases)?;
            return Ok(self.unchanged(held, started));
        }
        self.bring(Change::Put, upload, rollout, started)
    }

    /// Give a policy another configuration. Its cases, recorded with the old one, are not run.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    pub fn put_config(&self, name: &str, config: Value, rollout: Rollout) -> Result<Applied, Refusal> {
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
        self.bring(Change::Config, upload, rollout, started)
    }

    /// Put several policies in force and take others out, as one generation, or do none of it. A name to be taken out
    /// that is not in force is passed over.
    ///
    /// # Errors
    /// The first that is refused, by name; nothing has changed then.
    pub fn set(&self, uploads: Vec<Upload>, remove: &[String]) -> Result<Applied, (String, Refusal)> {
        let started = Instant::now();
        let named = uploads.iter().map(|upload| &upload.manifest.name);
        let names: BTreeSet<String> = named.chain(remove).cloned().collect();
        let _turns: Vec<_> = names.iter().map(|name| self.queues.enter(name)).collect();
        let mut ready = Vec::new();
        for upload in uploads {
            let name = upload.manifest.name.clone();
            if self.current().get(&name).is_some_and(|held| same(held, &upload)) {
                continue;
            }
            let policy = self.prepared(upload).map_err(|refusal| (name.clone(), refusal))?;
            ready.push((name, self.deploy(policy)));
        }
        let mut book = self.book();
        let before = self.current();
        let out: Vec<&String> = remove.iter().filter(|name| before.get(name).is_some()).collect();
        if ready.is_empty() && out.is_empty() {
            let (generation, millis) = (before.generation(), millis_since(started));
            return Ok(Applied { generation, changed: false, version: None, stage: None, millis });
        }
        let held = |name: &str| before.entry(name).map_or_else(Entry::default, |entry| Entry::clone(entry));
        let gone = out.into_iter().map(|name| (name.clone(), held(name).delete()));
        let come = ready.into_iter().map(|(name, deployed)| (name.clone(), held(&name).put(deployed)));
        // A name that is in both stays in force.
        let after = before.with_all(gone.chain(come));
        let generation = after.generation();
        let info = GenerationInfo {
            generation,
            unix_ms: unix_ms(),
            change: Change::Set,
            name: None,
            from: None,
            to: None,
            why: None,
        };
        self.move_to(&mut book, after, info).map_err(|refusal| {
            let names: Vec<String> = names.iter().cloned().collect();
            (names.join(", "), refusal)
        })?;
        Ok(Applied { generation, changed: true, version: None, stage: None, millis: millis_since(started) })
    }

    /// Put a candidate in force for all turns.
    ///
    /// # Errors
    /// Where there is none; nothing has changed then.
    pub fn promote(&self, name: &str) -> Result<Applied, Refusal> {
        let ready = Ready { change: Change::Promote, name, started: Instant::now(), why: None };
        let _turn = self.queues.enter(name);
        self.apply(ready, |entry, _| entry.promote().ok_or_else(|| no_candidate(entry, name)))
    }

    /// Drop the candidate where there is one. Otherwise go back to the version before this one; again, to the one before
    /// that. What was gone back from is not kept.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    pub fn rollback(&self, name: &str) -> Result<Applied, Refusal> {
        let started = Instant::now();
        let _turn = self.queues.enter(name);
        let patch = self.current();
        let entry = patch.entry(name).ok_or_else(|| unknown(name))?;
        if entry.candidate.is_some() {
            return self.withdraw(name, started, None);
        }
        let Some(to) = entry.latest_earlier() else {
            return Err(Refusal::NothingToRollBackTo { name: name.to_owned() });
        };
        let to = self.deploy(to.counted_apart());
        self.apply(
            Ready { change: Change::Rollback, name, started, why: None },
            |entry, _| Ok(entry.back(to)),
        )
    }

    /// Take a policy out, and its candidate. It can be rolled back to.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    pub fn delete(&self, name: &str) -> Result<Applied, Refusal> {
        let ready = Ready { change: Change::Delete, name, started: Instant::now(), why: None };
        let _turn = self.queues.enter(name);
        if self.current().get(name).is_none() {
            return Err(unknown(name));
        }
        self.apply(ready, |entry, _| Ok(entry.delete()))
    }

    /// All policies in force, in the order in which a turn meets them.
    pub fn policies(&self) -> Vec<PolicyStatus> {
        self.current().in_force().filter_map(|entry| report::status(entry)).collect()
    }

    /// All versions of a policy that are held, the latest first; empty where there is no such policy.
    pub fn versions(&self, name: &str) -> Vec<VersionStatus> {
        self.current().entry(name).map(|entry| report::versions(entry)).unwrap_or_default()
    }

    /// What changed, the latest last.
    pub fn generations(&self) -> Vec<GenerationInfo> {
        self.book().iter().cloned().collect()
    }

    /// Prepares an upload and brings it in.
    fn bring(
        &self,
        change: Change,
        upload: Upload,
        rollout: Rollout,
        started: Instant,
    ) -> Result<Applied, Refusal> {
        let name = upload.manifest.name.clone();
        let at_once = rollout == Rollout::default();
        let patch = self.current();
        let active = patch.get(&name);
        if !at_once && active.is_none_or(|active| active.manifest().kind != upload.manifest.kind) {
            return Err(Refusal::NothingToCompareWith { name });
        }
        let deployed = self.deploy(self.prepared(upload)?);
        if at_once {
            let ready = Ready { change, name: &name, started, why: None };
            return self.apply(ready, |entry, _| Ok(entry.put(deployed)));
        }
        let change = if rollout.shadow.is_some() { Change::Shadow } else { Change::Canary };
        self.apply(Ready { change, name: &name, started, why: None }, |entry, generation| {
            Ok(entry.stage(Candidate::new(deployed, rollout, generation, unix_ms())))
        })
    }

    /// The policy of an upload: one that is held, where it is the same.
    fn prepared(&self, upload: Upload) -> Result<Policy, Refusal> {
        let patch = self.current();
        let mut held = patch.entry(&upload.manifest.name).into_iter().flat_map(|entry| entry.versions());
        match held.find(|held| same(held, &upload)) {
            Some(held) => {
                prove(held, &upload.cases)?;
                Ok(held.counted_apart())
            }
            None => Policy::prepare(&self.runtime, upload),
        }
    }

    fn deploy(&self, policy: Policy) -> Arc<Deployed> {
        Deployed::new(Arc::new(policy), self.news.clone())
    }

    fn withdraw(&self, name: &str, started: Instant, why: Option<String>) -> Result<Applied, Refusal> {
        let ready = Ready { change: Change::Withdraw, name, started, why };
        self.apply(ready, |entry, _| entry.withdraw().ok_or_else(|| no_candidate(entry, name)))
    }

    /// A version went wrong too often: a candidate is dropped, and an active one gives way to the last good one. Where there
    /// is none it stays, and its breaker keeps calls from it until it is well again.
    fn broke(&self, tripped: &Tripped) {
        let Tripped { version, trip } = tripped;
        let started = Instant::now();
        let _turn = self.queues.enter(&version.name);
        tracing::error!(policy = %version, digest = version.digest, %trip, "a policy is out of the way");
        let patch = self.current();
        let good = patch.entry(&version.name).and_then(|entry| entry.last_good().cloned());
        let good = good.map(|good| self.deploy(good.counted_apart()));
        let ready = Ready { change: Change::Trip, name: &version.name, started, why: Some(trip.to_string()) };
        let changed =
            self.apply(ready, |entry, _| entry.without(version, good).ok_or_else(|| unknown(&version.name)));
        if let Err(refusal) = changed
            && !matches!(refusal, Refusal::Unknown { .. })
        {
            tracing::error!(policy = %version, %refusal, "the last good version could not be put in force");
        }
    }

    /// Moves on candidates whose time as a shadow is over.
    fn advance(&self, now_unix_ms: u64) {
        let patch = self.current();
        let due = |entry: &Arc<Entry>| entry.candidate.as_ref().is_some_and(|c| c.due(now_unix_ms).is_some());
        for (name, _) in patch.entries().filter(|(_, entry)| due(entry)) {
            let _turn = self.queues.enter(name);
            let ready = Ready { change: Change::Canary, name, started: Instant::now(), why: None };
            let moved = self.apply(ready, |entry, _| {
                let next = entry.candidate.as_ref().and_then(|candidate| candidate.due(now_unix_ms));
                next.map(|next| entry.stage(next)).ok_or_else(|| no_candidate(entry, name))
            });
            if let Err(refusal) = moved {
                tracing::warn!(policy = name, %refusal, "a candidate could not become a canary");
            }
        }
    }

    /// Changes one entry: written down first, then in force.
    fn apply(
        &self,
        ready: Ready<'_>,
        edit: impl FnOnce(&Entry, u64 /* generation */) -> Result<Entry, Refusal>,
    ) -> Result<Applied, Refusal> {
        let Ready { change, name, started, why } = ready;
        let mut book = self.book();
        let before = self.current();
        let generation = before.generation() + 1;
        let nothing = Entry::default();
        let entry = before.entry(name).map_or(&nothing, |entry| entry);
        let after = edit(entry, generation)?;
        let from = entry.active.as_ref().map(|active| active.policy().version().clone());
        let (to, stage) = match (change, &after.candidate, &after.active) {
            (Change::Shadow | Change::Canary, Some(candidate), _) => {
                (Some(candidate.deployed.policy()), Some(candidate.stage))
            }
            (_, _, active) => (active.as_ref().map(|a| a.policy()), active.as_ref().map(|_| Stage::Active)),
        };
        let version = to.map(|policy| policy.version().clone());
        let info = GenerationInfo {
            generation,
            unix_ms: unix_ms(),
            change,
            name: Some(name.to_owned()),
            from,
            to: version.clone(),
            why,
        };
        self.move_to(&mut book, before.with(name, after), info)?;
        Ok(Applied { generation, changed: true, version, stage, millis: millis_since(started) })
    }

    /// Writes a patch down, then puts it in force.
    fn move_to(
        &self,
        book: &mut VecDeque<GenerationInfo>,
        patch: Patch,
        info: GenerationInfo,
    ) -> Result<(), Refusal> {
        let mut changes = book.clone();
        note(&mut changes, info);
        if let Some(state) = &self.state {
            state.write(&patch, &changes).map_err(|error| Refusal::State { message: error.to_string() })?;
        }
        self.current.store(Arc::new(patch));
        if let Some(GenerationInfo { generation, change, name, .. }) = changes.back() {
            tracing::info!(generation, ?change, policy = name, "policies changed");
        }
        *book = changes;
        Ok(())
    }

    fn unchanged(&self, held: &Policy, started: Instant) -> Applied {
        Applied {
            generation: self.current().generation(),
            changed: false,
            version: Some(held.version().clone()),
            stage: Some(Stage::Active),
            millis: millis_since(started),
        }
    }

    fn book(&self) -> MutexGuard<'_, VecDeque<GenerationInfo>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn recorder(
    state_dir: Option<&Path>,
    settings: RecordSettings,
    registry: Weak<Registry>,
) -> Result<Arc<Recorder>, RegistryError> {
    let no_state = || std::io::Error::other("calls are recorded in the state folder, and there is none");
    let dir = state_dir.map(|dir| dir.join("replay")).ok_or_else(no_state).map_err(RegistryError::Record)?;
    Recorder::start(&dir, settings, registry).map(Arc::new).map_err(RegistryError::Record)
}

fn note(book: &mut VecDeque<GenerationInfo>, info: GenerationInfo) {
    if book.len() == KEPT_GENERATIONS {
        book.pop_front();
    }
    book.push_back(info);
}

/// Runs cases that a policy has not passed yet, counted with none of its calls.
fn prove(held: &Policy, cases: &[Case]) -> Result<(), Refusal> {
    if held.has_passed(cases) {
        return Ok(());
    }
    held.counted_apart().patient().run_cases(cases)
}

fn same(held: &Policy, upload: &Upload) -> bool {
    held.component() == &upload.component
        && *held.manifest() == upload.manifest
        && *held.config() == upload.config
}

fn unknown(name: &str) -> Refusal {
    Refusal::Unknown { name: name.to_owned() }
}

fn no_candidate(entry: &Entry, name: &str) -> Refusal {
    match entry.active {
        Some(_) => Refusal::NoCandidate { name: name.to_owned() },
        None => unknown(name),
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn millis_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}
