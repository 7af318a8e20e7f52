//! Places of a text that something was already read from.

use std::ops::Range;

/// Ranges that do not overlap, in order.
#[derive(Debug, Default)]
pub struct Taken(Vec<Range<usize>>);

impl Taken {
    /// Takes ranges that touch none before; those that would are left out, of new ones the first counts.
    pub fn add(&mut self, ranges: impl IntoIterator<Item = Range<usize>>) {
        let mut new: Vec<_> = ranges.into_iter().filter(|range| !self.touches(range)).collect();
        new.sort_by_key(|range| range.start);
        new.dedup_by(|later, first| later.start < first.end);
        self.0.append(&mut new);
        self.0.sort_by_key(|range| range.start);
    }

    /// Whether a range shares a scalar with one of them. Takes a time that grows with the logarithm of their number.
    pub fn touches(&self, range: &Range<usize>) -> bool {
        let first = self.0.partition_point(|taken| taken.end <= range.start);
        self.0.get(first).is_some_and(|taken| taken.start < range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shares_a_scalar_touches() {
        let mut taken = Taken::default();
        taken.add([8..10, 2..4]);
        taken.add([3..6, 5..8]);
        let touching: Vec<usize> = (0..12).filter(|&at| taken.touches(&(at..at + 1))).collect();
        assert_eq!(touching, [2, 3, 5, 6, 7, 8, 9]);
        assert!(taken.touches(&(0..3)) && taken.touches(&(0..12)) && !taken.touches(&(4..5)));
    }
}
