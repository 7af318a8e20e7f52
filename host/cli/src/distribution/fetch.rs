//! GET, within bounds: allowed hosts only, also where a redirect leads; so many bytes; so much time.

use std::collections::BTreeSet;
use std::time::Duration;

use ureq::http::{HeaderMap, StatusCode, Uri, header, uri::Authority};

use super::{FetchError, Source};

const MOST_REDIRECTS: usize = 5;
/// A connection that takes longer is not going to be one.
const CONNECT: Duration = Duration::from_secs(10);

/// Where from and how much may be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetching {
    /// As HOST or HOST:PORT.
    pub(crate) hosts: BTreeSet<String>,
    /// Those that are spoken to without TLS; allowed by that, too.
    pub(crate) plain_http: BTreeSet<String>,
    /// For one request, from the connection to the last byte.
    pub(crate) timeout: Duration,
    /// Of one answer.
    pub(crate) max_bytes: usize,
}

impl Default for Fetching {
    fn default() -> Fetching {
        let timeout = Duration::from_secs(30);
        Fetching { hosts: BTreeSet::new(), plain_http: BTreeSet::new(), timeout, max_bytes: 64 << 20 }
    }
}

/// What a request says of itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Asking<'a> {
    pub(super) accept: Option<&'a str>,
    pub(super) token: Option<&'a str>,
    /// Of the answer; that of a component when not given.
    pub(super) most_bytes: Option<usize>,
}

/// An answer that was read whole.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) bytes: Vec<u8>,
}

impl Fetching {
    /// Whether the source's host may be asked.
    pub(crate) fn check(&self, source: &Source) -> Result<(), FetchError> {
        match source {
            Source::Path(_) => Ok(()),
            Source::Url(uri) => self.allows(uri),
            Source::Image(image) => self.allows(&self.base(&image.registry)?),
        }
    }

    /// A host as it is compared with that of an address; none for what is no host.
    pub(crate) fn host(text: &str) -> Option<String> {
        let authority: Authority = text.parse().ok()?;
        let is_host = !authority.as_str().contains('@') && !authority.host().is_empty();
        // A port that is no number is none for the parser.
        let is_port = authority.as_str().len() == authority.host().len() || authority.port_u16().is_some();
        (is_host && is_port).then(|| text.to_ascii_lowercase())
    }

    /// The address of a registry.
    pub(super) fn base(&self, registry: &str) -> Result<Uri, FetchError> {
        let at = |scheme| {
            let text = format!("{scheme}://{registry}/");
            text.parse().map_err(|_| FetchError::Address(text))
        };
        let plain: Uri = at("http")?;
        if self.plain_http.contains(&host_of(&plain)) { Ok(plain) } else { at("https") }
    }

    pub(super) fn allows(&self, uri: &Uri) -> Result<(), FetchError> {
        let host = host_of(uri);
        match uri.scheme_str() {
            Some("http" | "https") if self.plain_http.contains(&host) => Ok(()),
            Some("https") if self.hosts.contains(&host) => Ok(()),
            Some("http") if self.hosts.contains(&host) => Err(FetchError::PlainHttp { host }),
            Some("http" | "https") => Err(FetchError::Host { host }),
            _ => Err(FetchError::Address(uri.to_string())),
        }
    }

    /// The answer of a status below 400; none where there is nothing at the address.
    pub(super) fn find(&self, uri: &Uri, asking: &Asking<'_>) -> Result<Option<Vec<u8>>, FetchError> {
        let answer = self.get(uri, asking)?;
        match answer.status.as_u16() {
            200 => Ok(Some(answer.bytes)),
            404 | 410 => Ok(None),
            status => Err(FetchError::Status { url: shown(uri), status }),
        }
    }

    /// The answer of whatever status that is no redirect.
    pub(super) fn get(&self, uri: &Uri, asking: &Asking<'_>) -> Result<Answer, FetchError> {
        self.allows(uri)?;
        let mut at = uri.clone();
        for _ in 0..=MOST_REDIRECTS {
            // What a host was told is not for the one that it sends us to.
            let token = asking.token.filter(|_| at.authority() == uri.authority());
            let answer = self.once(&at, &Asking { token, ..asking.clone() })?;
            let Some(to) = answer.headers.get(header::LOCATION).filter(|_| answer.status.is_redirection())
            else {
                return Ok(answer);
            };
            let to = to.to_str().ok().and_then(|to| join(&at, to));
            let to = to.ok_or_else(|| FetchError::Address(format!("a redirect of {}", shown(&at))))?;
            self.allows(&to).map_err(|cause| FetchError::Redirect {
                url: shown(uri),
                to: shown(&to),
                cause: Box::new(cause),
            })?;
            at = to;
        }
        Err(FetchError::Redirects { url: shown(uri), most: MOST_REDIRECTS })
    }

