//! The store in Redis or Valkey, for several hosts.

mod keys;

use std::{fmt, future::Future, time::Duration};

use redis::{
    Client, FromRedisValue, RedisError, Script, ScriptInvocation,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use tokio::time::timeout;

use self::keys::Keys;
use crate::{
    BoxFuture, Found, Listed, Session, SessionKey, SessionStore, StoreError, Version,
    encoding::{decode, encode},
    store::check_size,
};

/// Where a [`RedisStore`] keeps sessions, and what it keeps at most.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisConfig {
    /// `redis://[user]:[password]@host:port/database`, or `unix:///path`.
    pub url: String,
    /// What all keys begin with, without `{` and `}`. Hosts that share it share their sessions.
    pub prefix: String,
    /// Bytes of one session.
    pub max_session_bytes: usize,
    /// A session not used for so long is forgotten.
    pub ttl: Duration,
    /// What takes longer has failed: each call of the store, and the first connection.
    pub timeout: Duration,
}

impl Default for RedisConfig {
    fn default() -> RedisConfig {
        RedisConfig {
            url: "redis://127.0.0.1:6379/0".into(),
            prefix: "jackfield:".into(),
            max_session_bytes: 1 << 20,
            ttl: Duration::from_secs(24 * 3600),
            timeout: Duration::from_secs(2),
        }
    }
}

/// Without the address, which may hold a password.
impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = f.debug_struct("RedisConfig");
        all.field("prefix", &self.prefix).field("max_session_bytes", &self.max_session_bytes);
        all.field("ttl", &self.ttl).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// Why a server cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The configuration says something that cannot be.
    #[error("the configuration of Redis is wrong: {0}")]
    Config(String),
    /// It did not answer, or refused.
    #[error("Redis cannot be reached: {0}")]
    Unreachable(String),
}

/// Sessions in Redis (6.2 or later) or Valkey, shared by all hosts that use one server and prefix.
///
/// Each call is one script in the server, so a commit is done wholly or not at all, and of two hosts that commit on one version one
/// wins. A commit that fails as [`StoreError::Unavailable`] may have been done or not: load again. Connections come back by
/// themselves. A crash of the server loses what its own persistence loses (with `appendfsync everysec`, a second); a failover,
/// what the replica had not yet.
///
/// Versions are the server's time in microseconds, or one more than the tenant's last. So they do not repeat even when the server
/// lost everything, unless its clock went back as well.
///
/// How many sessions there may be is the server's `maxmemory`, with `volatile-lru` as its policy: every key has a time to live.
///
/// Not supported: Redis Cluster (one connection, which does not follow redirections; though all keys of a tenant are in one slot),
/// Sentinel, TLS.
pub struct RedisStore {
    config: RedisConfig,
    connection: ConnectionManager,
    scripts: Scripts,
}

struct Scripts {
    find: Script,
    commit: Script,
    delete: Script,
    list: Script,
}

