//! A version that is on its way: compared with the active one, then given a share of the turns.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::deployed::Deployed;
use crate::{Outcome, types::Turn};

/// Differences that are kept to be looked at.
const MOST_EXAMPLES: usize = 8;
/// A longer outcome is shown by its beginning, in bytes of JSON.
const MOST_EXAMPLE_BYTES: usize = 2 << 10;

/// A share of turns, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Share(u32);

impl Share {
    /// From 0 exclusive to 1 inclusive; none for anything else.
    pub fn new(share: f64) -> Option<Share> {
        let millionths = (share * 1e6).round();
        (1.0..=1e6).contains(&millionths).then_some(Share(millionths as u32))
    }

    /// 0 to 1.
    pub fn get(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// Whether a turn belongs to the share. Turns of a session stay together; those without one are drawn one by one. A larger
    /// share of the same salt takes all turns of a smaller one.
    fn takes(self, salt: u64, turn: &Turn) -> bool {
        let (what, key) = match &turn.session {
            Some(session) => (&b"session"[..], session.as_str()),
            None => (&b"turn"[..], turn.id.as_str()),
        };
        let mut hasher = blake3::Hasher::new_derive_key("jackfield 2026 canary");
        for part in [&salt.to_le_bytes()[..], turn.tenant.as_bytes(), what, key.as_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let hash = hasher.finalize();
        let first = hash.as_bytes().first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(first) % 1_000_000 < u64::from(self.0)
    }
}

/// How a version comes into force: at once when neither is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Rollout {
    /// For so long it is called beside the active one, and what it says is compared and not used.
    pub shadow: Option<Duration>,
    /// After that, this share of the turns is its own.
    pub canary: Option<Share>,
}

/// Where a version stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Compared, not used.
    Shadow,
    /// In force for a share of the turns.
    Canary,
    /// In force.
    Active,
}

/// A version that is on its way.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(super) deployed: Arc<Deployed>,
    pub(super) stage: Stage,
    pub(super) rollout: Rollout,
    /// When this stage began.
    pub(super) since_unix_ms: u64,
    /// Draws other sessions for each candidate; the generation that brought it.
    pub(super) salt: u64,
    pub(super) comparison: Arc<Comparison>,
}

impl Candidate {
    /// In the first stage that its rollout has.
    pub(super) fn new(deployed: Arc<Deployed>, rollout: Rollout, generation: u64, unix_ms: u64) -> Candidate {
        Candidate {
            deployed,
            stage: if rollout.shadow.is_some() { Stage::Shadow } else { Stage::Canary },
            rollout,
            since_unix_ms: unix_ms,
            salt: generation,
            comparison: Arc::default(),
        }
    }

