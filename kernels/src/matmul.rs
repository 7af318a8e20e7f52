//! Products of activations and weights, shared out over the threads.

use crate::matrix::{Body, TILE};
use crate::shared::OutMatrix;
use crate::{Cpu, Matrix, Quantized};

/// Weights that one task reads at least: enough to outweigh the cost of claiming it, little enough for the first cache.
const TASK_BYTES: usize = 16 << 10;
/// Tasks for each thread in a large product: few enough to be cheap, enough to even out what other processes take.
const TASKS_PER_THREAD: usize = 16;

/// Tiles that kernels take side by side: tasks are multiples of it.
const TILES: usize = 4;

/// One of several products of the same input.
pub struct Projection<'a> {
    /// Weights `[rows, cols]`.
    pub weights: &'a Matrix,
    /// Result `[tokens, rows]`.
    pub out: &'a mut [f32],
}

/// A product with its tiles divided into tasks.
struct Shared<'a> {
    weights: &'a Matrix,
    out: OutMatrix<'a>,
    tiles_per_task: usize,
    tasks: usize,
}

impl Cpu {
    /// `y = x · wᵀ`: `x` is `[tokens, cols]`, `y` `[tokens, rows]`. Panics on other sizes, and when `w` holds floats and
    /// `x` did not keep its own.
    pub fn matmul(&self, w: &Matrix, x: &Quantized, y: &mut [f32]) {
        self.share(&[self.divide(w, x, y, false)], x);
    }

    /// `y += x · wᵀ`, with the sizes of [`Cpu::matmul`].
    pub fn matmul_add(&self, w: &Matrix, x: &Quantized, y: &mut [f32]) {
        self.share(&[self.divide(w, x, y, true)], x);
    }

    /// Two products of one input, all threads working on both: one wait instead of two.
    pub fn matmul_two(&self, x: &Quantized, [a, b]: [Projection<'_>; 2]) {
        self.share(&[a, b].map(|p| self.divide(p.weights, x, p.out, false)), x);
    }

    /// Three products of one input, such as queries, keys and values.
    pub fn matmul_three(&self, x: &Quantized, [a, b, c]: [Projection<'_>; 3]) {
        self.share(&[a, b, c].map(|p| self.divide(p.weights, x, p.out, false)), x);
    }

    fn divide<'a>(&self, weights: &'a Matrix, x: &Quantized, out: &'a mut [f32], add: bool) -> Shared<'a> {
        let (rows, cols) = (weights.rows(), weights.cols());
        assert_eq!(x.cols(), cols, "input of {} columns for weights of {cols}", x.cols());
        assert_eq!(out.len(), x.tokens() * rows, "output for {} tokens of {rows} rows", x.tokens());
        let tiles = weights.tiles();
        // Many tokens make work of fewer weights.
        let tile_bytes = weights.bytes().div_ceil(tiles) * (1 + x.tokens() / 8).min(4);
        let least = TASK_BYTES.div_ceil(tile_bytes);
        let tiles_per_task = least.max(tiles / (TASKS_PER_THREAD * self.threads())).next_multiple_of(TILES);
        let out = OutMatrix::new(out, rows, add);
        Shared { weights, out, tiles_per_task, tasks: tiles.div_ceil(tiles_per_task) }
    }

    fn share(&self, products: &[Shared<'_>], x: &Quantized) {
        if x.tokens() == 0 {
            return;
        }
        self.parallel(products.iter().map(|p| p.tasks).sum(), &|mut task| {
            for product in products {
                if task < product.tasks {
                    return self.run_task(product, x, task);
                }
                task -= product.tasks;
            }
        });
    }

    fn run_task(&self, product: &Shared<'_>, x: &Quantized, task: usize) {
        let first = task * product.tiles_per_task;
        let tiles = first..product.weights.tiles().min(first + product.tiles_per_task);
        debug_assert!(tiles.start * TILE < product.weights.rows());
        // SAFETY: the tasks of a product have different tiles, so different cells of its output, and outputs of
        // different products are different slices.
        unsafe {
            match product.weights.body() {
                Body::Coded(w) => self.kernels().matmul_coded(w, x, tiles, &product.out),
                Body::Float(w) => self.kernels().matmul_float(w, x, tiles, &product.out),
            }
        }
    }
}
