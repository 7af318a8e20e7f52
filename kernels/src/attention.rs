//! Paged attention: softmax(q·Kᵀ)·V over block tables, in one pass and without a copy of the keys.
//!
//! Positions are cut into *chunks* of whole blocks, about 64 positions, whose scores are in the cache together, and
//! chunks into *segments* of about 512 positions. Each segment starts fresh, and segments are merged in order. The cuts
//! depend on the position alone; so it makes no difference to the result, bit for bit, whether one task goes through all
//! segments or many tasks take one each, nor how a prompt is cut into steps.

use crate::cpu::{Attend, Keys, Planes, Queries, QueryMeta};
use crate::kv::Head;
use crate::shared::Parts;
use crate::{Cpu, KvArena, KvShape, KvSpan, KvType, codes};

/// Positions in a chunk, about.
const CHUNK: usize = 64;
/// Positions in a segment, about.
const SEGMENT: usize = 512;
/// Queries (rows times grouped heads) that share each load of keys and values.
const QUERIES: usize = 48;
/// Multiplications that are worth a second thread.
const WORTH_SHARING: usize = 1 << 18;
/// With fewer tasks than this for each thread, segments become tasks of their own.
const TASKS_PER_THREAD: usize = 4;

/// Queries of one key-value head that go through the keys together: `first..first+count` of the span's
/// `len * group` queries, counted row by row.
#[derive(Debug, Clone, Copy)]
struct Item {
    span: usize,
    head: usize,
    first: usize,
    count: usize,
    /// Segments its last query sees.
    segments: usize,
    /// Number of its first partial result.
    partial: usize,
}

/// What is kept between calls so that a step allocates nothing.
#[derive(Default)]
pub(crate) struct Workspace {
    plan: Plan,
    coded: Coded,
}

/// Lists and partial results.
#[derive(Default)]
struct Plan {
    items: Vec<Item>,
    /// (item, segment)
    pieces: Vec<(usize, usize)>,
    partials: Vec<f32>,
    /// Pairs of a query and a position, about.
    work: usize,
}

/// All queries in codes, where keys are: `[kv_heads, rows, group, dim]`, so that those of an item are neighbours.
#[derive(Default)]
struct Coded {
    codes: Vec<i8>,
    metas: Vec<QueryMeta>,
}

/// All that stays the same during a call.
struct Call<'a> {
    kv: &'a KvArena,
    layer: usize,
    spans: &'a [KvSpan<'a>],
    q: &'a [f32],
    heads: usize,
    /// Query heads for each key-value head.
    group: usize,
    scale: f32,
    out: Parts<'a, f32>,
    cuts: Cuts,
    coded: &'a Coded,
}

/// Where positions are cut: a function of the arena's shape alone.
#[derive(Clone, Copy)]
struct Cuts {
    chunk_blocks: usize,
    chunk: usize,
    segment: usize,
}

impl Cuts {
    fn new(shape: &KvShape) -> Self {
        let chunk_blocks = (CHUNK / shape.block_size).max(1);
        let chunk = chunk_blocks * shape.block_size;
        Self { chunk_blocks, chunk, segment: (SEGMENT / chunk).max(1) * chunk }
    }
}

