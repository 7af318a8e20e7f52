//! What a path on the command line stands for: a policy as source, built in a folder, or as a component.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackfield_builder::Builder;
use jackfield_policy::Upload;

use super::folder::{PolicyFolder, is_policy_folder, policy_folders};
use super::prebuilt::COMPONENT;
use crate::Failure;

/// Where the signature of a component lies.
pub(crate) fn signature_path(component: &Path) -> PathBuf {
    let mut path = component.as_os_str().to_owned();
    path.push(".minisig");
    PathBuf::from(path)
}

/// A policy in one of its forms on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Where its manifest, configuration and cases are.
    folder: Option<PolicyFolder>,
    /// Its component; none where it is built from source.
    file: Option<PathBuf>,
}

impl Subject {
    /// A component, or a folder.
    pub(crate) fn at(path: &Path) -> Result<Subject, Failure> {
        if path.is_file() {
            let beside = path.parent().filter(|folder| is_policy_folder(folder));
            return Ok(Subject { folder: beside.map(PolicyFolder::new), file: Some(path.to_owned()) });
        }
        if is_policy_folder(path) {
            return Ok(Subject::in_folder(path));
        }
        Err(Failure::usage(match path.is_dir() {
            true => format!("{} has no policy.toml", path.display()),
            false => format!("{} is not there", path.display()),
        }))
    }

    /// What each path stands for; of a folder that is no policy folder, those in it.
    pub(crate) fn all(paths: &[PathBuf]) -> Result<Vec<Subject>, Failure> {
        let mut found = Vec::new();
        for path in paths {
            if path.is_file() || is_policy_folder(path) {
                found.push(Subject::at(path)?);
                continue;
            }
            let inside = policy_folders(path);
            if inside.is_empty() {
                return Err(Failure::usage(format!(
                    "{} has no policy.toml, nor has a folder in it",
                    path.display()
                )));
            }
            found.extend(inside.iter().map(|folder| Subject::in_folder(folder)));
        }
        Ok(found)
    }

    /// What is built lies beside its data files; where there is source, that is the truth.
    fn in_folder(path: &Path) -> Subject {
        let folder = PolicyFolder::new(path);
        let built = path.join(COMPONENT);
        let file = (built.is_file() && !folder.has_source()).then_some(built);
        Subject { folder: Some(folder), file }
    }

    /// For people.
    pub(crate) fn name(&self) -> String {
        match (&self.folder, &self.file) {
            (Some(folder), _) => folder.name(),
            (None, Some(file)) => file.display().to_string(),
            (None, None) => String::new(),
        }
    }

    /// Where its manifest, configuration and cases are.
    pub(crate) fn folder(&self) -> Option<&PolicyFolder> {
        self.folder.as_ref()
    }

    /// The signature beside its component; none where it is built from source.
    pub(crate) fn signature(&self) -> Option<PathBuf> {
        let beside = signature_path(self.file.as_deref()?);
        beside.is_file().then_some(beside)
    }

    /// Its component, built if it has to be.
    pub(crate) fn component(&self, builder: &Builder) -> Result<Arc<[u8]>, String> {
        match (&self.file, &self.folder) {
            (Some(file), _) => match fs::read(file) {
                Ok(bytes) => Ok(bytes.into()),
                Err(error) => Err(format!("{}: {error}", file.display())),
            },
            (None, Some(folder)) => folder.compile(builder).map_err(|error| error.to_string()),
            (None, None) => Err("there is neither a component nor a folder".into()),
        }
    }

    /// Its component with its data files.
    pub(crate) fn upload(&self, builder: &Builder) -> Result<Upload, String> {
        let Some(folder) = &self.folder else {
            return Err("there is no policy.toml beside it; name its folder, or put one there".into());
        };
        folder.with_component(self.component(builder)?).map_err(|error| error.to_string())
    }
}
