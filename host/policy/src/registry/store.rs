//! What was acknowledged, on disk: components by their digest, and one record that says which are in force.
//!
//! ```text
//! policies/patch.json              the record: generation, what changed lately, and for each name its versions
//! policies/components/<digest>.wasm
//! ```
//!
//! Components are written first, under a temporary name; then the record replaces the one before by a rename. Whatever the
//! instant at which the process dies, the record that is found is whole, and so is everything it names.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, mpsc::Sender},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Candidate, Deployed, Entry, GenerationInfo, Patch, Rollout, Stage, candidate::Comparison,
    deployed::Tripped,
};
use crate::{Manifest, Policy, PolicyVersion, Refusal, Upload, policy::digest};

/// Generations that are written down.
const WRITTEN_GENERATIONS: usize = 64;

/// Why the state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The system says no.
    #[error("{}: {error}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What it says.
        error: io::Error,
    },
    /// The record is not one that this program wrote.
    #[error("{}: not a record of policies: {message}", path.display())]
    Record {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A component is not what the record says.
    #[error("{}: its digest is not its name: it was changed or damaged", path.display())]
    Damaged {
        /// Where.
        path: PathBuf,
    },
}

/// The folder.
pub(super) struct StateFolder {
    policies: PathBuf,
    components: PathBuf,
}

/// What was acknowledged.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) generation: u64,
    pub(super) generations: Vec<GenerationInfo>,
    pub(super) entries: BTreeMap<String, StoredEntry>,
}

/// What was acknowledged under one name, with its components.
pub(super) struct StoredEntry {
    active: Option<Upload>,
    candidate: Option<(Upload, OnItsWay)>,
    earlier: Vec<Upload>,
    quarantined: Vec<PolicyVersion>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    generation: u64,
    generations: Vec<GenerationInfo>,
    policies: BTreeMap<String, Named>,
}

#[derive(Serialize, Deserialize)]
struct Named {
    active: Option<Version>,
    candidate: Option<CandidateRecord>,
    earlier: Vec<Version>,
    quarantined: Vec<PolicyVersion>,
}

#[derive(Serialize, Deserialize)]
struct Version {
    digest: String,
    manifest: Manifest,
    config: Value,
}

#[derive(Serialize, Deserialize)]
struct CandidateRecord {
    #[serde(flatten)]
    version: Version,
    #[serde(flatten)]
    on_its_way: OnItsWay,
}

/// What is kept of a candidate beside its version. What was compared is not: it begins anew.
#[derive(Serialize, Deserialize)]
struct OnItsWay {
    stage: Stage,
    rollout: Rollout,
    since_unix_ms: u64,
    salt: u64,
}

impl StoredEntry {
    /// The same, ready to be called. What is not taken any more is let go with a warning, unless it is the active version.
    ///
    /// # Errors
    /// The active version is refused.
    pub(super) fn restore(
        self,
        name: &str,
        prepare: impl Fn(Upload) -> Result<Arc<Policy>, Refusal>,
        news: &Sender<Tripped>,
    ) -> Result<Entry, Refusal> {
        let deploy = |upload| prepare(upload).map(|policy| Deployed::new(policy, news.clone()));
        let spare = |refusal: Refusal| {
            tracing::warn!(policy = name, %refusal, "a version that was held is not taken any more");
        };
        let candidate = |(upload, kept): (Upload, OnItsWay)| {
            let OnItsWay { stage, rollout, since_unix_ms, salt } = kept;
            let deployed = deploy(upload).map_err(spare).ok()?;
            let comparison = Arc::<Comparison>::default();
            Some(Arc::new(Candidate { deployed, stage, rollout, since_unix_ms, salt, comparison }))
        };
        Ok(Entry {
            active: self.active.map(deploy).transpose()?,
            candidate: self.candidate.and_then(candidate),
            earlier: self
                .earlier
                .into_iter()
                .filter_map(|upload| deploy(upload).map_err(spare).ok())
                .collect(),
            quarantined: self.quarantined,
        })
    }
}

impl Named {
    fn of(entry: &Entry) -> Named {
        Named {
            active: entry.active.as_ref().map(|active| Version::of(active.policy())),
            candidate: entry.candidate.as_ref().map(|candidate| CandidateRecord {
                version: Version::of(candidate.deployed.policy()),
                on_its_way: OnItsWay {
                    stage: candidate.stage,
                    rollout: candidate.rollout,
                    since_unix_ms: candidate.since_unix_ms,
                    salt: candidate.salt,
                },
            }),
            earlier: entry.earlier.iter().map(|earlier| Version::of(earlier.policy())).collect(),
            quarantined: entry.quarantined.clone(),
        }
    }
}