impl Cpu {
    /// Attention of `q`, `[tokens, heads, head_dim]`, over the keys and values of each span's sequence; `out` has the
    /// shape of `q`. The query at position p sees positions `0..=p`, which must have been written. Scores are multiplied
    /// by `scale`. Rows outside the spans are left alone.
    ///
    /// Panics when `heads` is not a multiple of the arena's `kv_heads`, or on sizes that do not fit.
    #[allow(clippy::too_many_arguments)] // the operation has this many operands
    pub fn attention(
        &self,
        kv: &KvArena,
        layer: usize,
        spans: &[KvSpan<'_>],
        q: &[f32],
        heads: usize,
        scale: f32,
        out: &mut [f32],
    ) {
        let shape = kv.shape();
        assert!(layer < shape.layers, "layer {layer} of {}", shape.layers);
        assert!(heads > 0 && heads.is_multiple_of(shape.kv_heads), "{heads} heads on {}", shape.kv_heads);
        assert_eq!(q.len(), out.len(), "queries and output");
        let rows = q.len() / (heads * shape.head_dim);
        spans.iter().for_each(|span| _ = shape.check(span, rows));
        disjoint(spans);
        let (group, out, cuts) = (heads / shape.kv_heads, Parts::new(out), Cuts::new(shape));
        let mut workspace = self.attention.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Workspace { plan, coded } = &mut *workspace;
        if kv.kv_type() == KvType::Int8 {
            self.encode(coded, shape, q, heads, scale);
        }
        let call = Call { kv, layer, spans, q, heads, group, scale, out, cuts, coded };
        call.plan(plan);
        let (items, pieces) = (plan.items.len(), plan.pieces.len());
        if plan.work * 2 * shape.dim() < WORTH_SHARING {
            self.parallel_scratch(call.room(), 1, &|_, scratch| {
                plan.items.iter().for_each(|item| self.item(&call, item, scratch));
            });
        } else if items >= TASKS_PER_THREAD * self.threads() || pieces == items {
            self.parallel_scratch(call.room(), items, &|task, scratch| {
                self.item(&call, &plan.items[task], scratch);
            });
        } else {
            self.pieces(&call, plan);
        }
    }

    /// Brings all queries to 8 bits, scaled.
    fn encode(&self, coded: &mut Coded, shape: &KvShape, q: &[f32], heads: usize, scale: f32) {
        let (head_dim, dim, group) = (shape.head_dim, shape.dim(), heads / shape.kv_heads);
        let rows = q.len() / (heads * head_dim);
        if coded.metas.len() < rows * heads {
            coded.metas.resize(rows * heads, QueryMeta::default());
        }
        if coded.codes.len() < rows * heads * dim {
            coded.codes.resize(rows * heads * dim, 0);
        }
        let (codes, metas) = (Parts::new(&mut coded.codes), Parts::new(&mut coded.metas));
        self.for_rows(rows, heads * head_dim, &|some| {
            for (row, head) in some.flat_map(|row| (0..heads).map(move |head| (row, head))) {
                let place = (head / group * rows + row) * group + head % group;
                // SAFETY: each row is visited by one task, and its places are its own.
                let (to, meta) = unsafe { (codes.slice(place * dim, dim), metas.slice(place, 1)) };
                let q = &q[(row * heads + head) * head_dim..][..head_dim];
                let step = codes::scale(self.kernels().largest(q));
                self.kernels().to_codes(q, step, to);
                to[head_dim..].fill(0);
                meta[0] =
                    QueryMeta { scale: step * scale, sum: to.iter().map(|code| i32::from(*code)).sum() };
            }
        });
    }

    /// All segments of one item.
    fn item(&self, call: &Call<'_>, item: &Item, scratch: &mut [f32]) {
        let mut room = Room::new(scratch, call, item.count);
        room.load(call, item);
        for segment in 0..item.segments {
            room.segment(self, call, item, segment);
            merge(room.acc, room.max, room.sum, room.total_acc, room.total_max, room.total_sum);
        }
        call.finish(item, room.total_acc, room.total_sum);
    }

    /// Each segment of each item in one task, then the merging.
    fn pieces(&self, call: &Call<'_>, plan: &mut Plan) {
        let dim = call.kv.shape().dim();
        let size = QUERIES.min(plan.items.iter().map(|i| i.count).max().unwrap_or(0)) * (dim + 2);
        let wanted = size * plan.pieces.len();
        if plan.partials.len() < wanted {
            plan.partials.resize(wanted, 0.0);
        }
        let (items, pieces) = (&plan.items, &plan.pieces);
        let partials = Parts::new(&mut plan.partials);
        self.parallel_scratch(call.room(), pieces.len(), &|task, scratch| {
            let (item, segment) = (&items[pieces[task].0], pieces[task].1);
            let mut room = Room::new(scratch, call, item.count);
            room.load(call, item);
            room.segment(self, call, item, segment);
            // SAFETY: each piece has its own number.
            let partial = unsafe { partials.slice((item.partial + segment) * size, item.count * (dim + 2)) };
            let (acc, rest) = partial.split_at_mut(item.count * dim);
            acc.copy_from_slice(room.acc);
            rest[..item.count].copy_from_slice(room.max);
            rest[item.count..].copy_from_slice(room.sum);
        });
        for item in items {
            // SAFETY: all tasks are done.
            let all = unsafe { partials.slice(item.partial * size, item.segments * size) };
            call.merge_pieces(item, all, size);
        }
    }
}

impl Call<'_> {
    /// Room for one query's scores of a chunk.
    fn scores(&self) -> usize {
        self.cuts.chunk_blocks * self.kv.shape().pitch()
    }

