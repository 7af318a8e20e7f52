//! A step in the middle of another: short prompts need not wait until a piece of a long one is read.

use std::collections::HashSet;

use crate::plan::Plan;
use crate::planning::Draft;
use crate::prefill::Share;
use crate::request::{Millis, SequenceId};
use crate::scheduler::{InFlight, Scheduler};

impl Scheduler {
    /// A step to run while the last plan is on its way and not committed: prompts that are not in that one, that have no
    /// token yet, that end within this step, and that are at least as urgent as what the step on its way reads on. (Who is
    /// scored waits.) Empty when there are none,
    /// when that step reads no prompt that goes on after it, or when one of its sequences is gone: its blocks are free,
    /// and still written to.
    ///
    /// To be run and committed before the step on its way goes on. Nobody in that one is touched, and nobody gives up
    /// blocks for it. How much time the step on its way may lose so is the caller's to bound.
    pub fn interpose(&mut self, now: Millis) -> Plan {
        self.advance(now);
        let [on_its_way] = &self.in_flight[..] else { return Plan::default() };
        let Some(priority) = on_its_way.overtaken else { return Plan::default() };
        let writers = on_its_way.writers;
        if self.writes_into_free_blocks() {
            return Plan::default();
        }
        // Nobody is preempted while a step is on its way.
        self.admit(&mut Draft::default());
        // Who gets a token from the step on its way waits for this one as well.
        let rows = self.config.max_step_tokens;
        let shares = self.whole_prompts(priority, if writers { self.rows_for_pieces(rows) } else { rows });
        if shares.is_empty() {
            return Plan::default();
        }
        self.step += 1;
        self.counters.interposed_steps += 1;
        let (works, plan) = self.plan(shares.into_iter());
        let (copied, overtaken, writers) = (Vec::new(), None, true);
        self.in_flight.push(InFlight { step: self.step, works, copied, overtaken, writers });
        plan
    }

    /// One that a plan on its way computes is gone: its blocks are free, and still written to.
    pub(crate) fn writes_into_free_blocks(&self) -> bool {
        self.in_flight.iter().flat_map(|step| &step.works).any(|key| !self.sequences.contains_key(key))
    }

    /// Prompts that nobody has begun to answer and that fit a step to their end, the most urgent and shortest first.
    fn whole_prompts(&mut self, priority: u16, rows: usize) -> Vec<Share> {
        let keys = self.newcomers(priority);
        let mut left = self.left_for(rows);
        let mut filling = HashSet::new();
        let mut shares = Vec::new();
        for key in self.shortest_first(&keys) {
            while self.take_over(key) {}
            let mut share = Share { key, tokens: 0 };
            let remaining = self.remaining(key);
            if self.next_tokens(&share, &left) < remaining || self.comes_by_itself(key, &filling) {
                continue;
            }
            share.tokens = remaining;
            left.take(self.computed(key), remaining);
            self.note_filling(&share, &mut filling);
            shares.push(share);
        }
        shares
    }

    fn newcomers(&self, priority: u16) -> Vec<SequenceId> {
        let new = |key: &SequenceId| {
            let sequence = self.sequences.get(key);
            sequence.is_some_and(|s| s.generated() == 0 && s.priority <= priority && !s.score)
                && !self.in_flight.iter().any(|step| step.works.contains(key))
        };
        self.running.iter().map(|rank| rank.id).filter(new).collect()
    }
}
