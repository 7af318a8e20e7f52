//! `jackfield.toml`: raw once, checked once, then small pieces that each part owns.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use jackfield_engine::EngineConfig;
use jackfield_server::{ApiKey, ServerConfig};
use serde::Deserialize;

use crate::args::ServeArgs;
use crate::dirs::Dirs;
use crate::model::{DEFAULT_MODEL, FetchError, ModelRef};

/// The file as it is written. Every field may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    model: Option<String>,
    listen: Option<SocketAddr>,
    admin_listen: Option<SocketAddr>,
    admin_key: Option<String>,
    policies: Option<PathBuf>,
    state: Option<PathBuf>,
    threads: Option<usize>,
    keys: Vec<Key>,
    engine: EngineTable,
    server: ServerTable,
}

/// An API key and the tenant that it stands for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    key: String,
    tenant: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EngineTable {
    kv_mib: Option<usize>,
    block_size: Option<usize>,
    max_step_tokens: Option<usize>,
    max_running: Option<usize>,
    max_waiting: Option<usize>,
    max_context: Option<usize>,
    ageing_ms: Option<u64>,
    prefix_cache: Option<bool>,
}

/// Names and limits of the HTTP side.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ServerTable {
    model_id: Option<String>,
    model_aliases: Option<Vec<String>>,
    max_body_bytes: Option<usize>,
    max_upload_bytes: Option<usize>,
    request_permits: Option<usize>,
    max_connections: Option<usize>,
    keep_alive_s: Option<u64>,
    header_timeout_s: Option<u64>,
    body_timeout_s: Option<u64>,
    drain_s: Option<u64>,
    utc_offset_minutes: Option<i16>,
    locale: Option<String>,
}

/// What the host is started with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) model: ModelRef,
    pub(crate) listen: SocketAddr,
    pub(crate) admin_listen: SocketAddr,
    pub(crate) policies: Option<PathBuf>,
    pub(crate) state: PathBuf,
    pub(crate) threads: usize,
    pub(crate) engine: EngineConfig,
    pub(crate) server: ServerConfig,
}

