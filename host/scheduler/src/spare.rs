//! Memory of plans that are done, for those to come: a step of decodes allocates nothing.

use crate::plan::{Plan, Work};
use crate::request::SequenceId;

/// Everything in here is empty but for what it has room for.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    plans: Vec<Plan>,
    works: Vec<Work>,
    keys: Vec<Vec<SequenceId>>,
}

impl Spare {
    pub(crate) fn plan(&mut self) -> Plan {
        self.plans.pop().unwrap_or_default()
    }

    pub(crate) fn work(&mut self, sequence: SequenceId, start: usize) -> Work {
        let new = || Work {
            sequence,
            start,
            tokens: Vec::new(),
            table: Vec::new(),
            sample: Vec::new(),
            score: false,
        };
        self.works.pop().map_or_else(new, |work| Work { sequence, start, ..work })
    }

    pub(crate) fn keys(&mut self) -> Vec<SequenceId> {
        self.keys.pop().unwrap_or_default()
    }

    pub(crate) fn put_plan(&mut self, plan: Plan) {
        let Plan { mut demoted, mut copies, mut work, mut preempted, .. } = plan;
        self.works.extend(work.drain(..).map(Work::cleared));
        demoted.clear();
        copies.clear();
        preempted.clear();
        self.plans.push(Plan { step: 0, demoted, copies, work, preempted });
    }

    pub(crate) fn put_keys(&mut self, mut keys: Vec<SequenceId>) {
        keys.clear();
        self.keys.push(keys);
    }
}
