//! References to policies, as they are written.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use ureq::http::Uri;

use super::Digest;

/// What a `source` names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Source {
    /// A built policy folder, or a component.
    Path(PathBuf),
    /// A component at an address.
    Url(Uri),
    /// A component in an OCI registry.
    Image(Image),
}

/// `oci://REGISTRY/REPOSITORY:TAG` or `oci://REGISTRY/REPOSITORY@sha256:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    pub(super) registry: String,
    pub(super) repository: String,
    pub(super) version: Version,
}

/// Which of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Version {
    Tag(String),
    /// The digest of the manifest.
    Digest(Digest),
}

impl Source {
    /// A path is relative to this folder.
    pub(crate) fn beside(&mut self, base: &Path) {
        if let Source::Path(path) = self {
            *path = base.join(&*path);
        }
    }
}

impl TryFrom<String> for Source {
    type Error = String;

    fn try_from(text: String) -> Result<Source, String> {
        if let Some(rest) = text.strip_prefix("oci://") {
            return Image::parse(rest).map(Source::Image).ok_or_else(|| {
                format!(
                    "`{text}` is no reference to a registry; write it as oci://REGISTRY/REPOSITORY:TAG, or with \
                     @sha256:… in place of the tag"
                )
            });
        }
        match text.split_once("://") {
            Some(("http" | "https", _)) => url(&text).map(Source::Url),
            Some((scheme, _)) => {
                Err(format!("`{scheme}://` is not fetched; give a path, https://…, or oci://…"))
            }
            None if text.is_empty() => Err("it is empty; give a path, https://…, or oci://…".into()),
            None => Ok(Source::Path(text.into())),
        }
    }
}

fn url(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|error| format!("`{text}` is no address: {error}"))?;
    match uri.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            Err("an address with a user or a password in it is not taken".into())
        }
        Some(_) => Ok(uri),
        None => Err(format!("`{text}` names no host")),
    }
}

impl Image {
    fn parse(text: &str) -> Option<Image> {
        let (registry, rest) = text.split_once('/')?;
        let (repository, version) = match rest.split_once('@') {
            Some((repository, digest)) => {
                // A tag beside a digest says nothing more.
                let repository = repository.split_once(':').map_or(repository, |(repository, _)| repository);
                (repository, Version::Digest(digest.to_owned().try_into().ok()?))
            }
            None => rest.split_once(':').map(|(repository, tag)| (repository, Version::Tag(tag.into())))?,
        };
        let word = |extra: &'static str| {
            move |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || extra.contains(c)
        };
        let tag = |tag: &str| {
            !tag.is_empty() && tag.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        let good = !registry.contains('@')
            && registry.parse::<ureq::http::uri::Authority>().is_ok()
            && repository.split('/').all(|part| part.starts_with(word("")) && part.chars().all(word("._-")))
            && match &version {
                Version::Tag(text) => tag(text),
                Version::Digest(_) => true,
            };
        good.then(|| Image { registry: registry.into(), repository: repository.into(), version })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Path(path) => path.display().fmt(f),
            Source::Url(uri) => uri.fmt(f),
            Source::Image(Image { registry, repository, version }) => match version {
                Version::Tag(tag) => write!(f, "oci://{registry}/{repository}:{tag}"),
                Version::Digest(digest) => write!(f, "oci://{registry}/{repository}@{digest}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Source, String> {
        Source::try_from(text.to_owned())
    }

    #[test]
    fn references_are_read_as_they_are_shown() {
        let digest = Digest::of(b"");
        let images = ["oci://ghcr.io/acme/mask-secrets:1.2.0", "oci://127.0.0.1:5000/a/b/c_d:Latest"];
        for text in images.into_iter().chain([&*format!("oci://[::1]:5000/a@{digest}")]) {
            let source = read(text).expect("good");
            assert!(matches!(source, Source::Image(_)), "{source:?}");
            assert_eq!(source.to_string(), text);
        }
        assert!(matches!(read("https://a.example/p/x.wasm?v=1"), Ok(Source::Url(_))));
        assert_eq!(read("policies/mask"), Ok(Source::Path("policies/mask".into())));
        let both = read(&format!("oci://r/a:1@{digest}")).expect("good");
        assert_eq!(both.to_string(), format!("oci://r/a@{digest}"));
    }

    #[test]
    fn what_is_none_is_refused() {
        let wrong = [
            "",
            "ftp://a/b",
            "https://",
            "https://user:word@host/x",
            "oci://ghcr.io/acme/mask",
            "oci://ghcr.io/Acme/mask:1",
            "oci://ghcr.io/../mask:1",
            "oci://ghcr.io//mask:1",
            "oci://ghcr.io/mask:1/2",
            "oci://ghcr.io/mask@sha256:12",
            "oci://user@ghcr.io/mask:1",
            "oci:///mask:1",
        ];
        for text in wrong {
            assert!(read(text).is_err(), "{text}: {:?}", read(text));
        }
    }
}
