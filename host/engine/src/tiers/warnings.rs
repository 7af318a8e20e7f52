//! Warnings that say the same thing seldom.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a kind of warning is not repeated.
const QUIET: Duration = Duration::from_secs(60);

/// When each kind was last said.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<HashMap<String, Instant>>);

impl Warnings {
    /// True the first time for a kind, and again when it has been quiet for long.
    pub(crate) fn may_say(&self, kind: &str) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if said.get(kind).is_some_and(|last| now.duration_since(*last) < QUIET) {
            return false;
        }
        said.insert(kind.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_said_once() {
        let warnings = Warnings::default();
        assert!(warnings.may_say("full") && warnings.may_say("torn"));
        assert!(!warnings.may_say("full"));
    }
}
