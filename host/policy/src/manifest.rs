//! What an operator says of a policy: its kind, what it may use and how much, and what happens when it fails.

use serde::{Deserialize, Serialize};

use crate::{breaker::BreakerSettings, dialog_rules::DialogRules, scope::Scope};

/// The four kinds of policy, each a world of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Reads the user's words.
    SlotExtractor,
    /// Decides where and how a turn runs.
    Router,
    /// Decides which bytes of a prompt are not worth their tokens.
    Compressor,
    /// Decides what of an answer may leave.
    OutputFilter,
}

impl Kind {
    /// All of them, in the order in which a turn meets them.
    pub const ALL: [Kind; 4] = [Kind::SlotExtractor, Kind::Router, Kind::Compressor, Kind::OutputFilter];

    /// The name of its world.
    pub fn world(self) -> &'static str {
        match self {
            Kind::SlotExtractor => "slot-extractor",
            Kind::Router => "router",
            Kind::Compressor => "compressor",
            Kind::OutputFilter => "output-filter",
        }
    }

    /// The interface that only this kind exports, without package and version.
    pub fn interface(self) -> &'static str {
        match self {
            Kind::SlotExtractor => "slot-extraction",
            Kind::Router => "routing",
            Kind::Compressor => "compression",
            Kind::OutputFilter => "output-filtering",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.world())
    }
}

/// Imports of the contract that a policy may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// Lines in the host's log.
    Log,
    /// Counters on the metrics page.
    Metrics,
    /// The tokenizer.
    Tokens,
    /// Surprisal per token.
    Saliency,
    /// A vector for a text.
    Embeddings,
}

impl Grant {
    /// All of them.
    pub const ALL: [Grant; 5] =
        [Grant::Log, Grant::Metrics, Grant::Tokens, Grant::Saliency, Grant::Embeddings];

    /// The name of its interface, which is also its name in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Grant::Log => "log",
            Grant::Metrics => "metrics",
            Grant::Tokens => "tokens",
            Grant::Saliency => "saliency",
            Grant::Embeddings => "embeddings",
        }
    }
}

/// What happens to a turn when a policy faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFault {
    /// The turn goes on as if the policy were not there.
    Open,
    /// The turn ends with an error.
    Closed,
}

/// What one call may use at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Limits {
    /// Time of a call, instance and host calls included, in milliseconds.
    #[serde(alias = "deadline_ms")]
    pub deadline_ms: u32,
    /// All linear memories of an instance together.
    #[serde(alias = "memory_bytes")]
    pub memory_bytes: usize,
    /// What an answer, or an argument of one host call, may take in the host's memory.
    #[serde(alias = "output_bytes")]
    pub output_bytes: usize,
    /// Calls of imports within a call.
    #[serde(alias = "host_calls")]
    pub host_calls: u32,
    /// Text that may be held back in one stream, in bytes: by the host for this policy's watches, and by its verdicts.
    #[serde(alias = "hold_bytes")]
    pub hold_bytes: u32,
    /// Lines it may log in a second; what is more is counted and left out.
    #[serde(alias = "log_lines_per_s")]
    pub log_lines_per_s: u32,
    /// Calls of this policy that may run at once; others wait, for at most their deadline.
    pub instances: u32,
    /// The same for the calls of one tenant.
    #[serde(alias = "tenant_instances")]
    pub tenant_instances: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            deadline_ms: 50,
            memory_bytes: 64 << 20,
            output_bytes: 1 << 20,
            host_calls: 1000,
            hold_bytes: 512,
            log_lines_per_s: 100,
            instances: 32,
            tenant_instances: 16,
        }
    }
}

/// A policy's manifest: the `policy.toml` of its folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "Written")]
pub struct Manifest {
    /// The name it is deployed under: `a-z 0-9 - _`, 64 bytes at most, a letter or digit first.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// The imports it may use.
    pub grants: Vec<Grant>,
    /// What a call may use.
    pub limits: Limits,
    /// What happens when it faults. When not written: closed for an output filter, open for the others.
    pub on_fault: OnFault,
    /// Policies of a kind run in rising order, those of the same order by name.
    pub order: i32,
    /// Request headers it wants to see, in lower case.
    pub headers: Vec<String>,
    /// Which turns it is for; written `[match]`.
    #[serde(rename = "match")]
    pub scope: Scope,
    /// What it may get wrong before it is taken out.
    pub breaker: BreakerSettings,
    /// What becomes of dialogs that another version has written.
    pub dialog: DialogRules,
}

/// As written: what has no plain default is an option here.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    name: String,
    kind: Kind,
    #[serde(default)]
    grants: Vec<Grant>,
    #[serde(default)]
    limits: Limits,
    #[serde(alias = "on_fault")]
    on_fault: Option<OnFault>,
    #[serde(default)]
    order: i32,
    #[serde(default)]
    headers: Vec<String>,
    #[serde(default, rename = "match")]
    scope: Scope,
    #[serde(default)]
    breaker: BreakerSettings,
    #[serde(default)]
    dialog: DialogRules,
}

/// What is wrong with a manifest, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ManifestError(pub String);

impl Manifest {
    /// A manifest with nothing granted and everything else as by default.
    pub fn new(name: impl Into<String>, kind: Kind) -> Manifest {
        Manifest {
            name: name.into(),
            kind,
            grants: Vec::new(),
            limits: Limits::default(),
            on_fault: default_on_fault(kind),
            order: 0,
            headers: Vec::new(),
            scope: Scope::default(),
            breaker: BreakerSettings::default(),
            dialog: DialogRules::default(),
        }
    }

