//! The ordered set of policies in force, and what a turn gets of it.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    candidate::{Candidate, Stage},
    deployed::Deployed,
    member::{Member, Observers},
};
use crate::{Kind, Policy, PolicyVersion, types::Turn};

/// Earlier versions of each policy that are kept ready to go back to.
const KEPT_VERSIONS: usize = 3;
/// Versions that broke and are remembered.
const KEPT_QUARANTINED: usize = 16;

/// The ordered set of policies in force, at one generation. Never changes; a change makes another.
#[derive(Clone, Debug, Default)]
pub struct Patch {
    generation: u64,
    entries: BTreeMap<String, Arc<Entry>>,
    /// Those in force, in the order in which they run.
    by_kind: [Vec<Arc<Entry>>; Kind::ALL.len()],
    pub(super) observers: Observers,
}

/// All that is known under one name. Its changes are pure: each gives the entry after it.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) active: Option<Arc<Deployed>>,
    pub(super) candidate: Option<Arc<Candidate>>,
    /// The latest last.
    pub(super) earlier: Vec<Arc<Deployed>>,
    /// Versions that broke: not gone back to by themselves.
    pub(super) quarantined: Vec<PolicyVersion>,
}

impl Entry {
    /// With a version in force at once.
    pub(super) fn put(&self, to: Arc<Deployed>) -> Entry {
        let quarantined =
            self.quarantined.iter().filter(|broken| *broken != to.policy().version()).cloned().collect();
        Entry { active: Some(to), candidate: None, earlier: self.with_active(), quarantined }
    }

    /// With a version on its way.
    pub(super) fn stage(&self, candidate: Candidate) -> Entry {
        Entry { candidate: Some(Arc::new(candidate)), ..self.clone() }
    }

    /// With the candidate in force; none without one.
    pub(super) fn promote(&self) -> Option<Entry> {
        let candidate = self.candidate.as_ref()?;
        Some(self.put(candidate.deployed.clone()))
    }

    /// Without the candidate; none without one.
    pub(super) fn withdraw(&self) -> Option<Entry> {
        self.candidate.as_ref()?;
        Some(Entry { candidate: None, ..self.clone() })
    }

    /// Without anything in force.
    pub(super) fn delete(&self) -> Entry {
        Entry {
            active: None,
            candidate: None,
            earlier: self.with_active(),
            quarantined: self.quarantined.clone(),
        }
    }

    /// What `rollback` goes back to.
    pub(super) fn latest_earlier(&self) -> Option<&Arc<Policy>> {
        self.earlier.last().map(|deployed| deployed.policy())
    }

    /// With the latest earlier version in force. What was gone back from is not kept.
    pub(super) fn back(&self, to: Arc<Deployed>) -> Entry {
        let mut earlier = self.earlier.clone();
        earlier.pop();
        Entry { active: Some(to), candidate: None, earlier, quarantined: self.quarantined.clone() }
    }

    /// The last version before the active one that did not break, and how many later ones did.
    pub(super) fn last_good(&self) -> Option<&Arc<Policy>> {
        let mut earlier = self.earlier.iter().rev().map(|deployed| deployed.policy());
        earlier.find(|policy| !self.quarantined.contains(policy.version()))
    }

    /// After a version broke: a candidate is withdrawn, the active one replaced by `good`, the last good one.
    /// None where there is nothing to change.
    pub(super) fn without(&self, broken: &PolicyVersion, good: Option<Arc<Deployed>>) -> Option<Entry> {
        let is = |deployed: &Arc<Deployed>| deployed.policy().version() == broken;
        let mut quarantined = self.quarantined.clone();
        if quarantined.len() == KEPT_QUARANTINED {
            quarantined.remove(0);
        }
        quarantined.push(broken.clone());
        if self.candidate.as_ref().is_some_and(|candidate| is(&candidate.deployed)) {
            return Some(Entry { candidate: None, quarantined, ..self.clone() });
        }
        let good = good.filter(|_| self.active.as_ref().is_some_and(is))?;
        let is_before = |earlier: &&Arc<Deployed>| earlier.policy().version() != good.policy().version();
        let earlier = self.earlier.iter().take_while(is_before).cloned().collect();
        Some(Entry { active: Some(good), earlier, quarantined, ..self.clone() })
    }

    /// All versions that are held.
    pub(super) fn versions(&self) -> impl Iterator<Item = &Arc<Policy>> {
        let candidate = self.candidate.iter().map(|candidate| candidate.deployed.policy());
        let earlier = self.earlier.iter().map(|earlier| earlier.policy());
        self.active.iter().map(|active| active.policy()).chain(candidate).chain(earlier)
    }

