//! Operations on single rows.

use std::arch::x86_64::*;

use super::exp::{exp, load, store, sum};
use crate::codes;
use crate::cpu::scalar;
use crate::matrix::GROUP;
use crate::outliers;
use crate::quantized::{GroupMeta, Row};

/// The same codes and scales, to the bit, as the scalar reference.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn quantize(x: &[f32], out: &mut Row<'_>) {
    let limit = outliers::limit(x);
    let (groups, rest) = x.as_chunks::<GROUP>();
    for (group, x) in groups.iter().enumerate() {
        out.put(group, x, limit, |x, codes| quantize_group(x, codes));
    }
    if !rest.is_empty() {
        let mut last = [0.0; GROUP];
        last[..rest.len()].copy_from_slice(rest);
        out.put(groups.len(), &last, limit, |x, codes| quantize_group(x, codes));
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn quantize_group(x: &[f32; GROUP], codes: &mut [i8; GROUP]) -> GroupMeta {
    let x: [__m256; 4] = std::array::from_fn(|i| {
        // SAFETY: four times eight floats.
        unsafe { _mm256_loadu_ps(x.as_ptr().add(8 * i)) }
    });
    let (scale, inverse) = scalar::scale_for(largest_bits(x));
    let inverse = _mm256_set1_ps(inverse);
    let whole = x.map(|x| _mm256_cvtps_epi32(_mm256_mul_ps(x, inverse)));
    let short = [_mm256_packs_epi32(whole[0], whole[1]), _mm256_packs_epi32(whole[2], whole[3])];
    // Packing works in halves of the register: put the eight runs of four back in order.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let packed = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(short[0], short[1]), order);
    // SAFETY: the array has 32 bytes.
    unsafe { _mm256_storeu_si256(codes.as_mut_ptr().cast(), packed) }
    let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), packed);
    let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    let twos = _mm256_add_epi32(fours, _mm256_shuffle_epi32::<0b01_00_11_10>(fours));
    let sums = _mm256_add_epi32(twos, _mm256_shuffle_epi32::<0b10_11_00_01>(twos));
    GroupMeta { scale, halves: [_mm256_extract_epi32::<0>(sums), _mm256_extract_epi32::<4>(sums)] }
}

