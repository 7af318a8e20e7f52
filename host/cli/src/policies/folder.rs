//! A policy folder in source form, and the upload that it becomes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackfield_builder::{BuildError, Builder, CaseFile, FolderError, Language, PolicyDir, read_policy_dir};
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

    /// Whether it has something to build from.
    pub(crate) fn has_source(&self) -> bool {
        Language::of(&self.path).is_ok()
    }

    /// Compiles the folder and reads what lies beside the source.
    pub(crate) fn build(&self, builder: &Builder) -> Result<Upload, SourceError> {
        self.with_component(self.compile(builder)?)
    }

    /// Compiles the folder. Says on standard error what is looked for or installed to compile it, and what a compiler warns of.
    pub(crate) fn compile(&self, builder: &Builder) -> Result<Arc<[u8]>, SourceError> {
        let language = Language::of(&self.path)?;
        let mut say = |line: &str| eprintln!("toolchain: {line}");
        builder.prepare(language, &mut say).map_err(BuildError::from)?;
        let mut said = Vec::new();
        let built = builder.build_saying(&self.path, &mut |line| said.push(line.to_owned()))?;
        // Cargo tells of its progress as well; the others speak only when something is amiss.
        if language != Language::Rust {
            said.iter().for_each(|line| eprintln!("{line}"));
        }
        Ok(built.component.into())
    }

    /// Its data files, of which only the syntax was checked.
    pub(crate) fn data(&self) -> Result<PolicyDir, FolderError> {
        read_policy_dir(&self.path)
    }

    /// The upload of an already compiled component with the folder's data files as they are now.
    pub(crate) fn with_component(&self, component: Arc<[u8]>) -> Result<Upload, SourceError> {
        let data = self.data()?;
        let manifest = self.manifest(&data)?;
        let cases = data.cases.into_iter().map(read_cases).collect::<Result<Vec<_>, _>>()?;
        Ok(Upload { manifest, component, config: data.config, cases: cases.into_iter().flatten().collect() })
    }

    /// The manifest among its data files.
    pub(crate) fn manifest(&self, data: &PolicyDir) -> Result<Manifest, SourceError> {
        Manifest::from_toml(&data.manifest_toml)
            .map_err(|cause| SourceError::Manifest { path: self.path.join("policy.toml"), cause })
    }
}

/// A file holds one case or a list of them.
pub(crate) fn read_cases(file: CaseFile) -> Result<Vec<Case>, SourceError> {
    let read = match file.json {
        list @ serde_json::Value::Array(_) => serde_json::from_value(list),
        one => serde_json::from_value(one).map(|case| vec![case]),
    };
    read.map_err(|cause| SourceError::Case { path: file.path, cause })
}
