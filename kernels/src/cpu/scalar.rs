//! Plain Rust: what every other instruction set is held to. Written to be read, not to be fast.

use std::ops::Range;

use half::f16;

use super::kernels::{Attend, Kernels, Keys};
use crate::Isa;
use crate::ggml::{Store, Zero};
use crate::matrix::{Coded, FloatRows, GROUP, TILE, code_of, group_codes, group_scales, scale_of};
use crate::outliers::{self, FOUR};
use crate::quantized::{GroupMeta, Number, Quantized, Row};
use crate::shared::OutMatrix;

pub(super) struct Scalar;

impl Kernels for Scalar {
    fn isa(&self) -> Isa {
        Isa::Scalar
    }
}

pub(super) fn quantize(x: &[f32], out: &mut Row<'_>) {
    let limit = outliers::limit(x);
    for (group, x) in x.chunks(GROUP).enumerate() {
        let mut whole = [0.0; GROUP];
        whole[..x.len()].copy_from_slice(x);
        out.put(group, &whole, limit, quantize_group);
    }
}

fn quantize_group(x: &[f32; GROUP], codes: &mut [i8; GROUP]) -> GroupMeta {
    let largest = x.iter().fold(0, |m, v| v.abs().to_bits().max(m));
    let (scale, inverse) = scale_for(largest);
    for (code, x) in codes.iter_mut().zip(x) {
        *code = (x * inverse).round_ties_even() as i8;
    }
    let sum = |codes: &[i8]| codes.iter().map(|c| i32::from(*c)).sum();
    GroupMeta { scale, halves: [sum(&codes[..GROUP / 2]), sum(&codes[GROUP / 2..])] }
}

/// The scale of a group and its inverse, from the bits of its largest magnitude. Where the inverse would be infinite the
/// group is zero. NaN gives NaN, so that it shows in the result.
pub(super) fn scale_for(largest: u32) -> (f32, f32) {
    let scale = f32::from_bits(largest) / 127.0;
    if scale < f32::MIN_POSITIVE { (0.0, 0.0) } else { (scale, 1.0 / scale) }
}

/// One group of a tile, taken apart: `[column, row]` codes.
type GroupCodes = [[i32; TILE]; GROUP];

fn codes_of(store: Store, codes: &[u8]) -> GroupCodes {
    std::array::from_fn(|k| {
        std::array::from_fn(|lane| match (store, code_of(store, codes, lane, k)) {
            (Store::Signed, code) => i32::from(code.cast_signed()),
            (_, code) => i32::from(code),
        })
    })
}

/// # Safety
/// No other task may use the cells of these tiles at the same time.
pub(super) unsafe fn matmul_coded(w: &Coded, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
    let (coding, groups, tokens) = (w.coding(), w.groups(), x.tokens());
    let mut sums = vec![[0.0f32; TILE]; tokens];
    for tile in tiles {
        sums.fill([0.0; TILE]);
        for group in 0..groups {
            let at = tile * groups + group;
            let codes = codes_of(coding.store, &w.codes()[at * group_codes(coding)..][..group_codes(coding)]);
            let scales = &w.scales()[at * group_scales(coding)..][..group_scales(coding)];
            for (token, sums) in sums.iter_mut().enumerate() {
                let (x, number) = x.group(token, group);
                let scale = f32::from_bits(number(Number::Scale, 0));
                for first in (0..GROUP).step_by(coding.group) {
                    let x_sum = match coding.group {
                        GROUP => number(Number::Sum, 0),
                        _ => number(Number::HalfSum, first / coding.group),
                    };
                    add_group(&codes, scales, w, x, (scale, f32::from_bits(x_sum)), first, sums);
                }
            }
        }
        for (token, sums) in sums.iter_mut().enumerate() {
            for (column, values) in x.outliers().around(token) {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    *sum += values[token % FOUR] * w.value(tile, lane, column);
                }
            }
            // SAFETY: the caller's promise.
            put(unsafe { out.eight(token, tile * TILE) }, sums, out.adds());
        }
    }
}

/// Adds the products of the sub-group that begins at column `first`.
fn add_group(
    codes: &GroupCodes,
    scales: &[u16],
    w: &Coded,
    x: &[i8],
    (x_scale, x_sum): (f32, f32),
    first: usize,
    sums: &mut [f32; TILE],
) {
    let coding = w.coding();
    for (lane, sum) in sums.iter_mut().enumerate() {
        let products: i32 = (first..first + coding.group).map(|k| codes[k][lane] * i32::from(x[k])).sum();
        let (scale, min) = scale_of(coding, scales, lane, first);
        let min = match coding.zero {
            Zero::Offset(offset) => -(scale * f32::from(offset)),
            Zero::Stored => min,
        };
        *sum += scale * x_scale * products as f32 + min * x_sum;
    }
}

/// # Safety
/// As for `matmul_coded`.
pub(super) unsafe fn matmul_float(w: &FloatRows, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
    let cols = w.cols();
    for tile in tiles {
        for token in 0..x.tokens() {
            let mut sums = [0.0f32; TILE];
            let (floats, width) = x.floats_from(token);
            for (k, x) in floats.iter().step_by(width).enumerate() {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    *sum += x * w.at((tile * cols + k) * TILE + lane);
                }
            }
            // SAFETY: the caller's promise.
            put(unsafe { out.eight(token, tile * TILE) }, &sums, out.adds());
        }
    }
}

