//! How a pushed version is to come into force: the query of a push.

use std::time::Duration;

use axum::extract::Query;
use axum::http::Uri;
use jackfield_policy::{Rollout, Share};
use serde::Deserialize;

use crate::error::ApiError;

/// The longest time as a shadow, in seconds.
const MOST_SHADOW_S: u64 = 30 * 24 * 3600;

/// The query, as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    shadow_s: Option<u64>,
    canary: Option<f64>,
}

impl Wanted {
    /// # Errors
    /// 400 for what is no such query.
    pub(super) fn read(uri: &Uri) -> Result<Wanted, ApiError> {
        let read = Query::<Wanted>::try_from_uri(uri);
        read.map(|Query(wanted)| wanted).map_err(|error| {
            let message = format!("The query: {}; there are shadow_s and canary", error.body_text());
            ApiError::invalid("query", "invalid_value", message)
        })
    }

    /// # Errors
    /// 400 for a number out of bounds.
    pub(super) fn rollout(self) -> Result<Rollout, ApiError> {
        let bad = |name: &str, bounds: &str| {
            ApiError::invalid(name, "invalid_value", format!("`{name}` is not {bounds}"))
        };
        let shadow = match self.shadow_s {
            Some(0 | MOST_SHADOW_S..) => return Err(bad("shadow_s", "within 1 second and 30 days")),
            seconds => seconds.map(Duration::from_secs),
        };
        let canary = match self.canary {
            Some(share) => {
                Some(Share::new(share).ok_or_else(|| bad("canary", "a share above 0 and at most 1"))?)
            }
            None => None,
        };
        Ok(Rollout { shadow, canary })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rollout(query: &str) -> Result<Rollout, ApiError> {
        let uri: Uri = format!("/admin/policies/p{query}").parse().unwrap();
        Wanted::read(&uri)?.rollout()
    }

    #[test]
    fn what_is_not_asked_for_is_at_once() {
        assert_eq!(rollout(""), Ok(Rollout::default()));
        let both = rollout("?shadow_s=600&canary=0.05").unwrap();
        assert_eq!((both.shadow, both.canary), (Some(Duration::from_secs(600)), Share::new(0.05)));
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (query, names) in [
            ("?shadow_s=0", "shadow_s"),
            ("?canary=0", "canary"),
            ("?canary=1.5", "canary"),
            ("?canary=NaN", "canary"),
            ("?share=1", "shadow_s and canary"),
            ("?shadow_s=ten", "shadow_s and canary"),
        ] {
            let error = rollout(query).unwrap_err();
            assert_eq!(error.status, 400);
            assert!(error.message.contains(names), "{query}: {}", error.message);
        }
    }
}