/// A configuration that cannot be used; the text says what to change.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read {}: {cause}", path.display())]
    Read { path: PathBuf, cause: std::io::Error },
    #[error("{}: {cause}", path.display())]
    Parse { path: PathBuf, cause: toml::de::Error },
    #[error("listen and admin_listen are both {0}; the admin API never shares the API's port")]
    SharedPort(SocketAddr),
    #[error("threads is 0; give at least 1")]
    NoThreads,
    #[error(transparent)]
    Server(#[from] jackfield_server::ConfigError),
    #[error(transparent)]
    Model(#[from] FetchError),
}

impl Settings {
    pub(crate) fn read(args: &ServeArgs, dirs: &Dirs) -> Result<Settings, ConfigError> {
        let file = args.config.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let settings = Settings::merge(args, file, dirs)?;
        settings.check()?;
        Ok(settings)
    }

    fn merge(args: &ServeArgs, file: File, dirs: &Dirs) -> Result<Settings, ConfigError> {
        let model = args.model.as_deref().or(file.model.as_deref()).unwrap_or(DEFAULT_MODEL);
        let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let model = ModelRef::parse(model)?;
        let mut server = file.server.over(ServerConfig::default());
        server.model_id.get_or_insert_with(|| model.id());
        Ok(Settings {
            model,
            listen: args.listen.or(file.listen).unwrap_or(loopback(8080)),
            admin_listen: args.admin_listen.or(file.admin_listen).unwrap_or(loopback(8081)),
            policies: args.policies.clone().or(file.policies),
            state: args.state.clone().or(file.state).unwrap_or_else(|| dirs.state()),
            threads: args.threads.or(file.threads).unwrap_or_else(default_threads),
            engine: file.engine.over(EngineConfig::default()),
            server: ServerConfig {
                keys: file.keys.into_iter().map(|Key { key, tenant }| ApiKey { key, tenant }).collect(),
                admin_key: args.admin_key.clone().or(file.admin_key).filter(|key| !key.is_empty()),
                ..server
            },
        })
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.threads == 0 {
            return Err(ConfigError::NoThreads);
        }
        if self.listen == self.admin_listen && self.listen.port() != 0 {
            return Err(ConfigError::SharedPort(self.listen));
        }
        Ok(self.server.check(self.listen, self.admin_listen)?)
    }
}

impl EngineTable {
    fn over(self, default: EngineConfig) -> EngineConfig {
        EngineConfig {
            block_size: self.block_size.unwrap_or(default.block_size),
            kv_bytes: self.kv_mib.map_or(default.kv_bytes, |mib| mib.saturating_mul(1 << 20)),
            max_step_tokens: self.max_step_tokens.unwrap_or(default.max_step_tokens),
            max_running: self.max_running.unwrap_or(default.max_running),
            max_waiting: self.max_waiting.unwrap_or(default.max_waiting),
            ageing_ms: self.ageing_ms.unwrap_or(default.ageing_ms),
            prefix_cache: self.prefix_cache.unwrap_or(default.prefix_cache),
            max_context: self.max_context.or(default.max_context),
        }
    }
}

impl ServerTable {
    fn over(self, default: ServerConfig) -> ServerConfig {
        ServerConfig {
            model_id: self.model_id.or(default.model_id),
            model_aliases: self.model_aliases.unwrap_or(default.model_aliases),
            max_body_bytes: self.max_body_bytes.unwrap_or(default.max_body_bytes),
            max_upload_bytes: self.max_upload_bytes.unwrap_or(default.max_upload_bytes),
            request_permits: self.request_permits.unwrap_or(default.request_permits),
            max_connections: self.max_connections.unwrap_or(default.max_connections),
            keep_alive_s: self.keep_alive_s.unwrap_or(default.keep_alive_s),
            header_timeout_s: self.header_timeout_s.unwrap_or(default.header_timeout_s),
            body_timeout_s: self.body_timeout_s.unwrap_or(default.body_timeout_s),
            drain_s: self.drain_s.unwrap_or(default.drain_s),
            utc_offset_minutes: self.utc_offset_minutes.unwrap_or(default.utc_offset_minutes),
            locale: self.locale.unwrap_or(default.locale),
            ..default
        }
    }
}

/// Paths in the file are relative to the file.
fn read_file(path: &Path) -> Result<File, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|cause| ConfigError::Read { path: path.to_owned(), cause })?;
    let mut file: File =
        toml::from_str(&text).map_err(|cause| ConfigError::Parse { path: path.to_owned(), cause })?;
    let base = path.parent().unwrap_or(Path::new(""));
    file.policies = file.policies.map(|dir| base.join(dir));
    file.state = file.state.map(|dir| base.join(dir));
    if let Some(model) = file.model.as_mut() {
        let beside = base.join(&*model);
        if beside.is_file() {
            *model = beside.to_string_lossy().into_owned();
        }
    }
    Ok(file)
}

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn settings(toml: &str, flags: &[&str]) -> Result<Settings, ConfigError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("jackfield.toml");
        std::fs::write(&path, toml).expect("written");
        let path = path.to_string_lossy().into_owned();
        let line = ["jackfield", "serve", "--config", path.as_str()];
        let cli = crate::args::Cli::parse_from(line.iter().chain(flags));
        let crate::args::Command::Serve(args) = cli.command else { unreachable!("it says serve") };
        Settings::read(&args, &Dirs::from_environment())
    }

    fn refusal(toml: &str, flags: &[&str]) -> String {
        settings(toml, flags).expect_err("refused").to_string()
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let found =
            settings("listen = '127.0.0.1:1'\nthreads = 3\n[engine]\nkv_mib = 2", &["--threads", "5"]);
        let found = found.expect("good");
        assert_eq!(found.listen.port(), 1);
        assert_eq!(found.admin_listen.port(), 8081);
        assert_eq!(found.threads, 5);
        assert_eq!(found.engine.kv_bytes, 2 << 20);
    }

    #[test]
    fn an_unknown_field_is_named_with_its_line() {
        let error = refusal("threads = 1\nlisten_on = 'x'", &[]);
        assert!(error.contains("listen_on") && error.contains("line 2, column 1"), "{error}");
    }

    #[test]
    fn an_open_api_stays_on_loopback() {
        assert!(refusal("listen = '0.0.0.0:80'", &[]).contains("has no keys"));
        assert!(refusal("admin_listen = '0.0.0.0:81'", &[]).contains("admin API has no key"));
        let keyed = "listen = '0.0.0.0:80'\n[[keys]]\nkey = 'sk-12345678'\ntenant = 'a'";
        assert!(settings(keyed, &[]).is_ok());
    }

    #[test]
    fn ports_and_keys_are_not_shared() {
        assert!(refusal("admin_listen = '127.0.0.1:8080'", &[]).contains("never shares"));
        let twice =
            "[[keys]]\nkey = 'sk-12345678'\ntenant = 'a'\n[[keys]]\nkey = 'sk-12345678'\ntenant = 'b'";
        assert!(refusal(twice, &[]).contains("key number 1"));
    }
}
