//! Bounds how many calls run at once, so that the pool never runs dry.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// A counting semaphore with a deadline.
pub(crate) struct Gate {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A place; given back when dropped.
pub(crate) struct Place<'a>(&'a Gate);

impl Gate {
    pub(crate) fn new(places: usize) -> Gate {
        Gate { free: Mutex::new(places), freed: Condvar::new() }
    }

    /// A place, or none when all are taken for as long as one may wait.
    pub(crate) fn enter(&self, patience: Duration) -> Option<Place<'_>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if *free == 0 {
            let until = Instant::now() + patience;
            while *free == 0 {
                let left = until.checked_duration_since(Instant::now())?;
                let waited = self.freed.wait_timeout(free, left);
                (free, _) = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
        *free -= 1;
        Some(Place(self))
    }

    /// Places that nobody has.
    pub(super) fn free(&self) -> usize {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_refused_while_all_are_taken_and_given_when_one_is_free() {
        let gate = Gate::new(2);
        let first = gate.enter(Duration::ZERO).expect("free");
        let _second = gate.enter(Duration::ZERO).expect("free");
        assert!(gate.enter(Duration::from_millis(5)).is_none());
        drop(first);
        assert!(gate.enter(Duration::ZERO).is_some());
    }

    #[test]
    fn one_who_waits_gets_the_place_that_is_given_back() {
        let gate = Gate::new(1);
        let place = gate.enter(Duration::ZERO).expect("free");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.enter(Duration::from_secs(60)).is_some());
            drop(place);
            assert!(waiting.join().expect("does not panic"));
        });
    }
}
