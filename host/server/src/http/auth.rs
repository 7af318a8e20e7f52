//! Who is asking.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};

use crate::config::ApiKey;
use crate::error::ApiError;

/// The tenant when no keys are configured.
const OPEN_TENANT: &str = "local";

/// Whose turn it is; derived from the key alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Tenant(pub(crate) Arc<str>);

/// Keys by their hash, so that finding one takes the same time however much of it was guessed right.
pub(crate) struct Keys {
    tenants: HashMap<blake3::Hash, Tenant>,
}

impl Keys {
    pub(crate) fn new(keys: &[ApiKey]) -> Self {
        let entry = |key: &ApiKey| (blake3::hash(key.key.as_bytes()), Tenant(key.tenant.as_str().into()));
        Keys { tenants: keys.iter().map(entry).collect() }
    }

    /// One key without tenants, or none: for the admin API.
    pub(crate) fn admin(key: Option<&str>) -> Self {
        let entry = |key: &str| (blake3::hash(key.as_bytes()), Tenant("admin".into()));
        Keys { tenants: key.map(entry).into_iter().collect() }
    }

    pub(crate) fn are_open(&self) -> bool {
        self.tenants.is_empty()
    }

    /// The tenant of a request.
    ///
    /// # Errors
    /// 401 without a known key, unless no keys are configured.
    pub(crate) fn tenant(&self, headers: &HeaderMap) -> Result<Tenant, ApiError> {
        if self.are_open() {
            return Ok(Tenant(OPEN_TENANT.into()));
        }
        let Some(key) = bearer(headers) else {
            return Err(unauthorized("Send your key as `Authorization: Bearer KEY`"));
        };
        let tenant = self.tenants.get(&blake3::hash(key)).cloned();
        tenant.ok_or_else(|| unauthorized("This key is not known here"))
    }
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, key) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
}

fn unauthorized(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "authentication_error", "invalid_api_key", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(keys: &Keys, authorization: Option<&str>) -> Result<Tenant, u16> {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        }
        keys.tenant(&headers).map_err(|error| error.status.as_u16())
    }

    #[test]
    fn a_key_names_its_tenant_and_nothing_else_does() {
        let keys = Keys::new(&[ApiKey { key: "secret-1".into(), tenant: "a".into() }]);
        assert_eq!(tenant(&keys, Some("Bearer secret-1")), Ok(Tenant("a".into())));
        assert_eq!(tenant(&keys, Some("bearer secret-1 ")), Ok(Tenant("a".into())));
        for wrong in
            [None, Some("Bearer secret-2"), Some("Bearer "), Some("Bearer"), Some("Basic secret-1"), Some("")]
        {
            assert_eq!(tenant(&keys, wrong), Err(401), "{wrong:?}");
        }
    }

    #[test]
    fn without_keys_everyone_is_the_same_tenant() {
        let keys = Keys::new(&[]);
        assert_eq!(tenant(&keys, None), tenant(&keys, Some("Bearer anything")));
    }
}
