//! Recorded calls made again by another version: which decisions change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;
use serde_json::Value;

use crate::{Answered, HostServices, LogLevel, Outcome, Policy, Record, Scored};

/// Examples of a group that are kept.
const MOST_EXAMPLES: usize = 3;

/// What became of recorded calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Replayed {
    /// Calls that were made again.
    pub calls: u64,
    /// Of these, how many came out differently.
    pub changed: u64,
    /// Records of other policies and kinds, which were left alone.
    pub others: u64,
    /// Calls that asked an import for something that is not recorded: what they came to is not exact, and they count as
    /// changed.
    pub asked_anew: u64,
    /// What changed, by what it changed from and to; the most frequent first.
    pub groups: Vec<Group>,
}

/// Changes of one sort.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// Where the outcomes differ: paths into the answers, or the names of faults.
    pub what: String,
    /// How many calls.
    pub count: u64,
    /// Some of them.
    pub examples: Vec<Changed>,
}

/// A call that came out differently.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Changed {
    /// The turn.
    pub turn: String,
    /// What it came to when it was recorded.
    pub before: Outcome,
    /// What it comes to now.
    pub after: Outcome,
}

impl Replayed {
    /// Share of calls that changed; 0 without calls.
    pub fn changed_share(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.changed as f64 / self.calls as f64 }
    }
}

/// Makes recorded calls again.
pub struct Replay<'a> {
    candidate: &'a Policy,
    replayed: Replayed,
    groups: BTreeMap<String, Group>,
}

impl<'a> Replay<'a> {
    /// By this version, of the records of the policy of its name.
    pub fn new(candidate: &'a Policy) -> Replay<'a> {
        Replay { candidate, replayed: Replayed::default(), groups: BTreeMap::new() }
    }

    /// Makes one call again. Its imports are answered as they were.
    pub fn again(&mut self, record: &Record) {
        let manifest = self.candidate.manifest();
        if record.policy.name != manifest.name || record.call.kind() != manifest.kind {
            self.replayed.others += 1;
            return;
        }
        let services = Arc::new(Recorded::new(&record.imports, self.candidate.services().clone()));
        let policy = self.candidate.with_services(services.clone());
        let after = record.call.make(&policy, &record.turn);
        let asked_anew = services.asked_anew().is_some();
        self.replayed.calls += 1;
        self.replayed.asked_anew += u64::from(asked_anew);
        let what = match asked_anew {
            true => Some("an import was asked for what is not recorded".to_owned()),
            false => (after != record.outcome).then(|| difference(&record.outcome, &after)),
        };
        if let Some(what) = what {
            self.replayed.changed += 1;
            let changed = Changed { turn: record.turn.id.clone(), before: record.outcome.clone(), after };
            self.note(what, changed);
        }
    }

    /// What became of all of them.
    pub fn done(mut self) -> Replayed {
        self.replayed.groups = self.groups.into_values().collect();
        self.replayed.groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        self.replayed
    }

    fn note(&mut self, what: String, changed: Changed) {
        let group = self.groups.entry(what.clone()).or_insert(Group { what, count: 0, examples: Vec::new() });
        group.count += 1;
        if group.examples.len() < MOST_EXAMPLES {
            group.examples.push(changed);
        }
    }
}

/// In what two outcomes differ, without the values that are different in each call.
fn difference(before: &Outcome, after: &Outcome) -> String {
    match (before, after) {
        (Outcome::Answer(before), Outcome::Answer(after)) => {
            let mut paths = Vec::new();
            differing(before, after, "", &mut paths);
            paths.join(", ")
        }
        (Outcome::Fault(before), Outcome::Fault(after)) => format!("fault {before} → fault {after}"),
        (Outcome::Fault(before), Outcome::Answer(_)) => format!("fault {before} → an answer"),
        (Outcome::Answer(_), Outcome::Fault(after)) => format!("an answer → fault {after}"),
    }
}

/// Paths at which two values differ. Elements of lists are one path: which of them it is says little of a change.
fn differing(before: &Value, after: &Value, path: &str, paths: &mut Vec<String>) {
    if before == after {
        return;
    }
    let mut note = |path: &str| {
        let path = if path.is_empty() { "the answer" } else { path };
        if !paths.iter().any(|noted| noted == path) {
            paths.push(path.to_owned());
        }
    };
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let (before, after) = (before.get(name), after.get(name));
                let absent = Value::Null;
                differing(before.unwrap_or(&absent), after.unwrap_or(&absent), &inner, paths);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (before, after) in before.iter().zip(after) {
                differing(before, after, &format!("{path}[]"), paths);
            }
        }
        _ => note(path),
    }
}

/// Serves imports as they were answered when the call was recorded. What was not asked then is asked of `inner`, and said so.
pub(crate) struct Recorded {
    answers: Vec<Answered>,
    inner: Arc<dyn HostServices>,
    asked_anew: Mutex<Option<String>>,
}

impl Recorded {
    pub(crate) fn new(answers: &[Answered], inner: Arc<dyn HostServices>) -> Recorded {
        Recorded { answers: answers.to_vec(), inner, asked_anew: Mutex::default() }
    }

