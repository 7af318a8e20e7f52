//! Attention over a chunk of keys and values: scores, softmax weights, weighted sums.
//!
//! Up to six queries share each load: with two vectors of positions (or dimensions) that is twelve sums in registers.

use std::arch::x86_64::*;

use super::exp::{exp, load, max, store, sum};
use crate::cpu::kernels::{Attend, Keys, hide};

/// Queries in a register tile.
const QUERIES: usize = 6;
const LANES: usize = 8;

/// Brings a chunk into the running sums. A query's result depends on itself and the keys alone: each sum is made in the
/// order of the positions, whatever the other queries of the tile see.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn attend(keys: &Keys<'_>, state: &mut Attend<'_>) {
    let (dim, pitch) = (keys.dim, keys.pitch);
    let width = keys.blocks.len() * pitch;
    assert!(dim.is_multiple_of(LANES) && pitch.is_multiple_of(LANES) && keys.block_size <= pitch);
    assert!(keys.blocks.iter().all(|(k, v)| k.len() == dim * pitch && v.len() == dim * pitch));
    for first in (0..state.visible.len()).step_by(QUERIES) {
        let visible = &state.visible[first..state.visible.len().min(first + QUERIES)];
        let count = visible.len();
        let most = visible.iter().fold(0, |m, v| m.max(*v)) as usize;
        assert!(most <= keys.blocks.len() * keys.block_size);
        if most == 0 {
            continue;
        }
        let blocks = &keys.blocks[..most.div_ceil(keys.block_size)];
        let mut tile = Tile {
            blocks,
            next: if state.visible.len() <= QUERIES { keys.next } else { &[] },
            block_size: keys.block_size,
            pitch,
            dim,
            width,
            most,
            q: &state.q[first * dim..][..count * dim],
            scores: &mut state.scores[first * width..][..count * width],
            acc: &mut state.acc[first * dim..][..count * dim],
            shrink: [1.0; QUERIES],
        };
        match count {
            1 => tile.score::<1>(),
            2 => tile.score::<2>(),
            3 => tile.score::<3>(),
            4 => tile.score::<4>(),
            5 => tile.score::<5>(),
            _ => tile.score::<QUERIES>(),
        }
        for (query, visible) in visible.iter().enumerate() {
            tile.weigh(
                query,
                *visible as usize,
                &mut state.max[first + query],
                &mut state.sum[first + query],
            );
        }
        match count {
            1 => tile.sum::<1>(),
            2 => tile.sum::<2>(),
            3 => tile.sum::<3>(),
            4 => tile.sum::<4>(),
            5 => tile.sum::<5>(),
            _ => tile.sum::<QUERIES>(),
        }
    }
}

/// Some queries and the blocks that at least one of them sees.
struct Tile<'a> {
    blocks: &'a [(&'a [u16], &'a [u16])],
    /// The blocks that follow, to be asked for: none when many queries go through these while they are in the cache.
    next: &'a [(&'a [u16], &'a [u16])],
    block_size: usize,
    pitch: usize,
    dim: usize,
    /// From one query's scores to the next's.
    width: usize,
    /// Positions that at least one query sees.
    most: usize,
    q: &'a [f32],
    scores: &'a mut [f32],
    acc: &'a mut [f32],
    /// What the earlier sums of each query are multiplied by.
    shrink: [f32; QUERIES],
}

