//! Changes of one policy wait for each other, first come, first served.

use std::{
    collections::HashMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// A queue for each name that has someone in it.
#[derive(Default)]
pub(super) struct Queues {
    by_name: Mutex<HashMap<String, Queue>>,
    moved: Condvar,
}

#[derive(Default)]
struct Queue {
    /// The number of the next who comes.
    next: u64,
    /// The number of the one whose turn it is.
    serving: u64,
}

/// One's turn; ends when dropped.
pub(super) struct Turn<'a> {
    queues: &'a Queues,
    name: String,
}

impl Queues {
    /// Wait for one's turn.
    pub(super) fn enter(&self, name: &str) -> Turn<'_> {
        let mut queues = self.locked();
        let queue = queues.entry(name.to_owned()).or_default();
        let number = queue.next;
        queue.next += 1;
        while queues.get(name).is_some_and(|queue| queue.serving < number) {
            queues = self.moved.wait(queues).unwrap_or_else(PoisonError::into_inner);
        }
        Turn { queues: self, name: name.to_owned() }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Queue>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queues = self.queues.locked();
        if let Some(queue) = queues.get_mut(&self.name) {
            queue.serving += 1;
            if queue.serving == queue.next {
                queues.remove(&self.name);
            }
        }
        drop(queues);
        self.queues.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn those_of_a_name_are_served_in_the_order_they_came() {
        let queues = Queues::default();
        let (served, order) = mpsc::channel();
        let first = queues.enter("a");
        std::thread::scope(|scope| {
            for number in 0..4u64 {
                let (queues, served) = (&queues, served.clone());
                scope.spawn(move || {
                    let _turn = queues.enter("a");
                    served.send(number).expect("received");
                });
                // The next comes when this one stands in the queue.
                while queues.locked().get("a").is_some_and(|q| q.next < number + 2) {
                    std::thread::yield_now();
                }
            }
            drop(queues.enter("b"));
            assert!(order.try_recv().is_err(), "the first has not left yet");
            drop(first);
        });
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(queues.locked().is_empty());
    }
}
