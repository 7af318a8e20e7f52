//! For how long nobody tries again what has failed.

use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// Pauses that grow from one failure to the next, until something goes well.
#[derive(Debug)]
pub(super) struct Pause {
    next: Duration,
    until: Option<Instant>,
}

impl Default for Pause {
    fn default() -> Self {
        Pause { next: FIRST, until: None }
    }
}

impl Pause {
    /// Begins one, and gives its length.
    pub(super) fn begin(&mut self, now: Instant) -> Duration {
        let length = self.next;
        self.until = Some(now + length);
        self.next = (length * 2).min(LONGEST);
        length
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    /// Something went well.
    pub(super) fn reset(&mut self) {
        *self = Pause::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_something_goes_well() {
        let (mut pause, now) = (Pause::default(), Instant::now());
        assert!(pause.is_over(now));
        let lengths = std::array::from_fn(|_| pause.begin(now).as_secs());
        assert_eq!(lengths, [1, 2, 4, 8, 16, 30, 30]);
        assert!(
            !pause.is_over(now + Duration::from_secs(29)) && pause.is_over(now + Duration::from_secs(30))
        );
        pause.reset();
        assert!(pause.is_over(now));
        assert_eq!(pause.begin(now), FIRST);
    }
}