    /// When its time as a shadow ends; none for a canary.
    pub(super) fn until_unix_ms(&self) -> Option<u64> {
        let shadow = self.rollout.shadow.filter(|_| self.stage == Stage::Shadow)?;
        Some(self.since_unix_ms.saturating_add(u64::try_from(shadow.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Whether it is to be compared at this time.
    pub(super) fn is_compared(&self, unix_ms: u64) -> bool {
        self.until_unix_ms().is_some_and(|until| unix_ms < until)
    }

    /// The next stage, when the time for it has come.
    pub(super) fn due(&self, unix_ms: u64) -> Option<Candidate> {
        let over = self.until_unix_ms().is_some_and(|until| unix_ms >= until);
        (over && self.rollout.canary.is_some()).then(|| Candidate {
            stage: Stage::Canary,
            since_unix_ms: unix_ms,
            ..self.clone()
        })
    }

    /// Whether a turn is the candidate's own.
    pub(super) fn takes(&self, turn: &Turn) -> bool {
        let share = self.rollout.canary.filter(|_| self.stage == Stage::Canary);
        share.is_some_and(|share| share.takes(self.salt, turn))
    }
}

/// A turn that came out differently.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Example {
    /// The turn.
    pub turn: String,
    /// What the active version said.
    pub active: Value,
    /// What the candidate said.
    pub candidate: Value,
}

/// How a candidate compares with the active version.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    compared: AtomicU64,
    differed: AtomicU64,
    faults: AtomicU64,
    dropped: AtomicU64,
    examples: Mutex<VecDeque<Example>>,
}

/// The same, read.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Compared {
    /// Calls that both were asked.
    pub compared: u64,
    /// Of these, how many came out differently.
    pub differed: u64,
    /// Of these, how many were faults of the candidate.
    pub faults: u64,
    /// Calls that were not compared, since the host had enough to do.
    pub dropped: u64,
    /// The latest differences.
    pub examples: Vec<Example>,
}

impl Comparison {
    pub(super) fn drop_one(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note(&self, turn: &Turn, active: &Outcome, candidate: &Outcome) {
        self.compared.fetch_add(1, Ordering::Relaxed);
        if matches!(candidate, Outcome::Fault(_)) {
            self.faults.fetch_add(1, Ordering::Relaxed);
        }
        if active == candidate {
            return;
        }
        self.differed.fetch_add(1, Ordering::Relaxed);
        let mut examples = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        if examples.len() == MOST_EXAMPLES {
            examples.pop_front();
        }
        examples.push_back(Example {
            turn: turn.id.clone(),
            active: shown(active),
            candidate: shown(candidate),
        });
    }

    pub(super) fn read(&self) -> Compared {
        let examples = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        Compared {
            compared: self.compared.load(Ordering::Relaxed),
            differed: self.differed.load(Ordering::Relaxed),
            faults: self.faults.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            examples: examples.iter().cloned().collect(),
        }
    }
}

fn shown(outcome: &Outcome) -> Value {
    let value = serde_json::to_value(outcome).unwrap_or_default();
    let text = value.to_string();
    if text.len() <= MOST_EXAMPLE_BYTES {
        return value;
    }
    Value::String(format!("{}…", &text[..text.floor_char_boundary(MOST_EXAMPLE_BYTES)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(session: Option<String>, id: u32) -> Turn {
        Turn { session, id: id.to_string(), ..Turn::default() }
    }

    #[test]
    fn a_session_stays_where_it_is_and_a_larger_share_keeps_it() {
        let share = |share| Share::new(share).expect("a share");
        let mut taken = 0;
        for session in 0..10_000 {
            let name = Some(session.to_string());
            let first = share(0.05).takes(7, &turn(name.clone(), 0));
            taken += u32::from(first);
            for id in 1..4 {
                assert_eq!(share(0.05).takes(7, &turn(name.clone(), id)), first);
            }
            assert!(!first || share(0.2).takes(7, &turn(name.clone(), 9)));
            assert!(share(1.0).takes(7, &turn(name, 0)));
        }
        // 500 expected, standard deviation 22.
        assert!((400..600).contains(&taken), "{taken}");
    }

    #[test]
    fn turns_without_a_session_are_drawn_one_by_one_and_tenants_apart() {
        let half = Share::new(0.5).expect("a share");
        let drawn: std::collections::HashSet<bool> =
            (0..64).map(|id| half.takes(1, &turn(None, id))).collect();
        assert_eq!(drawn.len(), 2);
        let of_tenant = |tenant: &str| Turn { tenant: tenant.into(), ..turn(Some("s".into()), 0) };
        let drawn: std::collections::HashSet<bool> =
            (0..64).map(|tenant| half.takes(1, &of_tenant(&tenant.to_string()))).collect();
        assert_eq!(drawn.len(), 2);
    }

    #[test]
    fn shares_are_above_nothing_and_at_most_everything() {
        for bad in [0.0, -0.1, 1.1, f64::NAN, 1e-9] {
            assert_eq!(Share::new(bad), None, "{bad}");
        }
        assert_eq!(Share::new(0.05).map(Share::get), Some(0.05));
    }

    #[test]
    fn differences_are_counted_and_the_last_ones_kept() {
        let comparison = Comparison::default();
        let answer = |n: usize| Outcome::Answer(Value::String("x".repeat(n)));
        comparison.note(&turn(None, 0), &answer(1), &answer(1));
        comparison.note(&turn(None, 1), &answer(1), &Outcome::Fault("trap".into()));
        for n in 2..20 {
            comparison.note(&turn(None, n), &answer(1), &answer(4000));
        }
        comparison.drop_one();
        let read = comparison.read();
        assert_eq!((read.compared, read.differed, read.faults, read.dropped), (20, 19, 1, 1));
        assert_eq!(read.examples.len(), MOST_EXAMPLES);
        assert!(read.examples.iter().all(|example| example.candidate.to_string().len() < 2100));
    }
}
