//! The table of architectures. A new one is a file and a row, as long as it is a decoder of this family:
//! RMS norms, rotary positions, grouped attention, a gated feed-forward.

mod llama;
mod qwen2;
mod qwen3;

use jackfield_kernels::RopeStyle;

/// Whether a layer has a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Where the file has its tensors.
    Optional,
    /// In every layer.
    Always,
    /// In none: tensors of it are refused as unknown.
    Never,
}

/// What sets one architecture apart.
#[derive(Debug)]
pub(crate) struct Architecture {
    /// Value of `general.architecture`, and prefix of the other keys.
    pub(crate) name: &'static str,
    /// Which dimensions of a head turn together in files of this architecture.
    pub(crate) rope: RopeStyle,
    /// Biases on queries, keys and values (and, where optional, on the attention's output).
    pub(crate) qkv_bias: Part,
    /// RMS norms over each head's queries and keys.
    pub(crate) head_norm: Part,
}

static TABLE: &[&Architecture] = &[&llama::LLAMA, &qwen2::QWEN2, &qwen3::QWEN3];

/// The row of an architecture.
pub(crate) fn find(name: &str) -> Option<&'static Architecture> {
    TABLE.iter().copied().find(|row| row.name == name)
}

/// All names, for the error that lists them.
pub(crate) fn known() -> String {
    TABLE.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
}
