//! `[sessions]`: where they are kept, for how long, and how they are treated.

use std::collections::BTreeMap;
use std::time::Duration;

use jackfield_dialog::{DiskLimits, MemoryLimits, RedisConfig};
use jackfield_server::{OnConflict, OnExpired, RecallBy, SessionConfig};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ConfigError;

/// Where sessions are kept, for how long, and how they are treated.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SessionsTable {
    /// Where they are kept: on `disk`, in the state folder; in `memory`, gone with the process; or in `redis`, for several hosts.
    store: Option<StoreName>,
    /// Of Redis or Valkey: `redis://HOST:PORT/DATABASE`, with `USER:PASSWORD@` before the host where it wants them.
    redis_url: Option<String>,
    /// Before the names of all keys, where hosts that are strangers share a server.
    redis_prefix: Option<String>,
    /// A session not used for so long is forgotten, in seconds.
    ttl_s: Option<u64>,
    /// Sessions kept; the one longest unused goes first. In Redis its own `maxmemory` decides.
    max_sessions: Option<usize>,
    /// What one session may take, in KiB.
    max_kib: Option<usize>,
    /// Turns of one session that may wait while another runs; one more gets 409.
    waiting_turns: Option<usize>,
    /// What becomes of a turn when another host committed one of the same session in between.
    on_conflict: Option<OnConflictName>,
    /// For how long the KV blocks of a turn are kept in memory and on disk once it is over, in seconds; others make room for them.
    keep_kv_s: Option<u64>,
    /// The same for single tenants: `{ gold = 86400 }`.
    keep_kv_s_of: BTreeMap<String, u64>,
    /// What becomes of a turn whose session has expired.
    on_expired: Option<OnExpiredName>,
    /// What has a turn go back to an earlier topic: nothing (`off`), a `request` or a policy, or these and `phrases` in what
    /// the user says. Wants the model for vectors.
    recall: Option<RecallName>,
    /// The phrases, in the place of those that the host knows.
    recall_phrases: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RecallName {
    Off,
    Request,
    Phrases,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StoreName {
    Disk,
    Memory,
    Redis,
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
pub(crate) enum SessionSettings {
    /// In the state folder.
    Disk(DiskLimits),
    /// In this process.
    Memory(MemoryLimits),
    /// On a server that several hosts use.
    Redis(RedisConfig),
}

impl SessionsTable {
    pub(super) fn treatment(&self) -> Result<SessionConfig, ConfigError> {
        if self.recall_phrases.is_some() && self.recall != Some(RecallName::Phrases) {
            return Err(ConfigError::OtherRecall);
        }
        let default = SessionConfig::default();
        Ok(SessionConfig {
            waiting_turns: self.waiting_turns.unwrap_or(default.waiting_turns),
            on_conflict: self.on_conflict.map_or(default.on_conflict, |name| match name {
                OnConflictName::Refuse => OnConflict::Refuse,
                OnConflictName::Merge => OnConflict::Merge,
            }),
            keep_kv: self.keep_kv_s.map_or(default.keep_kv, Duration::from_secs),
            keep_kv_of: self
                .keep_kv_s_of
                .iter()
                .map(|(tenant, seconds)| (tenant.clone(), Duration::from_secs(*seconds)))
                .collect(),
            on_expired: self.on_expired.map_or(default.on_expired, |name| match name {
                OnExpiredName::Refuse => OnExpired::Refuse,
                OnExpiredName::Restart => OnExpired::Restart,
            }),
            recall: self.recall.map_or(default.recall, |name| match name {
                RecallName::Off => RecallBy::Nobody,
                RecallName::Request => RecallBy::Request,
                RecallName::Phrases => RecallBy::Phrases,
            }),
            recall_phrases: self.recall_phrases.clone().unwrap_or(default.recall_phrases),
        })
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
        let MemoryLimits { max_sessions, max_session_bytes, ttl } = MemoryLimits::default();
        let max_sessions = self.max_sessions.unwrap_or(max_sessions);
        let max_session_bytes = self.max_kib.map_or(max_session_bytes, |kib| kib.saturating_mul(1 << 10));
        let ttl = self.ttl_s.map_or(ttl, Duration::from_secs);
        let store = self.store.unwrap_or(StoreName::Disk);
        if store == StoreName::Redis {
            let url = self.redis_url.as_deref().ok_or(ConfigError::NoRedis)?;
            let config =
                RedisConfig { max_session_bytes, ttl, url: url.to_owned(), ..RedisConfig::default() };
            let prefix = self.redis_prefix.clone().unwrap_or(config.prefix.clone());
            return Ok(SessionSettings::Redis(RedisConfig { prefix, ..config }));
        }
        if self.redis_url.is_some() || self.redis_prefix.is_some() {
            return Err(ConfigError::OtherStore);
        }
        Ok(match store {
            StoreName::Memory => {
                SessionSettings::Memory(MemoryLimits { max_sessions, max_session_bytes, ttl })
            }
            _ => SessionSettings::Disk(DiskLimits {
                max_sessions,
                max_session_bytes,
                ttl,
                ..DiskLimits::default()
            }),
        })
    }
}
