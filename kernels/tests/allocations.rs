//! A step that has been done before allocates nothing.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use common::{Random, weights};
use jackfield_kernels::{
    Angles, Cpu, GgmlType, KvArena, KvShape, KvSpan, KvType, Matrix, Quantized, Rope, RopeStyle,
};

/// Counts allocations of all threads.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
#[cfg_attr(miri, ignore = "long by its nature")]
fn nothing_after_the_first_time() {
    let mut random = Random(30);
    let cpu = Cpu::new(2);
    if cpu.isa() == jackfield_kernels::Isa::Scalar {
        return; // the reference is not written for this
    }
    let (cols, rows, tokens) = (192, 192, 40);
    let w =
        Matrix::pack(&cpu, GgmlType::Q4_1, &weights(&mut random, GgmlType::Q4_1, rows * cols), rows, cols);
    let w = w.unwrap();
    let shape = KvShape { layers: 1, blocks: 100, block_size: 16, kv_heads: 3, head_dim: 64 };
    let mut caches = [KvType::F16, KvType::Int8].map(|ty| KvArena::with_type(shape, ty).unwrap());
    let table: Vec<u32> = (0..100).collect();
    let rope = Rope::new(RopeStyle::Half, 64, 1e4, 1.0, None).unwrap();
    let (mut x, mut y) = (random.floats(tokens * cols), vec![0.0; tokens * rows]);
    let (mut quantized, mut angles) = (Quantized::new(), Angles::default());
    let norm = random.floats(cols);
    let mut step = |start: u32| {
        let positions: [u32; 40] = std::array::from_fn(|i| start + i as u32);
        let span = KvSpan { table: &table, start: start as usize, len: tokens, row: 0 };
        cpu.rms_norm(&x, &norm, 1e-5, &mut y);
        cpu.quantize(&y, tokens, &mut quantized);
        cpu.matmul(&w, &quantized, &mut y);
        angles.set(&rope, &positions);
        cpu.rope_with(&mut y, 3, 64, &rope, &angles);
        caches.iter_mut().for_each(|kv| kv.write(&cpu, 0, &[span], &y, &x));
        caches.iter().for_each(|kv| cpu.attention(kv, 0, &[span], &y, 3, 0.1, &mut x));
        let last = KvSpan { table: &table, start: start as usize + tokens - 1, len: 1, row: 0 };
        for kv in &caches {
            cpu.attention(kv, 0, &[last], &y[..192], 3, 0.1, &mut x[..192]); // alone: split along the keys
        }
        cpu.silu_mul(&mut x, &y);
    };
    // A thread's own beginning allocates: wait until each is there.
    let all_there = Barrier::new(cpu.threads());
    cpu.parallel(cpu.threads(), &|_| _ = all_there.wait());
    step(1400);
    let before = ALLOCATIONS.load(Relaxed);
    for start in 1300..1340 {
        step(start);
    }
    assert_eq!(ALLOCATIONS.load(Relaxed) - before, 0);
}
