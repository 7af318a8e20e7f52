//! Qwen 1.5, 2 and 2.5.

use jackfield_kernels::RopeStyle;

use super::{Architecture, Part};

pub(super) static QWEN2: Architecture =
    Architecture { name: "qwen2", rope: RopeStyle::Half, qkv_bias: Part::Always, head_norm: Part::Never };
