//! Attention over a chunk of keys and values with vectors of sixteen: the way of `avx2/attend.rs`, with larger tiles.

use std::arch::x86_64::*;

use super::exp::exp;
use crate::cpu::kernels::{Attend, Keys, hide};

const LANES: usize = 16;
/// Queries in the largest register tile: with two vectors each, 24 of the 32 registers are sums.
const MOST: usize = 12;

/// Whether blocks and heads are whole vectors.
pub(super) fn fits(keys: &Keys<'_>) -> bool {
    keys.dim.is_multiple_of(LANES) && keys.pitch.is_multiple_of(LANES)
}

/// Brings a chunk that [`fits`] into the running sums. A query's result depends on itself and the keys alone: each sum is
/// made in the order of the positions, whatever tile the query is in.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn attend(keys: &Keys<'_>, state: &mut Attend<'_>) {
    assert!(fits(keys) && keys.block_size <= keys.pitch);
    let plane = keys.dim * keys.pitch;
    assert!(keys.blocks.iter().all(|(k, v)| k.len() == plane && v.len() == plane));
    let queries = state.visible.len();
    let once = queries <= MOST; // all queries in one tile: the keys come from memory
    let mut first = 0;
    while first < queries {
        first += match queries - first {
            MOST.. => tile::<MOST, 2>(keys, state, first, once),
            6.. => tile::<6, 4>(keys, state, first, once),
            3.. => tile::<3, 4>(keys, state, first, once),
            _ => tile::<1, 4>(keys, state, first, once),
        };
    }
}

/// `Q` queries from `first`, `V` vectors at a time; returns `Q`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn tile<const Q: usize, const V: usize>(
    keys: &Keys<'_>,
    state: &mut Attend<'_>,
    first: usize,
    once: bool,
) -> usize {
    let (dim, width) = (keys.dim, keys.blocks.len() * keys.pitch);
    let visible = &state.visible[first..first + Q];
    let most = visible.iter().fold(0, |m, v| m.max(*v)) as usize;
    assert!(most <= keys.blocks.len() * keys.block_size);
    if most == 0 {
        return Q;
    }
    let blocks = &keys.blocks[..most.div_ceil(keys.block_size)];
    let mut tile = Tile::<Q> {
        keys,
        blocks,
        next: if once { keys.next } else { &[] },
        width,
        most,
        q: &state.q[first * dim..][..Q * dim],
        scores: &mut state.scores[first * width..][..Q * width],
        acc: &mut state.acc[first * dim..][..Q * dim],
        shrink: [1.0; Q],
    };
    tile.score::<V>();
    for (query, visible) in visible.iter().enumerate() {
        let at = first + query;
        tile.weigh(query, *visible as usize, &mut state.max[at], &mut state.sum[at]);
    }
    tile.sum::<V>();
    Q
}

/// Some queries and the blocks that at least one of them sees.
struct Tile<'a, const Q: usize> {
    keys: &'a Keys<'a>,
    blocks: &'a [(&'a [u16], &'a [u16])],
    /// The blocks that follow, to be asked for: none when many queries go through these while they are in the cache.
    next: &'a [(&'a [u16], &'a [u16])],
    /// From one query's scores to the next's.
    width: usize,
    /// Positions that at least one query sees.
    most: usize,
    q: &'a [f32],
    scores: &'a mut [f32],
    acc: &'a mut [f32],
    /// What the earlier sums of each query are multiplied by.
    shrink: [f32; Q],
}