impl Tile<'_> {
    /// Scores of all positions of the blocks.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn score<const Q: usize>(&mut self) {
        for block in 0..self.blocks.len() {
            if !self.next.is_empty() {
                prefetch(self.blocks[block].1);
            }
            let mut at = 0;
            while at + 2 * LANES <= self.pitch {
                self.score_at::<Q, 2>(block, at);
                at += 2 * LANES;
            }
            if at < self.pitch {
                self.score_at::<Q, 1>(block, at);
            }
        }
    }

    /// Scores of `V` vectors of positions from `at` on.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn score_at<const Q: usize, const V: usize>(&mut self, block: usize, at: usize) {
        let k = self.blocks[block].0;
        assert!(
            k.len() == self.dim * self.pitch && at + V * LANES <= self.pitch && self.q.len() == Q * self.dim
        );
        let mut sums = [[_mm256_setzero_ps(); V]; Q];
        for d in 0..self.dim {
            // SAFETY: row d of K is inside by the assertion.
            let k = unsafe { widen::<V>(k.as_ptr().add(d * self.pitch + at)) };
            for (query, sums) in sums.iter_mut().enumerate() {
                // SAFETY: there are Q times dim numbers.
                let q = unsafe { _mm256_broadcast_ss(self.q.get_unchecked(query * self.dim + d)) };
                for (sum, k) in sums.iter_mut().zip(k) {
                    *sum = _mm256_fmadd_ps(q, k, *sum);
                }
            }
        }
        for (query, sums) in sums.into_iter().enumerate() {
            let row = &mut self.scores[query * self.width + block * self.pitch + at..][..V * LANES];
            for (to, sum) in row.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
                store(to, sum);
            }
        }
    }

    /// Turns a query's scores into weights, zero where it does not see, and updates its largest score and sum.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn weigh(&mut self, query: usize, visible: usize, largest: &mut f32, total: &mut f32) {
        let used = self.blocks.len() * self.pitch;
        let scores = &mut self.scores[query * self.width..][..used];
        if visible == 0 {
            scores.fill(0.0);
            return;
        }
        hide(scores, visible, self.block_size, self.pitch);
        let scores = scores.as_chunks_mut::<LANES>().0;
        let most = scores.iter().fold(_mm256_set1_ps(*largest), |m, s| _mm256_max_ps(m, load(s)));
        let most = max(most);
        let mut sums = _mm256_setzero_ps();
        for scores in scores {
            let weights = exp(_mm256_sub_ps(load(scores), _mm256_set1_ps(most)));
            sums = _mm256_add_ps(sums, weights);
            store(scores, weights);
        }
        let shrink = (*largest - most).exp();
        self.shrink[query] = shrink;
        *largest = most;
        *total = *total * shrink + sum(sums);
    }

    /// Adds the weighted values to the sums.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn sum<const Q: usize>(&mut self) {
        let mut d = 0;
        while d + 2 * LANES <= self.dim {
            self.sum_at::<Q, 2>(d);
            d += 2 * LANES;
        }
        if d < self.dim {
            self.sum_at::<Q, 1>(d);
        }
    }

    /// The same for `V` vectors of dimensions from `d` on. Values past what any query sees are not touched: they may be
    /// another sequence's, and not finite.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn sum_at<const Q: usize, const V: usize>(&mut self, d: usize) {
        let (dim, width) = (self.dim, self.width);
        assert!(self.acc.len() == Q * dim && self.scores.len() == Q * width && d + V * LANES <= dim);
        let mut sums = [[_mm256_setzero_ps(); V]; Q];
        for (query, sums) in sums.iter_mut().enumerate() {
            let acc = self.acc[query * dim + d..][..V * LANES].as_chunks::<LANES>().0;
            for (sum, acc) in sums.iter_mut().zip(acc) {
                *sum = _mm256_mul_ps(load(acc), _mm256_set1_ps(self.shrink[query]));
            }
        }
        for (block, (_, v)) in self.blocks.iter().enumerate() {
            let positions = (self.most - block * self.block_size).min(self.block_size);
            if let (0, Some((next, _))) = (d, self.next.get(block)) {
                prefetch(next);
            }
            assert!(v.len() == dim * self.pitch && block * self.pitch + positions <= width);
            for at in 0..positions {
                // SAFETY: position `at` is below the pitch, so its row of V is inside.
                let v = unsafe { widen::<V>(v.as_ptr().add(at * dim + d)) };
                for (query, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: there are Q times width weights, and the place is below the width.
                    let weight = unsafe {
                        _mm256_broadcast_ss(
                            self.scores.get_unchecked(query * width + block * self.pitch + at),
                        )
                    };
                    for (sum, v) in sums.iter_mut().zip(v) {
                        *sum = _mm256_fmadd_ps(weight, v, *sum);
                    }
                }
            }
        }
        for (query, sums) in sums.into_iter().enumerate() {
            let acc = self.acc[query * dim + d..][..V * LANES].as_chunks_mut::<LANES>().0;
            for (acc, sum) in acc.iter_mut().zip(sums) {
                store(acc, sum);
            }
        }
    }
}

/// Asks for the lines of a plane.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn prefetch(plane: &[u16]) {
    for line in plane.chunks(32) {
        _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
    }
}

/// `V` vectors of consecutive 16-bit floats.
///
/// # Safety
/// `from` points to `8 V` numbers.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn widen<const V: usize>(from: *const u16) -> [__m256; V] {
    std::array::from_fn(|i| {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.add(LANES * i).cast())) }
    })
}
