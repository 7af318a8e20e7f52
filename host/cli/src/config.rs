//! `jackfield.toml`: raw once, checked once, then small pieces that each part owns.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use jackfield_engine::EngineConfig;
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
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Key {
    pub(crate) key: String,
    pub(crate) tenant: String,
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

/// Limits of the HTTP side; what is left out has the server's default.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerTable {
    pub(crate) max_body_bytes: Option<usize>,
    pub(crate) drain_s: Option<u64>,
    pub(crate) keep_alive_s: Option<u64>,
    pub(crate) body_timeout_s: Option<u64>,
}

/// What the host is started with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) model: ModelRef,
    pub(crate) listen: SocketAddr,
    pub(crate) admin_listen: SocketAddr,
    pub(crate) admin_key: Option<String>,
    pub(crate) policies: Option<PathBuf>,
    pub(crate) state: PathBuf,
    pub(crate) threads: usize,
    pub(crate) keys: Vec<Key>,
    pub(crate) engine: EngineConfig,
    pub(crate) server: ServerTable,
}

/// A configuration that cannot be used; the text says what to change.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read {}: {cause}", path.display())]
    Read { path: PathBuf, cause: std::io::Error },
    #[error("{}: {cause}", path.display())]
    Parse { path: PathBuf, cause: toml::de::Error },
    #[error(
        "listening on {0} needs API keys: without keys anyone who reaches the address may use it; \
         add [[keys]] to the configuration or listen on 127.0.0.1"
    )]
    OpenToAll(SocketAddr),
    #[error(
        "the admin API on {0} needs a key: set admin_key, JACKFIELD_ADMIN_KEY or --admin-key, \
         or listen on 127.0.0.1"
    )]
    AdminOpenToAll(SocketAddr),
    #[error("listen and admin_listen are both {0}; the admin API never shares the API's port")]
    SharedPort(SocketAddr),
    #[error("keys[{index}]: {problem}")]
    Key { index: usize, problem: &'static str },
    #[error("threads is 0; give at least 1")]
    NoThreads,
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
        Ok(Settings {
            model: ModelRef::parse(model)?,
            listen: args.listen.or(file.listen).unwrap_or(loopback(8080)),
            admin_listen: args.admin_listen.or(file.admin_listen).unwrap_or(loopback(8081)),
            admin_key: args.admin_key.clone().or(file.admin_key).filter(|key| !key.is_empty()),
            policies: args.policies.clone().or(file.policies),
            state: args.state.clone().or(file.state).unwrap_or_else(|| dirs.state()),
            threads: args.threads.or(file.threads).unwrap_or_else(default_threads),
            keys: file.keys,
            engine: file.engine.over(EngineConfig::default()),
            server: file.server,
        })
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.threads == 0 {
            return Err(ConfigError::NoThreads);
        }
        if self.listen == self.admin_listen && self.listen.port() != 0 {
            return Err(ConfigError::SharedPort(self.listen));
        }
        if self.keys.is_empty() && !self.listen.ip().is_loopback() {
            return Err(ConfigError::OpenToAll(self.listen));
        }
        if self.admin_key.is_none() && !self.admin_listen.ip().is_loopback() {
            return Err(ConfigError::AdminOpenToAll(self.admin_listen));
        }
        check_keys(&self.keys)
    }
}

fn check_keys(keys: &[Key]) -> Result<(), ConfigError> {
    for (index, key) in keys.iter().enumerate() {
        let problem = match key {
            Key { key, .. } if key.len() < 8 => Some("a key needs at least 8 characters"),
            Key { tenant, .. } if tenant.is_empty() => Some("the tenant's name is empty"),
            _ if keys[..index].iter().any(|other| other.key == key.key) => Some("the key is there twice"),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(ConfigError::Key { index, problem });
        }
    }
    Ok(())
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

/// Paths in the file are relative to the file.
fn read_file(path: &Path) -> Result<File, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|cause| ConfigError::Read { path: path.to_owned(), cause })?;
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
        let found = settings("listen = '127.0.0.1:1'\nthreads = 3\n[engine]\nkv_mib = 2", &["--threads", "5"]);
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
        assert!(refusal("listen = '0.0.0.0:80'", &[]).contains("[[keys]]"));
        assert!(refusal("admin_listen = '0.0.0.0:81'", &[]).contains("admin_key"));
        let keyed = "listen = '0.0.0.0:80'\n[[keys]]\nkey = 'sk-12345678'\ntenant = 'a'";
        assert!(settings(keyed, &[]).is_ok());
    }

    #[test]
    fn ports_and_keys_are_not_shared() {
        assert!(refusal("admin_listen = '127.0.0.1:8080'", &[]).contains("never shares"));
        let twice = "[[keys]]\nkey = 'sk-12345678'\ntenant = 'a'\n[[keys]]\nkey = 'sk-12345678'\ntenant = 'b'";
        assert!(refusal(twice, &[]).contains("keys[1]"));
    }
}
