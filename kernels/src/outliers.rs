//! Activations far larger than those around them: kept apart as floats, so that the scales of their groups are made for
//! the others.
//!
//! Rounding in 8 bits is as coarse as the largest number of a group asks for, and in language models a few numbers of a
//! hundred are many times larger than the rest. That these few should be multiplied in floats is from LLM.int8()
//! (Dettmers et al., 2022), which takes whole columns of a batch; here each token has its own, so that its result does not
//! depend on its company.

use std::ops::Range;

use crate::aligned::Aligned;
use crate::matrix::GROUP;
use crate::shared::Parts;

/// An outlier's magnitude is more than so many times the mean of its row.
const TIMES_MEAN: usize = 10;

/// Tokens whose outliers are together: as many as a small register tile has.
pub(crate) const FOUR: usize = 4;

/// The magnitude above which numbers of a row are outliers; NaN, which none are above, where something is not finite.
/// Plain Rust that compilers make vectors of: the same bits on all instruction sets.
#[inline(always)]
pub(crate) fn limit(row: &[f32]) -> f32 {
    let (lanes, rest) = row.as_chunks::<16>();
    let mut sums = [0.0; 16];
    for x in lanes {
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum += x.abs();
        }
    }
    let total = sums.iter().sum::<f32>() + rest.iter().map(|x| x.abs()).sum::<f32>();
    total / row.len() as f32 * TIMES_MEAN as f32
}

/// The outliers of some tokens. Those of four neighbours are together, by column: the columns are often the same, and then
/// a weight that was taken apart serves all four.
#[derive(Default)]
pub(crate) struct Outliers {
    /// Columns that four tokens have at most.
    places: usize,
    /// `[four tokens]`: how many they have.
    counts: Aligned<u32>,
    /// `[four tokens, place]`, in ascending order.
    columns: Aligned<u32>,
    /// `[four tokens, place, token]`: zero where it is an outlier of another token.
    values: Aligned<f32>,
}

impl Outliers {
    pub(crate) fn resize(&mut self, tokens: usize, cols: usize) {
        // Fewer numbers than that can be so far above the mean.
        self.places = FOUR * (cols / TIMES_MEAN);
        let fours = tokens.div_ceil(FOUR);
        self.counts.reserve(fours);
        self.columns.reserve(fours * self.places);
        self.values.reserve(fours * self.places * FOUR);
    }

    /// Columns and values of the four tokens that `token` is one of.
    #[inline(always)]
    pub(crate) fn around(&self, token: usize) -> impl Iterator<Item = (usize, &[f32; FOUR])> {
        let (count, first) = (self.counts[token / FOUR] as usize, token / FOUR * self.places);
        let values = self.values[first * FOUR..][..count * FOUR].as_chunks().0;
        self.columns[first..][..count].iter().zip(values).map(|(column, values)| (*column as usize, values))
    }

    /// To be filled by tasks that each have fours of their own.
    pub(crate) fn shared(&mut self) -> SharedOutliers<'_> {
        SharedOutliers {
            places: self.places,
            counts: Parts::new(&mut self.counts),
            columns: Parts::new(&mut self.columns),
            values: Parts::new(&mut self.values),
        }
    }
}

pub(crate) struct SharedOutliers<'a> {
    places: usize,
    counts: Parts<'a, u32>,
    columns: Parts<'a, u32>,
    values: Parts<'a, f32>,
}

impl SharedOutliers<'_> {
    /// The places of a token, to be filled after those of its neighbours before it.
    ///
    /// # Safety
    /// Nothing else uses the places of the four tokens that it is one of at the same time.
    pub(crate) unsafe fn row(&self, token: usize) -> RowOutliers<'_> {
        let (four, lane) = (token / FOUR, token % FOUR);
        // SAFETY: the caller's promise.
        let (count, columns, values) = unsafe {
            (
                &mut self.counts.slice(four, 1)[0],
                self.columns.slice(four * self.places, self.places),
                self.values.slice(four * self.places * FOUR, self.places * FOUR),
            )
        };
        if lane == 0 {
            *count = 0;
        }
        RowOutliers { count, columns, values: values.as_chunks_mut().0, lane, place: 0 }
    }
}

