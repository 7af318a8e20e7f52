//! Attention over a chunk of keys and values: scores, softmax weights, weighted sums.
//!
//! The loop is written once, over [`Lanes`]; an instruction set brings its vectors and the sizes of its register tiles.
//! Several queries share each load: a tile of so many queries by so many vectors of positions (or dimensions) is sums in
//! registers.

use super::kernels::{Attend, Keys, Planes, Queries, hide};

/// An instruction set's vectors of floats.
///
/// Implementations are `#[inline(always)]` and without features of their own; `tile` is where the features are, and
/// everything is compiled into it.
///
/// # Safety
/// For all functions: the processor has the instructions, and what a pointer is said to point to is there.
pub(super) trait Lanes {
    /// A vector.
    type Floats: Copy;
    /// As many sums of 32 bits.
    type Ints: Copy;
    /// Four codes of as many positions.
    type Codes: Copy;
    /// Floats in a vector. Blocks and heads that are not whole vectors are another set's.
    const LANES: usize;
    /// Queries in the largest register tile.
    const QUERIES: usize;
    /// What is added to a key's codes before they are multiplied: some instructions know no negative ones.
    const RAISED: i32;

    /// The largest [`tile`] that there are queries for from `first` on, compiled with the set's features.
    ///
    /// # Safety
    /// As for [`tile`].
    unsafe fn tile<T: Cell>(keys: &Keys<'_, T>, state: &mut Attend<'_>, first: usize) -> usize;

    /// Asks for the line of memory around `at`, which need not be ours: nothing is read.
    fn prefetch(_at: *const u8) {}
    /// A number in every lane.
    unsafe fn splat(value: f32) -> Self::Floats;
    /// A vector of floats.
    unsafe fn load(from: *const f32) -> Self::Floats;
    /// The same the other way.
    unsafe fn store(values: Self::Floats, to: *mut f32);
    /// A vector of 16-bit floats.
    unsafe fn halves(from: *const u16) -> Self::Floats;
    /// A vector of codes.
    unsafe fn codes(from: *const i8) -> Self::Floats;
    /// Four codes of a key for each lane, raised.
    unsafe fn fours(from: *const i8) -> Self::Codes;
    /// sum + the products of a query's four codes with those of each lane
    unsafe fn dot(sum: Self::Ints, k: Self::Codes, q: *const i8) -> Self::Ints;
    /// A whole number in every lane.
    unsafe fn whole(value: i32) -> Self::Ints;
    /// Sums as floats.
    unsafe fn float(sums: Self::Ints) -> Self::Floats;
    /// a + b
    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// a − b
    unsafe fn sub(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// a · b
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// a · b + c, rounded once
    unsafe fn mul_add(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// The larger of each lane.
    unsafe fn max(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// e^x within two units in the last place; minus infinity gives zero, NaN stays NaN.
    unsafe fn exp(x: Self::Floats) -> Self::Floats;
    /// The sum of the lanes, always in the same order.
    unsafe fn sum(x: Self::Floats) -> f32;
    /// The largest lane.
    unsafe fn largest(x: Self::Floats) -> f32;
}

/// What the loop does by the way in which keys and values are kept.
pub(super) trait Cell: Copy {
    /// Whether weights are to be multiplied by the scales of the values.
    const SCALED: bool;

    /// `count` queries from `first`.
    fn some<'a>(q: &Queries<'a>, first: usize, count: usize, dim: usize) -> Queries<'a>;

    /// Scores of `V` vectors of positions, from vector `at` of the blocks on.
    ///
    /// # Safety
    /// The promises of [`tile`].
    unsafe fn scores<L: Lanes, const Q: usize, const V: usize>(
        planes: &Planes<'_, Self>,
        blocks: &[u32],
        q: &Queries<'_>,
        at: usize,
    ) -> [[L::Floats; V]; Q];

    /// A vector of values.
    ///
    /// # Safety
    /// The processor has the instructions of `L`, and there are as many values.
    unsafe fn values<L: Lanes>(from: *const Self) -> L::Floats;
}

/// 16-bit floats.
impl Cell for u16 {
    const SCALED: bool = false;

    #[inline(always)]
    fn some<'a>(q: &Queries<'a>, first: usize, count: usize, dim: usize) -> Queries<'a> {
        Queries { floats: &q.floats[first * dim..][..count * dim], ..Queries::default() }
    }

