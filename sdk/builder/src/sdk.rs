//! The SDK that a folder in C, Python or JavaScript is built with.

use std::path::{Path, PathBuf};

use crate::error::BuildError;

/// Where the SDK lies in a folder that was made outside a checkout of the repository.
pub(crate) const VENDORED: &str = "vendor/jackfield";

/// Where compilers put what they make of a folder, inside of it.
pub(crate) const TARGET: &str = "target";

/// A file: its path in the SDK, and its text.
pub(crate) type SdkFile = (&'static str, &'static str);

/// The folder's own SDK, or the one that this program carries, written to the folder's target.
pub(crate) fn place(folder: &Path, carried: &[SdkFile]) -> Result<PathBuf, BuildError> {
    let own = folder.join(VENDORED);
    if own.is_dir() {
        return Ok(own);
    }
    let written = folder.join(TARGET).join("jackfield");
    for (file, text) in carried {
        write_if_changed(&written.join(file), text.as_bytes())?;
    }
    Ok(written)
}

/// Leaves a file alone that holds this already, so that nothing is compiled again for its date.
pub(crate) fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if std::fs::read(path).is_ok_and(|held| held == bytes) {
        return Ok(());
    }
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(path, bytes)).map_err(|source| BuildError::io(path, source))
}
