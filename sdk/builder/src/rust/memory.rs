use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::ToolchainError;

/// What an earlier search learned, so that a target that cannot be fetched is not asked for before every build.
///
/// Valid for one compiler only; anything else in the file counts as nothing.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// `rustc -vV` of the compiler for which rustup could not add the target.
    pub(crate) target_not_available_for: String,
}

impl Memory {
    pub(crate) fn read(cache: &Path) -> Option<Memory> {
        serde_json::from_slice(&std::fs::read(file(cache)).ok()?).ok()
    }

    /// Whole or not at all: written beside the file, then renamed over it.
    pub(crate) fn write(&self, cache: &Path) -> Result<(), ToolchainError> {
        let path = file(cache);
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(cache)?;
            let mut temporary = tempfile::NamedTempFile::new_in(cache)?;
            temporary.write_all(&serde_json::to_vec(self)?)?;
            temporary.persist(&path)?;
            Ok(())
        };
        write().map_err(|source| ToolchainError::Cache { path: path.clone(), source })
    }
}

fn file(cache: &Path) -> PathBuf {
    cache.join("guest-toolchain.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back_and_rubbish_counts_as_nothing() {
        let cache = tempfile::tempdir().expect("a folder");
        assert_eq!(Memory::read(cache.path()), None);
        let memory = Memory { target_not_available_for: "rustc 1.95.0".into() };
        memory.write(&cache.path().join("deeper")).expect("written");
        assert_eq!(Memory::read(&cache.path().join("deeper")), Some(memory));
        std::fs::write(file(cache.path()), "{\"target_not").expect("written");
        assert_eq!(Memory::read(cache.path()), None);
    }
}
