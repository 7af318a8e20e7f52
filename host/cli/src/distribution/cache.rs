//! What was fetched, by digest; and what each reference stands for since it was taken. Both in the state folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Digest;
use crate::policies::signature_path;

/// A component, and its signature if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Component {
    pub(super) bytes: Vec<u8>,
    pub(super) signature: Option<String>,
}

/// Components by digest, in a folder.
pub(super) struct Cache {
    folder: PathBuf,
}

/// What references stand for: `policies.lock.json`.
pub(super) struct Lock {
    path: PathBuf,
    pub(super) pins: BTreeMap<String, Digest>,
}

impl Cache {
    pub(super) fn under(state: &Path) -> Cache {
        Cache { folder: state.join("sources") }
    }

    /// None where there is none, or another than its name says.
    pub(super) fn get(&self, digest: &Digest) -> Option<Component> {
        let path = self.path(digest);
        let bytes = fs::read(&path).ok()?;
        if Digest::of(&bytes) != *digest {
            tracing::warn!(file = %path.display(), "a kept component is damaged and is fetched again");
            return None;
        }
        Some(Component { bytes, signature: fs::read_to_string(signature_path(&path)).ok() })
    }

    pub(super) fn put(&self, digest: &Digest, component: &Component) -> io::Result<()> {
        let path = self.path(digest);
        match &component.signature {
            Some(signature) => write(&signature_path(&path), signature.as_bytes())?,
            None => remove(&signature_path(&path))?,
        }
        write(&path, &component.bytes)
    }

    /// Drops all but these.
    pub(super) fn keep(&self, digests: &BTreeSet<Digest>) -> io::Result<()> {
        let kept: BTreeSet<PathBuf> = digests.iter().map(|digest| self.path(digest)).collect();
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|kind| kind == "wasm") && !kept.contains(&path) {
                remove(&signature_path(&path))?;
                remove(&path)?;
            }
        }
        Ok(())
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(format!("{}.wasm", digest.hex()))
    }
}

impl Lock {
    /// Nothing is pinned where there is no file. One that cannot be read is an error: without it, a reference might come
    /// to stand for something else without a word.
    pub(super) fn read(state: &Path) -> Result<Lock, String> {
        let path = state.join("policies.lock.json");
        let pins = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error.to_string()),
        };
        match pins {
            Ok(pins) => Ok(Lock { path, pins }),
            Err(error) => Err(format!(
                "{}: {error}; it says what each reference stands for: put it right, or remove it to have all of them \
                 fetched anew",
                path.display()
            )),
        }
    }

    pub(super) fn write(&self) -> io::Result<()> {
        write(&self.path, &serde_json::to_vec_pretty(&self.pins)?)
    }
}

/// Whole or not at all, and there to stay.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