    #[inline(always)]
    unsafe fn scores<L: Lanes, const Q: usize, const V: usize>(
        planes: &Planes<'_, u16>,
        blocks: &[u32],
        q: &Queries<'_>,
        at: usize,
    ) -> [[L::Floats; V]; Q] {
        let (dim, pitch, q) = (planes.dim, planes.pitch, q.floats);
        let mut k = [&[][..]; V];
        for (i, k) in k.iter_mut().enumerate() {
            let place = (at + i) * L::LANES;
            *k = &planes.k(blocks[place / pitch])[place % pitch..];
        }
        assert!(k.iter().all(|k| k.len() >= (dim - 1) * pitch + L::LANES) && q.len() == Q * dim);
        // SAFETY: each run of K goes on for a vector after its row `d` and there are Q times dim numbers in q, by the
        // assertion; the rest is passed on.
        unsafe {
            let mut sums = [[L::splat(0.0); V]; Q];
            let mut k = k.map(<[u16]>::as_ptr);
            for d in 0..dim {
                let mut floats = [L::splat(0.0); V];
                for (floats, k) in floats.iter_mut().zip(&mut k) {
                    *floats = L::halves(*k);
                    *k = k.wrapping_add(pitch);
                }
                for (query, sums) in sums.iter_mut().enumerate() {
                    let q = L::splat(*q.get_unchecked(query * dim + d));
                    for (sum, k) in sums.iter_mut().zip(floats) {
                        *sum = L::mul_add(q, k, *sum);
                    }
                }
            }
            sums
        }
    }

    #[inline(always)]
    unsafe fn values<L: Lanes>(from: *const u16) -> L::Floats {
        // SAFETY: passed on.
        unsafe { L::halves(from) }
    }
}

/// Codes. Their products with the queries' are whole numbers, which four at a time cost an instruction or few; widened to
/// floats they would cost what 16-bit floats do. What the queries lose by it is small beside what the keys and values have
/// lost already (docs/performance.md).
impl Cell for i8 {
    const SCALED: bool = true;

    #[inline(always)]
    fn some<'a>(q: &Queries<'a>, first: usize, count: usize, dim: usize) -> Queries<'a> {
        Queries {
            codes: &q.codes[first * dim..][..count * dim],
            metas: &q.metas[first..][..count],
            ..Queries::default()
        }
    }

    #[inline(always)]
    unsafe fn scores<L: Lanes, const Q: usize, const V: usize>(
        planes: &Planes<'_, i8>,
        blocks: &[u32],
        q: &Queries<'_>,
        at: usize,
    ) -> [[L::Floats; V]; Q] {
        let (dim, pitch) = (planes.dim, planes.pitch);
        let (mut k, mut scales) = ([&[][..]; V], [&[][..]; V]);
        for (i, (k, scales)) in k.iter_mut().zip(&mut scales).enumerate() {
            let (block, at) = ((at + i) * L::LANES / pitch, (at + i) * L::LANES % pitch);
            *k = &planes.k(blocks[block])[4 * at..];
            *scales = &planes.k_scales(blocks[block])[at..];
        }
        assert!(k.iter().all(|k| k.len() >= (dim - 4) * pitch + 4 * L::LANES));
        assert!(scales.iter().all(|s| s.len() >= L::LANES));
        assert!(dim.is_multiple_of(4) && q.codes.len() == Q * dim && q.metas.len() == Q);
        // SAFETY: each run of K goes on for four vectors of bytes after dimension `d`, a multiple of four, each run of
        // scales for a vector, and there are Q times dim codes in q, all by the assertions; the rest is passed on.
        unsafe {
            let mut sums = [[L::whole(0); V]; Q];
            for (sums, meta) in sums.iter_mut().zip(q.metas) {
                *sums = [L::whole(-L::RAISED * meta.sum); V];
            }
            for d in (0..dim).step_by(4) {
                let mut fours = [L::fours(k[0].as_ptr().add(d * pitch)); V];
                for (fours, k) in fours.iter_mut().zip(&k).skip(1) {
                    *fours = L::fours(k.as_ptr().add(d * pitch));
                }
                for (query, sums) in sums.iter_mut().enumerate() {
                    let q = q.codes.as_ptr().add(query * dim + d);
                    for (sum, k) in sums.iter_mut().zip(fours) {
                        *sum = L::dot(*sum, k, q);
                    }
                }
            }
            let mut scores = [[L::splat(0.0); V]; Q];
            for (i, scales) in scales.iter().enumerate() {
                let scales = L::halves(scales.as_ptr());
                for ((scores, sums), meta) in scores.iter_mut().zip(&sums).zip(q.metas) {
                    scores[i] = L::mul(L::float(sums[i]), L::mul(scales, L::splat(meta.scale)));
                }
            }
            scores
        }
    }

    #[inline(always)]
    unsafe fn values<L: Lanes>(from: *const i8) -> L::Floats {
        // SAFETY: passed on.
        unsafe { L::codes(from) }
    }
}

/// Whether blocks and heads are whole vectors.
pub(super) fn fits<L: Lanes, T>(keys: &Keys<'_, T>) -> bool {
    keys.planes.dim.is_multiple_of(L::LANES) && keys.planes.pitch.is_multiple_of(L::LANES)
}

