//! `jackfield.toml`: raw once, checked once, then small pieces that each part owns.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use jackfield_engine::{Activations, ConfigError as EngineConfigError, EngineConfig, KvType, StartError};
use jackfield_policy::RecordSettings;
use jackfield_server::{ApiKey, ServerConfig};
use serde::Deserialize;

use crate::args::ServeArgs;
use crate::dirs::Dirs;
use crate::model::{DEFAULT_MODEL, FetchError, Kind, ModelRef};

const MIB: usize = 1 << 20;

/// The file as it is written. Every field may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    model: Option<String>,
    embeddings: Option<String>,
    listen: Option<SocketAddr>,
    admin_listen: Option<SocketAddr>,
    admin_key: Option<String>,
    policies: Option<PathBuf>,
    state: Option<PathBuf>,
    threads: Option<usize>,
    cores: Option<Vec<usize>>,
    keys: Vec<Key>,
    engine: EngineTable,
    server: ServerTable,
    record: Option<RecordTable>,
}

/// Which calls of policies are written down, to be made again by other versions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordTable {
    tenants: Vec<String>,
    #[serde(default = "usual_record_mib")]
    max_mib: u64,
    mask: Option<String>,
}

fn usual_record_mib() -> u64 {
    256
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
    kv_type: Option<KvTypeName>,
    activations: Option<ActivationsName>,
    block_size: Option<usize>,
    max_step_tokens: Option<usize>,
    busy_prefill_tokens: Option<usize>,
    max_running: Option<usize>,
    max_waiting: Option<usize>,
    max_scoring: Option<usize>,
    max_context: Option<usize>,
    ageing_ms: Option<u64>,
    prefix_cache: Option<bool>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KvTypeName {
    F16,
    Int8,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ActivationsName {
    Fine,
    Fast,
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
    compress_to: Option<f32>,
}

/// What the host is started with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) model: ModelRef,
    pub(crate) embeddings: EmbeddingsRef,
    pub(crate) listen: SocketAddr,
    pub(crate) admin_listen: SocketAddr,
    pub(crate) policies: Option<PathBuf>,
    pub(crate) state: PathBuf,
    pub(crate) threads: usize,
    /// One for each thread; none where the system may move them.
    pub(crate) cores: Option<Vec<usize>>,
    pub(crate) engine: EngineConfig,
    pub(crate) server: ServerConfig,
    pub(crate) record: Option<RecordSettings>,
}

/// Where the model for vectors comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EmbeddingsRef {
    /// Where the cache has it, once a policy wants it.
    IfPulled,
    /// From the start, fetched where it has to be.
    Catalogue(ModelRef),
    /// From the start, from this folder.
    Folder(PathBuf),
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
    #[error("threads is {threads} and there are {} cores; give as many, or one of the two", cores.len())]
    Cores { threads: usize, cores: Vec<usize> },
    #[error("cores is empty; name at least one, or leave it out")]
    NoCores,
    #[error("threads is 0; give at least 1")]
    NoThreads,
    #[error("engine.{0} is 0; give at least 1")]
    NoEngine(&'static str),
    #[error(
        "engine.max_step_tokens ({step}) must be more than engine.max_running ({running}): everyone who runs takes one \
         token of a step, and prompts take the rest"
    )]
    StepTooSmall { step: usize, running: usize },
    #[error("engine.max_context is {0}; give at least 2: a prompt and an answer have a token each")]
    ContextTooSmall(usize),
    #[error("record.max_mib is 0; give at least 1, or leave [record] out")]
    NoRecord,
    #[error(
        "record.tenants is empty; name those whose calls are to be written down, or \"*\" for everyone's"
    )]
    NoRecordTenants,
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
        model.check(Kind::Writes)?;
        let cores = file.cores.as_ref().map(Vec::len);
        let mut server = file.server.over(ServerConfig::default());
        server.model_id.get_or_insert_with(|| model.id());
        Ok(Settings {
            model,
            embeddings: EmbeddingsRef::parse(file.embeddings.as_deref())?,
            listen: args.listen.or(file.listen).unwrap_or(loopback(8080)),
            admin_listen: args.admin_listen.or(file.admin_listen).unwrap_or(loopback(8081)),
            policies: args.policies.clone().or(file.policies),
            state: args.state.clone().or(file.state).unwrap_or_else(|| dirs.state()),
            threads: args.threads.or(file.threads).or(cores).unwrap_or_else(default_threads),
            cores: file.cores,
            engine: file.engine.over(EngineConfig::default()),
            server: ServerConfig {
                keys: file.keys.into_iter().map(|Key { key, tenant }| ApiKey { key, tenant }).collect(),
                admin_key: args.admin_key.clone().or(file.admin_key).filter(|key| !key.is_empty()),
                ..server
            },
            record: file.record.map(RecordTable::checked).transpose()?,
        })
    }

    fn check(&self) -> Result<(), ConfigError> {
        match &self.cores {
            Some(cores) if cores.is_empty() => return Err(ConfigError::NoCores),
            Some(cores) if cores.len() != self.threads => {
                return Err(ConfigError::Cores { threads: self.threads, cores: cores.clone() });
            }
            _ if self.threads == 0 => return Err(ConfigError::NoThreads),
            _ => {}
        }
        if self.listen == self.admin_listen && self.listen.port() != 0 {
            return Err(ConfigError::SharedPort(self.listen));
        }
        check_engine(&self.engine)?;
        Ok(self.server.check(self.listen, self.admin_listen)?)
    }
}

