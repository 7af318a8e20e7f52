//! Takes a policy out of turns' way when it fails, or is slow, too often. Pure: the clock is an argument.
//!
//! Closed, it counts calls in a sliding window. When too large a share of them went wrong it opens: calls are not made. After
//! a while it lets a few through (half-open): when all are good it closes, and when one is not it opens again for twice as long.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ManifestError;

/// Parts of the window: it moves on by one of them at a time.
const BUCKETS: usize = 10;
/// Calls that are tried before a breaker closes again.
const PROBES: u32 = 3;
/// The longest time that it stays open.
const LONGEST_COOLDOWN: Duration = Duration::from_secs(300);

/// What a policy may get wrong before it is taken out: the `[breaker]` of its manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct BreakerSettings {
    /// Calls older than this do not count, in seconds.
    pub window_s: u32,
    /// With fewer calls in the window nothing is decided.
    pub min_calls: u32,
    /// Share of calls that may fault, in percent; 100 turns this off.
    pub max_fault_percent: u8,
    /// A call that takes longer than this is slow, in milliseconds; its deadline when not given.
    pub slow_ms: Option<u32>,
    /// Share of calls that may be slow, in percent; 100 turns this off.
    pub max_slow_percent: u8,
    /// How long no call is made at first, in seconds.
    pub cooldown_s: u32,
    /// Whether each tenant also has a breaker of its own: one whose input breaks the policy then loses it alone.
    pub per_tenant: bool,
}

impl Default for BreakerSettings {
    fn default() -> BreakerSettings {
        BreakerSettings {
            window_s: 30,
            min_calls: 20,
            max_fault_percent: 50,
            slow_ms: None,
            max_slow_percent: 50,
            cooldown_s: 10,
            per_tenant: false,
        }
    }
}

impl BreakerSettings {
    pub(crate) fn validate(&self) -> Result<(), ManifestError> {
        let bounds = [
            ("window-s", self.window_s, 1, 3600),
            ("min-calls", self.min_calls, 1, 1_000_000),
            ("max-fault-percent", self.max_fault_percent.into(), 1, 100),
            ("max-slow-percent", self.max_slow_percent.into(), 1, 100),
            ("slow-ms", self.slow_ms.unwrap_or(1), 1, 10_000),
            ("cooldown-s", self.cooldown_s, 1, 300),
        ];
        match bounds.into_iter().find(|(_, value, min, max)| !(min..=max).contains(&value)) {
            Some((name, value, min, max)) => {
                Err(ManifestError(format!("breaker.{name}: {value} is not within {min} to {max}")))
            }
            None => Ok(()),
        }
    }
}

/// Why a breaker opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Trip {
    /// Too many calls faulted.
    #[error("{faults} of {calls} calls faulted")]
    Faults {
        /// In the window.
        calls: u32,
        /// Of these.
        faults: u32,
    },
    /// Too many calls were slow.
    #[error("{slow} of {calls} calls took more than {slow_ms} ms")]
    Slow {
        /// In the window.
        calls: u32,
        /// Of these.
        slow: u32,
        /// What slow means.
        slow_ms: u32,
    },
    /// A call that was to show that all is well again did not.
    #[error("it failed again when it was tried")]
    Probe,
}

/// What a breaker does with calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BreakerState {
    /// Calls are made.
    #[default]
    Closed,
    /// None is made.
    Open,
    /// A few are, to see.
    HalfOpen,
}

/// How a call went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Went {
    pub(crate) fault: bool,
    pub(crate) micros: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// Which part of time it counts.
    period: u64,
    calls: u32,
    faults: u32,
    slow: u32,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed,
    Open { until: Duration },
    HalfOpen { admitted: u32, good: u32 },
}

/// A breaker. Times are since some instant that stays the same.
#[derive(Debug)]
pub(crate) struct Breaker {
    settings: BreakerSettings,
    slow_ms: u32,
    buckets: [Bucket; BUCKETS],
    state: State,
    cooldown: Duration,
    trips: u32,
}

