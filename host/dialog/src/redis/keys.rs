//! Names of keys in Redis.

use std::fmt::Write;

use crate::SessionKey;

/// The keys of one session. What stands in braces decides the slot of a cluster, so those of a tenant are in one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Keys {
    /// Of the session: a hash of version, body, and what a list tells.
    pub(super) session: String,
    /// Of the tenant's ids, in order.
    pub(super) ids: String,
    /// Of the times at which the tenant's sessions expire, kept for as long again.
    pub(super) due: String,
    /// Of the last version given to the tenant.
    pub(super) last: String,
}

impl Keys {
    pub(super) fn of(prefix: &str, key: &SessionKey) -> Keys {
        let tenant = tenant_part(prefix, key.tenant());
        Keys {
            session: format!("{}{}", sessions(prefix, key.tenant()), key.id()),
            ids: format!("{tenant}:ids"),
            due: format!("{tenant}:due"),
            last: format!("{tenant}:last"),
        }
    }

    /// In the order in which the scripts take them.
    pub(super) fn all(&self) -> [&str; 4] {
        [&self.session, &self.ids, &self.due, &self.last]
    }
}

/// The key of the tenant's ids.
pub(super) fn ids(prefix: &str, tenant: &str) -> String {
    format!("{}:ids", tenant_part(prefix, tenant))
}

/// What the keys of the tenant's sessions begin with; their ids follow.
pub(super) fn sessions(prefix: &str, tenant: &str) -> String {
    format!("{}:session:", tenant_part(prefix, tenant))
}

/// Every tenant another one, without a brace in its name. `%` alone stands for the empty one, since empty braces count for nothing.
fn tenant_part(prefix: &str, tenant: &str) -> String {
    let mut name = format!("{prefix}{{");
    for byte in tenant.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            name.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name.push_str(if tenant.is_empty() { "%}" } else { "}" });
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(tenant: &str, id: &str) -> Keys {
        Keys::of("jf:", &SessionKey::new(tenant, id).expect("a good id"))
    }

    #[test]
    fn all_keys_of_a_tenant_have_one_tag_and_no_tenants_meet() {
        let plain = keys("acme", "a:b");
        let expected = ["jf:{acme}:session:a:b", "jf:{acme}:ids", "jf:{acme}:due", "jf:{acme}:last"];
        assert_eq!(plain.all(), expected);
        assert_eq!(keys("a}:{é", "x").ids, "jf:{a%7D%3A%7B%C3%A9}:ids");
        let alike = ["a", "a%", "a%25", "A", "", "%", "a:b", "a}"];
        for (i, one) in alike.iter().enumerate() {
            for other in &alike[i + 1..] {
                assert_ne!(keys(one, "x").session, keys(other, "x").session);
            }
        }
        assert_ne!(keys("a", "bc").session, keys("ab", "c").session);
    }
}
