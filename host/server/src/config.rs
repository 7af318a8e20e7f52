//! What an operator may set of the HTTP side, and what it is checked for.

mod phrases;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use jackfield_policy::Trust;
use phrases::RECALL_PHRASES;

/// How far from UTC a zone may be; policies are given nothing beyond.
pub(crate) const MOST_OFFSET_MINUTES: i16 = 1080;

/// A key and whose it is. All keys of one tenant share its sessions and its prefix cache; no two tenants share either.
#[derive(Clone)]
pub struct ApiKey {
    /// What the client sends as `Authorization: Bearer …`.
    pub key: String,
    /// The tenant it stands for.
    pub tenant: String,
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ApiKey").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

/// Settings of the HTTP side.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Without keys the API is open, which is allowed on loopback only.
    pub keys: Vec<ApiKey>,
    /// Without a key the admin API is open, which is allowed on loopback only.
    pub admin_key: Option<String>,
    /// The name under which the model is served; none takes the one in its file.
    pub model_id: Option<String>,
    /// Other names that mean the same model.
    pub model_aliases: Vec<String>,
    /// Bytes of one request body, after decoding.
    pub max_body_bytes: usize,
    /// Bytes of one policy upload.
    pub max_upload_bytes: usize,
    /// Turns that may be in progress at once; one more gets 429.
    pub request_permits: usize,
    /// Connections that may be open at once; one more waits to be accepted.
    pub max_connections: usize,
    /// A stream without data for so long gets a comment.
    pub keep_alive_s: u64,
    /// A request head that takes longer ends the connection; so does a connection idle for so long.
    pub header_timeout_s: u64,
    /// A body that pauses for so long gets 408.
    pub body_timeout_s: u64,
    /// After the signal to stop, running turns have so long to finish.
    pub drain_s: u64,
    /// The offset of the zone in which users' words are read when a request does not say.
    pub utc_offset_minutes: i16,
    /// The language that is assumed when a request does not say.
    pub locale: String,
    /// Share of a prompt's tokens that compressors are asked to keep when no router decides, above 0; 1 or none leaves
    /// prompts alone.
    pub compress_to: Option<f32>,
    /// Whether prompts that were compressed are held against the original.
    pub verify: VerifyConfig,
    /// How sessions are treated.
    pub sessions: SessionConfig,
    /// Who may sign policies that are pushed.
    pub trust: Trust,
}

/// Whether prompts that were compressed are held against the original: the model is asked what it would say next after both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VerifyConfig {
    /// The share of turns, 0 to 1.
    pub share: f32,
    /// The divergence, in nats, up to which a compressed prompt is taken: of what would be said next after the original from what
    /// would be after it.
    pub most_divergence: f32,
}

impl Default for VerifyConfig {
    fn default() -> Self {
        VerifyConfig { share: 0.0, most_divergence: 0.15 }
    }
}

/// How sessions are treated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionConfig {
    /// Turns of one session that may wait while another runs; one more gets 409. With 0 nobody waits.
    pub waiting_turns: usize,
    /// What becomes of a turn when another host committed one of the same session in between.
    pub on_conflict: OnConflict,
    /// What becomes of a turn whose session has expired.
    pub on_expired: OnExpired,
    /// For how long the KV blocks of a turn are kept below the device once it is over; zero leaves that to their use.
    pub keep_kv: Duration,
    /// The same for single tenants.
    pub keep_kv_of: BTreeMap<String, Duration>,
    /// Who may have a turn go back to an earlier topic.
    pub recall: RecallBy,
    /// What a user says who means something that was said before, in any case.
    pub recall_phrases: Vec<String>,
}

/// Who may have a turn go back to an earlier topic of its session. Unless it is nobody, each turn is summed up by a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecallBy {
    /// Nobody: no vectors are made.
    Nobody,
    /// The request, or a slot extractor.
    Request,
    /// These, or a phrase in what the user says.
    Phrases,
}

