//! The K types: 256 values in a block, sub-blocks of 16 or 32 with small integer scales under one or two 16-bit floats.

use super::unpack::{Unpacked, float};

/// Walks the 16 sub-blocks of 16 of Q2_K and Q3_K: calls back with value index and the place of its two bits, as
/// (half of the block, shift, byte within the half).
fn two_bit_places(mut each: impl FnMut(usize, usize, usize, usize)) {
    for half in 0..2 {
        for shift in 0..4 {
            for byte in 0..32 {
                each(half * 128 + shift * 32 + byte, half, shift, byte);
            }
        }
    }
}

pub(super) fn q2(block: &[u8], out: &mut Unpacked) {
    let (scales, rest) = block.split_at(16);
    let (scale, min) = (float(block, 80), float(block, 82));
    for (j, packed) in scales.iter().enumerate() {
        out.scales[j] = scale * f32::from(packed & 15);
        out.mins[j] = -(min * f32::from(packed >> 4));
    }
    two_bit_places(|value, half, shift, byte| {
        out.codes[value] = rest[half * 32 + byte] >> (2 * shift) & 3;
    });
}

pub(super) fn q3(block: &[u8], out: &mut Unpacked) {
    let (high, rest) = block.split_at(32);
    let (low, rest) = rest.split_at(64);
    let scale = float(block, 108);
    for j in 0..16 {
        let four = if j < 8 { rest[j] & 15 } else { rest[j - 8] >> 4 };
        let two = rest[8 + j % 4] >> (2 * (j / 4)) & 3;
        out.scales[j] = scale * (f32::from(four | two << 4) - 32.0);
    }
    two_bit_places(|value, half, shift, byte| {
        let third = high[byte] >> (half * 4 + shift) & 1;
        out.codes[value] = (low[half * 32 + byte] >> (2 * shift) & 3) | third << 2;
    });
}

/// Scales and minima of Q4_K and Q5_K: eight pairs of 6 bits in twelve bytes, under two floats.
fn eight_pairs(block: &[u8], out: &mut Unpacked) {
    let (scale, min) = (float(block, 0), float(block, 2));
    let packed = &block[4..16];
    for j in 0..8 {
        let (s, m) = if j < 4 {
            (packed[j] & 63, packed[j + 4] & 63)
        } else {
            (packed[j + 4] & 15 | packed[j - 4] >> 6 << 4, packed[j + 4] >> 4 | packed[j] >> 6 << 4)
        };
        out.scales[j] = scale * f32::from(s);
        out.mins[j] = -(min * f32::from(m));
    }
}

pub(super) fn q4(block: &[u8], out: &mut Unpacked) {
    eight_pairs(block, out);
    for (j, byte) in block[16..144].iter().enumerate() {
        let (pair, k) = (j / 32, j % 32);
        out.codes[pair * 64 + k] = byte & 15;
        out.codes[pair * 64 + 32 + k] = byte >> 4;
    }
}

pub(super) fn q5(block: &[u8], out: &mut Unpacked) {
    eight_pairs(block, out);
    let (high, low) = (&block[16..48], &block[48..176]);
    for (j, byte) in low.iter().enumerate() {
        let (pair, k) = (j / 32, j % 32);
        out.codes[pair * 64 + k] = byte & 15 | (high[k] >> (2 * pair) & 1) << 4;
        out.codes[pair * 64 + 32 + k] = byte >> 4 | (high[k] >> (2 * pair + 1) & 1) << 4;
    }
}

pub(super) fn q6(block: &[u8], out: &mut Unpacked) {
    let (low, rest) = block.split_at(128);
    let (high, scales) = rest.split_at(64);
    let scale = float(block, 208);
    for (j, packed) in scales[..16].iter().enumerate() {
        out.scales[j] = scale * f32::from(packed.cast_signed());
    }
    for half in 0..2 {
        for k in 0..32 {
            let (a, b, top) = (low[half * 64 + k], low[half * 64 + 32 + k], high[half * 32 + k]);
            let at = half * 128 + k;
            out.codes[at] = a & 15 | (top & 3) << 4;
            out.codes[at + 32] = b & 15 | (top >> 2 & 3) << 4;
            out.codes[at + 64] = a >> 4 | (top >> 4 & 3) << 4;
            out.codes[at + 96] = b >> 4 | (top >> 6) << 4;
        }
    }
}
