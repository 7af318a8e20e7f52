//! Random inputs that are the same in every run.

#![allow(dead_code, unreachable_pub)] // each test uses its part

use jackfield_kernels::GgmlType;

/// A small generator (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Between -1 and 1.
    pub fn float(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    pub fn floats(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.float()).collect()
    }

    /// The same, but one of some fifty is up to forty times as large.
    pub fn activations(&mut self, len: usize) -> Vec<f32> {
        let times = |it: usize| if it == 0 { 40.0 } else { 1.0 };
        (0..len).map(|_| times(self.below(50)) * self.float()).collect()
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }
}

/// All of these; the first few under an interpreter, which takes a thousand times as long.
pub fn few<T>(all: &[T], interpreted: usize) -> &[T] {
    if cfg!(miri) { &all[..interpreted] } else { all }
}

/// Blocks of random codes with scales of an ordinary size.
pub fn weights(random: &mut Random, ty: GgmlType, values: usize) -> Vec<u8> {
    let len = ty.bytes_for(values).expect("whole blocks");
    let mut bytes: Vec<u8> = match ty {
        GgmlType::F32 => random.floats(values).iter().flat_map(|v| v.to_le_bytes()).collect(),
        GgmlType::F16 => {
            random.floats(values).iter().flat_map(|v| half::f16::from_f32(*v).to_le_bytes()).collect()
        }
        GgmlType::BF16 => {
            random.floats(values).iter().flat_map(|v| half::bf16::from_f32(*v).to_le_bytes()).collect()
        }
        _ => (0..len).map(|_| random.bits() as u8).collect(),
    };
    put_scales(ty, &mut bytes, || random.float() / 64.0);
    bytes
}

/// Writes 16-bit floats to where blocks of a quantised type have them.
pub fn put_scales(ty: GgmlType, bytes: &mut [u8], mut scale: impl FnMut() -> f32) {
    use GgmlType::*;
    let places: &[usize] = match ty {
        F32 | F16 | BF16 => return,
        Q4_0 | Q5_0 | Q8_0 => &[0],
        Q4_1 | Q5_1 | Q4K | Q5K => &[0, 2],
        Q2K => &[80, 82],
        Q3K => &[108],
        Q6K => &[208],
    };
    for block in bytes.chunks_exact_mut(ty.block_bytes()) {
        for at in places {
            block[*at..at + 2].copy_from_slice(&half::f16::from_f32(scale()).to_le_bytes());
        }
    }
}
