//! The file as it is written: every table with its fields, and what each means over the defaults.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jackfield_engine::{DiskTier, EngineConfig, KvStore, KvType, RemoteTier};
use jackfield_kernels::Isa;
use jackfield_policy::RecordSettings;
use jackfield_server::{ServerConfig, VerifyConfig};
use schemars::JsonSchema;
use serde::Deserialize;

use super::policies::{DistributionTable, PolicyTable};
use super::sessions::SessionsTable;
use super::{ConfigError, MIB};

/// Disk for KV blocks when the file does not say, in MiB.
const KV_DISK_MIB: u64 = 2048;
/// Seconds without use, and milliseconds for an answer, of KV blocks on a server when the file does not say.
const KV_REMOTE_TTL_S: u64 = 3600;
const KV_REMOTE_TIMEOUT_MS: u64 = 200;

/// `jackfield.toml`: what `jackfield serve --config` reads. Every field may be left out; paths are relative to the file.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    /// A .gguf file, a name from the catalogue, or OWNER/REPOSITORY/FILE.gguf of Hugging Face.
    pub(super) model: Option<String>,
    /// The model for vectors: a name from the catalogue, or a folder. Where the cache has it, once a policy wants it, when
    /// not given.
    pub(super) embeddings: Option<String>,
    /// Where the API listens.
    pub(super) listen: Option<SocketAddr>,
    /// Where the admin API listens.
    pub(super) admin_listen: Option<SocketAddr>,
    /// The key of the admin API.
    pub(super) admin_key: Option<String>,
    /// A folder of built policies, as `jackfield policy build` writes it.
    pub(super) policies: Option<PathBuf>,
    /// Policies by reference.
    pub(super) policy: Vec<PolicyTable>,
    /// Where policies may come from, and who may sign them.
    pub(super) distribution: DistributionTable,
    /// Where acknowledged policies and compiled code are kept.
    pub(super) state: Option<PathBuf>,
    /// Threads of the engine.
    pub(super) threads: Option<usize>,
    /// Ties the threads of the engine to these cores, one for each.
    pub(super) cores: Option<Vec<usize>>,
    /// The instruction set of the engine, in place of the best that the processor has: for hosts that are to compute the same to
    /// the bit.
    pub(super) isa: Option<IsaName>,
    /// Keys of the API; without any it is open, which is allowed on loopback only.
    pub(super) keys: Vec<Key>,
    /// Sizes and limits of the engine.
    pub(super) engine: EngineTable,
    /// Names and limits of the HTTP side.
    pub(super) server: ServerTable,
    /// Where sessions are kept, for how long, and how they are treated.
    pub(super) sessions: SessionsTable,
    /// Which calls of policies are written down.
    pub(super) record: Option<RecordTable>,
}

/// Which calls of policies are written down, to be made again by other versions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordTable {
    /// Whose calls; "*" for everyone's.
    tenants: Vec<String>,
    /// What the records may take on disk, in MiB.
    #[serde(default = "usual_record_mib")]
    max_mib: u64,
    /// An output filter that the texts pass before they are written.
    mask: Option<String>,
}

fn usual_record_mib() -> u64 {
    256
}

