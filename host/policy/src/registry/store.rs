//! What was acknowledged, on disk: components by their digest, and one record that says which are in force.
//!
//! ```text
//! policies/patch.json              the record: generation, manifests, configurations, digests
//! policies/components/<digest>.wasm
//! ```
//!
//! Components are written first, under a temporary name; then the record replaces the one before by a rename. Whatever the
//! instant at which the process dies, the record that is found is whole, and so is everything it names. Compiled code is not
//! kept: it is made again at the start, so that nothing on disk is ever run without being checked.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Patch;
use crate::{Manifest, Upload, policy::digest};

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

/// What was in force.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) generation: u64,
    pub(super) policies: Vec<Upload>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    generation: u64,
    policies: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    digest: String,
    manifest: Manifest,
    config: Value,
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
        let policies = record.policies.into_iter().map(|entry| self.upload(entry));
        Ok(Stored { generation: record.generation, policies: policies.collect::<Result<_, _>>()? })
    }

    fn upload(&self, entry: Entry) -> Result<Upload, StateError> {
        let is_digest = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if !entry.digest.bytes().all(is_digest) {
            let message = format!("{:?} is not a digest", entry.digest);
            let path = self.record();
            return Err(StateError::Record { path, message });
        }
        let path = self.component(&entry.digest);
        let component = fs::read(&path).map_err(at(&path))?;
        if digest(&component) != entry.digest {
            return Err(StateError::Damaged { path });
        }
        Ok(Upload {
            manifest: entry.manifest,
            component: component.into(),
            config: entry.config,
            cases: Vec::new(),
        })
    }

    pub(super) fn write(&self, patch: &Patch) -> Result<(), StateError> {
        let mut entries = Vec::new();
        for policy in patch.policies() {
            let digest = policy.version().digest.clone();
            let path = self.component(&digest);
            if !path.exists() {
                replace(&path, policy.component())?;
            }
            entries.push(Entry {
                digest,
                manifest: policy.manifest().clone(),
                config: policy.config().clone(),
            });
        }
        let record = Record { generation: patch.generation(), policies: entries };
        let path = self.record();
        let text = serde_json::to_vec_pretty(&record).map_err(|error| at(&path)(io::Error::other(error)))?;
        replace(&path, &text)?;
        self.sweep(&record);
        Ok(())
    }

    /// Remove what the record does not name. What cannot be removed now is tried again with the next change.
    fn sweep(&self, record: &Record) {
        let named: HashSet<PathBuf> =
            record.policies.iter().map(|entry| self.component(&entry.digest)).collect();
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