/// Phrases that are looked for, at most.
const MOST_PHRASES: usize = 256;
/// Bytes of one.
const MOST_PHRASE_BYTES: usize = 256;

impl SessionConfig {
    fn check_phrases(&self) -> Result<(), ConfigError> {
        let phrases = &self.recall_phrases;
        if phrases.is_empty() || phrases.len() > MOST_PHRASES {
            return Err(ConfigError::Phrases(phrases.len()));
        }
        let is_odd = |phrase: &String| phrase.trim().is_empty() || phrase.len() > MOST_PHRASE_BYTES;
        phrases.iter().position(is_odd).map_or(Ok(()), |index| Err(ConfigError::Phrase(index + 1)))
    }

    /// For how long the KV blocks of this tenant's turns are kept.
    pub(crate) fn keep_for(&self, tenant: &str) -> Duration {
        self.keep_kv_of.get(tenant).copied().unwrap_or(self.keep_kv)
    }
}

/// What becomes of a turn when another host committed one of the same session in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// It gets 409, and nothing of it is kept.
    Refuse,
    /// It is added after the other: slots are united, and where both changed one, the later turn wins.
    Merge,
}

/// What becomes of a turn whose session has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExpired {
    /// It gets 410.
    Refuse,
    /// It begins the session anew; the answer's `x-jackfield-session` says `restarted`.
    Restart,
}

impl Default for SessionConfig {
    fn default() -> Self {
        SessionConfig {
            waiting_turns: 8,
            on_conflict: OnConflict::Refuse,
            on_expired: OnExpired::Refuse,
            keep_kv: Duration::from_secs(3600),
            keep_kv_of: BTreeMap::new(),
            recall: RecallBy::Nobody,
            recall_phrases: RECALL_PHRASES.iter().map(|phrase| (*phrase).to_owned()).collect(),
        }
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            keys: Vec::new(),
            admin_key: None,
            model_id: None,
            model_aliases: vec!["default".into()],
            max_body_bytes: 4 << 20,
            max_upload_bytes: 64 << 20,
            request_permits: 512,
            max_connections: 4096,
            keep_alive_s: 10,
            header_timeout_s: 30,
            body_timeout_s: 15,
            drain_s: 30,
            utc_offset_minutes: 0,
            locale: "en".into(),
            compress_to: Some(0.5),
            verify: VerifyConfig::default(),
            sessions: SessionConfig::default(),
            trust: Trust::default(),
        }
    }
}

/// A configuration that must not be served.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Anyone who reaches the address could use the API.
    #[error("{0} is not loopback, and the API has no keys; configure a key or listen on 127.0.0.1")]
    OpenToAll(SocketAddr),
    /// Anyone who reaches the address could change policies.
    #[error("{0} is not loopback, and the admin API has no key; configure one or listen on 127.0.0.1")]
    AdminOpenToAll(SocketAddr),
    /// A limit of zero serves nobody.
    #[error("`server.{0}` is 0; it must be at least 1")]
    Zero(&'static str),
    /// No prompt can keep such a share of its tokens.
    #[error("`server.compress_to` is {0}; it must be above 0 and at most 1, which leaves prompts alone")]
    Share(f32),
    /// What turns are verified is a share of them.
    #[error("`server.verify_share` is {0}; it must be at least 0 and at most 1")]
    VerifyShare(f32),
    /// No prompt diverges by less than nothing.
    #[error("`server.verify_divergence` is {0}; it must be a number of at least 0")]
    VerifyDivergence(f32),
    /// No zone is so far from UTC.
    #[error("`server.utc_offset_minutes` is {0}; it must be between -{most} and {most}", most = MOST_OFFSET_MINUTES)]
    Offset(i16),
    /// A phrase that is in every text, or none that anybody says; counted from 1.
    #[error(
        "phrase number {0} of `sessions.recall_phrases` is blank or has more than {MOST_PHRASE_BYTES} bytes"
    )]
    Phrase(usize),
    /// Phrases without end.
    #[error("`sessions.recall_phrases` has {0} phrases; give 1 to {MOST_PHRASES}")]
    Phrases(usize),
    /// A key that is empty or two that are the same; counted from 1.
    #[error("key number {0} is empty or the same as an earlier one")]
    Key(usize),
}

