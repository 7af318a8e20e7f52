//! A turn at a desk: its windows are reviewed there, and what that came to is counted for its trace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use jackfield_policy::{Verdict, Window};

use super::batch::{Desk, ReviewError, Reviewed};

/// What one filter did to one turn, all choices together.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    reviews: AtomicU32,
    edits: AtomicU32,
    ended: AtomicU32,
    micros: AtomicU32,
}

/// Where the windows of one turn are handed in.
pub(crate) struct Seat {
    desk: Arc<Desk>,
    tally: Arc<Tally>,
}

impl Seat {
    pub(crate) fn at(desk: Arc<Desk>) -> Seat {
        Seat { desk, tally: Arc::default() }
    }

    pub(crate) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// What the policy says of a window; none lets it pass whole. The verdict's `window` is 0.
    pub(crate) async fn review(&self, window: Window) -> Result<Option<Verdict>, ReviewError> {
        let reviewed = self.desk.review(window).await?;
        self.tally.count(&reviewed);
        Ok(reviewed.verdict)
    }
}

impl Tally {
    fn count(&self, reviewed: &Reviewed) {
        let edits = reviewed.verdict.as_ref().map_or(0, |verdict| verdict.replace.len());
        self.reviews.fetch_add(1, Relaxed);
        self.edits.fetch_add(edits as u32, Relaxed);
        let ends = reviewed.verdict.as_ref().is_some_and(|verdict| verdict.stop.is_some());
        self.ended.fetch_add(u32::from(ends), Relaxed);
        self.micros.fetch_add(reviewed.micros, Relaxed);
    }

    /// In a few words, as far as the answer has come.
    pub(crate) fn did(&self) -> String {
        match self.reviews.load(Relaxed) {
            0 => "watches the answer".into(),
            reviews => {
                let did = format!("{} edits in {reviews} windows", self.edits.load(Relaxed));
                match self.ended.load(Relaxed) {
                    0 => did,
                    ended => format!("{did}; ended {ended} answers"),
                }
            }
        }
    }

    /// What its reviews took.
    pub(crate) fn micros(&self) -> u32 {
        self.micros.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use jackfield_policy::{Called, Replacement, Span};

    use super::*;

    #[tokio::test]
    async fn what_a_turn_had_reviewed_is_counted_for_it_alone() {
        let desk = Desk::open(Arc::new(|windows: &[Window]| {
            let star = |at| Replacement { at: Span::new(at, at + 1), text: "*".into() };
            let stop = (windows[0].pending == "a c").then(|| "enough".to_owned());
            let verdict = Verdict { replace: vec![star(0), star(2)], stop, ..Verdict::default() };
            Ok(Called { answer: vec![verdict; usize::from(windows[0].pending.starts_with('a'))], micros: 7 })
        }));
        let (seat, other) = (Seat::at(Arc::clone(&desk)), Seat::at(desk));
        assert_eq!((seat.tally().did().as_str(), seat.tally().micros()), ("watches the answer", 0));
        for text in ["a b", "c"] {
            seat.review(Window { pending: text.into(), ..Window::default() }).await.unwrap();
        }
        assert_eq!((seat.tally().did().as_str(), seat.tally().micros()), ("2 edits in 2 windows", 14));
        assert_eq!(other.tally().micros(), 0);
        other.review(Window { pending: "a c".into(), ..Window::default() }).await.unwrap();
        assert_eq!(other.tally().did(), "2 edits in 1 windows; ended 1 answers");
    }
}
