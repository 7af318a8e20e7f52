//! Windows of many streams, reviewed in one call.
//!
//! There is one desk for each policy version and tenant. Windows that arrive while a call runs wait for it and go
//! together into the next one: the busier the host, the larger the batch, without any timer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use jackfield_policy::{Called, Fault, Verdict, Window};
use tokio::sync::{mpsc, oneshot};

/// Windows in one call.
const MOST_WINDOWS: usize = 64;
/// Windows that may wait at one desk; more wait to be let in.
const MOST_WAITING: usize = 1024;

/// A policy's review of windows, as this module sees it.
pub(crate) type Review = Arc<dyn Fn(&[Window]) -> Result<Called<Vec<Verdict>>, Fault> + Send + Sync>;

/// Why a window has no verdict.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReviewError {
    /// The policy failed on it.
    #[error(transparent)]
    Fault(Fault),
    /// The call was lost.
    #[error("the call was lost")]
    Lost,
}

/// What came of one window.
#[derive(Debug)]
pub(crate) struct Reviewed {
    /// None lets it pass whole. Its `window` is 0.
    pub(crate) verdict: Option<Verdict>,
    /// Its share of what the call took.
    pub(crate) micros: u32,
}

type Outcome = Result<Reviewed, Fault>;

struct Ask {
    window: Window,
    reply: oneshot::Sender<Outcome>,
}

/// Where the windows of one policy version and tenant are handed in.
pub(crate) struct Desk {
    asks: mpsc::Sender<Ask>,
}

impl Desk {
    /// Opens a desk; it closes when the last handle is dropped.
    pub(crate) fn open(review: Review) -> Arc<Desk> {
        let (asks, inbox) = mpsc::channel(MOST_WAITING);
        tokio::spawn(serve(review, inbox));
        Arc::new(Desk { asks })
    }

    /// What the policy says of a window.
    pub(crate) async fn review(&self, window: Window) -> Result<Reviewed, ReviewError> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(Ask { window, reply }).await.map_err(|_| ReviewError::Lost)?;
        answer.await.map_err(|_| ReviewError::Lost)?.map_err(ReviewError::Fault)
    }
}

async fn serve(review: Review, mut inbox: mpsc::Receiver<Ask>) {
    while let Some(first) = inbox.recv().await {
        // One turn of the executor lets the other streams of the same step hand in theirs.
        tokio::task::yield_now().await;
        let mut asks = vec![first];
        while asks.len() < MOST_WINDOWS {
            let Ok(next) = inbox.try_recv() else { break };
            asks.push(next);
        }
        asks.retain(|ask| !ask.reply.is_closed());
        let (windows, replies): (Vec<_>, Vec<_>) =
            asks.into_iter().map(|ask| (ask.window, ask.reply)).unzip();
        let review = Arc::clone(&review);
        let Ok(outcomes) = tokio::task::spawn_blocking(move || decide(&review, &windows)).await else {
            continue;
        };
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            // A stream that is gone wants no verdict.
            let _ = reply.send(outcome);
        }
    }
}

/// One outcome for each window. When the call fails, halves are tried apart, so that the window that breaks the policy
/// is found in a logarithm of calls and its neighbours do not suffer.
fn decide(review: &Review, windows: &[Window]) -> Vec<Outcome> {
    if windows.is_empty() {
        return Vec::new();
    }
    match review(windows) {
        Ok(called) => deal(called, windows.len()),
        Err(fault) if windows.len() == 1 => vec![Err(fault)],
        Err(_) => {
            let (left, right) = windows.split_at(windows.len() / 2);
            let mut outcomes = decide(review, left);
            outcomes.extend(decide(review, right));
            outcomes
        }
    }
}

fn deal(called: Called<Vec<Verdict>>, windows: usize) -> Vec<Outcome> {
    let micros = called.micros.div_ceil(windows.max(1) as u32);
    let mut outcomes: Vec<Outcome> = (0..windows).map(|_| Ok(Reviewed { verdict: None, micros })).collect();
    for mut verdict in called.answer {
        if let Some(outcome) = outcomes.get_mut(verdict.window as usize) {
            verdict.window = 0;
            *outcome = Ok(Reviewed { verdict: Some(verdict), micros });
        }
    }
    outcomes
}