/// What can be told to be wrong before the model is loaded.
fn check_engine(engine: &EngineConfig) -> Result<(), ConfigError> {
    let sizes = [
        ("kv_mib", engine.kv_bytes),
        ("block_size", engine.block_size),
        ("busy_prefill_tokens", engine.busy_prefill_tokens),
        ("max_running", engine.max_running),
    ];
    if let Some((name, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
        return Err(ConfigError::NoEngine(name));
    }
    let (step, running) = (engine.max_step_tokens, engine.max_running);
    if step <= running {
        return Err(ConfigError::StepTooSmall { step, running });
    }
    match engine.max_context {
        Some(context @ 0..2) => Err(ConfigError::ContextTooSmall(context)),
        _ => Ok(()),
    }
}

/// Why the engine did not start, in the names of the file.
pub(crate) fn engine_refusal(error: StartError) -> String {
    match error {
        StartError::Config(EngineConfigError::TooFewBlocks { kv_bytes, blocks, block_size, block_bytes }) => {
            let least = block_bytes.saturating_mul(2).div_ceil(MIB);
            format!(
                "engine.kv_mib is {}, which holds {blocks} blocks of {block_size} tokens of this model; give at least \
                 {least}",
                kv_bytes / MIB
            )
        }
        StartError::Config(EngineConfigError::TooManyBlocks { kv_bytes, blocks, most }) => format!(
            "engine.kv_mib is {}, which holds {blocks} blocks; more than {most} cannot be numbered: give less, or a \
             larger engine.block_size",
            kv_bytes / MIB
        ),
        StartError::Kv(cause) => format!("cannot make the KV cache: {cause}; give a smaller engine.kv_mib"),
        other => other.to_string(),
    }
}

impl EmbeddingsRef {
    fn parse(text: Option<&str>) -> Result<EmbeddingsRef, FetchError> {
        let Some(text) = text else { return Ok(EmbeddingsRef::IfPulled) };
        match ModelRef::parse(text) {
            Ok(model @ ModelRef::Catalogue(_)) => {
                model.check(Kind::Embeds)?;
                Ok(EmbeddingsRef::Catalogue(model))
            }
            _ if Path::new(text).is_dir() => Ok(EmbeddingsRef::Folder(text.into())),
            _ => Err(FetchError::NoFolder(text.into())),
        }
    }
}

impl RecordTable {
    fn checked(self) -> Result<RecordSettings, ConfigError> {
        match self {
            RecordTable { max_mib: 0, .. } => Err(ConfigError::NoRecord),
            RecordTable { tenants, .. } if tenants.is_empty() => Err(ConfigError::NoRecordTenants),
            RecordTable { tenants, max_mib, mask } => {
                Ok(RecordSettings { tenants, max_bytes: max_mib.saturating_mul(MIB as u64), mask })
            }
        }
    }
}

impl From<KvTypeName> for KvType {
    fn from(name: KvTypeName) -> KvType {
        match name {
            KvTypeName::F16 => KvType::F16,
            KvTypeName::Int8 => KvType::Int8,
        }
    }
}

impl From<ActivationsName> for Activations {
    fn from(name: ActivationsName) -> Activations {
        match name {
            ActivationsName::Fine => Activations::Fine,
            ActivationsName::Fast => Activations::Fast,
        }
    }
}

impl EngineTable {
    fn over(self, default: EngineConfig) -> EngineConfig {
        let max_running = self.max_running.unwrap_or(default.max_running);
        // Who raises one limit need not know of the other.
        let enough = max_running.saturating_add(default.busy_prefill_tokens).max(default.max_step_tokens);
        EngineConfig {
            block_size: self.block_size.unwrap_or(default.block_size),
            kv_bytes: self.kv_mib.map_or(default.kv_bytes, |mib| mib.saturating_mul(MIB)),
            kv_type: self.kv_type.map_or(default.kv_type, KvType::from),
            activations: self.activations.map_or(default.activations, Activations::from),
            max_step_tokens: self.max_step_tokens.unwrap_or(enough),
            busy_prefill_tokens: self.busy_prefill_tokens.unwrap_or(default.busy_prefill_tokens),
            max_running,
            max_waiting: self.max_waiting.unwrap_or(default.max_waiting),
            max_scoring: self.max_scoring.unwrap_or(default.max_scoring),
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
            compress_to: self.compress_to.or(default.compress_to),
            // Not of this table.
            keys: default.keys,
            admin_key: default.admin_key,
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
    if let Some(folder) = file.embeddings.as_mut() {
        let beside = base.join(&*folder);
        if beside.is_dir() {
            *folder = beside.to_string_lossy().into_owned();
        }
    }
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
    fn the_cache_is_of_floats_unless_the_file_says_otherwise() {
        let kv_type = |toml: &str| settings(toml, &[]).expect("good").engine.kv_type;
        assert_eq!(kv_type(""), KvType::F16);
        assert_eq!(kv_type("[engine]\nkv_type = 'f16'"), KvType::F16);
        assert_eq!(kv_type("[engine]\nkv_type = 'int8'"), KvType::Int8);
        let error = refusal("[engine]\nkv_type = 'int4'", &[]);
        assert!(error.contains("int4") && error.contains("`int8`") && error.contains("line 2"), "{error}");
    }

    #[test]
    fn activations_are_fine_unless_the_file_says_otherwise() {
        let activations = |toml: &str| settings(toml, &[]).expect("good").engine.activations;
        assert_eq!(activations(""), Activations::Fine);
        assert_eq!(activations("[engine]\nactivations = 'fast'"), Activations::Fast);
        assert!(refusal("[engine]\nactivations = 'f32'", &[]).contains("`fast`"));
    }

    #[test]
    fn there_is_a_thread_for_each_core_that_is_named() {
        let found = settings("cores = [1, 0, 3]", &[]).expect("good");
        assert_eq!((found.threads, found.cores), (3, Some(vec![1, 0, 3])));
        assert_eq!(settings("", &[]).expect("good").cores, None);
        let error = refusal("threads = 2\ncores = [0]", &[]);
        assert!(error.contains("threads is 2 and there are 1 cores"), "{error}");
        assert!(refusal("cores = []", &[]).contains("cores is empty"));
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
    fn a_size_of_the_engine_is_refused_under_the_name_it_was_given() {
        for name in ["kv_mib", "block_size", "busy_prefill_tokens", "max_running"] {
            let error = refusal(&format!("[engine]\n{name} = 0"), &[]);
            assert!(error.contains(&format!("engine.{name} is 0")), "{error}");
        }
        let error = refusal("[engine]\nmax_running = 300\nmax_step_tokens = 128", &[]);
        assert!(error.contains("engine.max_step_tokens (128)"), "{error}");
        let more = settings("[engine]\nmax_running = 300", &[]).expect("a step has room for all who run");
        assert!(more.engine.max_step_tokens > 300);
        assert!(refusal("[engine]\nmax_context = 1", &[]).contains("engine.max_context is 1"));
        assert!(settings("[engine]\nmax_waiting = 0", &[]).is_ok(), "nobody waits; who runs, runs");
    }

    #[test]
    fn what_only_the_model_tells_is_refused_under_the_name_it_was_given() {
        let few =
            EngineConfigError::TooFewBlocks { kv_bytes: MIB, blocks: 1, block_size: 16, block_bytes: MIB };
        let many =
            EngineConfigError::TooManyBlocks { kv_bytes: 9 * MIB, blocks: 5_000_000_000, most: u32::MAX };
        for (error, words) in
            [(few, ["engine.kv_mib is 1,", "at least 2"]), (many, ["engine.kv_mib is 9,", "less"])]
        {
            let text = engine_refusal(StartError::Config(error));
            assert!(words.iter().all(|word| text.contains(word)) && !text.contains("kv_bytes"), "{text}");
        }
    }

    #[test]
    fn every_limit_of_the_server_can_be_set() {
        let table = "[server]\nmodel_id = 'm'\nmodel_aliases = ['a']\nmax_body_bytes = 1\nmax_upload_bytes = 2\n\
                     request_permits = 3\nmax_connections = 4\nkeep_alive_s = 5\nheader_timeout_s = 6\n\
                     body_timeout_s = 7\ndrain_s = 8\nutc_offset_minutes = 9\nlocale = 'zh'\ncompress_to = 0.25";
        let set = settings(table, &[]).expect("good").server;
        let ServerConfig { keys, admin_key, model_id, model_aliases, locale, compress_to, .. } = set.clone();
        assert!(keys.is_empty() && admin_key.is_none());
        assert_eq!((model_id.as_deref(), locale.as_str(), compress_to), (Some("m"), "zh", Some(0.25)));
        assert_eq!(model_aliases, ["a"]);
        let sizes = [set.max_body_bytes, set.max_upload_bytes, set.request_permits, set.max_connections];
        assert_eq!(sizes, [1, 2, 3, 4]);
        let times = [set.keep_alive_s, set.header_timeout_s, set.body_timeout_s, set.drain_s];
        assert_eq!((times, set.utc_offset_minutes), ([5, 6, 7, 8], 9));
        assert_eq!(settings("", &[]).expect("good").server.compress_to, ServerConfig::default().compress_to);
    }

    #[test]
    fn what_the_server_cannot_serve_is_named() {
        for (line, name) in [
            ("max_body_bytes = 0", "server.max_body_bytes"),
            ("request_permits = 0", "server.request_permits"),
            ("compress_to = 0.0", "server.compress_to"),
            ("compress_to = 1.5", "server.compress_to"),
            ("compress_to = nan", "server.compress_to"),
            ("utc_offset_minutes = 1081", "server.utc_offset_minutes"),
        ] {
            let error = refusal(&format!("[server]\n{line}"), &[]);
            assert!(error.contains(name), "{line}: {error}");
        }
        assert!(settings("[server]\ncompress_to = 1", &[]).is_ok(), "prompts are left alone");
    }

    #[test]
    fn embeddings_are_a_name_or_a_folder() {
        let embeddings = |toml: &str| settings(toml, &[]).map(|found| found.embeddings);
        assert!(matches!(embeddings(""), Ok(EmbeddingsRef::IfPulled)));
        assert!(matches!(embeddings("embeddings = 'minilm'"), Ok(EmbeddingsRef::Catalogue(_))));
        assert!(matches!(embeddings("embeddings = '.'"), Ok(EmbeddingsRef::Folder(_))), "beside the file");
        let error = refusal("embeddings = 'smollm2-135m'", &[]);
        assert!(error.contains("another kind") && error.contains("minilm"), "{error}");
        let error = refusal("embeddings = 'no/such/folder'", &[]);
        assert!(error.contains("no/such/folder") && error.contains("minilm"), "{error}");
        assert!(refusal("model = 'minilm'", &[]).contains("another kind"));
    }

    #[test]
    fn ports_and_keys_are_not_shared() {
        assert!(refusal("admin_listen = '127.0.0.1:8080'", &[]).contains("never shares"));
        let twice =
            "[[keys]]\nkey = 'sk-12345678'\ntenant = 'a'\n[[keys]]\nkey = 'sk-12345678'\ntenant = 'b'";
        assert!(refusal(twice, &[]).contains("key number 2"));
    }
}