/// An API key and the tenant that it stands for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Key {
    /// What the client sends as `Authorization: Bearer …`.
    pub(super) key: String,
    /// Whose key it is.
    pub(super) tenant: String,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EngineTable {
    /// Memory for keys and values, in MiB.
    kv_mib: Option<usize>,
    /// How keys and values are kept.
    kv_type: Option<KvTypeName>,
    /// Memory for blocks that the cache gave up, in MiB; 0 for none, neither on disk nor on a server.
    kv_memory_mib: Option<usize>,
    /// Disk, in the state folder, for blocks that memory gave up or that are to outlive the host, in MiB; 0 for none.
    kv_disk_mib: Option<u64>,
    /// A Redis or Valkey server on which several hosts share such blocks: `redis://HOST:PORT/DATABASE`, with `USER:PASSWORD@`
    /// before the host where it wants them. Its `maxmemory` says how many there may be.
    kv_remote: Option<String>,
    /// A block that nobody uses for so long is forgotten there, in seconds.
    kv_remote_ttl_s: Option<u64>,
    /// Of that server: what takes longer has failed, in milliseconds. A turn waits for its blocks at most twice as long.
    kv_remote_timeout_ms: Option<u64>,
    /// How blocks are kept outside of the cache.
    kv_store: Option<KvStoreName>,
    /// Tokens of a KV block.
    block_size: Option<usize>,
    /// Tokens of one step, at most.
    max_step_tokens: Option<usize>,
    /// Tokens of prompts in a step while others write.
    busy_prefill_tokens: Option<usize>,
    /// Sequences at once.
    max_running: Option<usize>,
    /// Requests that may wait; one more gets 429.
    max_waiting: Option<usize>,
    /// Texts that may be scored for policies at a time.
    max_scoring: Option<usize>,
    /// Tokens of a prompt and its answer; the model's own when not given.
    max_context: Option<usize>,
    /// Waiting for so long raises a request's priority by one, in milliseconds.
    ageing_ms: Option<u64>,
    /// Whether prompts that begin alike share their blocks.
    prefix_cache: Option<bool>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum KvTypeName {
    F16,
    Int8,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum KvStoreName {
    Int8,
    Same,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum IsaName {
    Scalar,
    Avx2,
    AvxVnni,
    Avx512Vnni,
    Neon,
    NeonDot,
    NeonI8mm,
}

/// Names and limits of the HTTP side.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServerTable {
    /// The name under which the model is served.
    model_id: Option<String>,
    /// Other names that mean the same model.
    model_aliases: Option<Vec<String>>,
    /// Bytes of one request body, after decoding.
    max_body_bytes: Option<usize>,
    /// Bytes of one policy upload.
    max_upload_bytes: Option<usize>,
    /// Turns that may be in progress at once; one more gets 429.
    request_permits: Option<usize>,
    /// Connections that may be open at once.
    max_connections: Option<usize>,
    /// A stream without data for so long gets a comment.
    keep_alive_s: Option<u64>,
    /// A request head that takes longer ends the connection.
    header_timeout_s: Option<u64>,
    /// A body that pauses for so long gets 408.
    body_timeout_s: Option<u64>,
    /// After the signal to stop, running turns have so long to finish.
    drain_s: Option<u64>,
    /// The offset of the zone in which users' words are read when a request does not say.
    utc_offset_minutes: Option<i16>,
    /// The language that is assumed when a request does not say.
    locale: Option<String>,
    /// Share of a prompt's tokens that compressors are asked to keep when no router decides; 1 leaves prompts alone.
    compress_to: Option<f32>,
    /// Share of turns whose compressed prompts are held against the original: 0 for none, 1 for all.
    verify_share: Option<f32>,
    /// How far what the model would say next may diverge then, in nats.
    verify_divergence: Option<f32>,
}

impl RecordTable {
    pub(super) fn checked(self) -> Result<RecordSettings, ConfigError> {
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

impl From<KvStoreName> for KvStore {
    fn from(name: KvStoreName) -> KvStore {
        match name {
            KvStoreName::Int8 => KvStore::Int8,
            KvStoreName::Same => KvStore::Same,
        }
    }
}

impl From<IsaName> for Isa {
    fn from(name: IsaName) -> Isa {
        match name {
            IsaName::Scalar => Isa::Scalar,
            IsaName::Avx2 => Isa::Avx2,
            IsaName::AvxVnni => Isa::AvxVnni,
            IsaName::Avx512Vnni => Isa::Avx512Vnni,
            IsaName::Neon => Isa::Neon,
            IsaName::NeonDot => Isa::NeonDot,
            IsaName::NeonI8mm => Isa::NeonI8mm,
        }
    }
}

impl EngineTable {
    /// `state`: the folder under which blocks are kept.
    pub(super) fn over(self, default: EngineConfig, state: &Path) -> Result<EngineConfig, ConfigError> {
        let kv_remote = self.remote()?;
        let kv_memory_bytes =
            self.kv_memory_mib.map_or(default.kv_memory_bytes, |mib| mib.saturating_mul(MIB));
        let disk = self.kv_disk_mib.unwrap_or(KV_DISK_MIB).saturating_mul(MIB as u64);
        let kv_disk = DiskTier { folder: state.join("kv"), bytes: disk };
        let max_running = self.max_running.unwrap_or(default.max_running);
        // Who raises one limit need not know of the other.
        let enough = max_running.saturating_add(default.busy_prefill_tokens).max(default.max_step_tokens);
        Ok(EngineConfig {
            block_size: self.block_size.unwrap_or(default.block_size),
            kv_bytes: self.kv_mib.map_or(default.kv_bytes, |mib| mib.saturating_mul(MIB)),
            kv_type: self.kv_type.map_or(default.kv_type, KvType::from),
            kv_memory_bytes,
            kv_disk: Some(kv_disk).filter(|disk| disk.bytes > 0 && kv_memory_bytes > 0),
            kv_remote,
            kv_store: self.kv_store.map_or(default.kv_store, KvStore::from),
            max_step_tokens: self.max_step_tokens.unwrap_or(enough),
            busy_prefill_tokens: self.busy_prefill_tokens.unwrap_or(default.busy_prefill_tokens),
            max_running,
            max_waiting: self.max_waiting.unwrap_or(default.max_waiting),
            max_scoring: self.max_scoring.unwrap_or(default.max_scoring),
            ageing_ms: self.ageing_ms.unwrap_or(default.ageing_ms),
            prefix_cache: self.prefix_cache.unwrap_or(default.prefix_cache),
            max_context: self.max_context.or(default.max_context),
        })
    }

    fn remote(&self) -> Result<Option<RemoteTier>, ConfigError> {
        let (ttl, timeout) = (self.kv_remote_ttl_s, self.kv_remote_timeout_ms);
        let Some(url) = &self.kv_remote else {
            let alone = [("kv_remote_ttl_s", ttl.is_some()), ("kv_remote_timeout_ms", timeout.is_some())];
            let alone = alone.into_iter().find(|(_, given)| *given);
            return alone.map_or(Ok(None), |(name, _)| Err(ConfigError::NoKvRemote(name)));
        };
        let zero = [
            ("kv_remote_ttl_s", ttl == Some(0)),
            ("kv_remote_timeout_ms", timeout == Some(0)),
            ("kv_memory_mib", self.kv_memory_mib == Some(0)),
        ];
        if let Some((name, _)) = zero.into_iter().find(|(_, zero)| *zero) {
            return Err(ConfigError::NoEngine(name));
        }
        Ok(Some(RemoteTier {
            server: url.parse()?,
            ttl: Duration::from_secs(ttl.unwrap_or(KV_REMOTE_TTL_S)),
            timeout: Duration::from_millis(timeout.unwrap_or(KV_REMOTE_TIMEOUT_MS)),
        }))
    }
}

impl ServerTable {
    pub(super) fn over(self, default: ServerConfig) -> ServerConfig {
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
            verify: VerifyConfig {
                share: self.verify_share.unwrap_or(default.verify.share),
                most_divergence: self.verify_divergence.unwrap_or(default.verify.most_divergence),
            },
            // Not of this table.
            keys: default.keys,
            admin_key: default.admin_key,
            sessions: default.sessions,
            trust: default.trust,
        }
    }
}
