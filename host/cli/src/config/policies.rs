//! Policies by reference: `[[policy]]` and `[distribution]`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jackfield_policy::{SignatureError, TrustedKeys};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ConfigError, MIB};
use crate::distribution::{Digest, Fetching, Source};

/// A policy by reference.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyTable {
    /// A built policy folder or a component, as a path; or https://HOST/PATH; or oci://REGISTRY/REPOSITORY:TAG, or with
    /// @sha256:… in place of the tag.
    #[schemars(with = "String")]
    source: Source,
    /// The SHA-256 of the component; other bytes are refused.
    #[schemars(with = "Option<String>", regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    digest: Option<Digest>,
    /// Ask anew at every start and reload what a URL or a tag stands for. Otherwise it stands for what it stood for first.
    #[serde(default)]
    update: bool,
    /// The name it is deployed under, instead of the one in its manifest.
    name: Option<String>,
    /// Its manifest, a file or a table, instead of the policy.toml of its folder.
    #[schemars(with = "Option<FileOrTableSchema>")]
    manifest: Option<FileOrTable>,
    /// Its configuration, a file or a table, instead of the rules.toml of its folder.
    #[schemars(with = "Option<FileOrTableSchema>")]
    config: Option<FileOrTable>,
}

/// Where policies may come from, and who may sign them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DistributionTable {
    /// Hosts that policies are fetched from, as HOST or HOST:PORT; no other is asked.
    hosts: BTreeSet<String>,
    /// Hosts that are spoken to without TLS: a registry on this machine, or one for tests.
    plain_http: BTreeSet<String>,
    /// Public keys of minisign: the last line of each .pub file.
    public_keys: Vec<String>,
    /// Whether a policy without a signature by one of them is refused, also by the admin API.
    require_signature: bool,
    /// Seconds that one request may take in all.
    timeout_s: Option<u64>,
    /// What one component may take, in MiB.
    max_mib: Option<usize>,
}

/// A file, or what would be in it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub(crate) enum FileOrTable {
    File(PathBuf),
    Table(toml::Table),
}

/// What of it the schema says.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum FileOrTableSchema {
    /// A file.
    File(String),
    /// What would be in it.
    Table(serde_json::Map<String, serde_json::Value>),
}

/// A policy by reference, checked as far as that can be done without asking anyone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PolicyRef {
    pub(crate) source: Source,
    pub(crate) digest: Option<Digest>,
    pub(crate) update: bool,
    pub(crate) name: Option<String>,
    pub(crate) manifest: Option<FileOrTable>,
    pub(crate) config: Option<FileOrTable>,
}

impl TryFrom<toml::Value> for FileOrTable {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<FileOrTable, String> {
        match value {
            toml::Value::String(path) => Ok(FileOrTable::File(path.into())),
            toml::Value::Table(table) => Ok(FileOrTable::Table(table)),
            other => Err(format!("it is of type {}; give a file's path, or a table", other.type_str())),
        }
    }
}

impl PolicyTable {
    /// Paths are relative to the configuration's own folder.
    pub(super) fn beside(&mut self, base: &Path) {
        self.source.beside(base);
        for file in [&mut self.manifest, &mut self.config] {
            if let Some(FileOrTable::File(path)) = file {
                *path = base.join(&*path);
            }
        }
    }
}

impl From<PolicyTable> for PolicyRef {
    fn from(table: PolicyTable) -> PolicyRef {
        let PolicyTable { source, digest, update, name, manifest, config } = table;
        PolicyRef { source, digest, update, name, manifest, config }
    }
}

impl DistributionTable {
    pub(super) fn fetching(&self) -> Result<Fetching, ConfigError> {
        let default = Fetching::default();
        match (self.timeout_s, self.max_mib) {
            (Some(0), _) => Err(ConfigError::NoDistribution("timeout_s")),
            (_, Some(0)) => Err(ConfigError::NoDistribution("max_mib")),
            (seconds, mib) => Ok(Fetching {
                hosts: hosts("hosts", &self.hosts, ":443")?,
                plain_http: hosts("plain_http", &self.plain_http, ":80")?,
                timeout: seconds.map_or(default.timeout, Duration::from_secs),
                max_bytes: mib.map_or(default.max_bytes, |mib| mib.saturating_mul(MIB)),
            }),
        }
    }

    pub(super) fn keys(&self) -> Result<TrustedKeys, SignatureError> {
        TrustedKeys::new(&self.public_keys, self.require_signature)
    }
}

/// Hosts as they are compared, without the port that goes without saying; each must be one.
fn hosts(
    list: &'static str,
    written: &BTreeSet<String>,
    port: &str,
) -> Result<BTreeSet<String>, ConfigError> {
    let read = |text: &String| match Fetching::host(text) {
        Some(host) => Ok(host.strip_suffix(port).unwrap_or(&host).to_owned()),
        None => Err(ConfigError::Host { list, host: text.clone() }),
    };
    written.iter().map(read).collect()
}

/// What can be told to be wrong before anything is read or fetched.
pub(super) fn check(references: &[PolicyRef], fetching: &Fetching) -> Result<(), ConfigError> {
    let mut names = BTreeSet::new();
    for (index, reference) in references.iter().enumerate() {
        fetching.check(&reference.source).map_err(|cause| ConfigError::Source { index, cause })?;
        if let Some(name) = &reference.name
            && !names.insert(name)
        {
            return Err(ConfigError::SameName(name.clone(), index));
        }
    }
    Ok(())
}
