//! Who a session belongs to.

use serde::{Deserialize, Serialize};

/// The name of a session: the tenant's, and within it the client's or one made by the server.
///
/// Two tenants that use the same id never meet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionKey {
    tenant: String,
    id: String,
}

/// Why a session id was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It has no characters.
    #[error("a session id needs at least one character")]
    Empty,
    /// It has too many.
    #[error("a session id has at most {max} characters; this one has {found} bytes")]
    TooLong {
        /// Bytes found.
        found: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// It has one outside of the allowed set.
    #[error("a session id may hold A-Z a-z 0-9 . _ : - only, not {0:?}")]
    Character(char),
}

impl SessionKey {
    /// Longest id, in bytes.
    pub const MAX_ID_BYTES: usize = 128;

    /// A key of a tenant the server knows, and an id as a client wrote it.
    ///
    /// # Errors
    /// When the id is not 1 to 128 of `A-Z a-z 0-9 . _ : -`.
    pub fn new(tenant: impl Into<String>, id: impl Into<String>) -> Result<SessionKey, KeyError> {
        let id = id.into();
        check_id(&id)?;
        Ok(SessionKey { tenant: tenant.into(), id })
    }

    /// What lies before the first key of a tenant whose id is greater than `after`.
    pub(crate) fn first_after(tenant: &str, after: Option<&str>) -> SessionKey {
        SessionKey { tenant: tenant.to_owned(), id: after.unwrap_or_default().to_owned() }
    }

    /// Whose it is.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Its name within the tenant.
    pub fn id(&self) -> &str {
        &self.id
    }
}

fn check_id(id: &str) -> Result<(), KeyError> {
    if id.is_empty() {
        return Err(KeyError::Empty);
    }
    if id.len() > SessionKey::MAX_ID_BYTES {
        return Err(KeyError::TooLong { found: id.len(), max: SessionKey::MAX_ID_BYTES });
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
    match id.chars().find(|&c| !allowed(c)) {
        Some(c) => Err(KeyError::Character(c)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_ids_pass() {
        let longest = "a".repeat(128);
        for id in ["a", "user:42", "A-1_b.c", longest.as_str()] {
            let key = SessionKey::new("acme", id).expect(id);
            assert_eq!((key.tenant(), key.id()), ("acme", id));
        }
    }

    #[test]
    fn others_are_refused_with_a_reason() {
        let refused = |id: &str| SessionKey::new("acme", id).expect_err(id);
        assert_eq!(refused(""), KeyError::Empty);
        assert_eq!(refused(&"a".repeat(129)), KeyError::TooLong { found: 129, max: 128 });
        assert_eq!(refused("../x"), KeyError::Character('/'));
        assert_eq!(refused("\u{430}"), KeyError::Character('\u{430}'));
        assert_eq!(refused("a b"), KeyError::Character(' '));
        assert_eq!(refused("a\0"), KeyError::Character('\0'));
    }

    #[test]
    fn tenants_do_not_meet() {
        assert_ne!(SessionKey::new("a", "default"), SessionKey::new("b", "default"));
    }
}
