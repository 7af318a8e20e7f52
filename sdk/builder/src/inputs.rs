//! Whether a component was made of just these files: for compilers that take long and do not ask themselves.

use std::path::{Path, PathBuf};

use crate::error::BuildError;
use crate::sdk::TARGET;

/// What is not compiled: data that goes beside the component, and what compilers leave.
const NOT_COMPILED: [&str; 6] = ["policy.toml", "rules.toml", "cases", TARGET, "__pycache__", "node_modules"];

/// A digest of all files that a component is made of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Inputs(String);

impl Inputs {
    /// All files in these folders but data and what begins with a dot, and what else the component depends on.
    pub(crate) fn of(folders: &[&Path], others: &[&str]) -> Result<Inputs, BuildError> {
        let mut digest = blake3::Hasher::new();
        for other in others {
            digest.update(other.as_bytes()).update(b"\0");
        }
        for folder in folders {
            for file in files(folder)? {
                let name = file.strip_prefix(folder).unwrap_or(&file).to_string_lossy().into_owned();
                let bytes = std::fs::read(&file).map_err(|source| BuildError::io(&file, source))?;
                digest.update(name.as_bytes()).update(b"\0").update(blake3::hash(&bytes).as_bytes());
            }
        }
        Ok(Inputs(digest.finalize().to_string()))
    }

    /// Whether the component was made of these.
    pub(crate) fn made(&self, component: &Path) -> bool {
        component.is_file() && std::fs::read_to_string(record(component)).is_ok_and(|held| held == self.0)
    }

    /// Notes that the component, which is there, was made of these.
    pub(crate) fn remember(&self, component: &Path) -> Result<(), BuildError> {
        let record = record(component);
        std::fs::write(&record, &self.0).map_err(|source| BuildError::io(&record, source))
    }
}

fn record(component: &Path) -> PathBuf {
    component.with_extension("made-of")
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let io = |source| BuildError::io(&folder, source);
        for entry in std::fs::read_dir(&folder).map_err(io)? {
            let path = entry.map_err(io)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || NOT_COMPILED.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_known_until_something_that_is_compiled_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        put("app.py", "a");
        put("target/policy.wasm", "component");
        let component = folder.path().join("target/policy.wasm");
        let inputs = || Inputs::of(&[folder.path()], &["1"]).expect("read");
        assert!(!inputs().made(&component));
        inputs().remember(&component).expect("written");
        put("rules.toml", "x = 1");
        put("cases/a.json", "[]");
        assert!(inputs().made(&component));
        assert!(!Inputs::of(&[folder.path()], &["2"]).expect("read").made(&component));
        put("lib/more.py", "b");
        assert!(!inputs().made(&component));
    }
}
