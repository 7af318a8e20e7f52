//! What one step computes: plain data, printable.

use std::fmt;

use crate::prefix::BlockHash;
use crate::request::{BlockId, SequenceId};

/// One step. Save `demoted` where that is wanted, run `copies` in order, then all of `work`, sample for [`Plan::sampling`],
/// then commit.
///
/// A plan that is not committed before [`Scheduler::schedule`](crate::Scheduler::schedule) makes the next one counts as not
/// run: its tokens are planned again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Counts the plans of a scheduler, from 1.
    pub step: u64,
    /// What the cache has lost since it last said so. To be saved at once: it is in place until something of this plan is run
    /// or somebody [adopts](crate::Scheduler::adopt). May have something where there is no work.
    pub demoted: Vec<Demoted>,
    /// Blocks to copy (all layers) before anything else, in this order.
    pub copies: Vec<CopyBlock>,
    /// Rows to compute: decodes first, then prefill chunks. No sequence appears twice.
    pub work: Vec<Work>,
    /// Sequences that lost their blocks. They come back by themselves, with the tokens they have.
    pub preempted: Vec<SequenceId>,
}

/// A computed block that is given to something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demoted {
    /// Where its keys and values are still.
    pub block: BlockId,
    /// What they are of.
    pub prefix: BlockHash,
    /// All positions of the block count. Else it is what a sequence left begun, for who goes on from there.
    pub whole: bool,
}

/// Copy the keys and values of a whole block, in all layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyBlock {
    /// Read this one.
    pub from: BlockId,
    /// Overwrite this one.
    pub to: BlockId,
}

/// Consecutive rows of one sequence: positions `start..start + tokens.len()`, which attend to `0..=` themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Whose rows. Before its prompt is computed a sequence stands for all choices of its request; this is the first of
    /// those that are wanted.
    pub sequence: SequenceId,
    /// Position of the first row.
    pub start: usize,
    /// Token ids, one a row; never empty.
    pub tokens: Vec<u32>,
    /// `table[i]` holds positions `i * block_size..`; covers exactly `0..end()`. The rows' own positions are to be
    /// written, those before them are in place.
    pub table: Vec<BlockId>,
    /// Who samples from the last row: nobody while more known tokens follow, `n` when the prompt of `n` choices ends.
    pub sample: Vec<SequenceId>,
    /// The logits of all its rows are wanted, and nobody samples. After a preemption rows may come again.
    pub score: bool,
}

impl Plan {
    /// Nothing to run. Committing an empty plan is allowed and not needed.
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// Of some prompt more follows after this step.
    pub fn reads_on(&self) -> bool {
        self.work.iter().any(|work| work.sample.is_empty())
    }

    /// Rows of the step.
    pub fn tokens(&self) -> usize {
        self.work.iter().map(|work| work.tokens.len()).sum()
    }

    /// Everyone who gets a token from this step, in order.
    pub fn sampling(&self) -> impl Iterator<Item = SequenceId> + '_ {
        self.work.iter().flat_map(|work| work.sample.iter().copied())
    }
}

impl Work {
    /// Without tokens, blocks and samples, but with room for them.
    pub(crate) fn cleared(mut self) -> Self {
        self.tokens.clear();
        self.table.clear();
        self.sample.clear();
        self.score = false;
        self
    }

    /// The position after the last row.
    pub fn end(&self) -> usize {
        self.start + self.tokens.len()
    }
}

/// `step 4: 9 tokens, demote b2, copy b2>b5, preempt s3`, then a line for each work: `s0 12+1 [b0 b1] > s0`, or `s1 0+8 [b2] scored`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}: {} tokens", self.step, self.tokens())?;
        for demoted in &self.demoted {
            write!(f, ", demote {}", demoted.block)?;
        }
        for copy in &self.copies {
            write!(f, ", copy {}>{}", copy.from, copy.to)?;
        }
        for sequence in &self.preempted {
            write!(f, ", preempt {sequence}")?;
        }
        for work in &self.work {
            write!(f, "\n  {work}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}+{} [{}]", self.sequence, self.start, self.tokens.len(), Joined(&self.table))?;
        match self.sample.is_empty() {
            true if self.score => f.write_str(" scored"),
            true => Ok(()),
            false => write!(f, " > {}", Joined(&self.sample)),
        }
    }
}

struct Joined<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Joined<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, item) in self.0.iter().enumerate() {
            let gap = if at == 0 { "" } else { " " };
            write!(f, "{gap}{item}")?;
        }
        Ok(())
    }
}
