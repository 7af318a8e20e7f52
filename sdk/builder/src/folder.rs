use std::path::{Path, PathBuf};

use serde_json::{Map, Number, Value};

use crate::error::FolderError;
use crate::language::Language;
use crate::template::PolicyKind;

/// The data files of a policy folder.
#[derive(Debug, Clone)]
pub struct PolicyDir {
    /// `policy.toml`, as written; its syntax has been checked, its meaning has not.
    pub manifest_toml: String,
    /// `rules.toml` as JSON; an empty object where there is no such file. Dates and times are strings.
    pub config: Value,
    /// `cases/*.json`, in order of their file names.
    pub cases: Vec<CaseFile>,
    /// Whether the folder holds source that [`crate::Builder::build`] can compile.
    pub has_source: bool,
}

/// One file of recorded cases.
#[derive(Debug, Clone)]
pub struct CaseFile {
    /// The file.
    pub path: PathBuf,
    /// What it holds.
    pub json: Value,
}

/// Reads the data files of a policy folder.
///
/// # Errors
/// A missing `policy.toml`, an unreadable file, or a syntax error with its file, line and column.
pub fn read_policy_dir(dir: &Path) -> Result<PolicyDir, FolderError> {
    let manifest = dir.join("policy.toml");
    let manifest_toml = read(&manifest)?.ok_or_else(|| FolderError::Missing { path: manifest.clone() })?;
    parse_toml(&manifest, &manifest_toml)?;
    let rules = dir.join("rules.toml");
    let config = match read(&rules)? {
        Some(text) => table_to_json(&rules, parse_toml(&rules, &text)?)?,
        None => Value::Object(Map::new()),
    };
    let has_source = Language::of(dir).is_ok();
    Ok(PolicyDir { manifest_toml, config, cases: read_cases(&dir.join("cases"))?, has_source })
}

/// The kind that the folder's manifest names.
pub(crate) fn kind_of(dir: &Path) -> Result<PolicyKind, FolderError> {
    let path = dir.join("policy.toml");
    let text = read(&path)?.ok_or_else(|| FolderError::Missing { path: path.clone() })?;
    let manifest = parse_toml(&path, &text)?;
    manifest.get("kind").and_then(toml::Value::as_str).ok_or(FolderError::NoKind { path })?.parse()
}

/// Reads a configuration on its own: TOML as JSON, dates and times as strings.
///
/// # Errors
/// A missing or unreadable file, or a syntax error with its line and column.
pub fn read_config(path: &Path) -> Result<Value, FolderError> {
    let text = read(path)?.ok_or_else(|| FolderError::Missing { path: path.to_owned() })?;
    table_to_json(path, parse_toml(path, &text)?)
}

/// Reads a folder of recorded cases: `*.json`, in order of their file names. Nothing where there is no such folder.
///
/// # Errors
/// An unreadable folder or file, or a syntax error with its file, line and column.
pub fn read_cases(dir: &Path) -> Result<Vec<CaseFile>, FolderError> {
    let io = |source| FolderError::Io { path: dir.to_owned(), source };
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(io)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    paths.into_iter().map(read_case).collect()
}

fn read_case(path: PathBuf) -> Result<CaseFile, FolderError> {
    let text = read(&path)?.ok_or_else(|| FolderError::Missing { path: path.clone() })?;
    match serde_json::from_str(&text) {
        Ok(json) => Ok(CaseFile { path, json }),
        Err(error) => Err(json_error(path, &text, &error)),
    }
}

fn json_error(path: PathBuf, text: &str, error: &serde_json::Error) -> FolderError {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default().to_owned();
    // serde_json counts columns in bytes; an editor counts characters.
    let line_text = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let bytes = error.column().saturating_sub(1);
    let column = 1 + line_text.char_indices().take_while(|(at, _)| *at < bytes).count();
    FolderError::Parse { path, line: error.line().max(1), column, message }
}

fn parse_toml(path: &Path, text: &str) -> Result<toml::Table, FolderError> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let before = text.get(..at).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        FolderError::Parse {
            path: path.to_owned(),
            line: 1 + before.matches('\n').count(),
            column: 1 + before[line_start..].chars().count(),
            message: error.message().to_owned(),
        }
    })
}