    /// Numbers that a task works with at most.
    fn room(&self) -> usize {
        QUERIES * (3 * self.kv.shape().dim() + self.scores() + 4)
    }

    fn plan(&self, plan: &mut Plan) {
        plan.items.clear();
        plan.pieces.clear();
        plan.work = 0;
        for (span, s) in self.spans.iter().enumerate() {
            let queries = s.len * self.group;
            // The last queries see most: begin with them, so that what is left at the end is short.
            for tile in (0..queries.div_ceil(QUERIES)).rev() {
                let (first, count) = (tile * QUERIES, QUERIES.min(queries - tile * QUERIES));
                let seen = s.start + (first + count - 1) / self.group + 1;
                let segments = seen.div_ceil(self.cuts.segment);
                plan.work += seen * count * self.kv.shape().kv_heads;
                for head in 0..self.kv.shape().kv_heads {
                    let (item, partial) = (plan.items.len(), plan.pieces.len());
                    plan.items.push(Item { span, head, first, count, segments, partial });
                    plan.pieces.extend((0..segments).map(|segment| (item, segment)));
                }
            }
        }
    }

    /// Where query number `query` of an item is in `q` and `out`.
    fn place(&self, item: &Item, query: usize) -> usize {
        let (row, member) = ((item.first + query) / self.group, (item.first + query) % self.group);
        let head = item.head * self.group + member;
        ((self.spans[item.span].row + row) * self.heads + head) * self.kv.shape().head_dim
    }

    /// The queries of an item in codes.
    fn coded(&self, item: &Item) -> Queries<'_> {
        let (dim, row) = (self.kv.shape().dim(), self.spans[item.span].row);
        let rows = self.q.len() / (self.heads * self.kv.shape().head_dim);
        let first = (item.head * rows + row) * self.group + item.first;
        Queries {
            codes: &self.coded.codes[first * dim..][..item.count * dim],
            metas: &self.coded.metas[first..][..item.count],
            ..Queries::default()
        }
    }

    /// Position of a query.
    fn position(&self, item: &Item, query: usize) -> usize {
        self.spans[item.span].start + (item.first + query) / self.group
    }

    /// Calls `f` with the keys of each chunk of a segment, and how many of their positions each query sees.
    fn chunks<'k, T: Copy>(
        &'k self,
        item: &Item,
        segment: usize,
        planes: Planes<'k, T>,
        mut f: impl FnMut(&Keys<'k, T>, &[u32]),
    ) {
        let (block_size, cuts) = (self.kv.shape().block_size, self.cuts);
        let seen = self.position(item, item.count - 1) + 1;
        let end = seen.min((segment + 1) * cuts.segment);
        for first in (segment * cuts.segment..end).step_by(cuts.chunk) {
            let left = (end - first).div_ceil(block_size);
            let table = &self.spans[item.span].table[first / block_size..][..left.min(2 * cuts.chunk_blocks)];
            let (blocks, next) = table.split_at(left.min(cuts.chunk_blocks));
            let mut visible = [0u32; QUERIES];
            for (query, visible) in visible[..item.count].iter_mut().enumerate() {
                let seen = (self.position(item, query) + 1).saturating_sub(first);
                *visible = seen.min(blocks.len() * block_size) as u32;
            }
            f(&Keys { planes, blocks, next }, &visible[..item.count]);
        }
    }

    fn finish(&self, item: &Item, acc: &[f32], sum: &[f32]) {
        let (dim, head_dim) = (self.kv.shape().dim(), self.kv.shape().head_dim);
        for (query, sum) in sum.iter().enumerate() {
            // SAFETY: spans do not share rows (checked), items of a span do not share queries.
            let out = unsafe { self.out.slice(self.place(item, query), head_dim) };
            let inverse = 1.0 / sum;
            out.iter_mut().zip(&acc[query * dim..]).for_each(|(out, acc)| *out = acc * inverse);
        }
    }

    /// Merges an item's pieces into the first of them.
    fn merge_pieces(&self, item: &Item, pieces: &mut [f32], size: usize) {
        let dim = self.kv.shape().dim();
        let split = |piece| {
            let (acc, rest): (&mut [f32], &mut [f32]) = <[f32]>::split_at_mut(piece, item.count * dim);
            let (max, sum) = rest.split_at_mut(item.count);
            (acc, max, &mut sum[..item.count])
        };
        let (first, others) = pieces.split_at_mut(size);
        let (acc, max, sum) = split(first);
        for piece in others.chunks_exact_mut(size) {
            let (piece_acc, piece_max, piece_sum) = split(piece);
            merge(piece_acc, piece_max, piece_sum, acc, max, sum);
        }
        self.finish(item, acc, sum);
    }
}

