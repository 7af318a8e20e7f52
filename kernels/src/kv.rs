//! Keys and values of all sequences, in blocks.

use crate::aligned::Aligned;
use crate::cpu::Planes;
use crate::shared::Parts;
use crate::{Cpu, KernelError};

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

/// Keys and values in 16-bit floats, all layers.
///
/// The order is `[block, layer, kv_head, K or V]`, so a block is one run of memory. Inside, K is `[dim, position]`
/// (scores of eight positions are one vector) and V `[position, dim]`. Blocks that were never written take no memory
/// where the system hands out zero pages lazily.
pub struct KvArena {
    shape: KvShape,
    halves: Aligned<u16>,
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

    /// Numbers in a block.
    fn block(&self) -> usize {
        self.layers * self.kv_heads * 2 * self.plane()
    }

    /// Bytes of one block, all layers: what an operator's memory budget is divided by. `None` when it does not fit.
    pub fn block_bytes(&self) -> Option<usize> {
        let fits = |n: usize| n.checked_next_multiple_of(LANES).filter(|n| *n > 0);
        [self.kv_heads, 2 * size_of::<u16>(), fits(self.block_size)?, fits(self.head_dim)?]
            .into_iter()
            .try_fold(self.layers, usize::checked_mul)
            .filter(|bytes| *bytes > 0)
    }
}

impl KvArena {
    /// An empty arena.
    ///
    /// # Errors
    /// [`KernelError::BadShape`] when a dimension is zero or the whole does not fit the address space,
    /// [`KernelError::OutOfMemory`] when the system refuses.
    pub fn new(shape: KvShape) -> Result<KvArena, KernelError> {
        let wrong = KernelError::BadShape { what: "a key-value cache" };
        let bytes =
            shape.block_bytes().and_then(|b| b.checked_mul(shape.blocks)).filter(|b| *b > 0).ok_or(wrong)?;
        Ok(KvArena { shape, halves: Aligned::try_zeroed(bytes / size_of::<u16>())? })
    }

    /// Its sizes.
    pub fn shape(&self) -> &KvShape {
        &self.shape
    }

    /// Bytes reserved.
    pub fn bytes(&self) -> usize {
        self.halves.len() * size_of::<u16>()
    }

    /// Stores the keys and values of a step, both `[tokens, kv_heads, head_dim]`, at the positions of `spans`. Panics on
    /// a block that is not there, a table too short, or rows that are not in `k` and `v`.
    pub fn write(&mut self, cpu: &Cpu, layer: usize, spans: &[KvSpan<'_>], k: &[f32], v: &[f32]) {
        let shape = self.shape;
        let row = shape.kv_heads * shape.head_dim;
        assert_eq!(k.len(), v.len(), "keys and values");
        assert!(layer < shape.layers, "layer {layer} of {}", shape.layers);
        let rows: usize = spans.iter().map(|s| shape.check(s, k.len() / row)).sum();
        let halves = Parts::new(&mut self.halves);
        let plane = |task: usize| {
            let (head, values) = (task / 2, task % 2 == 1);
            let from = if values { v } else { k };
            for (block, at, x) in spans.iter().flat_map(|s| shape.places(s)) {
                let first = shape.offset(block, layer, head) + if values { shape.plane() } else { 0 };
                // SAFETY: a task has one head and one of K and V to itself, in every block.
                let plane = unsafe { halves.slice(first, shape.plane()) };
                let x = &from[x * row + head * shape.head_dim..][..shape.head_dim];
                shape.put(cpu, x, at, values, plane);
            }
        };
        let planes = 2 * shape.kv_heads;
        if rows * row > 1 << 13 { cpu.parallel(planes, &plane) } else { (0..planes).for_each(plane) }
    }

    /// Makes block `to` a copy of block `from`, all layers. Panics on a block that is not there.
    pub fn copy_block(&mut self, from: u32, to: u32) {
        let (from, to, block) = (from as usize, to as usize, self.shape.block());
        assert!(from < self.shape.blocks && to < self.shape.blocks, "copy of block {from} to {to}");
        self.halves.copy_within(from * block..(from + 1) * block, to * block);
    }

    /// K and V of one layer and head.
    pub(crate) fn planes(&self, layer: usize, head: usize) -> Planes<'_> {
        let shape = &self.shape;
        Planes {
            halves: &self.halves,
            first: shape.offset(0, layer, head),
            stride: shape.block(),
            pitch: shape.pitch(),
            block_size: shape.block_size,
            dim: shape.dim(),
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

    /// Where a head's keys begin; its values follow.
    fn offset(&self, block: u32, layer: usize, head: usize) -> usize {
        block as usize * self.block() + (layer * self.kv_heads + head) * 2 * self.plane()
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
}
