//! What the registry tells of itself.

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    candidate::{Candidate, Compared, Rollout, Stage},
    deployed::Deployed,
    patch::Entry,
    store::StateError,
    unix_ms,
};
use crate::{
    BreakerState, Description, Grant, Kind, Limits, Manifest, OnFault, Policy, PolicyVersion, Refusal, Scope,
    Stats, Strategy, Trip,
};

/// The outcome of a change that was taken. It is in force when this is returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// The generation that is in force.
    pub generation: u64,
    /// Whether the change made it; not when the same was in force already.
    pub changed: bool,
    /// The version that it is about; none after a deletion.
    pub version: Option<PolicyVersion>,
    /// Where that version stands now; none after a deletion.
    pub stage: Option<Stage>,
    /// From the request to in force, in milliseconds.
    pub millis: u64,
}

/// What made a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The host started with nothing.
    Start,
    /// The host started with what was in force before.
    Restore,
    /// A component was put.
    Put,
    /// A configuration was put.
    Config,
    /// Several policies were put or taken out at once.
    Set,
    /// A candidate is compared.
    Shadow,
    /// A candidate has a share of the turns.
    Canary,
    /// A candidate came into force.
    Promote,
    /// A candidate was dropped.
    Withdraw,
    /// A policy was taken out.
    Delete,
    /// A policy went back to its version before.
    Rollback,
    /// A version went wrong too often, and was taken out of the way.
    Trip,
}

/// A generation: what changed, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationInfo {
    /// Its number; each is one more than the one before, restarts included.
    pub generation: u64,
    /// When it came into force, in milliseconds since 1970.
    pub unix_ms: u64,
    /// What made it.
    pub change: Change,
    /// The policy that changed.
    pub name: Option<String>,
    /// Its active version before.
    pub from: Option<PolicyVersion>,
    /// The version that the change is about.
    pub to: Option<PolicyVersion>,
    /// Why, where the host made the change by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A policy in force, for the operator.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PolicyStatus {
    /// Which version.
    pub version: PolicyVersion,
    /// Its kind.
    pub kind: Kind,
    /// Its place among those of its kind.
    pub order: i32,
    /// Which turns it is for.
    #[serde(rename = "match")]
    pub scope: Scope,
    /// What happens when it faults.
    pub on_fault: OnFault,
    /// The imports it may use.
    pub grants: Vec<Grant>,
    /// What a call may use.
    pub limits: Limits,
    /// How its instances are configured.
    pub strategy: Strategy,
    /// What it says of itself.
    pub description: Description,
    /// Its configuration.
    pub config: Value,
    /// Size of its component, in bytes.
    pub component_bytes: usize,
    /// Earlier versions that it can go back to, the latest first.
    pub earlier: Vec<PolicyVersion>,
    /// The version that is on its way, if one is.
    pub candidate: Option<CandidateStatus>,
    /// What its breaker does.
    pub breaker: BreakerStatus,
    /// Its calls so far.
    pub stats: Stats,
}

/// A version that is on its way.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CandidateStatus {
    /// Which version.
    pub version: PolicyVersion,
    /// Where it stands.
    pub stage: Stage,
    /// How it is to come into force.
    pub rollout: Rollout,
    /// When this stage began, in milliseconds since 1970.
    pub since_unix_ms: u64,
    /// When it ends by itself.
    pub until_unix_ms: Option<u64>,
    /// How it compares with the active version.
    pub compared: Compared,
    /// What its breaker does.
    pub breaker: BreakerStatus,
    /// Its calls so far.
    pub stats: Stats,
}

/// What a breaker does, and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BreakerStatus {
    /// What it does with calls now.
    pub state: BreakerState,
    /// How often it opened.
    pub trips: u32,
    /// Why it opened the last time.
    pub last: Option<Trip>,
    /// When that was, in milliseconds since 1970.
    pub last_unix_ms: Option<u64>,
}