impl Version {
    fn of(policy: &Policy) -> Version {
        Version {
            digest: policy.version().digest.clone(),
            manifest: policy.manifest().clone(),
            config: policy.config().clone(),
        }
    }
}

impl StateFolder {
    pub(super) fn open(state_dir: PathBuf) -> Result<StateFolder, StateError> {
        let policies = state_dir.join("policies");
        let components = policies.join("components");
        fs::create_dir_all(&components).map_err(at(&components))?;
        Ok(StateFolder { policies, components })
    }

    /// The file that says what is in force.
    pub(super) fn record(&self) -> PathBuf {
        self.policies.join("patch.json")
    }

    fn component(&self, digest: &str) -> PathBuf {
        self.components.join(format!("{digest}.wasm"))
    }

    pub(super) fn read(&self) -> Result<Stored, StateError> {
        let path = self.record();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stored::default()),
            Err(error) => return Err(at(&path)(error)),
        };
        let record: Record = serde_json::from_slice(&text).map_err(|error| {
            let message = error.to_string();
            let path = path.clone();
            StateError::Record { path, message }
        })?;
        let mut entries = BTreeMap::new();
        for (name, named) in record.policies {
            entries.insert(name, self.entry(named)?);
        }
        Ok(Stored { generation: record.generation, generations: record.generations, entries })
    }

    fn entry(&self, named: Named) -> Result<StoredEntry, StateError> {
        let candidate = |kept: CandidateRecord| Ok((self.upload(kept.version)?, kept.on_its_way));
        Ok(StoredEntry {
            active: named.active.map(|version| self.upload(version)).transpose()?,
            candidate: named.candidate.map(candidate).transpose()?,
            earlier: named
                .earlier
                .into_iter()
                .map(|version| self.upload(version))
                .collect::<Result<_, _>>()?,
            quarantined: named.quarantined,
        })
    }

    fn upload(&self, version: Version) -> Result<Upload, StateError> {
        let is_digest = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if !version.digest.bytes().all(is_digest) {
            let message = format!("{:?} is not a digest", version.digest);
            let path = self.record();
            return Err(StateError::Record { path, message });
        }
        let path = self.component(&version.digest);
        let component = fs::read(&path).map_err(at(&path))?;
        if digest(&component) != version.digest {
            return Err(StateError::Damaged { path });
        }
        Ok(Upload {
            manifest: version.manifest,
            component: component.into(),
            config: version.config,
            cases: Vec::new(),
        })
    }

    pub(super) fn write(
        &self,
        patch: &Patch,
        generations: &VecDeque<GenerationInfo>,
    ) -> Result<(), StateError> {
        for policy in patch.entries().flat_map(|(_, entry)| entry.versions()) {
            let path = self.component(&policy.version().digest);
            if !path.exists() {
                replace(&path, policy.component())?;
            }
        }
        let skipped = generations.len().saturating_sub(WRITTEN_GENERATIONS);
        let record = Record {
            generation: patch.generation(),
            generations: generations.iter().skip(skipped).cloned().collect(),
            policies: patch.entries().map(|(name, entry)| (name.clone(), Named::of(entry))).collect(),
        };
        let path = self.record();
        let text = serde_json::to_vec_pretty(&record).map_err(|error| at(&path)(io::Error::other(error)))?;
        replace(&path, &text)?;
        self.sweep(patch);
        Ok(())
    }

    /// Remove what the patch does not name. What cannot be removed now is tried again with the next change.
    fn sweep(&self, patch: &Patch) {
        let versions = patch.entries().flat_map(|(_, entry)| entry.versions());
        let named: HashSet<PathBuf> =
            versions.map(|policy| self.component(&policy.version().digest)).collect();
        let Ok(files) = fs::read_dir(&self.components) else {
            return;
        };
        for file in files.flatten().map(|file| file.path()) {
            if !named.contains(&file)
                && let Err(error) = fs::remove_file(&file)
            {
                tracing::warn!(file = %file.display(), %error, "an old component could not be removed");
            }
        }
    }
}

/// Write a file whole: beside it, flushed to the disk, renamed into its place, and the rename flushed as well.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let beside = path.with_extension("new");
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(at(&beside))?;
    fs::rename(&beside, path).map_err(at(path))?;
    match path.parent() {
        Some(folder) => File::open(folder).and_then(|folder| folder.sync_all()).map_err(at(folder)),
        None => Ok(()),
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StateError {
    let path = path.to_owned();
    move |error| StateError::Io { path, error }
}