impl ServerConfig {
    /// Checks the settings against the addresses they are to be served on.
    ///
    /// # Errors
    /// Says which setting to change.
    pub fn check(&self, api: SocketAddr, admin: SocketAddr) -> Result<(), ConfigError> {
        if self.keys.is_empty() && !api.ip().is_loopback() {
            return Err(ConfigError::OpenToAll(api));
        }
        if self.admin_key.is_none() && !admin.ip().is_loopback() {
            return Err(ConfigError::AdminOpenToAll(admin));
        }
        for (index, key) in self.keys.iter().enumerate() {
            if key.key.is_empty() || self.keys[..index].iter().any(|other| other.key == key.key) {
                return Err(ConfigError::Key(index + 1));
            }
        }
        self.check_limits()
    }

    fn check_limits(&self) -> Result<(), ConfigError> {
        let limits = [
            ("max_body_bytes", self.max_body_bytes),
            ("max_upload_bytes", self.max_upload_bytes),
            ("request_permits", self.request_permits),
            ("max_connections", self.max_connections),
        ];
        match limits.iter().find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(ConfigError::Zero(name)),
            None => self.check_habits(),
        }
    }

    /// What a turn is given when neither request nor router says otherwise.
    fn check_habits(&self) -> Result<(), ConfigError> {
        if let Some(share) = self.compress_to.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
            return Err(ConfigError::Share(share));
        }
        let VerifyConfig { share, most_divergence } = self.verify;
        if !(0.0..=1.0).contains(&share) {
            return Err(ConfigError::VerifyShare(share));
        }
        if most_divergence.is_nan() || most_divergence < 0.0 {
            return Err(ConfigError::VerifyDivergence(most_divergence));
        }
        let offset = self.utc_offset_minutes;
        if offset.unsigned_abs() > MOST_OFFSET_MINUTES.unsigned_abs() {
            return Err(ConfigError::Offset(offset));
        }
        self.sessions.check_phrases()
    }

    pub(crate) fn body_timeout(&self) -> Duration {
        Duration::from_secs(self.body_timeout_s.max(1))
    }

    pub(crate) fn keep_alive(&self) -> Duration {
        Duration::from_secs(self.keep_alive_s.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config: &ServerConfig, api: &str, admin: &str) -> Result<(), ConfigError> {
        config.check(api.parse().unwrap(), admin.parse().unwrap())
    }

    #[test]
    fn open_apis_stay_on_loopback() {
        let open = ServerConfig::default();
        assert_eq!(check(&open, "127.0.0.1:1", "[::1]:2"), Ok(()));
        assert!(matches!(check(&open, "0.0.0.0:1", "127.0.0.1:2"), Err(ConfigError::OpenToAll(_))));
        let key = ApiKey { key: "k".into(), tenant: "t".into() };
        let keyed = ServerConfig { keys: vec![key.clone()], ..ServerConfig::default() };
        assert_eq!(check(&keyed, "0.0.0.0:1", "127.0.0.1:2"), Ok(()));
        assert!(matches!(check(&keyed, "0.0.0.0:1", "0.0.0.0:2"), Err(ConfigError::AdminOpenToAll(_))));
        let twice = ServerConfig { keys: vec![key.clone(), key], ..ServerConfig::default() };
        assert_eq!(check(&twice, "0.0.0.0:1", "127.0.0.1:2"), Err(ConfigError::Key(2)));
    }

    #[test]
    fn a_key_is_never_printed() {
        let key = ApiKey { key: "secret".into(), tenant: "t".into() };
        assert!(!format!("{key:?}").contains("secret"));
    }
}
