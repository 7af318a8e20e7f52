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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Files with these endings under `folder` of the repository's `sdk/`, and those of them that are carried.
    #[track_caller]
    pub(crate) fn carries_all(carried: &[SdkFile], folder: &str, endings: &[&str]) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder");
        let mut there: Vec<String> = entries
            .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
            .filter(|name| endings.iter().any(|ending| name.ends_with(ending)))
            .map(|name| format!("{folder}/{name}"))
            .collect();
        there.sort();
        let in_folder = |file: &&str| Path::new(file).parent() == Some(Path::new(folder));
        let mut held: Vec<&str> = carried.iter().map(|(file, _)| *file).filter(in_folder).collect();
        held.sort_unstable();
        assert_eq!(held, there);
    }

    #[test]
    fn a_folders_own_sdk_comes_before_the_carried_one_and_files_are_written_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let carried = [("wit/policy.wit", "carried")];
        let placed = place(folder.path(), &carried).expect("written");
        let file = placed.join("wit/policy.wit");
        let date = || std::fs::metadata(&file).and_then(|found| found.modified()).expect("a date");
        let before = date();
        place(folder.path(), &carried).expect("there");
        assert_eq!(date(), before);
        std::fs::create_dir_all(folder.path().join(VENDORED)).expect("made");
        assert_eq!(place(folder.path(), &carried).expect("there"), folder.path().join(VENDORED));
    }
}
