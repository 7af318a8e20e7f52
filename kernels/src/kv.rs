//! Keys and values of all sequences, in blocks.

mod block;

use crate::aligned::Aligned;
use crate::cpu::Planes;
use crate::shared::Parts;
use crate::{Cpu, KernelError, codes};

pub use block::KvStore;

/// Lanes that the kernels work in: positions of a block and dimensions of a head are padded to a multiple.
const LANES: usize = 8;

/// Sizes of a [`KvArena`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvShape {
    /// Layers of the model.
    pub layers: usize,
    /// Blocks in the arena.
    pub blocks: usize,
    /// Positions in a block.
    pub block_size: usize,
    /// Heads that have keys and values.
    pub kv_heads: usize,
    /// Dimensions of a head.
    pub head_dim: usize,
}

/// The rows of one sequence in a step: rows `row..row+len` of the step's queries, keys, values and output are positions
/// `start..start+len` of the sequence, and `table[i]` is the block that holds positions `i * block_size..`.
#[derive(Debug, Clone, Copy)]
pub struct KvSpan<'a> {
    /// Blocks of the sequence, in order; at least as many as its positions need.
    pub table: &'a [u32],
    /// Position of the first row.
    pub start: usize,
    /// Rows.
    pub len: usize,
    /// First row in the step.
    pub row: usize,
}

/// How keys and values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KvType {
    /// 16-bit floats.
    #[default]
    F16,
    /// Codes of 8 bits with a 16-bit scale for each position and head, K and V apart: little more than half the memory.
    /// Queries are brought to 8 bits, too, when they meet such keys.
    Int8,
}

/// Keys and values of all layers.
///
/// The order is `[block, layer, kv_head, K or V]`, so a block is one run of memory, and one of scales. Inside, V is
/// `[position, dim]`, and scores of several positions are one vector: K is `[dim, position]` in floats, `[dim / 4,
/// position, 4]` in codes. Blocks that were never written take no memory where the system hands out zero pages lazily.
pub struct KvArena {
    shape: KvShape,
    store: Store,
}

enum Store {
    Halves(Aligned<u16>),
    Codes { codes: Aligned<i8>, scales: Aligned<u16> },
}

