//! Which threads are worth calling.
//!
//! A processor may be busy with something else. Its thread then comes late or not at all, and calling it, waiting for the
//! task in its hands and sharing a processor with it costs more than it does. So a thread that did much less than its part
//! for a while rests for a while, longer each time; then it is tried again.

use std::time::{Duration, Instant};

/// Time of operations after which threads are judged: longer than a thread takes to wake up, shorter than the turn that
/// another process gets.
const TRIAL: Duration = Duration::from_millis(2);
/// Below this part of an equal share a thread is taken not to have a processor.
const LEAST: u64 = 4;
/// Tasks for each thread below which nothing can be said.
const ENOUGH: u64 = 32;
const FIRST_REST: Duration = Duration::from_millis(4);
const LONGEST_REST: Duration = Duration::from_millis(128);

pub(crate) struct Presence {
    /// Since the last judgement.
    tasks: u64,
    time: Duration,
    now: Option<Instant>,
    threads: Vec<Thread>,
}

#[derive(Clone, Copy)]
struct Thread {
    rests_until: Option<Instant>,
    next_rest: Duration,
}

impl Presence {
    pub(crate) fn new(threads: usize) -> Self {
        let thread = Thread { rests_until: None, next_rest: FIRST_REST };
        Self { tasks: 0, time: Duration::ZERO, now: None, threads: vec![thread; threads] }
    }

    /// Takes note of an operation; true when it is time to judge.
    pub(crate) fn note(&mut self, tasks: usize, begun: Instant, took: Duration) -> bool {
        self.tasks += tasks as u64;
        self.time += took;
        self.now = Some(begun + took);
        self.time >= TRIAL && self.tasks >= ENOUGH * self.threads.len() as u64
    }

    /// `did`: the tasks that each thread did since the last time, the caller's first. The caller never rests.
    pub(crate) fn judge(&mut self, did: impl Iterator<Item = u64>) {
        let Some(now) = self.now else { return };
        let there = self.threads.iter().filter(|thread| thread.rests_until.is_none()).count() as u64;
        let share = self.tasks / there.max(1);
        for (thread, did) in self.threads.iter_mut().zip(did).skip(1) {
            match thread.rests_until {
                Some(until) if now >= until => thread.rests_until = None,
                Some(_) => {}
                None if did < share / LEAST => {
                    thread.rests_until = Some(now + thread.next_rest);
                    thread.next_rest = (2 * thread.next_rest).min(LONGEST_REST);
                }
                None => thread.next_rest = FIRST_REST,
            }
        }
        (self.tasks, self.time) = (0, Duration::ZERO);
    }

    /// Whether each thread rests now.
    pub(crate) fn resting(&self) -> impl Iterator<Item = bool> + '_ {
        self.threads.iter().map(|thread| thread.rests_until.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations of a millisecond with 400 tasks, judged whenever it is time; gives how many of them thread 1 was there for.
    fn play(presence: &mut Presence, operations: u64, from: Instant, comes: impl Fn(u64) -> bool) -> u64 {
        let (mut there, mut did) = (0, [0, 0]);
        for ms in 0..operations {
            let resting = presence.resting().nth(1) == Some(true);
            let helps = !resting && comes(ms);
            there += u64::from(!resting);
            did = if helps { [did[0] + 200, did[1] + 200] } else { [did[0] + 400, did[1]] };
            if presence.note(400, from + Duration::from_millis(ms), Duration::from_millis(1)) {
                presence.judge(std::mem::take(&mut did).into_iter());
            }
        }
        there
    }

    #[test]
    fn a_thread_that_comes_is_always_called() {
        let mut presence = Presence::new(2);
        assert_eq!(play(&mut presence, 1000, Instant::now(), |_| true), 1000);
    }

    #[test]
    fn one_that_never_comes_is_tried_now_and_then() {
        let mut presence = Presence::new(2);
        let tried = play(&mut presence, 2000, Instant::now(), |_| false);
        assert!((2..100).contains(&tried), "{tried} of 2000 ms");
    }

    #[test]
    fn one_that_comes_again_is_taken_back() {
        let mut presence = Presence::new(2);
        let from = Instant::now();
        play(&mut presence, 1000, from, |_| false);
        let later = from + Duration::from_millis(1000);
        assert!(play(&mut presence, 1000, later, |_| true) > 850);
        assert_eq!(play(&mut presence, 1000, later + Duration::from_millis(1000), |_| true), 1000);
    }

    #[test]
    fn few_tasks_say_nothing() {
        let mut presence = Presence::new(8);
        let begun = Instant::now();
        assert!(!presence.note(8, begun, Duration::from_millis(50)));
        assert!(presence.note(300, begun, Duration::from_millis(1)));
    }
}
