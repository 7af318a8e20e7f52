//! Built policies on disk: what `policy build` writes and `serve --policies` reads.
//!
//! One folder each: the source folder's data files and `policy.wasm`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jackfield_policy::Upload;

use super::folder::PolicyFolder;

/// The component's name in a built folder.
pub(crate) const COMPONENT: &str = "policy.wasm";

/// A folder of built policies that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrebuiltError {
    #[error("{}: {cause}", path.display())]
    Io { path: PathBuf, cause: io::Error },
    #[error("{} holds no policies; write some there with `jackfield policy build`", .0.display())]
    Empty(PathBuf),
    #[error("{} has no {COMPONENT}; build it with `jackfield policy build`", .0.display())]
    NotBuilt(PathBuf),
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
