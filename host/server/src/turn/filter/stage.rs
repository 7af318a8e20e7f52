//! One filter over one answer.

use std::sync::Arc;

use jackfield_policy::watch::Watcher;
use jackfield_policy::{Hit, Span, TokenProbability, Verdict, Window};

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
    watcher: Option<Watcher>,
    /// Text that was not let through yet.
    held: Segments,
    /// Bytes at the front of `held` that the policy itself held the last time.
    held_by_policy: usize,
    sent_tail: String,
    stream_id: u32,
}

impl Stage {
    pub(super) fn new(filter: Arc<Filter>, stream_id: u32) -> Self {
        let watcher = filter.watches.clone().map(Watcher::new);
        Stage {
            filter,
            watcher,
            held: Segments::default(),
            held_by_policy: 0,
            sent_tail: String::new(),
            stream_id,
        }
    }

    pub(super) async fn push(
        &mut self,
        text: Segments,
        is_final: bool,
        ledger: &Ledger,
    ) -> Result<StagePassed, FilterFault> {
        if let Some(watcher) = &mut self.watcher {
            watcher.feed(&text.text());
            if is_final {
                watcher.finish();
            }
        }
        self.held.append(text);
        let decided = self.watcher.as_ref().map_or(self.held.len(), Watcher::decided_bytes);
        if !self.wants_review(decided, is_final) {
            return Ok(match self.held_by_policy {
                0 => self.let_through(decided, None),
                // Nothing new to show it: what the policy holds stays held.
                _ => StagePassed { text: Segments::default(), stop: None },
            });
        }
        let verdict = self.filter.desk.review(self.window(decided, is_final, ledger)).await;
        match verdict {
            Ok(verdict) => Ok(self.let_through(decided, verdict)),
            Err(error) => {
                tracing::warn!(policy = self.filter.policy, %error, "an output filter failed");
                self.on_fault(decided, &error)
            }
        }
    }

    /// Without watches every new text is looked at. With them, text with a hit is, and text of which the policy itself
    /// held a part.
    fn wants_review(&self, decided: usize, is_final: bool) -> bool {
        let news = decided > self.held_by_policy || (is_final && decided > 0);
        let wanted = self.watcher.as_ref().is_none_or(Watcher::has_found) || self.held_by_policy > 0;
        news && wanted
    }

    fn window(&self, decided: usize, is_final: bool, ledger: &Ledger) -> Window {
        let front = self.held.clone().take(decided);
        let tokens = if self.filter.probabilities { probabilities(&front, ledger) } else { Vec::new() };
        let found = self.watcher.as_ref().map(Watcher::found).unwrap_or_default();
        let hit = |found: jackfield_policy::watch::Found| Hit {
            watch: found.watch as u32,
            at: Span::new(found.start as u32, found.end as u32),
            cut: found.cut,
        };
        Window {
            stream_id: self.stream_id,
            sent_tail: self.sent_tail.clone(),
            pending: front.text(),
            hits: found.into_iter().map(hit).collect(),
            tokens,
            is_final,
        }
    }

    /// Lets the decided text go as the verdict says; without one it goes whole.
    fn let_through(&mut self, decided: usize, verdict: Option<Verdict>) -> StagePassed {
        let Verdict { replace, hold_bytes, stop, .. } = verdict.unwrap_or_default();
        let front = self.held.take(decided.saturating_sub(hold_bytes as usize));
        let goes = front.len();
        if let Some(watcher) = &mut self.watcher {
            watcher.release(goes);
        }
        self.held_by_policy = decided.saturating_sub(goes);
        let text =
            front.rewrite(replace.into_iter().map(|replacement| (replacement.at.range(), replacement.text)));
        self.remember(&text);
        StagePassed { text, stop }
    }

    fn on_fault(&mut self, decided: usize, error: &ReviewError) -> Result<StagePassed, FilterFault> {
        // A lost call says nothing about the policy, and nothing about the text either.
        if self.filter.closed || matches!(error, ReviewError::Lost) {
            return Err(FilterFault { policy: self.filter.policy.clone() });
        }
        Ok(self.let_through(decided, None))
    }

    fn remember(&mut self, sent: &Segments) {
        let most = self.filter.sent_tail_bytes;
        if most == 0 {
            return;
        }
        self.sent_tail.push_str(&sent.text());
        let start = self.sent_tail.ceil_char_boundary(self.sent_tail.len().saturating_sub(most));
        self.sent_tail.drain(..start);
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