/// Panics when two spans have a row in common: they would write the same output.
fn disjoint(spans: &[KvSpan<'_>]) {
    let ordered = spans.is_sorted_by(|a, b| a.row + a.len <= b.row);
    let apart = |a: &KvSpan<'_>, b: &KvSpan<'_>| a.row + a.len <= b.row || b.row + b.len <= a.row;
    let pairs = || spans.iter().enumerate().all(|(i, a)| spans[..i].iter().all(|b| apart(a, b)));
    assert!(ordered || pairs(), "two spans share a row");
}

/// Brings the sums of a later segment into the total.
fn merge(
    acc: &[f32],
    max: &[f32],
    sum: &[f32],
    total: &mut [f32],
    total_max: &mut [f32],
    total_sum: &mut [f32],
) {
    let dim = acc.len().checked_div(max.len()).unwrap_or(0);
    for query in 0..max.len() {
        let most = total_max[query].max(max[query]);
        if most == f32::NEG_INFINITY {
            continue; // neither has seen anything
        }
        let (old, new) = ((total_max[query] - most).exp(), (max[query] - most).exp());
        total_max[query] = most;
        total_sum[query] = total_sum[query] * old + sum[query] * new;
        let total = &mut total[query * dim..][..dim];
        total.iter_mut().zip(&acc[query * dim..][..dim]).for_each(|(t, a)| *t = *t * old + *a * new);
    }
}

/// One task's working memory.
struct Room<'a> {
    q: &'a mut [f32],
    scores: &'a mut [f32],
    acc: &'a mut [f32],
    max: &'a mut [f32],
    sum: &'a mut [f32],
    total_acc: &'a mut [f32],
    total_max: &'a mut [f32],
    total_sum: &'a mut [f32],
}

impl<'a> Room<'a> {
    fn new(scratch: &'a mut [f32], call: &Call<'_>, count: usize) -> Self {
        let (dim, scores) = (call.kv.shape().dim(), call.scores());
        let (q, rest) = scratch.split_at_mut(count * dim);
        let (scores, rest) = rest.split_at_mut(count * scores);
        let (acc, rest) = rest.split_at_mut(count * dim);
        let (total_acc, rest) = rest.split_at_mut(count * dim);
        let (max, rest) = rest.split_at_mut(count);
        let (sum, rest) = rest.split_at_mut(count);
        let (total_max, rest) = rest.split_at_mut(count);
        let total_sum = &mut rest[..count];
        Self { q, scores, acc, max, sum, total_acc, total_max, total_sum }
    }

    /// Takes the item's queries, scaled, and empties the total.
    fn load(&mut self, call: &Call<'_>, item: &Item) {
        let (dim, head_dim) = (call.kv.shape().dim(), call.kv.shape().head_dim);
        if call.kv.kv_type() == KvType::F16 {
            for (query, to) in self.q.chunks_exact_mut(dim).enumerate() {
                let from = &call.q[call.place(item, query)..][..head_dim];
                to[head_dim..].fill(0.0);
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from * call.scale);
            }
        }
        self.total_acc.fill(0.0);
        self.total_max.fill(f32::NEG_INFINITY);
        self.total_sum.fill(0.0);
    }

    /// Runs the item's queries over one segment, from a fresh start.
    fn segment(&mut self, cpu: &Cpu, call: &Call<'_>, item: &Item, segment: usize) {
        self.acc.fill(0.0);
        self.max.fill(f32::NEG_INFINITY);
        self.sum.fill(0.0);
        let (kernels, Room { q, scores, max, sum, acc, .. }) = (cpu.kernels(), self);
        match call.kv.head(call.layer, item.head) {
            Head::Halves(planes) => call.chunks(item, segment, planes, |keys, visible| {
                let q = Queries { floats: q, ..Queries::default() };
                kernels.attend(keys, &mut Attend { q, visible, scores, max, sum, acc });
            }),
            Head::Codes(planes) => call.chunks(item, segment, planes, |keys, visible| {
                let q = call.coded(item);
                kernels.attend_codes(keys, &mut Attend { q, visible, scores, max, sum, acc });
            }),
        }
    }
}
