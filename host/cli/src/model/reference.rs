//! What `--model` may say.

use std::path::PathBuf;

use super::FetchError;
use super::catalogue::{self, Entry};

/// A model, by file, by name, or by its place on Hugging Face.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ModelRef {
    File(PathBuf),
    Catalogue(&'static Entry),
    HuggingFace(HuggingFaceFile),
}

/// One file of a repository.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HuggingFaceFile {
    /// `OWNER/REPOSITORY`.
    pub(crate) repository: String,
    /// The file's path inside it.
    pub(crate) file: String,
}

impl ModelRef {
    /// A name of the catalogue first, then a path that exists, then `OWNER/REPOSITORY/FILE.gguf`.
    pub(crate) fn parse(text: &str) -> Result<ModelRef, FetchError> {
        if let Some(entry) = catalogue::find(text) {
            return Ok(ModelRef::Catalogue(entry));
        }
        let path = PathBuf::from(text);
        if path.exists() {
            return Ok(ModelRef::File(path));
        }
        if let Some(file) = HuggingFaceFile::parse(text.strip_prefix("hf:").unwrap_or(text)) {
            return Ok(ModelRef::HuggingFace(file));
        }
        if text.ends_with(".gguf") {
            return Err(FetchError::NoFile(path));
        }
        Err(FetchError::Unknown(text.to_owned()))
    }
}

impl HuggingFaceFile {
    fn parse(text: &str) -> Option<HuggingFaceFile> {
        let mut parts = text.splitn(3, '/');
        let (owner, name, file) = (parts.next()?, parts.next()?, parts.next()?);
        let plain = |s: &str| {
            !s.is_empty()
                && !s.starts_with('.')
                && s.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        let good = plain(owner) && plain(name) && file.ends_with(".gguf") && file.split('/').all(plain);
        good.then(|| HuggingFaceFile {
            repository: format!("{owner}/{name}"),
            file: file.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_paths_and_repositories() {
        assert!(matches!(ModelRef::parse("smollm2-135m"), Ok(ModelRef::Catalogue(_))));
        assert!(matches!(ModelRef::parse("Cargo.toml"), Ok(ModelRef::File(_))));
        let expected = HuggingFaceFile { repository: "o/r".into(), file: "sub/m.Q4_0.gguf".into() };
        assert_eq!(ModelRef::parse("hf:o/r/sub/m.Q4_0.gguf").unwrap(), ModelRef::HuggingFace(expected));
    }

    #[test]
    fn what_is_no_reference_is_refused_with_the_names() {
        let error = ModelRef::parse("smolm").unwrap_err().to_string();
        assert!(error.contains("smollm2-135m"), "{error}");
        assert!(matches!(ModelRef::parse("gone.gguf"), Err(FetchError::NoFile(_))));
        assert!(matches!(ModelRef::parse("o/../m.gguf"), Err(FetchError::NoFile(_))));
    }
}
