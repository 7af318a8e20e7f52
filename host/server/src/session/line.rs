//! Turns of one session are serial: who comes while one runs waits behind it, or is sent away.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jackfield_dialog::SessionKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Who is at which session of this host, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<HashMap<SessionKey, Line>>);

#[derive(Debug)]
struct Line {
    /// One permit; given in the order in which it was asked for.
    turn: Arc<Semaphore>,
    /// Who has it and who waits for it.
    inside: usize,
}

/// A place in a session's line; dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Place {
    lines: Arc<Lines>,
    key: SessionKey,
    turn: Option<OwnedSemaphorePermit>,
}

/// Another turn of the session runs, and as many wait as may.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken;

impl Lines {
    /// Waits for its turn where at most `waiting` others do. Giving up the future gives up the place.
    pub(crate) async fn enter(self: &Arc<Self>, key: &SessionKey, waiting: usize) -> Result<Place, Taken> {
        let turn = {
            let mut lines = self.locked();
            let line = lines.entry(key.clone()).or_insert_with(Line::new);
            if line.inside > waiting {
                return Err(Taken);
            }
            line.inside += 1;
            Arc::clone(&line.turn)
        };
        let mut place = Place { lines: Arc::clone(self), key: key.clone(), turn: None };
        // It is never closed.
        place.turn = turn.acquire_owned().await.ok();
        Ok(place)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<SessionKey, Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.locked().is_empty()
    }
}

impl Line {
    fn new() -> Line {
        Line { turn: Arc::new(Semaphore::new(1)), inside: 0 }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lines = self.lines.locked();
        if let Some(line) = lines.get_mut(&self.key) {
            line.inside -= 1;
            if line.inside == 0 {
                lines.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn key(id: &str) -> SessionKey {
        SessionKey::new("t", id).unwrap()
    }

    #[tokio::test]
    async fn one_after_the_other_in_the_order_in_which_they_came() {
        let lines = Arc::new(Lines::default());
        let (a, b) = (key("a"), key("b"));
        let first = lines.enter(&a, 2).await.unwrap();
        assert!(lines.enter(&b, 2).await.is_ok(), "another session is another line");
        let mut second = Box::pin(lines.enter(&a, 2));
        let mut third = Box::pin(lines.enter(&a, 2));
        assert!(second.as_mut().now_or_never().is_none() && third.as_mut().now_or_never().is_none());
        assert_eq!(lines.enter(&a, 2).await.err(), Some(Taken), "two wait already");
        drop(first);
        assert!(third.as_mut().now_or_never().is_none(), "the second is first");
        let second = second.await.unwrap();
        drop(second);
        third.await.unwrap();
        assert!(lines.is_empty(), "nothing is left of it");
    }

    #[tokio::test]
    async fn who_gives_up_waiting_leaves_the_line() {
        let lines = Arc::new(Lines::default());
        let a = key("a");
        let first = lines.enter(&a, 1).await.unwrap();
        let mut second = Box::pin(lines.enter(&a, 1));
        assert!(second.as_mut().now_or_never().is_none());
        drop(second);
        let mut third = Box::pin(lines.enter(&a, 1));
        assert!(third.as_mut().now_or_never().is_none(), "its place is free again");
        drop(first);
        drop(third.await.unwrap());
        assert!(lines.is_empty());
    }

    #[tokio::test]
    async fn nobody_waits_where_nobody_may() {
        let lines = Arc::new(Lines::default());
        let first = lines.enter(&key("a"), 0).await.unwrap();
        assert_eq!(lines.enter(&key("a"), 0).await.err(), Some(Taken));
        drop(first);
        assert!(lines.enter(&key("a"), 0).await.is_ok());
    }
}
