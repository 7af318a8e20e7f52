//! Qwen 3: norms on each head instead of biases, and heads wider than the model's width divided by their number.

use jackfield_kernels::RopeStyle;

use super::{Architecture, Part};

pub(super) static QWEN3: Architecture =
    Architecture { name: "qwen3", rope: RopeStyle::Half, qkv_bias: Part::Never, head_norm: Part::Always };
