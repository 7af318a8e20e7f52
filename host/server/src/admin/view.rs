//! What the admin API shows, and how it refuses.

use axum::http::StatusCode;
use jackfield_policy::{
    BreakerState, BreakerStatus, CandidateStatus, GenerationInfo, PolicyStatus, PolicyVersion, Refusal,
    Share, Stats, VersionStatus,
};
use serde_json::{Value, json};

use crate::error::ApiError;

/// A policy in force.
pub(super) fn policy(status: &PolicyStatus) -> Value {
    let mut body = version(&status.version);
    body["state"] = json!(match status.breaker.state {
        BreakerState::Closed => "active",
        BreakerState::Open | BreakerState::HalfOpen => "open",
    });
    body["kind"] = json!(status.kind);
    body["order"] = json!(status.order);
    body["match"] = json!(status.scope);
    body["on_fault"] = json!(status.on_fault);
    body["grants"] = json!(status.grants);
    body["limits"] = json!(status.limits);
    body["strategy"] = json!(status.strategy);
    body["description"] = json!(status.description);
    body["config"] = status.config.clone();
    body["component_bytes"] = json!(status.component_bytes);
    body["earlier"] = status.earlier.iter().map(version).collect();
    body["candidate"] = status.candidate.as_ref().map(candidate).unwrap_or_default();
    body["breaker"] = breaker(&status.breaker);
    body["stats"] = stats(&status.stats);
    body
}

fn candidate(status: &CandidateStatus) -> Value {
    let mut body = version(&status.version);
    let compared = &status.compared;
    body["stage"] = json!(status.stage);
    body["share"] = json!(status.rollout.canary.map(Share::get));
    body["since_unix_ms"] = json!(status.since_unix_ms);
    body["until_unix_ms"] = json!(status.until_unix_ms);
    body["compared"] = json!(compared.compared);
    body["differed"] = json!(compared.differed);
    body["faults"] = json!(compared.faults);
    body["dropped"] = json!(compared.dropped);
    body["examples"] = json!(compared.examples);
    body["breaker"] = breaker(&status.breaker);
    body["stats"] = stats(&status.stats);
    body
}

fn breaker(status: &BreakerStatus) -> Value {
    let last = status.last.zip(status.last_unix_ms);
    let last = last.map(|(trip, unix_ms)| json!({"unix_ms": unix_ms, "reason": trip.to_string()}));
    json!({"state": status.state, "trips": status.trips, "last": last})
}

fn stats(stats: &Stats) -> Value {
    let faults: serde_json::Map<String, Value> =
        stats.faults.iter().map(|(label, count)| ((*label).to_owned(), json!(count))).collect();
    json!({
        "calls": stats.calls,
        "micros": stats.micros,
        "cpu_micros": stats.cpu_micros,
        "faults": faults,
        "edits": stats.edits,
        "saved_tokens": stats.saved_tokens,
        "answered": stats.answered,
        "held_bytes": stats.held_bytes,
        "imports": stats.imports,
    })
}

/// A version that is held.
pub(super) fn held(status: &VersionStatus) -> Value {
    let mut body = version(&status.version);
    body["state"] = json!(status.state);
    body["quarantined"] = json!(status.quarantined);
    body["manifest"] = json!(status.manifest);
    body["description"] = json!(status.description);
    body["config"] = status.config.clone();
    body["component_bytes"] = json!(status.component_bytes);
    body
}

/// One change of the past.
pub(super) fn generation(info: &GenerationInfo) -> Value {
    json!({
        "generation": info.generation,
        "unix_ms": info.unix_ms,
        "change": info.change,
        "name": info.name,
        "from": info.from.as_ref().map(version),
        "to": info.to.as_ref().map(version),
        "why": info.why,
    })
}

fn version(version: &PolicyVersion) -> Value {
    json!({
        "name": version.name,
        "version": version.version,
        "digest": version.digest,
        "config_digest": version.config_digest,
    })
}

/// A change that was refused as a whole: what is in force stays in force.
pub(super) fn refusal(refusal: &Refusal) -> ApiError {
    let status = match refusal {
        Refusal::Unknown { .. } => StatusCode::NOT_FOUND,
        Refusal::NothingToRollBackTo { .. }
        | Refusal::NoCandidate { .. }
        | Refusal::NothingToCompareWith { .. } => StatusCode::CONFLICT,
        Refusal::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::State { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let error = ApiError::new(status, "policy_error", refusal.code(), refusal.to_string());
    match part(refusal) {
        Some(part) => error.with_param(part),
        None => error,
    }
}

/// The same for a change of the configuration alone, which is then what is at fault.
pub(super) fn config_refusal(refused: &Refusal) -> ApiError {
    let error = refusal(refused);
    match part(refused) {
        Some("name") | None => error,
        Some(_) => error.with_param("config"),
    }
}

/// The part of the upload that is at fault.
fn part(refusal: &Refusal) -> Option<&'static str> {
    match refusal {
        Refusal::Manifest(_) => Some("manifest"),
        Refusal::Config { .. } | Refusal::Configure { .. } => Some("config"),
        Refusal::Case { .. } => Some("cases"),
        Refusal::Unknown { .. }
        | Refusal::NothingToRollBackTo { .. }
        | Refusal::NoCandidate { .. }
        | Refusal::NothingToCompareWith { .. } => Some("name"),
        Refusal::State { .. } => None,
        _ => Some("component"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_code_and_names_the_part() {
        let error = refusal(&Refusal::Version {
            wanted: "jackfield:policy@0.1.0".into(),
            found: "jackfield:policy@0.2.0".into(),
            newer: true,
        });
        assert_eq!(
            (error.status.as_u16(), error.code, error.param.as_deref()),
            (422, "contract_version", Some("component"))
        );
        assert!(error.message.contains("@0.1.0") && error.message.contains("@0.2.0"));
        let error = refusal(&Refusal::Unknown { name: "x".into() });
        assert_eq!((error.status.as_u16(), error.code), (404, "policy_not_found"));
    }
}