    fn with_active(&self) -> Vec<Arc<Deployed>> {
        let mut earlier = self.earlier.clone();
        earlier.extend(self.active.clone());
        earlier.drain(..earlier.len().saturating_sub(KEPT_VERSIONS));
        earlier
    }

    fn is_empty(&self) -> bool {
        self.active.is_none() && self.earlier.is_empty() && self.quarantined.is_empty()
    }
}

impl Patch {
    pub(super) fn new(generation: u64, entries: BTreeMap<String, Arc<Entry>>, observers: Observers) -> Patch {
        let mut by_kind: [Vec<Arc<Entry>>; Kind::ALL.len()] = Default::default();
        let mut in_force: Vec<(&String, &Arc<Entry>, &Policy)> = Vec::new();
        for (name, entry) in &entries {
            in_force.extend(entry.active.as_deref().map(|active| (name, entry, &**active.policy())));
        }
        in_force.sort_by_key(|(name, _, policy)| (policy.manifest().order, *name));
        for (_, entry, policy) in in_force {
            by_kind[policy.manifest().kind as usize].push(entry.clone());
        }
        Patch { generation, by_kind, entries, observers }
    }

    /// The next generation, with one entry in the place of that of the same name.
    pub(super) fn with(&self, name: &str, entry: Entry) -> Patch {
        self.with_all([(name.to_owned(), entry)])
    }

    /// The same for several at once.
    pub(super) fn with_all(&self, changed: impl IntoIterator<Item = (String, Entry)>) -> Patch {
        let mut entries = self.entries.clone();
        for (name, entry) in changed {
            if entry.is_empty() {
                entries.remove(&name);
            } else {
                entries.insert(name, Arc::new(entry));
            }
        }
        Patch::new(self.generation + 1, entries, self.observers.clone())
    }

    /// All that is known under each name.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&String, &Arc<Entry>)> {
        self.entries.iter()
    }

    pub(super) fn entry(&self, name: &str) -> Option<&Arc<Entry>> {
        self.entries.get(name)
    }

    /// Names of those in force, in the order in which a turn meets them.
    pub(super) fn in_force(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.by_kind.iter().flatten()
    }

    /// Its number.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The active versions of a kind, in the order in which they run.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Arc<Policy>> {
        self.by_kind[kind as usize].iter().filter_map(|entry| entry.active.as_deref()).map(Deployed::policy)
    }

    /// The active version of the policy of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Policy>> {
        self.entries.get(name)?.active.as_deref().map(Deployed::policy)
    }

    /// What this turn gets, which asks for `model`: of each policy that is for it, the version that is its own.
    pub fn lineup(&self, turn: &Turn, model: &str) -> Lineup {
        let members = |entries: &Vec<Arc<Entry>>| {
            entries.iter().filter_map(|entry| self.member(entry, turn, model)).map(Arc::new).collect()
        };
        Lineup { generation: self.generation, by_kind: self.by_kind.each_ref().map(members) }
    }

    fn member(&self, entry: &Entry, turn: &Turn, model: &str) -> Option<Member> {
        let is_for = |deployed: &Deployed| deployed.policy().manifest().scope.takes(turn, model);
        let candidate = entry.candidate.as_ref().filter(|candidate| is_for(&candidate.deployed));
        if let Some(canary) = candidate.filter(|candidate| candidate.takes(turn)) {
            let member = Member::new(canary.deployed.clone(), None, &self.observers, self.generation);
            return Some(member.after(entry.active.iter().chain(entry.earlier.iter().rev())));
        }
        let active = entry.active.clone().filter(|active| is_for(active))?;
        let shadow = candidate.filter(|candidate| candidate.stage == Stage::Shadow).cloned();
        let member = Member::new(active, shadow, &self.observers, self.generation);
        Some(member.after(entry.earlier.iter().rev()))
    }
}

/// The policies of one turn, in their order.
#[derive(Clone, Debug, Default)]
pub struct Lineup {
    generation: u64,
    by_kind: [Vec<Arc<Member>>; Kind::ALL.len()],
}

impl Lineup {
    /// The generation that it was taken from.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Those of a kind, in the order in which they run.
    pub fn of_kind(&self, kind: Kind) -> &[Arc<Member>] {
        &self.by_kind[kind as usize]
    }
}
