//! The ordered set of policies in force.

use std::sync::Arc;

use crate::{Kind, Policy};

/// The ordered set of policies in force, at one generation. Never changes; a change makes another.
#[derive(Clone, Debug, Default)]
pub struct Patch {
    generation: u64,
    by_kind: [Vec<Arc<Policy>>; Kind::ALL.len()],
}

impl Patch {
    pub(super) fn new(generation: u64, policies: impl IntoIterator<Item = Arc<Policy>>) -> Patch {
        let mut by_kind: [Vec<Arc<Policy>>; Kind::ALL.len()] = Default::default();
        for policy in policies {
            by_kind[policy.manifest().kind as usize].push(policy);
        }
        for policies in &mut by_kind {
            policies.sort_by(|a, b| {
                let (a, b) = (a.manifest(), b.manifest());
                (a.order, &a.name).cmp(&(b.order, &b.name))
            });
        }
        Patch { generation, by_kind }
    }

    /// This patch with one policy put in, replaced or taken out.
    pub(super) fn with(&self, generation: u64, name: &str, to: Option<Arc<Policy>>) -> Patch {
        let others = self.policies().filter(|policy| policy.manifest().name != name).cloned();
        Patch::new(generation, others.chain(to))
    }

    /// Its number.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Policies of a kind, in the order in which they run.
    pub fn of_kind(&self, kind: Kind) -> &[Arc<Policy>] {
        &self.by_kind[kind as usize]
    }

    /// All policies, in the order in which a turn meets them.
    pub fn policies(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.by_kind.iter().flatten()
    }

    /// The policy of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Policy>> {
        self.policies().find(|policy| policy.manifest().name == name)
    }

    /// Whether there is no policy.
    pub fn is_empty(&self) -> bool {
        self.policies().next().is_none()
    }
}
