//! A queue with a bound that nobody waits at.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Things to do for one thread or several.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    most: usize,
}

struct State<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new(most: usize) -> Self {
        let state = State { items: VecDeque::new(), closed: false };
        Queue { state: Mutex::new(state), changed: Condvar::new(), most }
    }

    /// Gives the thing back when the queue is full or closed.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        let room = |state: &State<T>| state.items.len() < self.most;
        self.push_if(item, room)
    }

    /// The same without the bound.
    pub(crate) fn push_anyway(&self, item: T) -> Result<(), T> {
        self.push_if(item, |_| true)
    }

    fn push_if(&self, item: T, room: impl Fn(&State<T>) -> bool) -> Result<(), T> {
        let mut state = self.lock();
        if state.closed || !room(&state) {
            return Err(item);
        }
        state.items.push_back(item);
        self.changed.notify_one();
        Ok(())
    }

    /// The next one, waited for; none once the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            match state.items.pop_front() {
                Some(item) => return Some(item),
                None if state.closed => return None,
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Nothing more is taken; what is there is still given out.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// A list is whole between any two calls, whatever panicked.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_so_many_and_gives_out_all_of_them_after_it_is_closed() {
        let queue = Queue::new(2);
        assert_eq!((queue.push(1), queue.push(2), queue.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!((queue.push_anyway(4), queue.len()), (Ok(()), 3));
        queue.close();
        assert_eq!((queue.push(5), queue.push_anyway(6)), (Err(5), Err(6)));
        assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn who_waits_is_told_of_the_end() {
        let queue = Queue::<u8>::new(2);
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| queue.pop())).collect();
            queue.push(7).expect("room");
            queue.close();
            let got: Vec<_> =
                waiting.into_iter().filter_map(|thread| thread.join().expect("no panic")).collect();
            assert_eq!(got, [7]);
        });
    }
}