/// Writes or adds as many sums as there are cells.
pub(super) fn put(cells: &mut [f32], sums: &[f32], add: bool) {
    for (cell, sum) in cells.iter_mut().zip(sums) {
        *cell = if add { *cell + sum } else { *sum };
    }
}

pub(super) fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let squares: f64 = x.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
    let factor = 1.0 / ((squares / x.len() as f64) as f32 + eps).sqrt();
    for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
        *out = x * factor * weight;
    }
}

pub(super) fn silu_mul(gate: &mut [f32], up: &[f32]) {
    for (gate, up) in gate.iter_mut().zip(up) {
        *gate = *gate / (1.0 + (-*gate).exp()) * up;
    }
}

pub(super) fn rotate_halves(low: &mut [f32], high: &mut [f32], cos: &[f32], sin: &[f32]) {
    for (((low, high), cos), sin) in low.iter_mut().zip(high).zip(cos).zip(sin) {
        (*low, *high) = (*low * cos - *high * sin, *low * sin + *high * cos);
    }
}

pub(super) fn rotate_pairs(x: &mut [f32], cos: &[f32], sin: &[f32]) {
    for (([a, b], cos), sin) in x.as_chunks_mut::<2>().0.iter_mut().zip(cos).zip(sin) {
        (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
    }
}

pub(super) fn to_half(from: &[f32], to: &mut [u16]) {
    for (from, to) in from.iter().zip(to) {
        *to = f16::from_f32(*from).to_bits();
    }
}

pub(super) fn exp_scaled(x: &[f32], shift: f32, scale: f32, out: &mut [f32]) {
    out.iter_mut().zip(x).for_each(|(out, x)| *out = ((x - shift) * scale).exp());
}

pub(super) fn attend(keys: &Keys<'_, u16>, state: &mut Attend<'_>) {
    let planes = &keys.planes;
    let (dim, q) = (planes.dim, state.q.floats);
    let half = |bits: u16| f16::from_bits(bits).to_f32();
    let score = |query: usize, block: u32, at: usize| {
        let k = planes.k(block);
        let q = q[query * dim..][..dim].iter().enumerate();
        q.map(|(d, q)| q * half(k[d * planes.pitch + at])).sum()
    };
    let add = |block: u32, at: usize, weight: f32, acc: &mut [f32]| {
        let v = &planes.v(block)[at * dim..][..dim];
        acc.iter_mut().zip(v).for_each(|(acc, v)| *acc += weight * half(*v));
    };
    attend_by(keys, state, score, add);
}

pub(super) fn attend_codes(keys: &Keys<'_, i8>, state: &mut Attend<'_>) {
    let planes = &keys.planes;
    let (dim, q) = (planes.dim, state.q);
    let half = |bits: u16| f16::from_bits(bits).to_f32();
    let score = |query: usize, block: u32, at: usize| {
        let k = planes.k(block);
        let k = |d: usize| i32::from(k[(d / 4 * planes.pitch + at) * 4 + d % 4]);
        let codes = q.codes[query * dim..][..dim].iter().enumerate();
        let products: i32 = codes.map(|(d, q)| i32::from(*q) * k(d)).sum();
        products as f32 * (half(planes.k_scales(block)[at]) * q.metas[query].scale)
    };
    let add = |block: u32, at: usize, weight: f32, acc: &mut [f32]| {
        let weight = weight * half(planes.v_scales(block)[at]);
        let v = &planes.v(block)[at * dim..][..dim];
        acc.iter_mut().zip(v).for_each(|(acc, v)| *acc += weight * f32::from(*v));
    };
    attend_by(keys, state, score, add);
}

/// Attention with the `score` of (query, block, place) and a way to `add` the value of (block, place), weighted.
fn attend_by<T>(
    keys: &Keys<'_, T>,
    state: &mut Attend<'_>,
    score: impl Fn(usize, u32, usize) -> f32,
    add: impl Fn(u32, usize, f32, &mut [f32]),
) {
    let (dim, block_size) = (keys.planes.dim, keys.planes.block_size);
    for (query, visible) in state.visible.iter().enumerate() {
        let acc = &mut state.acc[query * dim..][..dim];
        let scores = &mut state.scores[..*visible as usize];
        for (position, to) in scores.iter_mut().enumerate() {
            *to = score(query, keys.blocks[position / block_size], position % block_size);
        }
        let max = scores.iter().fold(state.max[query], |m, s| m.max(*s));
        if max == f32::NEG_INFINITY {
            continue; // nothing seen yet, and nothing here
        }
        let shrink = (state.max[query] - max).exp();
        state.max[query] = max;
        state.sum[query] *= shrink;
        acc.iter_mut().for_each(|a| *a *= shrink);
        for (position, score) in scores.iter().enumerate() {
            let weight = (score - max).exp();
            state.sum[query] += weight;
            add(keys.blocks[position / block_size], position % block_size, weight, acc);
        }
    }
}
