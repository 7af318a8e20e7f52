//! Built policies on disk: what `policy build` writes and `serve --policies` reads.
//!
//! One folder each: the source folder's data files and `policy.wasm`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jackfield_policy::Upload;

use super::folder::{PolicyFolder, SourceError, policy_folders};

/// The component's name in a built folder.
pub(super) const COMPONENT: &str = "policy.wasm";

/// A folder of built policies that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrebuiltError {
    #[error("{}: {cause}", path.display())]
    Io { path: PathBuf, cause: io::Error },
    #[error("{} holds no policies; write some there with `jackfield policy build`", .0.display())]
    Empty(PathBuf),
    #[error("{} has no {COMPONENT}; build it with `jackfield policy build`", .0.display())]
    NotBuilt(PathBuf),
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl PrebuiltError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> PrebuiltError {
        let path = path.to_owned();
        |cause| PrebuiltError::Io { path, cause }
    }
}

/// Writes one built policy under `out`, whole or not at all.
pub(crate) fn write_prebuilt(
    source: &PolicyFolder,
    upload: &Upload,
    out: &Path,
) -> Result<PathBuf, PrebuiltError> {
    fs::create_dir_all(out).map_err(PrebuiltError::io(out))?;
    let work =
        tempfile::Builder::new().prefix(".building-").tempdir_in(out).map_err(PrebuiltError::io(out))?;
    for name in ["policy.toml", "rules.toml"] {
        copy_if_there(&source.path().join(name), &work.path().join(name))?;
    }
    copy_cases(&source.path().join("cases"), &work.path().join("cases"))?;
    let component = work.path().join(COMPONENT);
    fs::write(&component, &upload.component).map_err(PrebuiltError::io(&component))?;
    let target = out.join(&upload.manifest.name);
    match fs::remove_dir_all(&target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(PrebuiltError::io(&target)(error));
        }
        _ => {}
    }
    fs::rename(work.keep(), &target).map_err(PrebuiltError::io(&target))?;
    Ok(target)
}

/// All built policies under `dir`, by name.
pub(crate) fn read_prebuilt(dir: &Path) -> Result<Vec<Upload>, PrebuiltError> {
    // Told apart from a folder that has nothing in it.
    fs::read_dir(dir).map_err(PrebuiltError::io(dir))?;
    let folders = policy_folders(dir);
    if folders.is_empty() {
        return Err(PrebuiltError::Empty(dir.to_owned()));
    }
    folders.iter().map(|folder| read_one(folder)).collect()
}

fn read_one(folder: &Path) -> Result<Upload, PrebuiltError> {
    let component =
        fs::read(folder.join(COMPONENT)).map_err(|_| PrebuiltError::NotBuilt(folder.to_owned()))?;
    Ok(PolicyFolder::new(folder).with_component(component.into())?)
}

fn copy_cases(from: &Path, to: &Path) -> Result<(), PrebuiltError> {
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    fs::create_dir_all(to).map_err(PrebuiltError::io(to))?;
    for entry in entries.flatten() {
        copy_if_there(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn copy_if_there(from: &Path, to: &Path) -> Result<(), PrebuiltError> {
    match fs::copy(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(PrebuiltError::io(from)(error)),
        _ => Ok(()),
    }
}