    /// Read a `policy.toml`.
    ///
    /// # Errors
    /// What is wrong, with line and column where TOML knows them.
    pub fn from_toml(text: &str) -> Result<Manifest, ManifestError> {
        toml::from_str(text).map_err(|error| ManifestError(error.to_string()))
    }

    /// Whether an import may be used.
    pub fn grants(&self, grant: Grant) -> bool {
        self.grants.contains(&grant)
    }

    /// Check what the types cannot hold.
    ///
    /// # Errors
    /// The first rule that is broken, and its bounds.
    pub fn validate(&self) -> Result<(), ManifestError> {
        check_name(&self.name)?;
        let limits = &self.limits;
        within("limits.deadline-ms", limits.deadline_ms.into(), 1, 10_000)?;
        let memory = limits.memory_bytes as u64;
        within("limits.memory-bytes", memory, 64 << 10, MAX_MEMORY_BYTES as u64)?;
        within("limits.output-bytes", limits.output_bytes as u64, 1 << 10, 64 << 20)?;
        within("limits.host-calls", limits.host_calls.into(), 0, 1_000_000)?;
        within("limits.hold-bytes", limits.hold_bytes.into(), 16, 64 << 10)?;
        within("limits.log-lines-per-s", limits.log_lines_per_s.into(), 0, 10_000)?;
        within("limits.instances", limits.instances.into(), 1, 512)?;
        within("limits.tenant-instances", limits.tenant_instances.into(), 1, 512)?;
        within("number of headers", self.headers.len() as u64, 0, 64)?;
        self.scope.validate()?;
        self.breaker.validate()?;
        self.dialog.validate().map_err(ManifestError)?;
        match self.headers.iter().find(|name| !is_header(name)) {
            Some(name) => Err(ManifestError(format!("headers: `{name}` is not a header name in lower case"))),
            None => Ok(()),
        }
    }
}

/// The largest memory that an instance may be allowed: the pool's slots are this large.
pub const MAX_MEMORY_BYTES: usize = 256 << 20;

fn default_on_fault(kind: Kind) -> OnFault {
    match kind {
        Kind::OutputFilter => OnFault::Closed,
        Kind::SlotExtractor | Kind::Router | Kind::Compressor => OnFault::Open,
    }
}

impl TryFrom<Written> for Manifest {
    type Error = ManifestError;

    fn try_from(written: Written) -> Result<Manifest, ManifestError> {
        let manifest = Manifest {
            on_fault: written.on_fault.unwrap_or_else(|| default_on_fault(written.kind)),
            name: written.name,
            kind: written.kind,
            grants: written.grants,
            limits: written.limits,
            order: written.order,
            headers: written.headers,
            scope: written.scope,
            breaker: written.breaker,
            dialog: written.dialog,
        };
        manifest.validate()?;
        Ok(manifest)
    }
}

/// Whether a policy may have this name. Names become file names of the state folder: nothing but these characters.
pub(crate) fn check_name(name: &str) -> Result<(), ManifestError> {
    let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'_';
    let good_start = name.bytes().next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if good_start && name.len() <= 64 && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(ManifestError(format!("name: {name:?} is not 1 to 64 of `a-z 0-9 - _`, a letter or digit first")))
}

fn is_header(name: &str) -> bool {
    let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'_';
    !name.is_empty() && name.len() <= 128 && name.bytes().all(allowed)
}

fn within(what: &str, value: u64, min: u64, max: u64) -> Result<(), ManifestError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(ManifestError(format!("{what}: {value} is not within {min} to {max}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lines_are_enough() {
        let read = Manifest::from_toml("name = \"mask\"\nkind = \"output-filter\"").expect("reads");
        assert_eq!(read, Manifest::new("mask", Kind::OutputFilter));
        assert_eq!(read.on_fault, OnFault::Closed);
        assert_eq!(Manifest::new("r", Kind::Router).on_fault, OnFault::Open);
    }

    #[test]
    fn all_fields_are_read() {
        let text = r#"
            name = "slots"
            kind = "slot-extractor"
            grants = ["log", "tokens"]
            on-fault = "closed"
            order = -3
            headers = ["x-team"]
            [limits]
            deadline-ms = 20
            memory-bytes = 1048576
        "#;
        let read = Manifest::from_toml(text).expect("reads");
        assert!(read.grants(Grant::Tokens) && !read.grants(Grant::Metrics));
        assert_eq!((read.on_fault, read.order), (OnFault::Closed, -3));
        assert_eq!((read.limits.deadline_ms, read.limits.memory_bytes), (20, 1 << 20));
        assert_eq!(read.limits.host_calls, Limits::default().host_calls);
        assert_eq!(read.headers, ["x-team"]);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| Manifest::from_toml(text).expect_err(text).to_string();
        let with = |line: &str| format!("name = \"a\"\nkind = \"router\"\n{line}");
        assert!(error(&with("grant = [\"log\"]")).contains("grant"));
        assert!(error(&with("grants = [\"sockets\"]")).contains("sockets"));
        assert!(error(&with("limits.deadline-ms = 0")).contains("deadline-ms"));
        assert!(error(&with("headers = [\"X-Team\"]")).contains("X-Team"));
        assert!(error("name = \"../a\"\nkind = \"router\"").contains("../a"));
        assert!(error("name = \"a\"").contains("kind"));
    }

    #[test]
    fn survives_json() {
        let manifest = Manifest::new("a", Kind::Compressor);
        let json = serde_json::to_string(&manifest).expect("plain data");
        assert!(json.contains("\"on-fault\":\"open\""), "{json}");
        assert_eq!(serde_json::from_str::<Manifest>(&json).expect("its own"), manifest);
    }
}