impl Breaker {
    /// Closed. `deadline_ms` is what slow means where the settings do not say.
    pub(crate) fn new(settings: BreakerSettings, deadline_ms: u32) -> Breaker {
        Breaker {
            slow_ms: settings.slow_ms.unwrap_or(deadline_ms),
            buckets: Default::default(),
            state: State::Closed,
            cooldown: Duration::from_secs(settings.cooldown_s.into()),
            trips: 0,
            settings,
        }
    }

    pub(crate) fn state(&self) -> BreakerState {
        match self.state {
            State::Closed => BreakerState::Closed,
            State::Open { .. } => BreakerState::Open,
            State::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// How often it opened.
    pub(crate) fn trips(&self) -> u32 {
        self.trips
    }

    /// Whether a call may be made. What is admitted must be told to `observe`, or given back by `forget`.
    pub(crate) fn admit(&mut self, now: Duration) -> bool {
        if let State::Open { until } = self.state {
            if now < until {
                return false;
            }
            self.state = State::HalfOpen { admitted: 0, good: 0 };
        }
        match &mut self.state {
            State::HalfOpen { admitted, .. } if *admitted >= PROBES => false,
            State::HalfOpen { admitted, .. } => {
                *admitted += 1;
                true
            }
            State::Closed | State::Open { .. } => true,
        }
    }

    /// A call was admitted and never made.
    pub(crate) fn forget(&mut self) {
        if let State::HalfOpen { admitted, .. } = &mut self.state {
            *admitted = admitted.saturating_sub(1);
        }
    }

    /// Counts a call; says why when it opens.
    pub(crate) fn observe(&mut self, now: Duration, went: Went) -> Option<Trip> {
        let slow = u64::from(went.micros) > u64::from(self.slow_ms) * 1000;
        match self.state {
            // A call that began before it opened.
            State::Open { .. } => None,
            State::HalfOpen { .. } if went.fault || slow => {
                self.cooldown = (2 * self.cooldown).min(LONGEST_COOLDOWN);
                Some(self.open(now, Trip::Probe))
            }
            State::HalfOpen { admitted, good } => {
                let good = good + 1;
                self.state = State::HalfOpen { admitted, good };
                if good >= PROBES {
                    self.close();
                }
                None
            }
            State::Closed => {
                self.count(now, went.fault, slow);
                self.verdict(now).map(|trip| self.open(now, trip))
            }
        }
    }

    fn count(&mut self, now: Duration, fault: bool, slow: bool) {
        let period = self.period(now);
        let bucket = &mut self.buckets[(period % BUCKETS as u64) as usize];
        if bucket.period != period {
            *bucket = Bucket { period, ..Bucket::default() };
        }
        bucket.calls += 1;
        bucket.faults += u32::from(fault);
        bucket.slow += u32::from(slow);
    }

    fn period(&self, now: Duration) -> u64 {
        let bucket_ms = u128::from(self.settings.window_s) * 1000 / BUCKETS as u128;
        u64::try_from(now.as_millis() / bucket_ms).unwrap_or(u64::MAX)
    }

    fn verdict(&self, now: Duration) -> Option<Trip> {
        let period = self.period(now);
        let recent = self.buckets.iter().filter(|bucket| bucket.period + (BUCKETS as u64) > period);
        let (calls, faults, slow) = recent.fold((0, 0, 0), |(calls, faults, slow), bucket| {
            (calls + bucket.calls, faults + bucket.faults, slow + bucket.slow)
        });
        let is_over =
            |count: u32, percent: u8| u64::from(count) * 100 > u64::from(calls) * u64::from(percent);
        if calls < self.settings.min_calls {
            None
        } else if is_over(faults, self.settings.max_fault_percent) {
            Some(Trip::Faults { calls, faults })
        } else if is_over(slow, self.settings.max_slow_percent) {
            Some(Trip::Slow { calls, slow, slow_ms: self.slow_ms })
        } else {
            None
        }
    }

    fn open(&mut self, now: Duration, trip: Trip) -> Trip {
        self.state = State::Open { until: now + self.cooldown };
        self.trips += 1;
        trip
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.buckets = Default::default();
        self.cooldown = Duration::from_secs(self.settings.cooldown_s.into());
    }

    /// Whether nothing would be lost with it.
    pub(crate) fn is_idle(&self, now: Duration) -> bool {
        let period = self.period(now);
        let counts = |bucket: &Bucket| bucket.calls > 0 && bucket.period + (BUCKETS as u64) > period;
        matches!(self.state, State::Closed) && !self.buckets.iter().any(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Went = Went { fault: false, micros: 10 };
    const FAULT: Went = Went { fault: true, micros: 10 };
    const SLOW: Went = Went { fault: false, micros: 60_000 };

    fn breaker() -> Breaker {
        Breaker::new(BreakerSettings { min_calls: 4, ..BreakerSettings::default() }, 50)
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn it_opens_when_more_than_the_share_went_wrong() {
        let mut faulty = breaker();
        let trips: Vec<_> = [GOOD, FAULT, GOOD, FAULT, FAULT].map(|went| faulty.observe(s(1), went)).into();
        assert_eq!(trips, [None, None, None, None, Some(Trip::Faults { calls: 5, faults: 3 })]);
        assert!(!faulty.admit(s(10)));
        let mut slow = breaker();
        let trips: Vec<_> = [SLOW; 4].map(|went| slow.observe(s(1), went)).into();
        assert_eq!(trips[3], Some(Trip::Slow { calls: 4, slow: 4, slow_ms: 50 }));
    }

    #[test]
    fn what_is_older_than_the_window_does_not_count() {
        let mut breaker = breaker();
        for second in 0..1000 {
            // One in fourteen or so is a fault: in no window is it half.
            let went = if second % 14 == 0 { FAULT } else { GOOD };
            assert_eq!(breaker.observe(s(second), went), None);
        }
        for _ in 0..3 {
            breaker.observe(s(2000), FAULT);
        }
        assert_eq!(breaker.state(), BreakerState::Closed, "too few calls in this window");
        assert!(!breaker.is_idle(s(2026)) && breaker.is_idle(s(2031)));
        assert_eq!(breaker.observe(s(2031), FAULT), None);
    }

    #[test]
    fn it_closes_after_good_probes_and_waits_twice_as_long_after_a_bad_one() {
        let mut breaker = breaker();
        assert!([FAULT; 4].map(|went| breaker.observe(s(0), went))[3].is_some());
        assert!(!breaker.admit(s(9)) && breaker.admit(s(10)));
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert_eq!(breaker.observe(s(10), FAULT), Some(Trip::Probe));
        assert!(!breaker.admit(s(29)));
        let admitted = (0..5).filter(|_| breaker.admit(s(30))).count();
        assert_eq!(admitted, PROBES as usize);
        breaker.forget();
        assert!(breaker.admit(s(30)), "one was given back");
        for _ in 0..PROBES {
            assert_eq!(breaker.observe(s(31), GOOD), None);
        }
        assert_eq!((breaker.state(), breaker.trips()), (BreakerState::Closed, 2));
        assert!(breaker.admit(s(31)));
        assert_eq!(breaker.observe(s(31), FAULT), None, "it starts over with an empty window");
    }

    #[test]
    fn a_late_answer_to_an_open_breaker_changes_nothing() {
        let mut breaker = breaker();
        assert!([FAULT; 4].map(|went| breaker.observe(s(0), went))[3].is_some());
        assert_eq!(breaker.observe(s(1), FAULT), None);
        assert_eq!(breaker.trips(), 1);
    }

    #[test]
    fn settings_are_bounded() {
        let settings = |toml: &str| toml::from_str::<BreakerSettings>(toml).expect("reads").validate();
        assert_eq!(settings(""), Ok(()));
        for toml in ["window-s = 0", "max-fault-percent = 101", "cooldown-s = 301", "slow-ms = 0"] {
            assert!(settings(toml).is_err(), "{toml}");
        }
    }
}
