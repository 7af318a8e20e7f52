//! `jackfield.toml`: raw once, checked once, then small pieces that each part owns.

mod command;
mod file;
mod place;
mod policies;
mod sessions;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use jackfield_engine::{ConfigError as EngineConfigError, EngineConfig, InvalidServer, StartError};
use jackfield_kernels::Isa;
use jackfield_policy::{RecordSettings, SignatureError, TrustedKeys};
use jackfield_server::{ApiKey, ConfigError as ServerError, ServerConfig};

pub(crate) use command::run;
use file::{File, Key, RecordTable};
pub(crate) use place::ConfigFile;
pub(crate) use policies::{FileOrTable, PolicyRef};
pub(crate) use sessions::SessionSettings;

use crate::args::ServeArgs;
use crate::dirs::Dirs;
use crate::distribution::{FetchError as SourceError, Fetching};
use crate::model::{DEFAULT_MODEL, FetchError, Kind, ModelRef};

const MIB: usize = 1 << 20;

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
    /// The best that the processor has where it is not given.
    pub(crate) isa: Option<Isa>,
    pub(crate) engine: EngineConfig,
    pub(crate) server: ServerConfig,
    /// Where sessions are kept.
    pub(crate) sessions: SessionSettings,
    pub(crate) record: Option<RecordSettings>,
    /// Policies by reference, as they stand in the file.
    pub(crate) references: Vec<PolicyRef>,
    /// Where they may come from.
    pub(crate) fetching: Fetching,
    /// Who may sign policies.
    pub(crate) keys: TrustedKeys,
    /// The file itself; none when the host is started without one.
    pub(crate) file: Option<ConfigFile>,
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
    #[error("{}: {cause}{}", path.display(), place::suggestion(cause))]
    Parse { path: PathBuf, cause: toml::de::Error },
    #[error("{place}: {cause}")]
    At { place: String, cause: Box<ConfigError> },
    #[error("listen and admin_listen are both {0}; the admin API never shares the API's port")]
    SharedPort(SocketAddr),
    #[error("threads is {threads} and there are {} cores; give as many, or one of the two", cores.len())]
    Cores { threads: usize, cores: Vec<usize> },
    #[error("cores is empty; name at least one, or leave it out")]
    NoCores,
    #[error("threads is 0; give at least 1")]
    NoThreads,
    #[error("sessions.store is redis; give its sessions.redis_url, such as redis://127.0.0.1:6379/0")]
    NoRedis,
    #[error("sessions.redis_url and redis_prefix go with `store = \"redis\"`")]
    OtherStore,
    #[error("sessions.{0} is 0; give at least 1")]
    NoSessions(&'static str),
    #[error("sessions.recall_phrases goes with `recall = \"phrases\"`")]
    OtherRecall,
    #[error("engine.{0} is 0; give at least 1")]
    NoEngine(&'static str),
    #[error("engine.kv_remote: {0}")]
    KvRemote(#[from] InvalidServer),
    #[error("engine.{0} goes with engine.kv_remote")]
    NoKvRemote(&'static str),
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
    #[error("{cause}")]
    Source { index: usize, cause: SourceError },
    #[error("`{0}` is the name of two policies; each needs one of its own")]
    SameName(String, usize),
    #[error("distribution.{0} is 0; give at least 1")]
    NoDistribution(&'static str),
    #[error(
        "distribution.{list}: `{host}` is no host; write it as HOST or HOST:PORT, without https:// or a path"
    )]
    Host { list: &'static str, host: String },
    #[error("distribution.public_keys: {0}")]
    Keys(#[from] SignatureError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Model(#[from] FetchError),
}

impl Settings {
    pub(crate) fn read(args: &ServeArgs, dirs: &Dirs) -> Result<Settings, ConfigError> {
        let Some(path) = &args.config else { return Settings::checked(args, File::default(), dirs) };
        let file = ConfigFile::read(path)?;
        let settings = Settings::checked(args, file.parse()?, dirs);
        let mut settings = settings.map_err(|error| file.locate(error, args))?;
        settings.file = Some(file);
        Ok(settings)
    }

    fn checked(args: &ServeArgs, file: File, dirs: &Dirs) -> Result<Settings, ConfigError> {
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
        let state = args.state.clone().or(file.state).unwrap_or_else(|| dirs.state());
        Ok(Settings {
            model,
            embeddings: EmbeddingsRef::parse(file.embeddings.as_deref())?,
            listen: args.listen.or(file.listen).unwrap_or(loopback(8080)),
            admin_listen: args.admin_listen.or(file.admin_listen).unwrap_or(loopback(8081)),
            policies: args.policies.clone().or(file.policies),
            threads: args.threads.or(file.threads).or(cores).unwrap_or_else(default_threads),
            cores: file.cores,
            isa: file.isa.map(Isa::from),
            engine: file.engine.over(EngineConfig::default(), &state)?,
            state,
            server: ServerConfig {
                keys: file.keys.into_iter().map(|Key { key, tenant }| ApiKey { key, tenant }).collect(),
                sessions: file.sessions.treatment()?,
                admin_key: args.admin_key.clone().or(file.admin_key).filter(|key| !key.is_empty()),
                ..server
            },
            sessions: file.sessions.kept()?,
            record: file.record.map(RecordTable::checked).transpose()?,
            references: file.policy.into_iter().map(PolicyRef::from).collect(),
            fetching: file.distribution.fetching()?,
            keys: file.distribution.keys()?,
            file: None,
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
        policies::check(&self.references, &self.fetching)?;
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
        StartError::Config(EngineConfigError::StoreTooSmall { kv_memory_bytes, block_bytes }) => format!(
            "engine.kv_memory_mib is {}, and a stored block of this model takes {block_bytes} bytes; give at least {}, or 0",
            kv_memory_bytes / MIB,
            block_bytes.saturating_mul(2).div_ceil(MIB)
        ),
        StartError::KvDisk { folder, source } => format!(
            "cannot keep KV blocks in {}: {source}; make it writable, or set engine.kv_disk_mib to 0",
            folder.display()
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

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests;