/// Brings a chunk that [`fits`] into the running sums. A query's result depends on itself and the keys alone: each sum is
/// made in the order of the positions, whatever tile the query is in. (Unless something is not finite: that spoils the queries of
/// its tile, those before it as well.)
///
/// # Safety
/// The processor has the instructions of `L`.
pub(super) unsafe fn attend<L: Lanes, T: Cell>(keys: &Keys<'_, T>, state: &mut Attend<'_>) {
    assert!(fits::<L, T>(keys) && keys.planes.block_size <= keys.planes.pitch);
    let mut first = 0;
    while first < state.visible.len() {
        // SAFETY: the caller's promise; there is a query at `first`.
        first += unsafe { L::tile(keys, state, first) };
    }
}

/// `Q` queries from `first`, `V` vectors at a time; returns `Q`.
///
/// # Safety
/// The processor has the instructions of `L`, and the keys [`fits`] it.
#[inline(always)]
pub(super) unsafe fn tile<L: Lanes, T: Cell, const Q: usize, const V: usize>(
    keys: &Keys<'_, T>,
    state: &mut Attend<'_>,
    first: usize,
) -> usize {
    let (dim, width) = (keys.planes.dim, keys.blocks.len() * keys.planes.pitch);
    let visible = &state.visible[first..first + Q];
    let most = visible.iter().fold(0, |m, v| m.max(*v)) as usize;
    assert!(most <= keys.blocks.len() * keys.planes.block_size);
    if most == 0 {
        return Q;
    }
    let once = state.visible.len() <= L::QUERIES; // all queries in one tile: the keys come from memory
    let mut tile = Tile::<T, Q> {
        keys,
        blocks: &keys.blocks[..most.div_ceil(keys.planes.block_size)],
        next: if once { keys.next } else { &[] },
        width,
        most,
        q: T::some(&state.q, first, Q, dim),
        scores: &mut state.scores[first * width..][..Q * width],
        acc: &mut state.acc[first * dim..][..Q * dim],
        shrink: [1.0; Q],
    };
    // SAFETY: the caller's promises.
    unsafe {
        tile.score::<L, V>();
        for (query, visible) in visible.iter().enumerate() {
            let at = first + query;
            tile.weigh::<L>(query, *visible as usize, &mut state.max[at], &mut state.sum[at]);
        }
        tile.sum::<L, V>();
    }
    Q
}

/// Some queries and the blocks that at least one of them sees.
///
/// # Safety
/// For all functions: the promises of [`tile`].
struct Tile<'a, T, const Q: usize> {
    keys: &'a Keys<'a, T>,
    blocks: &'a [u32],
    /// The blocks that follow, to be asked for: none when many queries go through these while they are in the cache.
    next: &'a [u32],
    /// From one query's scores to the next's.
    width: usize,
    /// Positions that at least one query sees.
    most: usize,
    q: Queries<'a>,
    scores: &'a mut [f32],
    acc: &'a mut [f32],
    /// What the earlier sums of each query are multiplied by.
    shrink: [f32; Q],
}

