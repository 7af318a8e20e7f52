//! What stands on disk: keys, heads and bodies.

use crate::{
    Session, SessionKey, StoreError, Version,
    encoding::{decode, encode},
};

/// The format of heads that this code writes; their first byte.
const FORMAT: u8 = 1;

/// Longest key in bytes that the database takes.
const MAX_KEY_BYTES: usize = 65_535;

/// A key as bytes, in the order of (tenant, id), no two the same: the tenant with each 0 followed by 255, then 0 and 1, then the
/// id. None when it is too long.
pub(super) fn key_bytes(key: &SessionKey) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(key.tenant().len() + key.id().len() + 2);
    for &byte in key.tenant().as_bytes() {
        bytes.push(byte);
        if byte == 0 {
            bytes.push(255);
        }
    }
    bytes.extend([0, 1]);
    bytes.extend(key.id().as_bytes());
    (bytes.len() <= MAX_KEY_BYTES).then_some(bytes)
}

/// The key that these bytes stand for; none when [`key_bytes`] never made them.
pub(super) fn parse_key(bytes: &[u8]) -> Option<SessionKey> {
    let mut tenant = Vec::new();
    let mut rest = bytes;
    loop {
        match rest {
            [0, 1, id @ ..] => {
                let id = String::from_utf8(id.to_vec()).ok()?;
                return SessionKey::new(String::from_utf8(tenant).ok()?, id).ok();
            }
            [0, 255, after @ ..] => {
                tenant.push(0);
                rest = after;
            }
            [0, ..] | [] => return None,
            [byte, after @ ..] => {
                tenant.push(*byte);
                rest = after;
            }
        }
    }
}

/// What is known of a session without reading it. Small, so that all of them are read when a store is opened, and so that a use
/// without a change costs no write of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Whether its body is no longer there: it expired.
    pub(super) expired: bool,
    pub(super) version: Version,
    /// Its last use that is known on disk, in milliseconds since 1970 UTC.
    pub(super) used_unix_ms: i64,
    pub(super) line: Line,
}

/// What a list of sessions tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) turns: u32,
    pub(super) created_unix_ms: i64,
    pub(super) updated_unix_ms: i64,
}

impl Line {
    pub(super) fn of(session: &Session) -> Line {
        Line {
            turns: session.dialog.turns,
            created_unix_ms: session.created_unix_ms,
            updated_unix_ms: session.updated_unix_ms,
        }
    }
}

impl Head {
    const BYTES: usize = 38;

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Head::BYTES);
        bytes.extend([FORMAT, u8::from(self.expired)]);
        bytes.extend(self.version.0.to_le_bytes());
        bytes.extend(self.used_unix_ms.to_le_bytes());
        bytes.extend(self.line.turns.to_le_bytes());
        bytes.extend(self.line.created_unix_ms.to_le_bytes());
        bytes.extend(self.line.updated_unix_ms.to_le_bytes());
        bytes
    }

    /// None when it is of another format, or damaged.
    pub(super) fn parse(bytes: &[u8]) -> Option<Head> {
        let (&[FORMAT, expired @ (0 | 1)], rest) = bytes.split_first_chunk()? else { return None };
        let (version, rest) = rest.split_first_chunk()?;
        let (used, rest) = rest.split_first_chunk()?;
        let (turns, rest) = rest.split_first_chunk()?;
        let (created, rest) = rest.split_first_chunk()?;
        let updated = rest.try_into().ok()?;
        let line = Line {
            turns: u32::from_le_bytes(*turns),
            created_unix_ms: i64::from_le_bytes(*created),
            updated_unix_ms: i64::from_le_bytes(updated),
        };
        Some(Head {
            expired: expired == 1,
            version: Version(u64::from_le_bytes(*version)),
            used_unix_ms: i64::from_le_bytes(*used),
            line,
        })
    }
}

/// A session as bytes, after its version.
pub(super) fn body_bytes(session: &Session, version: Version) -> Result<Vec<u8>, StoreError> {
    let mut bytes = version.0.to_le_bytes().to_vec();
    encode(session, &mut bytes)?;
    Ok(bytes)
}

/// The session in these bytes, when it is at this version; else what is wrong.
pub(super) fn parse_body(bytes: &[u8], version: Version) -> Result<Session, String> {
    let (found, rest) = bytes.split_first_chunk().ok_or("it is cut off")?;
    let found = u64::from_le_bytes(*found);
    if found != version.0 {
        return Err(format!("it is at version {found}, its head at {}", version.0));
    }
    decode(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(tenant: &str, id: &str) -> SessionKey {
        SessionKey::new(tenant, id).expect("a good id")
    }

    #[test]
    fn keys_that_read_alike_in_a_row_are_apart() {
        assert_ne!(key_bytes(&key("a", "bc")), key_bytes(&key("ab", "c")));
        assert_ne!(key_bytes(&key("a\0", "b")), key_bytes(&key("a", "b")));
        assert_eq!(key_bytes(&key(&"t".repeat(70_000), "a")), None);
    }

    proptest! {
        #[test]
        fn keys_keep_their_order_and_come_back(
            a in ("[\u{0}\u{1}a\u{ff}\u{10ffff}]{1,4}", "[a-c]{1,3}"),
            b in ("[\u{0}\u{1}a\u{ff}\u{10ffff}]{1,4}", "[a-c]{1,3}"),
        ) {
            let (a, b) = (key(&a.0, &a.1), key(&b.0, &b.1));
            let (a_bytes, b_bytes) = (key_bytes(&a).expect("short"), key_bytes(&b).expect("short"));
            prop_assert_eq!(a_bytes.cmp(&b_bytes), a.cmp(&b));
            prop_assert_eq!(parse_key(&a_bytes), Some(a));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = (parse_key(&bytes), Head::parse(&bytes), parse_body(&bytes, Version(1)));
        }

        #[test]
        fn heads_come_back(expired: bool, version: u64, used_unix_ms: i64, turns: u32, updated_unix_ms: i64) {
            let line = Line { turns, created_unix_ms: 7, updated_unix_ms };
            let head = Head { expired, version: Version(version), used_unix_ms, line };
            let bytes = head.to_bytes();
            prop_assert_eq!(Head::parse(&bytes), Some(head));
            prop_assert_eq!(Head::parse(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn a_body_of_another_version_or_format_is_refused() {
        let mut bytes = body_bytes(&Session::default(), Version(3)).expect("plain data");
        assert_eq!(parse_body(&bytes, Version(3)), Ok(Session::default()));
        assert!(parse_body(&bytes, Version(4)).is_err());
        assert!(parse_body(&bytes[..bytes.len() - 1], Version(3)).is_err());
        bytes[8] = 9;
        assert!(parse_body(&bytes, Version(3)).is_err_and(|why| why.contains("format 9")));
    }
}