impl RedisStore {
    /// Connects, and waits for an answer.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(config: RedisConfig) -> Result<RedisStore, ConnectError> {
        if config.prefix.contains(['{', '}']) {
            return Err(ConnectError::Config("its prefix has a brace".into()));
        }
        if config.ttl.is_zero() || config.timeout.is_zero() {
            return Err(ConnectError::Config("a time to live and a timeout of 0 let nothing through".into()));
        }
        let client =
            Client::open(config.url.as_str()).map_err(|error| ConnectError::Config(error.to_string()))?;
        // A call waits for the connection no longer than for its answer, so what is tried in between should be tried soon.
        let tries = ConnectionManagerConfig::new()
            .set_number_of_retries(1)
            .set_min_delay(Duration::from_millis(50))
            .set_max_delay(Duration::from_millis(200))
            .set_connection_timeout(Some(config.timeout))
            .set_response_timeout(Some(config.timeout));
        let connecting = async {
            let mut connection = ConnectionManager::new_with_config(client, tries).await?;
            redis::cmd("PING").query_async::<()>(&mut connection).await?;
            Ok::<_, RedisError>(connection)
        };
        let connected = within(config.timeout, connecting).await;
        let connection = connected.map_err(ConnectError::Unreachable)?;
        Ok(RedisStore { config, connection, scripts: Scripts::new() })
    }

    async fn call<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, StoreError> {
        let mut connection = self.connection.clone();
        let called = within(self.config.timeout, script.invoke_async(&mut connection)).await;
        called.map_err(|why| StoreError::Unavailable(format!("Redis: {why}")))
    }

    /// A call about one session.
    fn about<'a>(&self, script: &'a Script, key: &SessionKey) -> ScriptInvocation<'a> {
        let mut call = script.prepare_invoke();
        call.key(&Keys::of(&self.config.prefix, key).all());
        call
    }

    fn ttl_ms(&self) -> u64 {
        u64::try_from(self.config.ttl.as_millis()).unwrap_or(u64::MAX).clamp(1, LONGEST_TTL_MS)
    }

    /// State, version and body, as `find.lua` says them.
    async fn find(&self, key: &SessionKey, with_body: bool) -> Result<(u8, String, Vec<u8>), StoreError> {
        let mut call = self.about(&self.scripts.find, key);
        call.arg(self.ttl_ms()).arg(key.id()).arg(u8::from(with_body));
        self.call(&call).await
    }

    async fn load(&self, key: &SessionKey) -> Result<Found, StoreError> {
        let unreadable = |why: String| {
            let (tenant, id) = (key.tenant(), key.id());
            StoreError::Unavailable(format!("session {id:?} of {tenant:?} cannot be read: {why}"))
        };
        match self.find(key, true).await? {
            (0, ..) => Ok(Found::New),
            (1, ..) => Ok(Found::Expired),
            (_, version, body) => {
                let session = decode(&body).map_err(unreadable)?;
                Ok(Found::Held(session, parse_version(&version)?))
            }
        }
    }

    async fn commit(
        &self,
        key: &SessionKey,
        expected: Version,
        session: &Session,
    ) -> Result<Version, StoreError> {
        check_size(session, self.config.max_session_bytes)?;
        let mut body = Vec::new();
        encode(session, &mut body)?;
        let mut call = self.about(&self.scripts.commit, key);
        call.arg(expected.0).arg(self.ttl_ms()).arg(body).arg(key.id());
        call.arg(session.dialog.turns).arg(session.created_unix_ms).arg(session.updated_unix_ms);
        let (committed, version): (u8, String) = self.call(&call).await?;
        let version = parse_version(&version)?;
        if committed == 1 { Ok(version) } else { Err(StoreError::Conflict { expected, found: version }) }
    }

    async fn list(&self, tenant: &str, after: Option<&str>, limit: usize) -> Result<Vec<Listed>, StoreError> {
        let prefix = &self.config.prefix;
        let mut call = self.scripts.list.prepare_invoke();
        call.key(keys::ids(prefix, tenant));
        call.arg(after.map_or("-".to_owned(), |after| format!("({after}"))).arg(limit);
        call.arg(keys::sessions(prefix, tenant));
        let lines: Vec<(String, u32, i64, i64)> = self.call(&call).await?;
        let listed = |(id, turns, created_unix_ms, updated_unix_ms)| Listed {
            id,
            turns,
            created_unix_ms,
            updated_unix_ms,
        };
        Ok(lines.into_iter().map(listed).collect())
    }
}

/// A hundred years: sums of it and the time are exact in the scripts, which calculate in 64-bit floats.
const LONGEST_TTL_MS: u64 = 100 * 366 * 24 * 3600 * 1000;

impl Scripts {
    fn new() -> Scripts {
        Scripts {
            find: Script::new(include_str!("redis/find.lua")),
            commit: Script::new(include_str!("redis/commit.lua")),
            delete: Script::new(include_str!("redis/delete.lua")),
            list: Script::new(include_str!("redis/list.lua")),
        }
    }
}

/// What is asked of the server, or why there is no answer.
async fn within<T>(limit: Duration, asked: impl Future<Output = Result<T, RedisError>>) -> Result<T, String> {
    let answered = timeout(limit, asked).await.map_err(|_| format!("no answer within {limit:?}"))?;
    answered.map_err(|error| error.to_string())
}

fn parse_version(text: &str) -> Result<Version, StoreError> {
    let wrong = |_| StoreError::Unavailable(format!("Redis: {text:?} is no version"));
    text.parse().map(Version).map_err(wrong)
}

impl SessionStore for RedisStore {
    fn load(&self, key: &SessionKey) -> BoxFuture<'_, Result<Found, StoreError>> {
        let key = key.clone();
        Box::pin(async move { self.load(&key).await })
    }

    fn commit(
        &self,
        key: &SessionKey,
        expected: Version,
        session: Session,
    ) -> BoxFuture<'_, Result<Version, StoreError>> {
        let key = key.clone();
        Box::pin(async move { self.commit(&key, expected, &session).await })
    }

    fn delete(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut call = self.about(&self.scripts.delete, key);
        call.arg(key.id());
        Box::pin(async move { self.call(&call).await })
    }

    fn touch(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        let key = key.clone();
        Box::pin(async move { Ok(self.find(&key, false).await?.0 == 2) })
    }

    fn list(
        &self,
        tenant: &str,
        after: Option<&str>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Listed>, StoreError>> {
        let (tenant, after) = (tenant.to_owned(), after.map(str::to_owned));
        Box::pin(async move { self.list(&tenant, after.as_deref(), limit).await })
    }

    fn ttl(&self) -> Duration {
        self.config.ttl
    }
}