/// A version that the registry holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct VersionStatus {
    /// Which version.
    pub version: PolicyVersion,
    /// Where it stands: `active`, `shadow`, `canary` or `earlier`.
    pub state: &'static str,
    /// Whether it went wrong too often: it is not gone back to by itself.
    pub quarantined: bool,
    /// Its manifest.
    pub manifest: Manifest,
    /// What it says of itself.
    pub description: Description,
    /// Its configuration.
    pub config: Value,
    /// Size of its component, in bytes.
    pub component_bytes: usize,
}

/// Why there is no registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The state folder cannot be read or made.
    #[error(transparent)]
    State(#[from] StateError),
    /// Calls cannot be recorded.
    #[error("calls cannot be recorded: {0}")]
    Record(#[source] std::io::Error),
    /// The system gives no thread.
    #[error("no thread to look after policies: {0}")]
    Keeper(#[source] std::io::Error),
    /// A policy that was in force is not taken any more: put a version that is, or remove it from the state folder.
    #[error("policy `{name}` was in force before and is refused now: {refusal} (its record: {})", record.display())]
    Refused {
        /// The policy.
        name: String,
        /// Why.
        refusal: Refusal,
        /// The file that names it.
        record: PathBuf,
    },
}

/// Of the active version, with its candidate.
pub(super) fn status(entry: &Entry) -> Option<PolicyStatus> {
    let active = entry.active.as_ref()?;
    let policy = active.policy();
    let manifest = policy.manifest();
    Some(PolicyStatus {
        version: policy.version().clone(),
        kind: manifest.kind,
        order: manifest.order,
        scope: manifest.scope.clone(),
        on_fault: manifest.on_fault,
        grants: manifest.grants.clone(),
        limits: manifest.limits,
        strategy: policy.strategy().clone(),
        description: policy.description().clone(),
        config: policy.config().clone(),
        component_bytes: policy.component().len(),
        earlier: entry.earlier.iter().rev().map(|earlier| earlier.policy().version().clone()).collect(),
        candidate: entry.candidate.as_deref().map(candidate_status),
        breaker: breaker_status(active),
        stats: policy.stats(),
    })
}

fn candidate_status(candidate: &Candidate) -> CandidateStatus {
    let policy = candidate.deployed.policy();
    CandidateStatus {
        version: policy.version().clone(),
        stage: candidate.stage,
        rollout: candidate.rollout,
        since_unix_ms: candidate.since_unix_ms,
        until_unix_ms: candidate.until_unix_ms(),
        compared: candidate.comparison.read(),
        breaker: breaker_status(&candidate.deployed),
        stats: policy.stats(),
    }
}

fn breaker_status(deployed: &Deployed) -> BreakerStatus {
    let (trips, last) = deployed.trips();
    let ago = |ago: Duration| unix_ms().saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(0));
    BreakerStatus {
        state: deployed.breaker(),
        trips,
        last: last.map(|(trip, _)| trip),
        last_unix_ms: last.map(|(_, at)| ago(at)),
    }
}

/// Of all versions that are held, the latest first.
pub(super) fn versions(entry: &Entry) -> Vec<VersionStatus> {
    let candidate = entry.candidate.iter().map(|candidate| {
        let state = if candidate.stage == Stage::Shadow { "shadow" } else { "canary" };
        (state, candidate.deployed.policy())
    });
    let active = entry.active.iter().map(|active| ("active", active.policy()));
    let earlier = entry.earlier.iter().rev().map(|earlier| ("earlier", earlier.policy()));
    let all = candidate.chain(active).chain(earlier);
    all.map(|(state, policy)| version_status(state, policy, &entry.quarantined)).collect()
}

fn version_status(state: &'static str, policy: &Policy, quarantined: &[PolicyVersion]) -> VersionStatus {
    VersionStatus {
        version: policy.version().clone(),
        state,
        quarantined: quarantined.contains(policy.version()),
        manifest: policy.manifest().clone(),
        description: policy.description().clone(),
        config: policy.config().clone(),
        component_bytes: policy.component().len(),
    }
}