/// A policy, by its address, and a tenant.
type DeskKey = (usize, Arc<str>);

/// All desks that are open. Two turns of one tenant under one policy version share one.
#[derive(Default)]
pub(crate) struct Desks {
    open: Mutex<HashMap<DeskKey, Weak<Desk>>>,
}

impl Desks {
    /// The desk of a tenant and of the policy at this address. An open desk keeps its policy, so that no other one can
    /// be at the same place.
    pub(crate) fn of(&self, policy: usize, tenant: &Arc<str>, review: impl FnOnce() -> Review) -> Arc<Desk> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (policy, Arc::clone(tenant));
        if let Some(desk) = open.get(&key).and_then(Weak::upgrade) {
            return desk;
        }
        open.retain(|_, desk| desk.strong_count() > 0);
        let desk = Desk::open(review());
        open.insert(key, Arc::downgrade(&desk));
        desk
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn window(text: &str) -> Window {
        Window { pending: text.into(), ..Window::default() }
    }

    /// Faults on any window with `BOOM`, stops any with `stop`, and counts its calls.
    fn touchy(calls: Arc<AtomicUsize>) -> Review {
        Arc::new(move |windows: &[Window]| {
            calls.fetch_add(1, Ordering::Relaxed);
            if windows.iter().any(|window| window.pending.contains("BOOM")) {
                return Err(Fault::Deadline { limit_ms: 50 });
            }
            let stops = windows.iter().enumerate().filter(|(_, window)| window.pending.contains("stop"));
            let answer = stops
                .map(|(index, _)| Verdict {
                    window: index as u32,
                    stop: Some("x".into()),
                    ..Verdict::default()
                })
                .collect();
            Ok(Called { answer, micros: 1 })
        })
    }

    #[test]
    fn windows_share_what_their_call_took() {
        let review: Review = Arc::new(|_: &[Window]| Ok(Called { answer: Vec::new(), micros: 10 }));
        let micros = |windows: usize| -> Vec<u32> {
            let outcomes = decide(&review, &vec![window("x"); windows]);
            outcomes.into_iter().map(|outcome| outcome.unwrap().micros).collect()
        };
        assert_eq!((micros(1), micros(3)), (vec![10], vec![4; 3]));
    }

    #[test]
    fn only_the_window_that_breaks_the_policy_suffers() {
        let calls = Arc::new(AtomicUsize::new(0));
        let review = touchy(Arc::clone(&calls));
        let windows: Vec<_> = (0..64).map(|i| window(if i == 37 { "BOOM" } else { "stop" })).collect();
        let outcomes = decide(&review, &windows);
        for (index, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.is_err(), index == 37, "{index}");
        }
        assert!(calls.load(Ordering::Relaxed) <= 13);
    }

    #[tokio::test]
    async fn many_windows_share_few_calls() {
        let calls = Arc::new(AtomicUsize::new(0));
        let desk = Desk::open(touchy(Arc::clone(&calls)));
        let asks = (0..32).map(|i| desk.review(window(if i % 2 == 0 { "stop" } else { "pass" })));
        for (index, outcome) in futures::future::join_all(asks).await.into_iter().enumerate() {
            assert_eq!(outcome.unwrap().verdict.is_some(), index % 2 == 0);
        }
        assert!(calls.load(Ordering::Relaxed) < 32);
    }

    #[tokio::test]
    async fn a_desk_is_shared_by_version_and_tenant_and_closes_with_its_last_user() {
        let desks = Desks::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let of = |policy, tenant: &Arc<str>| desks.of(policy, tenant, || touchy(Arc::default()));
        let first = of(1, &a);
        assert!(Arc::ptr_eq(&first, &of(1, &a)));
        assert!(!Arc::ptr_eq(&first, &of(2, &a)));
        assert!(!Arc::ptr_eq(&first, &of(1, &b)));
        drop(first);
        assert_eq!(desks.open.lock().unwrap().values().filter(|desk| desk.strong_count() > 0).count(), 0);
    }
}