impl<const Q: usize> Tile<'_, Q> {
    /// Scores of all positions of the blocks.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn score<const V: usize>(&mut self) {
        if !self.next.is_empty() {
            self.blocks.iter().for_each(|(_, v)| prefetch(v));
        }
        let vectors = self.blocks.len() * self.keys.pitch / LANES;
        let mut at = 0;
        while at + V <= vectors {
            self.score_at::<V>(at);
            at += V;
        }
        (at..vectors).for_each(|at| self.score_at::<1>(at));
    }

    /// Scores of `V` vectors of positions, from vector `at` of the blocks on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn score_at<const V: usize>(&mut self, at: usize) {
        let (dim, pitch) = (self.keys.dim, self.keys.pitch);
        let k: [&[u16]; V] = std::array::from_fn(|i| {
            let place = (at + i) * LANES;
            &self.blocks[place / pitch].0[place % pitch..]
        });
        assert!(k.iter().all(|k| k.len() >= (dim - 1) * pitch + LANES) && self.q.len() == Q * dim);
        let mut sums = [[_mm512_setzero_ps(); V]; Q];
        for d in 0..dim {
            // SAFETY: each run of K goes on for a vector after its row `d`, by the assertion.
            let k = k.map(|k| unsafe { widen(k.as_ptr().add(d * pitch)) });
            for (query, sums) in sums.iter_mut().enumerate() {
                // SAFETY: there are Q times dim numbers.
                let q = _mm512_set1_ps(unsafe { *self.q.get_unchecked(query * dim + d) });
                for (sum, k) in sums.iter_mut().zip(k) {
                    *sum = _mm512_fmadd_ps(q, k, *sum);
                }
            }
        }
        for (query, sums) in sums.into_iter().enumerate() {
            let row = &mut self.scores[query * self.width + at * LANES..][..V * LANES];
            for (to, sum) in row.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
                store(to, sum);
            }
        }
    }

    /// Turns a query's scores into weights, zero where it does not see, and updates its largest score and sum.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn weigh(&mut self, query: usize, visible: usize, largest: &mut f32, total: &mut f32) {
        let used = self.blocks.len() * self.keys.pitch;
        let scores = &mut self.scores[query * self.width..][..used];
        if visible == 0 {
            scores.fill(0.0);
            return;
        }
        hide(scores, visible, self.keys.block_size, self.keys.pitch);
        let scores = scores.as_chunks_mut::<LANES>().0;
        let most = scores.iter().fold(_mm512_set1_ps(*largest), |m, s| _mm512_max_ps(m, load(s)));
        let most = _mm512_reduce_max_ps(most);
        let mut sums = _mm512_setzero_ps();
        for scores in scores {
            let weights = exp(_mm512_sub_ps(load(scores), _mm512_set1_ps(most)));
            sums = _mm512_add_ps(sums, weights);
            store(scores, weights);
        }
        let shrink = (*largest - most).exp();
        self.shrink[query] = shrink;
        *largest = most;
        *total = *total * shrink + _mm512_reduce_add_ps(sums);
    }

    /// Adds the weighted values to the sums.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn sum<const V: usize>(&mut self) {
        for (next, _) in self.next.iter().take(self.blocks.len()) {
            prefetch(next);
        }
        let vectors = self.keys.dim / LANES;
        let mut at = 0;
        while at + V <= vectors {
            self.sum_at::<V>(at * LANES);
            at += V;
        }
        (at..vectors).for_each(|at| self.sum_at::<1>(at * LANES));
    }

    /// The same for `V` vectors of dimensions from `d` on. Values past what any query sees are not touched: they may be
    /// another sequence's, and not finite.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn sum_at<const V: usize>(&mut self, d: usize) {
        let (dim, pitch, width) = (self.keys.dim, self.keys.pitch, self.width);
        assert!(self.acc.len() == Q * dim && self.scores.len() == Q * width && d + V * LANES <= dim);
        let mut sums = [[_mm512_setzero_ps(); V]; Q];
        for (query, sums) in sums.iter_mut().enumerate() {
            let acc = self.acc[query * dim + d..][..V * LANES].as_chunks::<LANES>().0;
            for (sum, acc) in sums.iter_mut().zip(acc) {
                *sum = _mm512_mul_ps(load(acc), _mm512_set1_ps(self.shrink[query]));
            }
        }
        for (block, (_, v)) in self.blocks.iter().enumerate() {
            let positions = (self.most - block * self.keys.block_size).min(self.keys.block_size);
            assert!(v.len() == dim * pitch && positions <= pitch && block * pitch + positions <= width);
            for at in 0..positions {
                let v: [__m512; V] = std::array::from_fn(|i| {
                    // SAFETY: position `at` is below the pitch, so its row of V is inside, and so are the vectors from `d`.
                    unsafe { widen(v.as_ptr().add(at * dim + d + i * LANES)) }
                });
                for (query, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: there are Q times width weights, and the place is below the width.
                    let weight = unsafe { *self.scores.get_unchecked(query * width + block * pitch + at) };
                    for (sum, v) in sums.iter_mut().zip(v) {
                        *sum = _mm512_fmadd_ps(_mm512_set1_ps(weight), v, *sum);
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
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn prefetch(plane: &[u16]) {
    for line in plane.chunks(32) {
        _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
    }
}

/// Sixteen consecutive 16-bit floats.
///
/// # Safety
/// `from` points to as many numbers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn widen(from: *const u16) -> __m512 {
    // SAFETY: the caller's promise.
    _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(from.cast()) })
}

/// Sixteen floats from a slice that has them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load(from: &[f32; LANES]) -> __m512 {
    // SAFETY: the reference is to sixteen floats.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}

/// Sixteen floats to a slice that has room.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn store(to: &mut [f32; LANES], x: __m512) {
    // SAFETY: the reference is to sixteen floats.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), x) }
}
