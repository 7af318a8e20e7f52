//! `[sessions]`: where they are kept, for how long, and how they are treated.

use std::time::Duration;

use jackfield_dialog::MemoryLimits;
use jackfield_server::{OnConflict, OnExpired, SessionConfig};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ConfigError;

/// Where sessions are kept, for how long, and how they are treated.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SessionsTable {
    /// A session not used for so long is forgotten, in seconds.
    ttl_s: Option<u64>,
    /// Sessions kept; the one longest unused goes first.
    max_sessions: Option<usize>,
    /// What one session may take, in KiB.
    max_kib: Option<usize>,
    /// Turns of one session that may wait while another runs; one more gets 409.
    waiting_turns: Option<usize>,
    /// What becomes of a turn when another host committed one of the same session in between.
    on_conflict: Option<OnConflictName>,
    /// What becomes of a turn whose session has expired.
    on_expired: Option<OnExpiredName>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum OnConflictName {
    Refuse,
    Merge,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum OnExpiredName {
    Refuse,
    Restart,
}

/// Where sessions are kept.
#[derive(Debug, Clone)]
pub(crate) struct SessionSettings {
    pub(crate) limits: MemoryLimits,
}

impl SessionsTable {
    pub(super) fn treatment(&self) -> SessionConfig {
        let default = SessionConfig::default();
        SessionConfig {
            waiting_turns: self.waiting_turns.unwrap_or(default.waiting_turns),
            on_conflict: self.on_conflict.map_or(default.on_conflict, |name| match name {
                OnConflictName::Refuse => OnConflict::Refuse,
                OnConflictName::Merge => OnConflict::Merge,
            }),
            on_expired: self.on_expired.map_or(default.on_expired, |name| match name {
                OnExpiredName::Refuse => OnExpired::Refuse,
                OnExpiredName::Restart => OnExpired::Restart,
            }),
        }
    }

    pub(super) fn kept(&self) -> Result<SessionSettings, ConfigError> {
        let zero = [
            ("ttl_s", self.ttl_s == Some(0)),
            ("max_sessions", self.max_sessions == Some(0)),
            ("max_kib", self.max_kib == Some(0)),
        ];
        if let Some((name, _)) = zero.into_iter().find(|(_, zero)| *zero) {
            return Err(ConfigError::NoSessions(name));
        }
        let default = MemoryLimits::default();
        Ok(SessionSettings {
            limits: MemoryLimits {
                max_sessions: self.max_sessions.unwrap_or(default.max_sessions),
                max_session_bytes: self
                    .max_kib
                    .map_or(default.max_session_bytes, |kib| kib.saturating_mul(1 << 10)),
                ttl: self.ttl_s.map_or(default.ttl, Duration::from_secs),
            },
        })
    }
}