/// The keys and values of one layer and head.
pub(crate) enum Head<'a> {
    Halves(Planes<'a, u16>),
    Codes(Planes<'a, i8>),
}

impl KvShape {
    /// Positions of a block, padded.
    pub(crate) fn pitch(&self) -> usize {
        self.block_size.next_multiple_of(LANES)
    }

    /// Dimensions of a head, padded.
    pub(crate) fn dim(&self) -> usize {
        self.head_dim.next_multiple_of(LANES)
    }

    /// Numbers in the K, or the V, of one block, layer and head.
    fn plane(&self) -> usize {
        self.pitch() * self.dim()
    }

    /// Planes in a block.
    fn planes(&self) -> usize {
        self.layers * self.kv_heads * 2
    }

    /// Bytes of one block, all layers: what an operator's memory budget is divided by. `None` when it does not fit.
    pub fn block_bytes(&self, kv_type: KvType) -> Option<usize> {
        let fits = |n: usize| n.checked_next_multiple_of(LANES).filter(|n| *n > 0);
        let row = match kv_type {
            KvType::F16 => fits(self.head_dim)?.checked_mul(size_of::<u16>())?,
            KvType::Int8 => fits(self.head_dim)?.checked_add(size_of::<u16>())?,
        };
        [self.kv_heads, 2, fits(self.block_size)?, row]
            .into_iter()
            .try_fold(self.layers, usize::checked_mul)
            .filter(|bytes| *bytes > 0)
    }
}

impl KvArena {
    /// An empty arena of 16-bit floats.
    ///
    /// # Errors
    /// As for [`with_type`](Self::with_type).
    pub fn new(shape: KvShape) -> Result<KvArena, KernelError> {
        Self::with_type(shape, KvType::F16)
    }

    /// An empty arena.
    ///
    /// # Errors
    /// [`KernelError::BadShape`] when a dimension is zero or the whole does not fit the address space,
    /// [`KernelError::OutOfMemory`] when the system refuses.
    pub fn with_type(shape: KvShape, kv_type: KvType) -> Result<KvArena, KernelError> {
        let bytes = shape.block_bytes(kv_type).and_then(|b| b.checked_mul(shape.blocks)).filter(|b| *b > 0);
        bytes.ok_or(KernelError::BadShape { what: "a key-value cache" })?;
        let planes = shape.blocks * shape.planes();
        let store = match kv_type {
            KvType::F16 => Store::Halves(Aligned::try_zeroed(planes * shape.plane())?),
            KvType::Int8 => Store::Codes {
                codes: Aligned::try_zeroed(planes * shape.plane())?,
                scales: Aligned::try_zeroed(planes * shape.pitch())?,
            },
        };
        Ok(KvArena { shape, store })
    }

    /// Its sizes.
    pub fn shape(&self) -> &KvShape {
        &self.shape
    }

    /// How it keeps what is written.
    pub fn kv_type(&self) -> KvType {
        match self.store {
            Store::Halves(_) => KvType::F16,
            Store::Codes { .. } => KvType::Int8,
        }
    }

    /// Bytes reserved.
    pub fn bytes(&self) -> usize {
        match &self.store {
            Store::Halves(halves) => size_of_val(&halves[..]),
            Store::Codes { codes, scales } => size_of_val(&codes[..]) + size_of_val(&scales[..]),
        }
    }

    /// Stores the keys and values of a step, both `[tokens, kv_heads, head_dim]`, at the positions of `spans`. Panics on
    /// a block that is not there, a table too short, or rows that are not in `k` and `v`.
    pub fn write(&mut self, cpu: &Cpu, layer: usize, spans: &[KvSpan<'_>], k: &[f32], v: &[f32]) {
        let shape = self.shape;
        let row = shape.kv_heads * shape.head_dim;
        assert_eq!(k.len(), v.len(), "keys and values");
        assert!(layer < shape.layers, "layer {layer} of {}", shape.layers);
        let rows: usize = spans.iter().map(|s| shape.check(s, k.len() / row)).sum();
        let rows_of = |task: usize, put: &dyn Fn(usize, usize, &[f32])| {
            let (head, values) = (task / 2, task % 2 == 1);
            let from = if values { v } else { k };
            for (block, at, x) in spans.iter().flat_map(|s| shape.places(s)) {
                let plane = shape.number(block, layer, head) + usize::from(values);
                put(plane, at, &from[x * row + head * shape.head_dim..][..shape.head_dim]);
            }
        };
        let each = |task: &(dyn Fn(usize) + Sync)| match 2 * shape.kv_heads {
            tasks if rows * row > 1 << 13 => cpu.parallel(tasks, task),
            tasks => (0..tasks).for_each(task),
        };
        // A task has one head and one of K and V to itself, in every block.
        match &mut self.store {
            Store::Halves(halves) => {
                let halves = Parts::new(halves);
                each(&|task| {
                    rows_of(task, &|plane, at, x| {
                        // SAFETY: see above.
                        let plane = unsafe { halves.slice(plane * shape.plane(), shape.plane()) };
                        shape.put(cpu, x, at, task % 2 == 1, plane);
                    });
                });
            }
            Store::Codes { codes, scales } => {
                let (codes, scales) = (Parts::new(codes), Parts::new(scales));
                each(&|task| {
                    rows_of(task, &|plane, at, x| {
                        // SAFETY: see above.
                        let scales = unsafe { scales.slice(plane * shape.pitch(), shape.pitch()) };
                        // SAFETY: see above.
                        let plane = unsafe { codes.slice(plane * shape.plane(), shape.plane()) };
                        scales[at] = shape.put_codes(cpu, x, at, task % 2 == 1, plane);
                    });
                });
            }
        }
    }

    /// Makes block `to` a copy of block `from`, all layers. Panics on a block that is not there.
    pub fn copy_block(&mut self, from: u32, to: u32) {
        let (from, to, shape) = (from as usize, to as usize, &self.shape);
        assert!(from < shape.blocks && to < shape.blocks, "copy of block {from} to {to}");
        let (cells, scales) = (shape.planes() * shape.plane(), shape.planes() * shape.pitch());
        match &mut self.store {
            Store::Halves(halves) => halves.copy_within(from * cells..(from + 1) * cells, to * cells),
            Store::Codes { codes, scales: all } => {
                codes.copy_within(from * cells..(from + 1) * cells, to * cells);
                all.copy_within(from * scales..(from + 1) * scales, to * scales);
            }
        }
    }

    /// K and V of one layer and head.
    pub(crate) fn head(&self, layer: usize, head: usize) -> Head<'_> {
        match &self.store {
            Store::Halves(halves) => Head::Halves(self.shape.head(halves, &[], layer, head)),
            Store::Codes { codes, scales } => Head::Codes(self.shape.head(codes, scales, layer, head)),
        }
    }
}

impl KvShape {
    /// Panics unless the span's rows are among `rows` and its table reaches its end; gives its length.
    pub(crate) fn check(&self, span: &KvSpan<'_>, rows: usize) -> usize {
        let inside = |first: usize, end: usize| first.checked_add(span.len).is_some_and(|last| last <= end);
        assert!(inside(span.row, rows), "rows {}+{} of {rows}", span.row, span.len);
        assert!(inside(span.start, usize::MAX - self.block_size), "positions {}+{}", span.start, span.len);
        let needed = (span.start + span.len).div_ceil(self.block_size);
        assert!(needed <= span.table.len(), "{needed} blocks needed, {} in the table", span.table.len());
        for block in &span.table[..needed] {
            assert!((*block as usize) < self.blocks, "block {block} of {}", self.blocks);
        }
        span.len
    }

    /// Number of the plane of a head's keys; its values follow.
    fn number(&self, block: u32, layer: usize, head: usize) -> usize {
        block as usize * self.planes() + (layer * self.kv_heads + head) * 2
    }

    fn head<'a, T>(&self, cells: &'a [T], scales: &'a [u16], layer: usize, head: usize) -> Planes<'a, T> {
        Planes {
            cells,
            scales,
            first: self.number(0, layer, head),
            stride: self.planes(),
            pitch: self.pitch(),
            block_size: self.block_size,
            dim: self.dim(),
        }
    }

    /// For each row of a span: its block, its place in it, and its row in the step.
    fn places<'a>(&'a self, span: &'a KvSpan<'_>) -> impl Iterator<Item = (u32, usize, usize)> + 'a {
        (0..span.len).map(|i| {
            let position = span.start + i;
            (span.table[position / self.block_size], position % self.block_size, span.row + i)
        })
    }

    /// Writes one row to its place in a plane.
    fn put(&self, cpu: &Cpu, x: &[f32], at: usize, values: bool, plane: &mut [u16]) {
        if values {
            return cpu.kernels().to_half(x, &mut plane[at * self.dim()..][..x.len()]);
        }
        let mut halves = [0u16; 64];
        for (chunk, x) in x.chunks(halves.len()).enumerate() {
            cpu.kernels().to_half(x, &mut halves[..x.len()]);
            for (d, half) in halves[..x.len()].iter().enumerate() {
                plane[(chunk * halves.len() + d) * self.pitch() + at] = *half;
            }
        }
    }

    /// The same in codes; gives their scale.
    fn put_codes(&self, cpu: &Cpu, x: &[f32], at: usize, values: bool, plane: &mut [i8]) -> u16 {
        let scale = codes::half_scale(cpu.kernels().largest(x));
        if values {
            cpu.kernels().to_codes(x, scale.to_f32(), &mut plane[at * self.dim()..][..x.len()]);
            return scale.to_bits();
        }
        let mut some = [0i8; 64];
        for (chunk, x) in x.chunks(some.len()).enumerate() {
            cpu.kernels().to_codes(x, scale.to_f32(), &mut some[..x.len()]);
            for (d, four) in some[..x.len()].chunks(4).enumerate() {
                let place = (chunk * some.len() / 4 + d) * self.pitch() + at;
                plane[4 * place..][..four.len()].copy_from_slice(four);
            }
        }
        scale.to_bits()
    }
}