    /// The first question without a recorded answer: the import, and what it was asked.
    pub(crate) fn asked_anew(&self) -> Option<String> {
        self.asked_anew.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The recorded answer; imports are functions of their arguments, so that it does not matter which call it was.
    fn find<T>(
        &self,
        import: &str,
        asked: &str,
        matching: impl Fn(&Answered) -> Option<T>,
        ask: impl FnOnce(&dyn HostServices) -> T,
    ) -> T {
        self.answers.iter().find_map(matching).unwrap_or_else(|| {
            let mut anew = self.asked_anew.lock().unwrap_or_else(PoisonError::into_inner);
            anew.get_or_insert_with(|| format!("{import} of {asked:?}"));
            drop(anew);
            ask(&*self.inner)
        })
    }
}

impl HostServices for Recorded {
    fn count_tokens(&self, asked: &str) -> u32 {
        let matching = |answered: &Answered| match answered {
            Answered::Count { text, tokens } if text == asked => Some(*tokens),
            _ => None,
        };
        self.find("tokens.count", asked, matching, |inner| inner.count_tokens(asked))
    }

    fn token_boundaries(&self, asked: &str) -> Vec<u32> {
        let matching = |answered: &Answered| match answered {
            Answered::Boundaries { text, ends } if text == asked => Some(ends.clone()),
            _ => None,
        };
        self.find("tokens.boundaries", asked, matching, |inner| inner.token_boundaries(asked))
    }

    fn encode_tokens(&self, asked: &str) -> Vec<u32> {
        let matching = |answered: &Answered| match answered {
            Answered::Encode { text, ids } if text == asked => Some(ids.clone()),
            _ => None,
        };
        self.find("tokens.encode", asked, matching, |inner| inner.encode_tokens(asked))
    }

    /// Nobody reads the log of a call that is made again.
    fn log(&self, _policy: &str, _level: LogLevel, _text: &str) {}

    fn score(&self, asked: &str, left: Duration) -> Result<Vec<Scored>, String> {
        let matching = |answered: &Answered| match answered {
            Answered::Score { text, scored } if text == asked => Some(scored.clone()),
            _ => None,
        };
        self.find("saliency.score", asked, matching, |inner| inner.score(asked, left))
    }

    fn embed(&self, asked: &str, left: Duration) -> Result<Vec<f32>, String> {
        let matching = |answered: &Answered| match answered {
            Answered::Embed { text, vector } if text == asked => Some(vector.clone()),
            _ => None,
        };
        self.find("embeddings.embed", asked, matching, |inner| inner.embed(asked, left))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn what(before: Value, after: Value) -> String {
        difference(&Outcome::Answer(before), &Outcome::Answer(after))
    }

    #[test]
    fn changes_are_named_by_where_they_are() {
        let plan = |target: &str, priority: u8| json!({"run": {"target": target, "priority": priority}});
        assert_eq!(what(plan("a", 1), plan("b", 2)), "run.priority, run.target");
        assert_eq!(what(plan("a", 1), json!({"answer": "x"})), "answer, run");
        assert_eq!(what(json!(["a", "b", "c"]), json!(["x", "b", "y"])), "[]");
        assert_eq!(what(json!({"set": [1]}), json!({"set": [1, 2]})), "set");
        assert_eq!(what(json!("a"), json!("b")), "the answer");
        let fault = Outcome::Fault("trap".into());
        assert_eq!(difference(&Outcome::Answer(json!(1)), &fault), "an answer → fault trap");
    }

    #[test]
    fn imports_are_answered_as_they_were() {
        struct Never;
        impl HostServices for Never {
            fn count_tokens(&self, _: &str) -> u32 {
                99
            }
            fn token_boundaries(&self, _: &str) -> Vec<u32> {
                vec![99]
            }
            fn encode_tokens(&self, _: &str) -> Vec<u32> {
                vec![99]
            }
            fn log(&self, _: &str, _: LogLevel, _: &str) {}
        }
        let scored = vec![Scored { end: 2, surprisal_bits: 3.5 }];
        let answers = [
            Answered::Count { text: "ab".into(), tokens: 2 },
            Answered::Boundaries { text: "ab".into(), ends: vec![1, 2] },
            Answered::Encode { text: "ab".into(), ids: vec![7, 8] },
            Answered::Score { text: "ab".into(), scored: Ok(scored.clone()) },
            Answered::Embed { text: "ab".into(), vector: Err("busy".into()) },
        ];
        let recorded = Recorded::new(&answers, Arc::new(Never));
        assert_eq!((recorded.count_tokens("ab"), recorded.token_boundaries("ab")), (2, vec![1, 2]));
        let left = Duration::ZERO;
        assert_eq!(
            (recorded.score("ab", left), recorded.embed("ab", left)),
            (Ok(scored), Err("busy".into()))
        );
        assert_eq!(recorded.encode_tokens("ab"), [7, 8]);
        assert_eq!(recorded.asked_anew(), None);
        assert_eq!(recorded.count_tokens("other"), 99);
        assert_eq!(recorded.asked_anew().as_deref(), Some("tokens.count of \"other\""));
    }
}
