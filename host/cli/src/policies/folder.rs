//! A policy folder in source form, and the upload that it becomes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackfield_builder::{BuildError, FolderError, Toolchain, read_policy_dir};
use jackfield_policy::{Case, Manifest, ManifestError, Upload};

/// A folder with a `policy.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PolicyFolder {
    path: PathBuf,
}

/// A folder that cannot be made into an upload.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("{}: {cause}", path.display())]
    Manifest { path: PathBuf, cause: ManifestError },
    #[error("{}: {cause}", path.display())]
    Case { path: PathBuf, cause: serde_json::Error },
}

/// Whether `path` is one.
pub(crate) fn is_policy_folder(path: &Path) -> bool {
    path.join("policy.toml").is_file()
}

/// Those directly inside `path`, by name; none when it cannot be read.
pub(crate) fn policy_folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_policy_folder(path)).collect();
    folders.sort();
    folders
}

impl PolicyFolder {
    pub(crate) fn new(path: &Path) -> PolicyFolder {
        PolicyFolder { path: path.to_owned() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder's name, for people.
    pub(crate) fn name(&self) -> String {
        let full = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        full.file_name()
            .map_or_else(|| self.path.display().to_string(), |name| name.to_string_lossy().into_owned())
    }

    /// Compiles the folder and reads what lies beside the source.
    pub(crate) fn build(&self, toolchain: &Toolchain) -> Result<Upload, SourceError> {
        let built = toolchain.build(&self.path)?;
        self.with_component(built.component.into())
    }

    /// The upload of an already compiled component with the folder's data files as they are now.
    pub(crate) fn with_component(&self, component: Arc<[u8]>) -> Result<Upload, SourceError> {
        let files = read_policy_dir(&self.path)?;
        let manifest = Manifest::from_toml(&files.manifest_toml)
            .map_err(|cause| SourceError::Manifest { path: self.path.join("policy.toml"), cause })?;
        let mut cases = Vec::new();
        for file in files.cases {
            cases
                .extend(read_cases(file.json).map_err(|cause| SourceError::Case { path: file.path, cause })?);
        }
        Ok(Upload { manifest, component, config: files.config, cases })
    }
}

/// A file holds one case or a list of them.
fn read_cases(json: serde_json::Value) -> Result<Vec<Case>, serde_json::Error> {
    match json {
        list @ serde_json::Value::Array(_) => serde_json::from_value(list),
        one => Ok(vec![serde_json::from_value(one)?]),
    }
}
