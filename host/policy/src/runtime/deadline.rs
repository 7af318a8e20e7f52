//! When a call has had its time.
//!
//! A deadline is there for a guest that runs on and on. On a machine that is busy with other things, a thread may stand still
//! for longer than that through no fault of the guest: so a call that was given no processor for its time gets the rest of
//! it, up to a bound.

use std::{
    fs,
    time::{Duration, Instant},
};

use super::ticker::TICK;

/// A call ends after so many times its deadline, whatever it was given.
const MOST_DEADLINES: u32 = 10;

/// Epochs until a call is looked at first. Most calls are over before, and pay nothing for it.
pub(super) const FIRST_LOOK: u64 = 2;

/// The kernel may count a slice when it is over: what is missing by less is not missing.
const COARSENESS: Duration = Duration::from_millis(4);

/// The time of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    limit: Duration,
    started: Instant,
    /// Processor time of the thread when the call began, as far as the first look could tell.
    ran_before: Option<Duration>,
    /// Time in which the thread stood still for what the guest had asked for. It counts as if the thread had run.
    waited: Duration,
}

impl Deadline {
    pub(super) fn new(limit_ms: u32, now: Instant) -> Deadline {
        Deadline {
            limit: Duration::from_millis(limit_ms.into()),
            started: now,
            ran_before: None,
            waited: Duration::ZERO,
        }
    }

    /// The guest let its thread wait for this long.
    pub(super) fn waited(&mut self, time: Duration) {
        self.waited += time;
    }

    /// What is left, if anything. `ran` is the processor time that the call's thread has had since it exists; without it
    /// the wall clock alone counts.
    pub(super) fn left(&mut self, now: Instant, ran: impl FnOnce() -> Option<Duration>) -> Option<Duration> {
        let taken = now.saturating_duration_since(self.started);
        let by_wall = self.limit.saturating_sub(taken);
        let left = match ran() {
            Some(ran) => {
                let ran = ran + self.waited;
                let most = (self.limit * MOST_DEADLINES).saturating_sub(taken);
                by_wall.max(self.not_given(taken, ran)).min(most)
            }
            None => by_wall,
        };
        (!left.is_zero()).then_some(left)
    }

    /// Processor time that it may still have.
    fn not_given(&mut self, taken: Duration, ran: Duration) -> Duration {
        // Until the first look it is taken to have run all the time.
        let at_first_look = taken.min(TICK * FIRST_LOOK as u32);
        let before = *self.ran_before.get_or_insert(ran.saturating_sub(at_first_look));
        let left = self.limit.saturating_sub(ran.saturating_sub(before));
        if left < COARSENESS { Duration::ZERO } else { left }
    }
}

/// Processor time that the calling thread has had since it exists, where the system has a file that says so: on Linux.
pub(super) fn thread_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut fields = stat.split_whitespace().map(str::parse);
    let (ran_ns, _waited_ns, slices) = (fields.next()?.ok()?, fields.next()?, fields.next()?.ok()?);
    // A thread that asks has run: a kernel that says otherwise does not count.
    (slices > 0u64).then(|| Duration::from_nanos(ran_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// What is left of 50 ms at these looks: time since the start, and processor time of it, in milliseconds. The thread had
    /// had a second before.
    fn left(looks: &[(u32, Option<u32>)]) -> Vec<Option<u32>> {
        let start = Instant::now();
        let mut deadline = Deadline::new(50, start);
        let look = |&(taken, ran): &(u32, Option<u32>)| {
            let left = deadline.left(start + MS * taken, || Some(MS * 1000 + MS * ran?));
            left.map(|left| left.as_millis() as u32)
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn a_guest_that_has_the_processor_ends_at_its_deadline() {
        assert_eq!(left(&[(3, Some(3)), (49, Some(49)), (50, Some(49))]), [Some(47), Some(1), None]);
    }

    #[test]
    fn what_a_starved_guest_was_not_given_it_gets_up_to_a_bound() {
        let looks = [(4, Some(4)), (50, Some(10)), (90, Some(30)), (499, Some(31)), (500, Some(32))];
        assert_eq!(left(&looks), [Some(46), Some(40), Some(20), Some(1), None]);
    }

    #[test]
    fn a_guest_that_was_starved_from_the_start_is_not_over_at_the_first_look() {
        assert_eq!(left(&[(60, Some(1)), (110, Some(48))]), [Some(46), None]);
    }

    #[test]
    fn what_a_guest_waited_for_is_its_own_time() {
        let start = Instant::now();
        let mut deadline = Deadline::new(50, start);
        let mut left = |taken, waited| {
            deadline.waited(MS * waited);
            deadline.left(start + MS * taken, || Some(MS * 1001)).map(|left| left.as_millis())
        };
        assert_eq!(
            [left(1, 0), left(31, 30), left(61, 0), left(61, 30)],
            [Some(49), Some(19), Some(19), None]
        );
    }

    #[test]
    fn where_the_system_does_not_tell_the_wall_clock_counts() {
        assert_eq!(left(&[(4, None), (49, None), (50, None)]), [Some(46), Some(1), None]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_that_works_has_more_processor_time_than_before() {
        let Some(before) = thread_time() else { return };
        let mut sum = 0u64;
        while thread_time().expect("it did before") == before {
            sum = std::hint::black_box(sum + 1);
        }
    }
}
