//! Files that a command is given by name, beside those of a policy's folder.

use std::fs;
use std::path::Path;

use jackfield_policy::Case;
use serde_json::Value;

use super::folder::read_cases;
use crate::Failure;

/// A configuration: JSON where the name says so, TOML otherwise.
pub(crate) fn config(path: &Path) -> Result<Value, Failure> {
    let text = text(path)?;
    if path.extension().is_none_or(|extension| extension != "json") {
        return jackfield_builder::read_config(path).map_err(Failure::usage);
    }
    serde_json::from_str(&text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

/// A folder of recorded cases, of which there must be some.
pub(super) fn cases(dir: &Path) -> Result<Vec<Case>, Failure> {
    let files = jackfield_builder::read_cases(dir).map_err(Failure::usage)?;
    let read: Result<Vec<_>, _> = files.into_iter().map(read_cases).collect();
    let cases: Vec<Case> = read.map_err(Failure::usage)?.into_iter().flatten().collect();
    if cases.is_empty() {
        return Err(Failure::usage(format!("{} has no recorded cases (*.json)", dir.display())));
    }
    Ok(cases)
}

/// A text file that must be there.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

/// Finds out whether a file can be written before the work whose result goes there; what is in it stays.
pub(super) fn try_output(path: &Path) -> Result<(), Failure> {
    let tried = fs::OpenOptions::new().append(true).create(true).open(path);
    tried.map(drop).map_err(|error| cannot_write(path, &error))
}

/// Writes a result.
pub(super) fn write_output(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}
