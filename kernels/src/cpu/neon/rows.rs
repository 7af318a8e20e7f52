//! Operations on single rows.

use std::arch::aarch64::*;

use super::eight::Eight;
use crate::cpu::scalar;
use crate::matrix::GROUP;
use crate::outliers;
use crate::quantized::{GroupMeta, Row};

/// The same codes and scales, to the bit, as the scalar reference.
pub(super) fn quantize(x: &[f32], out: &mut Row<'_>) {
    let limit = outliers::limit(x);
    let (groups, rest) = x.as_chunks::<GROUP>();
    for (group, x) in groups.iter().enumerate() {
        out.put(group, x, limit, quantize_group);
    }
    if !rest.is_empty() {
        let mut last = [0.0; GROUP];
        last[..rest.len()].copy_from_slice(rest);
        out.put(groups.len(), &last, limit, quantize_group);
    }
}

#[inline]
fn quantize_group(x: &[f32; GROUP], codes: &mut [i8; GROUP]) -> GroupMeta {
    // SAFETY: NEON is part of the target; eight times four floats are read, and twice 16 codes written.
    unsafe {
        let x: [float32x4_t; 8] = std::array::from_fn(|i| vld1q_f32(x.as_ptr().add(4 * i)));
        // As integers, magnitudes are ordered as the numbers are, and NaN is above all.
        let bits = x.map(|x| vreinterpretq_u32_f32(vabsq_f32(x)));
        let largest = bits.into_iter().fold(vdupq_n_u32(0), |m, b| vmaxq_u32(m, b));
        let (scale, inverse) = scalar::scale_for(vmaxvq_u32(largest));
        let whole = x.map(|x| vcvtnq_s32_f32(vmulq_n_f32(x, inverse)));
        let short = |i: usize| vcombine_s16(vqmovn_s32(whole[i]), vqmovn_s32(whole[i + 1]));
        let half = |i: usize| vcombine_s8(vqmovn_s16(short(i)), vqmovn_s16(short(i + 2)));
        let halves = [half(0), half(4)];
        vst1q_s8(codes.as_mut_ptr(), halves[0]);
        vst1q_s8(codes.as_mut_ptr().add(16), halves[1]);
        GroupMeta { scale, halves: halves.map(|half| i32::from(vaddlvq_s8(half))) }
    }
}

pub(super) fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let (eights, rest) = x.as_chunks::<8>();
    let (fours, odd) = eights.as_chunks::<4>();
    let mut squares = [Eight::splat(0.0); 4];
    for four in fours {
        for (squares, x) in squares.iter_mut().zip(four) {
            *squares = squares.add_product(Eight::load(x), Eight::load(x));
        }
    }
    for x in odd {
        squares[0] = squares[0].add_product(Eight::load(x), Eight::load(x));
    }
    let squares = squares[0].add(squares[1]).add(squares[2].add(squares[3]));
    let total = squares.sum() + rest.iter().map(|x| x * x).sum::<f32>();
    let factor = 1.0 / (total / x.len() as f32 + eps).sqrt();
    let done = 8 * eights.len();
    let (weights, outs) = (weight.as_chunks::<8>().0, out.as_chunks_mut::<8>().0);
    for ((x, weight), out) in eights.iter().zip(weights).zip(outs) {
        Eight::load(x).mul(Eight::splat(factor)).mul(Eight::load(weight)).store(out);
    }
    for ((out, x), weight) in out[done..].iter_mut().zip(rest).zip(&weight[done..]) {
        *out = x * factor * weight;
    }
}

pub(super) fn silu_mul(gate: &mut [f32], up: &[f32]) {
    let (gates, gate_rest) = gate.as_chunks_mut::<8>();
    let (ups, up_rest) = up.as_chunks::<8>();
    for (gate, up) in gates.iter_mut().zip(ups) {
        silu_mul_eight(Eight::load(gate), Eight::load(up)).store(gate);
    }
    // The rest goes through the same instructions, so that a value does not depend on its place.
    let (mut gate, mut up) = ([0.0; 8], [0.0; 8]);
    gate[..gate_rest.len()].copy_from_slice(gate_rest);
    up[..up_rest.len()].copy_from_slice(up_rest);
    silu_mul_eight(Eight::load(&gate), Eight::load(&up)).store(&mut gate);
    let len = gate_rest.len();
    gate_rest.copy_from_slice(&gate[..len]);
}

#[inline]
fn silu_mul_eight(gate: Eight, up: Eight) -> Eight {
    let e = Eight::splat(0.0).sub(gate).exp();
    gate.div(e.add(Eight::splat(1.0))).mul(up)
}

pub(super) fn rotate_halves(low: &mut [f32], high: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (lows, low_rest) = low.as_chunks_mut::<8>();
    let (highs, high_rest) = high.as_chunks_mut::<8>();
    let (coss, cos_rest) = cos.as_chunks::<8>();
    let (sins, sin_rest) = sin.as_chunks::<8>();
    for (((low, high), cos), sin) in lows.iter_mut().zip(highs).zip(coss).zip(sins) {
        let (a, b, cos, sin) = (Eight::load(low), Eight::load(high), Eight::load(cos), Eight::load(sin));
        a.mul(cos).sub_product(b, sin).store(low);
        b.mul(cos).add_product(a, sin).store(high);
    }
    scalar::rotate_halves(low_rest, high_rest, cos_rest, sin_rest);
}

pub(super) fn rotate_pairs(x: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (eights, rest) = x.as_chunks_mut::<8>();
    let (coss, cos_rest) = cos.as_chunks::<4>();
    let (sins, sin_rest) = sin.as_chunks::<4>();
    for ((x, cos), sin) in eights.iter_mut().zip(coss).zip(sins) {
        // SAFETY: NEON is part of the target; four angles and four pairs are there.
        unsafe {
            let (cos, sin) = (vld1q_f32(cos.as_ptr()), vld1q_f32(sin.as_ptr()));
            let float32x4x2_t(a, b) = vld2q_f32(x.as_ptr());
            let turned =
                float32x4x2_t(vfmsq_f32(vmulq_f32(a, cos), b, sin), vfmaq_f32(vmulq_f32(b, cos), a, sin));
            vst2q_f32(x.as_mut_ptr(), turned);
        }
    }
    scalar::rotate_pairs(rest, cos_rest, sin_rest);
}

pub(super) fn to_half(from: &[f32], to: &mut [u16]) {
    let (froms, from_rest) = from.as_chunks::<8>();
    let (tos, to_rest) = to.as_chunks_mut::<8>();
    for (from, to) in froms.iter().zip(tos) {
        Eight::load(from).store_half(to);
    }
    scalar::to_half(from_rest, to_rest);
}
