//! One filter over one answer: asks the policy when its stream wants it, and keeps track of which bytes are the model's own.

use std::sync::Arc;

use jackfield_policy::stream::{FilterStream, Sent};
use jackfield_policy::{TokenProbability, Window};

use super::Filter;
use super::batch::ReviewError;
use super::ledger::Ledger;
use super::segments::Segments;

/// A filter that lets nothing pass failed.
#[derive(Debug)]
pub(crate) struct FilterFault {
    /// `name@version`.
    pub(crate) policy: String,
}

/// What a stage lets through.
pub(crate) struct StagePassed {
    pub(crate) text: Segments,
    pub(crate) stop: Option<String>,
}

pub(super) struct Stage {
    filter: Arc<Filter>,
    /// Decides what goes. Its pending text is that of `held`.
    stream: FilterStream,
    held: Segments,
    /// The answer so far, while someone wants to be told of it.
    seen: Option<Seen>,
}

#[derive(Default)]
struct Seen {
    text: String,
    sent: String,
}

/// Nobody is told of an answer longer than this.
const MOST_SEEN_BYTES: usize = 256 << 10;

impl Stage {
    pub(super) fn new(filter: Arc<Filter>, stream_id: u32) -> Self {
        let stream = FilterStream::watching(Arc::clone(&filter.watches), filter.sent_tail_bytes, stream_id);
        let seen = filter.witness.is_some().then(Seen::default);
        Stage { filter, stream, held: Segments::default(), seen }
    }

    pub(super) async fn push(
        &mut self,
        text: Segments,
        is_final: bool,
        ledger: &Ledger,
    ) -> Result<StagePassed, FilterFault> {
        let given = text.text();
        self.stream.feed(&given);
        self.held.append(text);
        if is_final {
            self.stream.finish();
        }
        let sent = match self.stream.window() {
            Some(window) => self.review(window, ledger).await?,
            None => self.stream.pass(),
        };
        self.witness(&given, &sent, is_final);
        let replaced =
            sent.replaced.into_iter().map(|replacement| (replacement.at.range(), replacement.text));
        let text = self.held.take(sent.original_bytes).rewrite(replaced);
        Ok(StagePassed { text, stop: sent.stop })
    }

    /// Keeps what someone wants to be told of, and tells it at the end.
    fn witness(&mut self, given: &str, sent: &Sent, is_final: bool) {
        let Some(mut seen) = self.seen.take() else { return };
        seen.text.push_str(given);
        seen.sent.push_str(&sent.text);
        if seen.text.len() > MOST_SEEN_BYTES {
            return;
        }
        match &self.filter.witness {
            Some(tell) if is_final || sent.stop.is_some() => {
                tell(seen.text, &seen.sent, sent.stop.as_deref())
            }
            _ => self.seen = Some(seen),
        }
    }

    async fn review(&mut self, mut window: Window, ledger: &Ledger) -> Result<Sent, FilterFault> {
        if self.filter.probabilities {
            window.tokens = probabilities(&self.held.clone().take(window.pending.len()), ledger);
        }
        match self.filter.desk.review(window).await {
            Ok(verdict) => Ok(self.stream.apply(verdict.unwrap_or_default())),
            Err(error) => {
                tracing::warn!(policy = self.filter.policy, %error, "an output filter failed");
                self.on_fault(&error)
            }
        }
    }

    fn on_fault(&mut self, error: &ReviewError) -> Result<Sent, FilterFault> {
        // A lost call says nothing about the policy, and nothing about the text either.
        if self.filter.closed || matches!(error, ReviewError::Lost) {
            return Err(FilterFault { policy: self.filter.policy.clone() });
        }
        Ok(self.stream.pass())
    }
}

/// The tokens that end in text which is still the model's own, by where they end in the window.
fn probabilities(window: &Segments, ledger: &Ledger) -> Vec<TokenProbability> {
    let mut tokens = Vec::new();
    let mut before = 0;
    for segment in window.iter() {
        if !segment.altered {
            let ends = ledger.within(segment.origin.clone());
            tokens.extend(ends.map(|(end, probability)| TokenProbability {
                end: (before + end - segment.origin.start) as u32,
                probability,
            }));
        }
        before += segment.text.len();
    }
    tokens
}
