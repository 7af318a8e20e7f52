//! Any supported type as plain numbers: the scalar reference.

use half::{bf16, f16};

use super::{Coding, GgmlType, Unpacked, unpacker};
use crate::KernelError;

/// Writes the values of `bytes` to `out`, exactly as GGML defines them. `bytes` must hold exactly `out.len()`
/// values: [`KernelError::RaggedRow`] when they are not whole blocks, [`KernelError::WrongBytes`] otherwise.
pub fn dequantize(ty: GgmlType, bytes: &[u8], out: &mut [f32]) -> Result<(), KernelError> {
    let values = out.len();
    let ragged = KernelError::RaggedRow { ty, cols: values, block: ty.block_elems() };
    let expected = ty.bytes_for(values).ok_or(ragged)?;
    if bytes.len() != expected {
        return Err(KernelError::WrongBytes { ty, values, expected, found: bytes.len() });
    }
    match ty {
        GgmlType::F32 => floats(bytes, out, f32::from_le_bytes),
        GgmlType::F16 => floats(bytes, out, |b| f16::from_le_bytes(b).to_f32()),
        GgmlType::BF16 => floats(bytes, out, |b| bf16::from_le_bytes(b).to_f32()),
        _ => blocks(ty, bytes, out),
    }
    Ok(())
}

fn floats<const N: usize>(bytes: &[u8], out: &mut [f32], read: impl Fn([u8; N]) -> f32) {
    for (value, bytes) in out.iter_mut().zip(bytes.as_chunks::<N>().0) {
        *value = read(*bytes);
    }
}

fn blocks(ty: GgmlType, bytes: &[u8], out: &mut [f32]) {
    let (Some(coding), Some(unpack)) = (Coding::of(ty), unpacker(ty)) else { return };
    let mut block = Unpacked::new();
    for (bytes, out) in bytes.chunks_exact(ty.block_bytes()).zip(out.chunks_exact_mut(ty.block_elems())) {
        unpack(bytes, &mut block);
        for (k, value) in out.iter_mut().enumerate() {
            let group = k / coding.group;
            *value = coding.value(block.codes[k], block.scales[group], block.mins[group]);
        }
    }
}
