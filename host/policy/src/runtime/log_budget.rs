//! Lines that a policy may log in a second, all its calls together.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// What is left of the lines of this second.
#[derive(Debug)]
pub(super) struct LogBudget {
    lines_per_s: u32,
    second: Mutex<Second>,
}

#[derive(Debug, Default)]
struct Second {
    began: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl LogBudget {
    pub(super) fn new(lines_per_s: u32) -> LogBudget {
        LogBudget { lines_per_s, second: Mutex::default() }
    }

    /// Takes a line: how many were left out since the last one that was taken, or none when this one is to be left out.
    pub(super) fn take(&self, now: Instant) -> Option<u64> {
        let mut second = self.second.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |began| now.saturating_duration_since(began) >= Duration::from_secs(1);
        if second.began.is_none_or(is_over) {
            second.began = Some(now);
            second.lines = 0;
        }
        if second.lines >= self.lines_per_s {
            second.left_out += 1;
            return None;
        }
        second.lines += 1;
        Some(std::mem::take(&mut second.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_more_than_a_seconds_lines_is_left_out_and_told() {
        let budget = LogBudget::new(2);
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let taken: Vec<_> = [0, 1, 2, 999, 1000, 1001, 1002, 5000].map(|ms| budget.take(at(ms))).into();
        assert_eq!(taken, [Some(0), Some(0), None, None, Some(2), Some(0), None, Some(1)]);
        assert_eq!(LogBudget::new(0).take(start), None);
    }
}
