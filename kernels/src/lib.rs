//! Compute kernels behind safe slices.
//!
//! Weights come in as GGML blocks and are repacked once into native layouts ([`Matrix`]); activations are
//! quantised once per input ([`Quantized`]); keys and values live in blocks ([`KvArena`]) that attention reads
//! through block tables. [`Cpu`] owns the threads and the instruction set and has one method per operation.
//!
//! What holds everywhere:
//! - One row of a result depends on that row's input alone, bit for bit: not on how many other rows are in the
//!   batch, not on the number of threads, not on how a prompt was cut into chunks.
//! - No method reads a clock, the environment or a file, and none keeps global state.
//! - Sizes are checked at the door. A wrong size is a bug in the caller and panics with both numbers; whatever
//!   depends on a model file is an error instead ([`KernelError`]).

mod aligned;
mod attention;
mod codes;
mod cores;
mod cpu;
mod elementwise;
mod error;
mod ggml;
mod kv;
mod matmul;
mod matrix;
mod outliers;
mod pool;
mod presence;
mod quantized;
mod rope;
mod shared;

pub use cpu::{Cpu, Isa};
pub use elementwise::{argmax, softmax};
pub use error::KernelError;
pub use ggml::{GgmlType, dequantize};
pub use kv::{KvArena, KvShape, KvSpan, KvStore, KvType};
pub use matmul::Projection;
pub use matrix::Matrix;
pub use quantized::Quantized;
pub use rope::{Angles, Rope, RopeStyle};