/// The bits of the largest magnitude. As integers, magnitudes are ordered as the numbers are, and NaN is above all.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn largest_bits(x: [__m256; 4]) -> u32 {
    let magnitude = _mm256_set1_epi32(i32::MAX);
    let [a, b, c, d] = x.map(|x| _mm256_and_si256(_mm256_castps_si256(x), magnitude));
    let eight = _mm256_max_epi32(_mm256_max_epi32(a, b), _mm256_max_epi32(c, d));
    let four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
    let two = _mm_max_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two))).cast_unsigned()
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let (eights, rest) = x.as_chunks::<8>();
    let (fours, odd) = eights.as_chunks::<4>();
    let mut squares = [_mm256_setzero_ps(); 4];
    for four in fours {
        for (squares, x) in squares.iter_mut().zip(four) {
            *squares = _mm256_fmadd_ps(load(x), load(x), *squares);
        }
    }
    for x in odd {
        squares[0] = _mm256_fmadd_ps(load(x), load(x), squares[0]);
    }
    let squares = _mm256_add_ps(_mm256_add_ps(squares[0], squares[1]), _mm256_add_ps(squares[2], squares[3]));
    let total = sum(squares) + rest.iter().map(|x| x * x).sum::<f32>();
    let factor = 1.0 / (total / x.len() as f32 + eps).sqrt();
    let done = 8 * eights.len();
    let (weights, outs) = (weight.as_chunks::<8>().0, out.as_chunks_mut::<8>().0);
    for ((x, weight), out) in eights.iter().zip(weights).zip(outs) {
        store(out, _mm256_mul_ps(_mm256_mul_ps(load(x), _mm256_set1_ps(factor)), load(weight)));
    }
    for ((out, x), weight) in out[done..].iter_mut().zip(rest).zip(&weight[done..]) {
        *out = x * factor * weight;
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn silu_mul(gate: &mut [f32], up: &[f32]) {
    let (gates, gate_rest) = gate.as_chunks_mut::<8>();
    let (ups, up_rest) = up.as_chunks::<8>();
    for (gate, up) in gates.iter_mut().zip(ups) {
        store(gate, silu_mul_eight(load(gate), load(up)));
    }
    // The rest goes through the same instructions, so that a value does not depend on its place.
    let (mut gate, mut up) = ([0.0; 8], [0.0; 8]);
    gate[..gate_rest.len()].copy_from_slice(gate_rest);
    up[..up_rest.len()].copy_from_slice(up_rest);
    let products = silu_mul_eight(load(&gate), load(&up));
    store(&mut gate, products);
    let len = gate_rest.len();
    gate_rest.copy_from_slice(&gate[..len]);
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn silu_mul_eight(gate: __m256, up: __m256) -> __m256 {
    let e = exp(_mm256_sub_ps(_mm256_setzero_ps(), gate));
    _mm256_mul_ps(_mm256_div_ps(gate, _mm256_add_ps(e, _mm256_set1_ps(1.0))), up)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn exp_scaled(x: &[f32], shift: f32, scale: f32, out: &mut [f32]) {
    let (eights, rest) = x.as_chunks::<8>();
    let (outs, out_rest) = out.as_chunks_mut::<8>();
    for (x, out) in eights.iter().zip(outs) {
        let x = _mm256_sub_ps(load(x), _mm256_set1_ps(shift));
        store(out, exp(_mm256_mul_ps(x, _mm256_set1_ps(scale))));
    }
    scalar::exp_scaled(rest, shift, scale, out_rest);
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn rotate_halves(low: &mut [f32], high: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (lows, low_rest) = low.as_chunks_mut::<8>();
    let (highs, high_rest) = high.as_chunks_mut::<8>();
    let (coss, cos_rest) = cos.as_chunks::<8>();
    let (sins, sin_rest) = sin.as_chunks::<8>();
    for (((low, high), cos), sin) in lows.iter_mut().zip(highs).zip(coss).zip(sins) {
        let (a, b, cos, sin) = (load(low), load(high), load(cos), load(sin));
        store(low, _mm256_fmsub_ps(a, cos, _mm256_mul_ps(b, sin)));
        store(high, _mm256_fmadd_ps(a, sin, _mm256_mul_ps(b, cos)));
    }
    scalar::rotate_halves(low_rest, high_rest, cos_rest, sin_rest);
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn rotate_pairs(x: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (eights, rest) = x.as_chunks_mut::<8>();
    let (coss, cos_rest) = cos.as_chunks::<4>();
    let (sins, sin_rest) = sin.as_chunks::<4>();
    for ((x, cos), sin) in eights.iter_mut().zip(coss).zip(sins) {
        let both = load(x);
        let swapped = _mm256_permute_ps::<0b10_11_00_01>(both);
        store(x, _mm256_fmaddsub_ps(both, twice(cos), _mm256_mul_ps(swapped, twice(sin))));
    }
    scalar::rotate_pairs(rest, cos_rest, sin_rest);
}

/// Each of four numbers twice.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn twice(four: &[f32; 4]) -> __m256 {
    // SAFETY: four floats.
    let four = unsafe { _mm_loadu_ps(four.as_ptr()) };
    _mm256_permutevar8x32_ps(_mm256_castps128_ps256(four), _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3))
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn to_half(from: &[f32], to: &mut [u16]) {
    let (froms, from_rest) = from.as_chunks::<8>();
    let (tos, to_rest) = to.as_chunks_mut::<8>();
    for (from, to) in froms.iter().zip(tos) {
        let halves = _mm256_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(load(from));
        // SAFETY: eight numbers of 16 bits.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), halves) }
    }
    scalar::to_half(from_rest, to_rest);
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn largest(x: &[f32]) -> f32 {
    codes::largest(x)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn to_codes(x: &[f32], scale: f32, to: &mut [i8]) {
    codes::put(x, scale, to);
}