    fn once(&self, uri: &Uri, asking: &Asking<'_>) -> Result<Answer, FetchError> {
        let unreachable =
            |error: ureq::Error| FetchError::Unreachable { url: shown(uri), cause: error.to_string() };
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT.min(self.timeout)))
            .timeout_global(Some(self.timeout));
        if self.plain_http.contains(&host_of(uri)) {
            // What is named for plain HTTP is near; a proxy of the environment does not lead there.
            config = config.proxy(None);
        }
        let agent: ureq::Agent = config.build().into();
        let mut request = agent.get(uri);
        if let Some(accept) = asking.accept {
            request = request.header(header::ACCEPT, accept);
        }
        if let Some(token) = asking.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let response = request.call().map_err(unreachable)?;
        let (head, body) = response.into_parts();
        let most = asking.most_bytes.unwrap_or(self.max_bytes);
        let bytes =
            body.into_with_config().limit(most as u64).read_to_vec().map_err(|error| match error {
                ureq::Error::BodyExceedsLimit(_) => FetchError::TooLarge { url: shown(uri), most },
                error => unreachable(error),
            })?;
        Ok(Answer { status: head.status, headers: head.headers, bytes })
    }
}

/// As it is written in `hosts`: the port only where it is written in the address, and is not the scheme's own.
fn host_of(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default().to_ascii_lowercase();
    match (uri.scheme_str(), uri.port_u16()) {
        (_, None) | (Some("https"), Some(443)) | (Some("http"), Some(80)) => host,
        (_, Some(port)) => format!("{host}:{port}"),
    }
}

/// Without what may be secret: the query of an address that was handed out for one download.
pub(super) fn shown(uri: &Uri) -> String {
    let text = uri.to_string();
    text.split_once('?').map_or(text.clone(), |(start, _)| format!("{start}?…"))
}

/// Where a redirect leads: an address, or a path on the same host.
fn join(from: &Uri, to: &str) -> Option<Uri> {
    let scheme = from.scheme_str()?;
    match to {
        _ if to.starts_with("//") => format!("{scheme}:{to}").parse().ok(),
        _ if to.starts_with('/') => format!("{scheme}://{}{to}", from.authority()?).parse().ok(),
        _ if to.contains("://") => to.parse().ok(),
        _ => {
            let folder = from.path().rsplit_once('/')?.0;
            format!("{scheme}://{}{folder}/{to}", from.authority()?).parse().ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetching() -> Fetching {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Fetching {
            hosts: set(&["a.example", "b.example:8443"]),
            plain_http: set(&["127.0.0.1:5000"]),
            ..Fetching::default()
        }
    }

    #[test]
    fn a_host_is_allowed_with_its_port_and_scheme() {
        let allowed = |text: &str| fetching().allows(&text.parse().expect("an address"));
        for good in [
            "https://a.example/x",
            "https://A.example:443/x",
            "https://b.example:8443/",
            "http://127.0.0.1:5000/v2/",
        ] {
            assert_eq!(allowed(good), Ok(()), "{good}");
        }
        for wrong in
            ["https://a.example:8443/", "https://b.example/", "https://a.example.evil/", "http://127.0.0.1/"]
        {
            assert!(matches!(allowed(wrong), Err(FetchError::Host { .. })), "{wrong}");
        }
        assert!(matches!(allowed("http://a.example/"), Err(FetchError::PlainHttp { .. })));
    }

    #[test]
    fn a_host_is_a_name_with_or_without_a_port() {
        for (text, host) in
            [("GHCR.io", "ghcr.io"), ("127.0.0.1:5000", "127.0.0.1:5000"), ("[::1]:5000", "[::1]:5000")]
        {
            assert_eq!(Fetching::host(text).as_deref(), Some(host));
        }
        for wrong in
            ["", "https://ghcr.io", "ghcr.io/acme", "me@ghcr.io", "ghcr.io:", "ghcr.io:x", ":80", "a b"]
        {
            assert_eq!(Fetching::host(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn redirects_lead_where_they_say() {
        let from: Uri = "https://a.example/p/x.wasm?token=1".parse().expect("an address");
        let joined = |to: &str| join(&from, to).map(|uri| uri.to_string());
        assert_eq!(joined("/y").as_deref(), Some("https://a.example/y"));
        assert_eq!(joined("y").as_deref(), Some("https://a.example/p/y"));
        assert_eq!(joined("//b.example/y").as_deref(), Some("https://b.example/y"));
        assert_eq!(joined("http://b.example/y").as_deref(), Some("http://b.example/y"));
        assert_eq!(shown(&from), "https://a.example/p/x.wasm?…");
    }
}
