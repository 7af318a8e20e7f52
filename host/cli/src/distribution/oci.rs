//! Pulling a component from an OCI registry: its manifest, then its one layer of `application/wasm`.
//!
//! Of the distribution specification that is two requests, and one more for a token where a registry wants one of everyone.

use serde::Deserialize;
use ureq::http::{Uri, header};

use super::fetch::{Answer, Asking, Fetching, shown};
use super::source::{Image, Version};
use super::{Digest, FetchError};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const WASM: &str = "application/wasm";
/// The annotation of a manifest that holds the signature of its component.
const SIGNATURE: &str = "jackfield.minisig";
/// Of a manifest, and of a token.
const MOST_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    #[serde(default)]
    layers: Vec<Layer>,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
    media_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    media_type: String,
    digest: Digest,
    size: u64,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// The component, and its signature if it has one.
pub(super) fn pull(fetching: &Fetching, image: &Image) -> Result<(Vec<u8>, Option<String>), FetchError> {
    let base = fetching.base(&image.registry)?;
    let version = match &image.version {
        Version::Tag(tag) => tag.as_str(),
        Version::Digest(digest) => &String::from(digest.clone()),
    };
    let at = |rest: String| -> Result<Uri, FetchError> {
        let text = format!("{base}v2/{}/{rest}", image.repository);
        text.parse().map_err(|_| FetchError::Address(text))
    };
    let uri = at(format!("manifests/{version}"))?;
    let mut session = Session { fetching, token: None };
    let bytes = session.get(&uri, &format!("{MANIFEST}, {INDEX};q=0.1"), Some(MOST_BYTES))?;
    if let Version::Digest(wanted) = &image.version {
        same(format!("the manifest at {uri}"), &bytes, wanted)?;
    }
    let registry = |cause: String| FetchError::Registry { url: shown(&uri), cause };
    let manifest: Manifest = serde_json::from_slice(&bytes)
        .map_err(|error| registry(format!("the answer is no image manifest: {error}")))?;
    let layer = manifest.component().map_err(registry)?;
    if layer.size > fetching.max_bytes as u64 {
        return Err(FetchError::TooLarge { url: uri.to_string(), most: fetching.max_bytes });
    }
    let blob = at(format!("blobs/{}", layer.digest))?;
    let component = session.get(&blob, "*/*", None)?;
    same(format!("the layer at {blob}"), &component, &layer.digest)?;
    Ok((component, manifest.annotations.get(SIGNATURE).cloned()))
}

impl Manifest {
    fn component(&self) -> Result<&Layer, String> {
        let mut wasm = self.layers.iter().filter(|layer| layer.media_type == WASM);
        match (wasm.next(), wasm.next()) {
            (Some(layer), None) => Ok(layer),
            (Some(_), Some(_)) => Err(format!("there are several layers of {WASM}, and a policy is one")),
            (None, _) if self.media_type.as_deref() == Some(INDEX) => {
                Err("it is an index of several images; name one of them by its digest".into())
            }
            (None, _) => {
                let found: Vec<_> = self.layers.iter().map(|layer| layer.media_type.as_str()).collect();
                Err(format!("there is no layer of {WASM}, only [{}]; is it a policy?", found.join(", ")))
            }
        }
    }
}

/// Requests to one repository, with the token that it wants once that is known.
struct Session<'a> {
    fetching: &'a Fetching,
    token: Option<String>,
}

impl Session<'_> {
    fn get(&mut self, uri: &Uri, accept: &str, most_bytes: Option<usize>) -> Result<Vec<u8>, FetchError> {
        let mut answer = self.ask(uri, accept, most_bytes)?;
        if answer.status == 401
            && self.token.is_none()
            && let Some(realm) = challenge(&answer)
        {
            self.token = Some(self.fetch_token(&realm)?);
            answer = self.ask(uri, accept, most_bytes)?;
        }
        match answer.status.as_u16() {
            200 => Ok(answer.bytes),
            status => Err(FetchError::Status { url: shown(uri), status }),
        }
    }

    fn ask(&self, uri: &Uri, accept: &str, most_bytes: Option<usize>) -> Result<Answer, FetchError> {
        let asking = Asking { accept: Some(accept), token: self.token.as_deref(), most_bytes };
        self.fetching.get(uri, &asking)
    }

    /// The token that everyone gets.
    fn fetch_token(&self, realm: &Uri) -> Result<String, FetchError> {
        let asking = Asking { most_bytes: Some(MOST_BYTES), ..Asking::default() };
        let refused = |cause: &str| FetchError::Registry { url: shown(realm), cause: cause.into() };
        let bytes = self
            .fetching
            .find(realm, &asking)?
            .ok_or_else(|| refused("there is nothing that gives tokens"))?;
        let token: Token =
            serde_json::from_slice(&bytes).map_err(|_| refused("the answer holds no token"))?;
        token.token.or(token.access_token).ok_or_else(|| refused("the answer holds no token"))
    }
}

/// Where a registry says that tokens are to be had, with what they are to be for.
fn challenge(answer: &Answer) -> Option<Uri> {
    let said = answer.headers.get(header::WWW_AUTHENTICATE)?.to_str().ok()?;
    let challenges = http_auth::parse_challenges(said).ok()?;
    let bearer = challenges.into_iter().find(|challenge| challenge.scheme.eq_ignore_ascii_case("bearer"))?;
    let param = |name: &str| {
        let found = bearer.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_unescaped())
    };
    let query: Vec<String> = ["service", "scope"]
        .iter()
        .filter_map(|name| Some(format!("{name}={}", escaped(&param(name)?))))
        .collect();
    let realm = param("realm")?;
    let joint = if realm.contains('?') { '&' } else { '?' };
    format!("{realm}{joint}{}", query.join("&")).parse().ok()
}

/// For a query.
fn escaped(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:/,".contains(byte);
    text.bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn same(what: String, bytes: &[u8], wanted: &Digest) -> Result<(), FetchError> {
    let found = Digest::of(bytes);
    if found == *wanted {
        return Ok(());
    }
    let hint = "the registry gives other bytes than it says";
    Err(FetchError::Digest { what, found, wanted: wanted.clone(), hint })
}
