//! `jackfield serve`: prebuilt policies, nothing watched.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use jackfield_policy::{Registry, Upload};
use sha2::{Digest, Sha256};

use crate::args::ServeArgs;
use crate::config::Settings;
use crate::dirs::Dirs;
use crate::policies::read_prebuilt;
use crate::{Failure, host};

pub(crate) fn run(args: &ServeArgs, dirs: &Dirs) -> Result<(), Failure> {
    let settings = Settings::read(args, dirs).map_err(Failure::usage)?;
    let uploads = match &settings.policies {
        Some(dir) => read_prebuilt(dir).map_err(Failure::usage)?,
        None => Vec::new(),
    };
    let host = host::assemble(&settings, dirs, true)?;
    activate(&host.registry, uploads, &settings.state)?;
    host::serve(host, &settings, |address| tracing::info!(%address, "serving"))
}

/// Puts the folder's policies in force, but for those that are the same as at the last start: what was pushed, rolled
/// back or removed since then was acknowledged, and stays.
fn activate(registry: &Registry, uploads: Vec<Upload>, state: &Path) -> Result<(), Failure> {
    let mut seeds = Seeds::read(state);
    for upload in uploads {
        let name = upload.manifest.name.clone();
        let seed = seed_of(&upload).map_err(Failure::failed)?;
        if seeds.taken.get(&name) == Some(&seed) {
            tracing::info!(policy = name, "as at the last start; what was acknowledged since stays");
            continue;
        }
        let applied =
            registry.put(upload).map_err(|refusal| Failure::failed(format!("policy {name}: {refusal}")))?;
        tracing::info!(
            policy = name,
            generation = applied.generation,
            changed = applied.changed,
            "policy in force"
        );
        seeds.taken.insert(name, seed);
        seeds.write().map_err(|error| Failure::failed(format!("{}: {error}", seeds.path.display())))?;
    }
    Ok(())
}

/// Which policies of the folder were taken at earlier starts.
struct Seeds {
    path: PathBuf,
    taken: BTreeMap<String, String>,
}

impl Seeds {
    /// A file that is missing or unreadable counts as empty: then the folder's policies are put again.
    fn read(state: &Path) -> Seeds {
        let path = state.join("seeds.json");
        let taken = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Seeds { path, taken: taken.unwrap_or_default() }
    }

    fn write(&self) -> std::io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec_pretty(&self.taken)?)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
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