impl<T: Cell, const Q: usize> Tile<'_, T, Q> {
    /// Scores of all positions of the blocks.
    #[inline(always)]
    unsafe fn score<L: Lanes, const V: usize>(&mut self) {
        if !self.next.is_empty() {
            self.blocks.iter().for_each(|block| prefetch::<L, _>(self.keys.planes.v(*block)));
        }
        let vectors = self.blocks.len() * self.keys.planes.pitch / L::LANES;
        let mut at = 0;
        // SAFETY: passed on.
        unsafe {
            while at + V <= vectors {
                self.score_at::<L, V>(at);
                at += V;
            }
            while at < vectors {
                self.score_at::<L, 1>(at);
                at += 1;
            }
        }
    }

    /// Scores of `V` vectors of positions, from vector `at` of the blocks on.
    #[inline(always)]
    unsafe fn score_at<L: Lanes, const V: usize>(&mut self, at: usize) {
        assert!(self.scores.len() >= (Q - 1) * self.width + (at + V) * L::LANES);
        // SAFETY: each query has room for these scores, by the assertion; the rest is passed on.
        unsafe {
            let scores = T::scores::<L, Q, V>(&self.keys.planes, self.blocks, &self.q, at);
            for (query, scores) in scores.into_iter().enumerate() {
                for (i, scores) in scores.into_iter().enumerate() {
                    L::store(scores, self.scores.as_mut_ptr().add(query * self.width + (at + i) * L::LANES));
                }
            }
        }
    }

    /// Turns a query's scores into weights, zero where it does not see, and updates its largest score and sum.
    #[inline(always)]
    unsafe fn weigh<L: Lanes>(&mut self, query: usize, visible: usize, largest: &mut f32, total: &mut f32) {
        let (block_size, pitch) = (self.keys.planes.block_size, self.keys.planes.pitch);
        let scores = &mut self.scores[query * self.width..][..self.blocks.len() * pitch];
        if visible == 0 {
            scores.fill(0.0);
            return;
        }
        hide(scores, visible, block_size, pitch);
        // SAFETY: a pitch is whole vectors, so the pieces are; the rest is passed on.
        unsafe {
            let pieces = scores.chunks_exact(L::LANES);
            let most = pieces.fold(L::splat(*largest), |m, s| L::max(m, L::load(s.as_ptr())));
            let most = L::largest(most);
            let mut sums = L::splat(0.0);
            for scores in scores.chunks_exact_mut(L::LANES) {
                let weights = L::exp(L::sub(L::load(scores.as_ptr()), L::splat(most)));
                sums = L::add(sums, weights);
                L::store(weights, scores.as_mut_ptr());
            }
            if T::SCALED {
                for (scores, block) in scores.chunks_exact_mut(pitch).zip(self.blocks) {
                    let scales = self.keys.planes.v_scales(*block).chunks_exact(L::LANES);
                    for (scores, scales) in scores.chunks_exact_mut(L::LANES).zip(scales) {
                        let weights = L::mul(L::load(scores.as_ptr()), L::halves(scales.as_ptr()));
                        L::store(weights, scores.as_mut_ptr());
                    }
                }
            }
            let shrink = (*largest - most).exp();
            self.shrink[query] = shrink;
            *largest = most;
            *total = *total * shrink + L::sum(sums);
        }
    }

    /// Adds the weighted values to the sums.
    #[inline(always)]
    unsafe fn sum<L: Lanes, const V: usize>(&mut self) {
        for next in self.next.iter().take(self.blocks.len()) {
            prefetch::<L, _>(self.keys.planes.k(*next));
        }
        let vectors = self.keys.planes.dim / L::LANES;
        let mut at = 0;
        // SAFETY: passed on.
        unsafe {
            while at + V <= vectors {
                self.sum_at::<L, V>(at * L::LANES);
                at += V;
            }
            while at < vectors {
                self.sum_at::<L, 1>(at * L::LANES);
                at += 1;
            }
        }
    }

    /// The same for `V` vectors of dimensions from `d` on. Values past what any query sees are not touched: they may be
    /// another sequence's, and not finite.
    #[inline(always)]
    unsafe fn sum_at<L: Lanes, const V: usize>(&mut self, d: usize) {
        let (dim, pitch, width) = (self.keys.planes.dim, self.keys.planes.pitch, self.width);
        let block_size = self.keys.planes.block_size;
        assert!(self.acc.len() == Q * dim && self.scores.len() == Q * width && d + V * L::LANES <= dim);
        // SAFETY: V vectors from `d` on are inside each query's part of the sums, by the assertion; what is read of the
        // values and the weights, see below; the rest is passed on.
        unsafe {
            let mut sums = [[L::splat(0.0); V]; Q];
            for (query, sums) in sums.iter_mut().enumerate() {
                for (i, sum) in sums.iter_mut().enumerate() {
                    let acc = L::load(self.acc.as_ptr().add(query * dim + d + i * L::LANES));
                    *sum = L::mul(acc, L::splat(self.shrink[query]));
                }
            }
            for (block, number) in self.blocks.iter().enumerate() {
                let v = self.keys.planes.v(*number);
                let positions = (self.most - block * block_size).min(block_size);
                assert!(v.len() >= positions * dim && block * pitch + positions <= width);
                for at in 0..positions {
                    // Row `at` of V is inside, and so are the vectors from `d`.
                    let row = v.as_ptr().add(at * dim + d);
                    let mut v = [L::splat(0.0); V];
                    for (i, v) in v.iter_mut().enumerate() {
                        *v = T::values::<L>(row.add(i * L::LANES));
                    }
                    for (query, sums) in sums.iter_mut().enumerate() {
                        // There are Q times width weights, and the place is below the width.
                        let weight = L::splat(*self.scores.get_unchecked(query * width + block * pitch + at));
                        for (sum, v) in sums.iter_mut().zip(v) {
                            *sum = L::mul_add(weight, v, *sum);
                        }
                    }
                }
            }
            for (query, sums) in sums.into_iter().enumerate() {
                for (i, sum) in sums.into_iter().enumerate() {
                    L::store(sum, self.acc.as_mut_ptr().add(query * dim + d + i * L::LANES));
                }
            }
        }
    }
}

/// Asks for the lines of a plane.
#[inline(always)]
fn prefetch<L: Lanes, T>(plane: &[T]) {
    plane.chunks(64 / size_of::<T>()).for_each(|line| L::prefetch(line.as_ptr().cast()));
}
