//! What `--model` may say.

use std::path::{Path, PathBuf};

use super::FetchError;
use super::catalogue::{self, Entry, Kind};

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
        // Whether it is there is found out when it is opened.
        if text.ends_with(".gguf") {
            return Ok(ModelRef::File(path));
        }
        Err(FetchError::Unknown(text.to_owned()))
    }
}

impl ModelRef {
    /// Refuses a name of the catalogue that is for something else. What a file is, is found out when it is opened.
    pub(crate) fn check(&self, wanted: Kind) -> Result<(), FetchError> {
        match self {
            ModelRef::Catalogue(entry) if entry.kind != wanted => {
                Err(FetchError::Kind { name: entry.name, wanted })
            }
            _ => Ok(()),
        }
    }

    /// What clients call it when the configuration gives no name: the catalogue's, or the file's without its ending.
    pub(crate) fn id(&self) -> String {
        let stem = |path: &Path| {
            path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
        };
        match self {
            ModelRef::Catalogue(entry) => entry.name.to_owned(),
            ModelRef::File(path) => stem(path),
            ModelRef::HuggingFace(file) => stem(Path::new(&file.file)),
        }
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
        good.then(|| HuggingFaceFile { repository: format!("{owner}/{name}"), file: file.to_owned() })
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
    }

    #[test]
    fn a_name_is_for_its_purpose_only() {
        let (served, embeds) = (ModelRef::parse("smollm2-135m").unwrap(), ModelRef::parse("minilm").unwrap());
        assert!(served.check(Kind::Writes).is_ok() && embeds.check(Kind::Embeds).is_ok());
        let error = embeds.check(Kind::Writes).unwrap_err().to_string();
        assert!(error.contains("`minilm`") && error.contains("smollm2-135m"), "{error}");
        assert!(served.check(Kind::Embeds).unwrap_err().to_string().contains("one of minilm"));
    }

    #[test]
    fn a_file_that_is_not_there_is_still_a_file() {
        for path in ["gone.gguf", "o/../m.gguf", "/o/r/m.gguf"] {
            assert_eq!(ModelRef::parse(path).unwrap(), ModelRef::File(path.into()));
        }
    }
}
