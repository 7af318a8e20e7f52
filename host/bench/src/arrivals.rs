//! When requests of an open loop are sent, whether or not earlier ones are done.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

use crate::workload::Extent;

/// A Poisson process: `per_second` arrivals on average, each of `burst` requests at one instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Open {
    pub(crate) per_second: f64,
    pub(crate) burst: usize,
}

impl Open {
    /// The instants of all requests, ascending, from the beginning of the phase.
    pub(crate) fn schedule(self, extent: Extent, mut random: ChaCha8Rng) -> impl Iterator<Item = Duration> {
        let (most, until) = match extent {
            Extent::Requests(count) => (count, f64::INFINITY),
            Extent::Seconds(seconds) => (usize::MAX, seconds),
        };
        let mut at = 0.0;
        let arrivals = std::iter::from_fn(move || {
            at -= unit(&mut random).ln() / self.per_second;
            Duration::try_from_secs_f64(at).ok().filter(|_| at <= until)
        });
        arrivals.flat_map(move |instant| std::iter::repeat_n(instant, self.burst)).take(most)
    }
}

/// Evenly distributed, above 0 and up to 1, so that its logarithm is finite.
fn unit(random: &mut ChaCha8Rng) -> f64 {
    ((random.next_u64() >> 11) as f64 + 1.0) / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    fn schedule(per_second: f64, burst: usize, extent: Extent) -> Vec<Duration> {
        Open { per_second, burst }.schedule(extent, ChaCha8Rng::seed_from_u64(7)).collect()
    }

    #[test]
    fn gaps_are_exponential() {
        let times = schedule(4.0, 1, Extent::Requests(20_000));
        assert_eq!(times.len(), 20_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((mean - 0.25).abs() < 0.01, "{mean}");
        assert!((deviation - 0.25).abs() < 0.01, "an exponential's deviation is its mean: {deviation}");
    }

    #[test]
    fn a_burst_comes_at_one_instant_and_the_extent_is_kept() {
        let times = schedule(1.0, 8, Extent::Requests(20));
        assert_eq!(times.len(), 20);
        assert_eq!(times[0], times[7]);
        assert!(times[7] < times[8]);
        let timed = schedule(5.0, 3, Extent::Seconds(30.0));
        assert!(timed.len().is_multiple_of(3) && timed.last() <= Some(&Duration::from_secs(30)));
        assert_eq!(timed, schedule(5.0, 3, Extent::Seconds(30.0)));
    }
}
