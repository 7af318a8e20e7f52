//! Why a reference does not lead to a component.

use super::Digest;

/// Why, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("the host {host} is not allowed; add it to `hosts` of [distribution]: hosts = [\"{host}\"]")]
    Host { host: String },
    #[error(
        "{host} is spoken to in plain HTTP only when it is named: add it to `plain_http` of [distribution]: \
         plain_http = [\"{host}\"], or use https"
    )]
    PlainHttp { host: String },
    #[error("{url} leads to {to}: {cause}")]
    Redirect { url: String, to: String, cause: Box<FetchError> },
    #[error("{url} leads on and on; more than {most} redirects are not followed")]
    Redirects { url: String, most: usize },
    #[error("`{0}` is no address that can be fetched")]
    Address(String),
    /// Nobody answered in time, or only to say that it cannot now.
    #[error("{url} cannot be reached: {cause}")]
    Unreachable { url: String, cause: String },
    #[error("{url} answered with status {status}{hint}", hint = status_hint(*status))]
    Status { url: String, status: u16 },
    #[error("{url} has more than {most} bytes; raise `max_mib` of [distribution] if it should")]
    TooLarge { url: String, most: usize },
    #[error("{url}: {cause}")]
    Registry { url: String, cause: String },
    #[error("{what} is {found}, and {wanted} was wanted; {hint}")]
    Digest { what: String, found: Digest, wanted: Digest, hint: &'static str },
}

impl FetchError {
    /// Whether it may go away by itself, and says nothing against what was fetched before.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            FetchError::Unreachable { .. } => true,
            FetchError::Status { status, .. } => *status >= 500 || *status == 429,
            _ => false,
        }
    }
}

fn status_hint(status: u16) -> &'static str {
    match status {
        401 | 403 => "; only what anyone may read is fetched",
        404 => "; is the reference right?",
        _ => "",
    }
}
