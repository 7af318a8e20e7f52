//! Llama 1 to 3, Mistral, SmolLM2 and the many that share their shape.

use jackfield_kernels::RopeStyle;

use super::{Architecture, Part};

pub(super) static LLAMA: Architecture = Architecture {
    name: "llama",
    // Converters permute queries and keys so that pairs lie side by side.
    rope: RopeStyle::Interleaved,
    qkv_bias: Part::Optional,
    head_norm: Part::Never,
};