fn table_to_json(path: &Path, table: toml::Table) -> Result<Value, FolderError> {
    to_json(path, "", toml::Value::Table(table))
}

fn to_json(path: &Path, key: &str, value: toml::Value) -> Result<Value, FolderError> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::Number(number.into()),
        toml::Value::Float(number) => Value::Number(Number::from_f64(number).ok_or_else(|| {
            FolderError::Number { path: path.to_owned(), key: key.to_owned(), value: number.to_string() }
        })?),
        toml::Value::Boolean(flag) => Value::Bool(flag),
        toml::Value::Datetime(instant) => Value::String(instant.to_string()),
        toml::Value::Array(items) => {
            let items = items.into_iter().enumerate();
            Value::Array(
                items
                    .map(|(n, item)| to_json(path, &format!("{key}[{n}]"), item))
                    .collect::<Result<_, _>>()?,
            )
        }
        toml::Value::Table(table) => {
            let entry = |(name, item): (String, toml::Value)| {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                Ok((name, to_json(path, &key, item)?))
            };
            Value::Object(table.into_iter().map(entry).collect::<Result<_, FolderError>>()?)
        }
    })
}

/// The file's text; none where it does not exist.
fn read(path: &Path) -> Result<Option<String>, FolderError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FolderError::Io { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        dir
    }

    fn error_of(files: &[(&str, &str)]) -> String {
        let dir = folder(files);
        let error = read_policy_dir(dir.path()).expect_err("a fault").to_string();
        error.replace(&format!("{}{}", dir.path().display(), std::path::MAIN_SEPARATOR), "")
    }

    #[test]
    fn rules_become_json_and_cases_come_in_order() {
        let rules = "since = 2024-02-29T08:00:00+08:00\nday = 2024-02-29\nratio = 0.5\n[[rule]]\nwords = [\"退款\", 1, true]\n";
        let dir = folder(&[
            ("policy.toml", "name = \"x\""),
            ("rules.toml", rules),
            ("cases/b.json", "{\"n\": 2}"),
            ("cases/a.json", "{\"n\": 1}"),
            ("cases/notes.txt", "not a case"),
        ]);
        let read = read_policy_dir(dir.path()).expect("a folder in order");
        let expected = serde_json::json!({
            "since": "2024-02-29T08:00:00+08:00", "day": "2024-02-29", "ratio": 0.5,
            "rule": [{ "words": ["退款", 1, true] }],
        });
        assert_eq!(read.config, expected);
        assert_eq!(
            read.cases.iter().map(|case| case.json["n"].as_i64()).collect::<Vec<_>>(),
            [Some(1), Some(2)]
        );
        assert!(!read.has_source);
    }

    #[test]
    fn rules_and_cases_may_be_absent_and_the_manifest_may_not() {
        let dir = folder(&[("policy.toml", ""), ("Cargo.toml", "")]);
        let read = read_policy_dir(dir.path()).expect("a folder in order");
        assert_eq!(read.config, serde_json::json!({}));
        assert!(read.cases.is_empty() && read.has_source);
        assert_eq!(error_of(&[]), "policy.toml is missing: every policy folder has one");
    }

    #[test]
    fn a_syntax_error_names_file_line_and_column_in_characters() {
        let error = error_of(&[("policy.toml", ""), ("rules.toml", "a = 1\n\"退款\" = = 2\n")]);
        assert!(error.starts_with("rules.toml:2:8: "), "{error}");
        let error = error_of(&[("policy.toml", ""), ("cases/a.json", "{\n  \"退款\": 1 x\n}")]);
        assert!(error.starts_with("cases/a.json:2:11: expected"), "{error}");
        let error = error_of(&[("policy.toml", "name = "), ("rules.toml", "")]);
        assert!(error.starts_with("policy.toml:1:"), "{error}");
    }

    #[test]
    fn a_number_that_json_cannot_hold_is_named() {
        let error = error_of(&[("policy.toml", ""), ("rules.toml", "[[rule]]\nlimits = [1, nan]\n")]);
        assert!(error.starts_with("rules.toml: `rule[0].limits[1]` is NaN"), "{error}");
    }
}
