//! The output filters of a turn: everything that leaves goes through here, whatever the endpoint.
//!
//! An answer's text passes one [`Stage`] after the other. A stage holds what is undecided; nothing held is ever sent.
//! The ledger shows a token's log-probability only once its text was sent as the model wrote it.

pub(crate) mod batch;
mod ledger;
mod seat;
mod segments;
mod stage;

use std::sync::Arc;

use jackfield_policy::watch::Watches;

pub(crate) use ledger::{Shown, Token};
pub(crate) use seat::{Seat, Tally};
pub(crate) use stage::FilterFault;

use ledger::Ledger;
use segments::Segments;
use stage::Stage;

/// One filter of the pinned generation, as the answers of a turn use it.
pub(crate) struct Filter {
    /// `name@version`.
    pub(crate) policy: String,
    /// Whether a fault ends the answer. Otherwise the text passes.
    pub(crate) closed: bool,
    /// Already sent text to show, in bytes.
    pub(crate) sent_tail_bytes: usize,
    /// Whether windows carry token probabilities.
    pub(crate) probabilities: bool,
    /// Without any, every window is reviewed.
    pub(crate) watches: Arc<Watches>,
    /// Where windows are reviewed.
    pub(crate) desk: Seat,
    /// Who is told of whole answers, if anyone is.
    pub(crate) witness: Option<Witness>,
}

/// Is told of an answer that went through: what came in, what went out, and why it was ended if it was.
pub(crate) type Witness = Box<dyn Fn(String, &str, Option<&str>) + Send + Sync>;

/// What may be sent now.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(crate) text: String,
    pub(crate) tokens: Vec<Shown>,
    /// A filter ended the answer here, for this reason.
    pub(crate) stop: Option<String>,
}

/// The way of one answer through all filters.
pub(crate) struct Chain {
    stages: Vec<Stage>,
    ledger: Ledger,
    /// Bytes of the model's text so far.
    fed: usize,
}

impl Chain {
    /// `stream_id` names the answer in logs.
    pub(crate) fn new(filters: &[Arc<Filter>], stream_id: u32) -> Self {
        let stages = filters.iter().map(|filter| Stage::new(Arc::clone(filter), stream_id)).collect();
        Chain { stages, ledger: Ledger::default(), fed: 0 }
    }

    /// Takes more of the answer; with `is_final` nothing more will come and nothing stays held.
    ///
    /// # Errors
    /// A filter failed whose manifest says that nothing may pass then. The answer must end without what is held.
    pub(crate) async fn push(
        &mut self,
        text: String,
        tokens: impl IntoIterator<Item = Token>,
        mut is_final: bool,
    ) -> Result<Passed, FilterFault> {
        self.ledger.add(tokens);
        let mut moving = Segments::original(text, self.fed);
        self.fed += moving.len();
        let mut stop = None;
        for stage in &mut self.stages {
            let passed = stage.push(moving, is_final, &self.ledger).await?;
            moving = passed.text;
            is_final |= passed.stop.is_some();
            stop = stop.or(passed.stop);
        }
        let tokens = self.ledger.release(&moving);
        Ok(Passed { text: moving.text(), tokens, stop })
    }
}

#[cfg(test)]
mod tests;
