//! The policies that the configuration lists, as one set: in force as one generation, or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackfield_policy::{Applied, Registry, Upload};
use sha2::{Digest, Sha256};

use crate::distribution::{Resolved, write};

/// What of the configuration was taken: at earlier starts, and since.
pub(super) struct ServedSet {
    registry: Arc<Registry>,
    path: PathBuf,
    /// A digest of what each listed policy was.
    taken: BTreeMap<String, String>,
}

impl ServedSet {
    /// A record that is missing or unreadable counts as empty: then everything that is listed is put again.
    pub(super) fn open(registry: Arc<Registry>, state: &Path) -> ServedSet {
        let path = state.join("seeds.json");
        let taken = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        ServedSet { registry, path, taken: taken.unwrap_or_default() }
    }

    /// Puts in force what is listed, but for what is the same as it was taken the last time: what was pushed, rolled back or
    /// removed since then was acknowledged, and stays. Takes out what was listed and is not any more; where there is no list,
    /// nothing.
    pub(super) fn apply(&mut self, resolved: &Resolved) -> Result<Applied, String> {
        let mut listed = BTreeMap::new();
        let mut changed = Vec::new();
        for upload in &resolved.uploads {
            let name = &upload.manifest.name;
            let seed = seed_of(upload).map_err(|error| error.to_string())?;
            if self.taken.get(name) == Some(&seed) {
                tracing::info!(policy = name, "as it was taken before; what was acknowledged since stays");
            } else {
                changed.push(upload.clone());
            }
            listed.insert(name.clone(), seed);
        }
        let is_gone = |name: &&String| resolved.is_list && !listed.contains_key(*name);
        let gone: Vec<String> = self.taken.keys().filter(is_gone).cloned().collect();
        let put: Vec<String> = changed.iter().map(|upload| upload.manifest.name.clone()).collect();
        let applied = self
            .registry
            .set(changed, &gone)
            .map_err(|(name, refusal)| resolved.problem(&name, refusal).to_string())?;
        if applied.changed {
            tracing::info!(generation = applied.generation, ?put, taken_out = ?gone, "listed policies in force");
        }
        self.taken.retain(|name, _| !gone.contains(name));
        self.taken.extend(listed);
        if let Err(error) = self.note().and_then(|()| resolved.pin()) {
            tracing::warn!(
                path = %self.path.display(),
                %error,
                "the listed policies are in force, and that cannot be noted: the next start takes them as new"
            );
        }
        Ok(applied)
    }

    fn note(&self) -> std::io::Result<()> {
        write(&self.path, &serde_json::to_vec_pretty(&self.taken)?)
    }
}

fn seed_of(upload: &Upload) -> Result<String, serde_json::Error> {
    let mut hasher = Sha256::new();
    for part in
        [&upload.component[..], &serde_json::to_vec(&upload.manifest)?, &serde_json::to_vec(&upload.config)?]
    {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
