//! Taking a step's results.

use crate::event::{Event, FinishReason, Sampled};
use crate::plan::{Plan, Work};
use crate::request::{Millis, SequenceId};
use crate::scheduler::Scheduler;

impl Scheduler {
    /// Takes the tokens sampled in a step that has run, and appends what came of it to `events`.
    ///
    /// Sequences cancelled since the plan was made are skipped, as are samples nobody asked for. A sequence that was to
    /// sample and has none computes its last token again in the next step. A plan that is not in flight is ignored.
    pub fn commit(&mut self, plan: &Plan, sampled: &[Sampled], now: Millis, events: &mut Vec<Event>) {
        self.advance(now);
        events.append(&mut self.events);
        let Some(at) = self.in_flight.iter().position(|in_flight| in_flight.step == plan.step) else {
            return;
        };
        let in_flight = self.in_flight.remove(at);
        for (work, key) in plan.work.iter().zip(&in_flight.works) {
            self.commit_rows(*key, work);
            if work.score {
                self.end_scored(*key, events);
                continue;
            }
            let Some(sequence) = self.sequences.get(key).filter(|_| !work.sample.is_empty()) else {
                continue;
            };
            if sequence.choices == [*key] {
                self.accept(*key, work, sampled, events);
                continue;
            }
            for choice in self.fork(*key) {
                self.accept(choice, work, sampled, events);
            }
        }
        self.spare.put_keys(in_flight.works);
    }

    /// The rows are in their blocks. Blocks that became whole are published.
    fn commit_rows(&mut self, key: SequenceId, work: &Work) {
        let block_size = self.config.block_size;
        let Some(sequence) = self.sequences.get_mut(&key) else { return };
        let before = sequence.computed;
        sequence.computed = work.end();
        self.counters.computed_tokens += work.tokens.len() as u64;
        self.counters.scored_tokens += if work.score { work.tokens.len() as u64 } else { 0 };
        self.counters.recomputed_tokens += sequence.reached.min(work.end()).saturating_sub(before) as u64;
        sequence.reached = sequence.reached.max(work.end());
        if !self.config.prefix_cache {
            return;
        }
        for block in before / block_size..work.end() / block_size {
            if let Some(prefix) = sequence.hash_of(block, block_size) {
                self.blocks.publish(sequence.table[block], prefix);
            }
        }
    }

    /// Splits a sequence that stands for several choices, or for another than itself, into one for each. They share
    /// every block, the last and partly filled one included.
    fn fork(&mut self, key: SequenceId) -> Vec<SequenceId> {
        let Some(sequence) = self.sequences.get(&key) else { return Vec::new() };
        let choices = sequence.choices.clone();
        let request = sequence.request;
        let forks: Vec<_> = choices.iter().map(|choice| sequence.fork(*choice)).collect();
        for fork in &forks {
            fork.table.iter().for_each(|block| self.blocks.pool.share(*block));
        }
        self.remove(key);
        if let Some(pending) = self.requests.get_mut(&request) {
            pending.sequences.clone_from(&choices);
        }
        for fork in forks {
            self.running.insert(fork.rank);
            self.sequences.insert(fork.rank.id, fork);
        }
        choices
    }

    /// Appends what was drawn for one of the choices, up to its end. One token more than the rows after the known ones can
    /// be taken: their keys and values are in place, that of the last token is not.
    fn accept(&mut self, choice: SequenceId, work: &Work, sampled: &[Sampled], events: &mut Vec<Event>) {
        let Some(sequence) = self.sequences.get_mut(&choice) else { return };
        let most = (work.end() + 1).saturating_sub(sequence.known());
        let mut ends = None;
        let drawn = sampled.iter().filter(|sample| sample.sequence == choice);
        for sample in drawn.take(most) {
            sequence.push(sample.token);
            events.push(Event::Token { sequence: choice, token: sample.token });
            if let Some(pending) = self.requests.get_mut(&sequence.request) {
                pending.usage.completion_tokens += 1;
            }
            ends = match sample.stop {
                true => Some(FinishReason::Stop),
                false => (sequence.known() >= sequence.limit).then_some(FinishReason::Length),
            };
            if ends.is_some() {
                break;
            }
        }
        sequence.computed = sequence.computed.min(sequence.known() - 1);
        if let Some(reason) = ends {
            self.finish(choice, reason, events);
        }
    }

    /// One that is scored is done with its last row.
    fn end_scored(&mut self, key: SequenceId, events: &mut Vec<Event>) {
        if self.sequences.get(&key).is_some_and(|sequence| sequence.remaining() == 0) {
            self.finish(key, FinishReason::Scored, events);
        }
    }

    /// Lets who goes on with the same tokens find the block that is not full, unless it is another's as well.
    fn leave_tail(&mut self, key: SequenceId) {
        let block_size = self.config.block_size;
        let Some(sequence) = self.sequences.get_mut(&key).filter(|_| self.config.prefix_cache) else {
            return;
        };
        let Some(name) = sequence.tail(block_size) else { return };
        let block = sequence.table[sequence.computed / block_size];
        if self.blocks.pool.owners(block) == 1 {
            self.blocks.publish_begun(block, name);
        }
    }

    fn finish(&mut self, choice: SequenceId, reason: FinishReason, events: &mut Vec<Event>) {
        self.leave_tail(choice);
        let Some(sequence) = self.remove(choice) else { return };
        self.choices.remove(&choice);
        events.push(Event::Finished { sequence: choice, reason, tokens: sequence.generated() });
        events.extend(self.leave_request(sequence.request, choice));
    }
}
