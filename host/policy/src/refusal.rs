//! The ways in which an upload is refused. Nothing changes then: what was in force stays in force.

use crate::{Fault, Kind, ManifestError, watch::WatchError};

/// Why a policy, or a change of one, was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The manifest breaks a rule.
    #[error("the manifest is not valid: {0}")]
    Manifest(#[from] ManifestError),
    /// The bytes are not a component.
    #[error("not a component: {what}")]
    NotAComponent {
        /// What they are instead.
        what: String,
    },
    /// The component is larger than the host takes.
    #[error("the component has {bytes} bytes; the host takes at most {max}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The component does not compile: it is damaged, or uses a proposal that this host does not have.
    #[error("the component does not compile: {message}")]
    Compile {
        /// What the compiler says.
        message: String,
    },
    /// Built against another version of the contract.
    #[error("the component has `{found}`, this host serves `{wanted}` and the minor version before: it is too {}", if *newer { "new for this host" } else { "old: build it again" })]
    Version {
        /// What the host serves.
        wanted: String,
        /// What the component has.
        found: String,
        /// Whether it is newer than the host.
        newer: bool,
    },
    /// An import that is not part of the contract.
    #[error(
        "the component imports `{import}`, which policies do not get: build for wasm32-unknown-unknown, or with WASI \
         stubbed; imports there are: log, metrics, tokens, saliency, embeddings"
    )]
    Import {
        /// The import.
        import: String,
    },
    /// An export of the kind is missing.
    #[error("the component is not a {kind}: it does not export `{wanted}`{}", found.as_ref().map(|kind| format!(", but is a {kind}")).unwrap_or_default())]
    WrongWorld {
        /// What the manifest says it is.
        kind: Kind,
        /// The export that is missing.
        wanted: String,
        /// What it is by its exports, if it is anything.
        found: Option<Kind>,
    },
    /// An import or export has another type than in the contract.
    #[error("an import or export differs from the contract: {message}")]
    Types {
        /// Which, and how.
        message: String,
    },
    /// `describe`, `configure` or `interests` failed, or a start function did.
    #[error("`{call}` failed: {fault}")]
    Setup {
        /// Which call.
        call: &'static str,
        /// How.
        fault: Fault,
    },
    /// What `describe` answered is of no use.
    #[error("`describe` answered with {what}")]
    Description {
        /// What is wrong with it.
        what: String,
    },
    /// The configuration does not fit the policy's schema.
    #[error("the configuration is not valid at `{at}`: {message}")]
    Config {
        /// JSON pointer to the place; empty for the whole.
        at: String,
        /// What is wrong there.
        message: String,
    },
    /// `configure` answered with an error.
    #[error("the policy does not take its configuration: {message}")]
    Configure {
        /// Its words.
        message: String,
    },
    /// A pattern cannot be watched.
    #[error("`interests` answered with something the host cannot watch: {0}")]
    Watch(#[from] WatchError),
    /// A recorded case came out differently.
    #[error("case `{name}` failed: {why}")]
    Case {
        /// The case.
        name: String,
        /// Expected and found.
        why: String,
    },
    /// There is no policy of this name.
    #[error("there is no policy named `{name}`")]
    Unknown {
        /// The name.
        name: String,
    },
    /// There is no earlier version to go back to.
    #[error("`{name}` has no earlier version to go back to")]
    NothingToRollBackTo {
        /// The name.
        name: String,
    },
    /// There is no version on its way.
    #[error("`{name}` has no candidate: push one with a shadow time or a canary share")]
    NoCandidate {
        /// The name.
        name: String,
    },
    /// A candidate needs a version of the same kind in force beside it.
    #[error(
        "no `{name}` of this kind is in force that a candidate could be compared with: push it without shadow and canary"
    )]
    NothingToCompareWith {
        /// The name.
        name: String,
    },
    /// The state folder could not be written: nothing was changed.
    #[error("the state folder could not be written: {message}")]
    State {
        /// What the system says.
        message: String,
    },
}

impl Refusal {
    /// A short, stable name for the API's `code` and for metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::Manifest(_) => "manifest_invalid",
            Refusal::NotAComponent { .. } => "not_a_component",
            Refusal::TooLarge { .. } => "component_too_large",
            Refusal::Compile { .. } => "component_invalid",
            Refusal::Version { .. } => "contract_version",
            Refusal::Import { .. } => "import_not_available",
            Refusal::WrongWorld { .. } => "wrong_world",
            Refusal::Types { .. } => "contract_types",
            Refusal::Setup { .. } => "setup_failed",
            Refusal::Description { .. } => "description_invalid",
            Refusal::Config { .. } => "config_invalid",
            Refusal::Configure { .. } => "config_refused",
            Refusal::Watch(_) => "watch_invalid",
            Refusal::Case { .. } => "case_failed",
            Refusal::Unknown { .. } => "policy_not_found",
            Refusal::NothingToRollBackTo { .. } => "nothing_to_roll_back_to",
            Refusal::NoCandidate { .. } => "no_candidate",
            Refusal::NothingToCompareWith { .. } => "nothing_to_compare_with",
            Refusal::State { .. } => "state_not_written",
        }
    }
}