/// The places of one token among those of its neighbours.
pub(crate) struct RowOutliers<'a> {
    count: &'a mut u32,
    columns: &'a mut [u32],
    values: &'a mut [[f32; FOUR]],
    lane: usize,
    /// Where the next one belongs, or after it.
    place: usize,
}

impl RowOutliers<'_> {
    /// Takes the numbers above `limit` out of a group of columns, group after group: zero is left in their place.
    pub(crate) fn take(&mut self, columns: Range<usize>, group: &mut [f32; GROUP], limit: f32) {
        for (column, x) in columns.zip(group) {
            if x.abs() > limit && self.make_place(column as u32) {
                self.values[self.place][self.lane] = *x;
                *x = 0.0;
            }
        }
    }

    /// Finds the place of a column, or makes it; false where there is no more room.
    fn make_place(&mut self, column: u32) -> bool {
        let count = *self.count as usize;
        while self.place < count && self.columns[self.place] < column {
            self.place += 1;
        }
        if self.place < count && self.columns[self.place] == column {
            return true;
        }
        if count == self.columns.len() {
            return false;
        }
        self.columns.copy_within(self.place..count, self.place + 1);
        self.values.copy_within(self.place..count, self.place + 1);
        (self.columns[self.place], self.values[self.place]) = (column, [0.0; FOUR]);
        *self.count += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLS: usize = 4 * GROUP;

    /// Rows of ones with larger numbers in some columns, taken group by group as kernels do.
    fn taken(rows: &[Vec<(usize, f32)>]) -> (Outliers, Vec<Vec<f32>>) {
        let mut outliers = Outliers::default();
        outliers.resize(rows.len(), COLS);
        let shared = outliers.shared();
        let mut left = Vec::new();
        for (token, large) in rows.iter().enumerate() {
            let mut row = vec![1.0; COLS];
            large.iter().for_each(|(column, value)| row[*column] = *value);
            let limit = limit(&row);
            // SAFETY: one row at a time.
            let mut places = unsafe { shared.row(token) };
            for (group, x) in row.as_chunks_mut().0.iter_mut().enumerate() {
                places.take(group * GROUP..(group + 1) * GROUP, x, limit);
            }
            left.push(row);
        }
        (outliers, left)
    }

    #[test]
    fn four_tokens_share_columns_and_keep_their_own_values() {
        let rows = [
            vec![(100, 50.0), (3, -40.0)],
            vec![],
            vec![(3, 60.0), (127, 30.0)],
            vec![(0, 70.0)],
            vec![(64, 80.0)],
        ];
        let (outliers, left) = taken(&rows);
        let of = |token| outliers.around(token).map(|(column, values)| (column, *values)).collect::<Vec<_>>();
        let want = [
            (0, [0.0, 0.0, 0.0, 70.0]),
            (3, [-40.0, 0.0, 60.0, 0.0]),
            (100, [50.0, 0.0, 0.0, 0.0]),
            (127, [0.0, 0.0, 30.0, 0.0]),
        ];
        assert_eq!(of(0), want);
        assert_eq!(of(3), want, "a neighbour sees the same");
        assert_eq!(of(4), [(64, [80.0, 0.0, 0.0, 0.0])]);
        assert_eq!((left[2][3], left[2][127], left[2][100]), (0.0, 0.0, 1.0));
    }

    #[test]
    fn what_is_like_the_rest_or_not_a_number_stays() {
        let even: Vec<(usize, f32)> = (0..COLS).map(|column| (column, 9.0)).collect();
        let rows = [even, vec![(5, 9.0)], vec![(5, f32::NAN), (6, 1e6)], vec![(5, f32::INFINITY)]];
        assert_eq!(taken(&rows).0.around(0).count(), 0);
    }

    #[test]
    fn there_is_room_for_all_that_can_be() {
        // As many as are above ten times the mean: one more, and none is.
        let most = |count: usize| (0..count).map(|column| (7 * column % COLS, 1e6)).collect::<Vec<_>>();
        let full = taken(&[most(12)]).0;
        assert_eq!(full.around(0).count(), 12);
        assert_eq!(taken(&[most(13)]).0.around(0).count(), 0);
        let apart: Vec<Vec<(usize, f32)>> =
            (0..4).map(|token| (0..12).map(|column| (4 * column + token, 1e6)).collect()).collect();
        assert_eq!(taken(&apart).0.around(0).count(), 48);
    }
}
