//! Operations on single rows and values.

use crate::Cpu;
use crate::shared::Parts;

impl Cpu {
    /// Divides each row of `x` (rows of `weight.len()` values) by its root mean square and multiplies by `weight`.
    /// Panics when `x` is not whole rows or `out` has another length.
    pub fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        let width = weight.len();
        assert_eq!(x.len(), out.len(), "input and output of a norm");
        let rows = whole_rows(x.len(), width);
        let out = Parts::new(out);
        self.for_rows(rows, width, &|rows| {
            for row in rows {
                // SAFETY: each row is visited by one task.
                let out = unsafe { out.slice(row * width, width) };
                self.kernels().rms_norm(&x[row * width..][..width], weight, eps, out);
            }
        });
    }

    /// The same in place, for norms of each head's queries and keys.
    pub fn rms_norm_in_place(&self, x: &mut [f32], weight: &[f32], eps: f32) {
        let width = weight.len();
        let rows = whole_rows(x.len(), width);
        let x = Parts::new(x);
        self.for_rows(rows, width, &|rows| {
            let mut copy = [0.0; 256]; // heads are smaller; wider rows take the other way
            for row in rows {
                // SAFETY: each row is visited by one task.
                let x = unsafe { x.slice(row * width, width) };
                match copy.get_mut(..width) {
                    Some(copy) => {
                        copy.copy_from_slice(x);
                        self.kernels().rms_norm(copy, weight, eps, x);
                    }
                    None => {
                        let copy = x.to_vec();
                        self.kernels().rms_norm(&copy, weight, eps, x);
                    }
                }
            }
        });
    }

    /// gate = silu(gate) · up. Panics when the lengths differ.
    pub fn silu_mul(&self, gate: &mut [f32], up: &[f32]) {
        assert_eq!(gate.len(), up.len(), "gate and up");
        const CHUNK: usize = 1024;
        let (len, chunks) = (gate.len(), gate.len().div_ceil(CHUNK));
        let gate = Parts::new(gate);
        self.for_rows(chunks, CHUNK, &|chunks| {
            let (first, end) = (chunks.start * CHUNK, len.min(chunks.end * CHUNK));
            // SAFETY: the ranges of different tasks do not overlap.
            self.kernels().silu_mul(unsafe { gate.slice(first, end - first) }, &up[first..end]);
        });
    }

    /// out = e^((x - shift) · scale), value by value, in the calling thread. Panics when the lengths differ.
    pub fn exp_scaled(&self, x: &[f32], shift: f32, scale: f32, out: &mut [f32]) {
        assert_eq!(x.len(), out.len(), "input and output");
        self.kernels().exp_scaled(x, shift, scale, out);
    }

    /// Adds `bias` to each row of `x`. Panics when `x` is not whole rows.
    pub fn add_bias(&self, x: &mut [f32], bias: &[f32]) {
        whole_rows(x.len(), bias.len());
        for row in x.chunks_exact_mut(bias.len().max(1)) {
            row.iter_mut().zip(bias).for_each(|(x, bias)| *x += bias);
        }
    }
}

fn whole_rows(values: usize, width: usize) -> usize {
    let rows = values.checked_div(width).unwrap_or(0);
    assert_eq!(rows * width, values, "{values} values are not rows of {width}");
    rows
}

/// Place of the largest value, the first of equals; `None` when there is none that is a number.
pub fn argmax(values: &[f32]) -> Option<usize> {
    // Lane by lane first, which the compiler turns into vectors; `max` passes over NaN.
    let (chunks, rest) = values.as_chunks::<16>();
    let mut lanes = [f32::NEG_INFINITY; 16];
    for chunk in chunks {
        lanes
            .iter_mut()
            .zip(chunk)
            .for_each(|(lane, value)| *lane = if *value > *lane { *value } else { *lane });
    }
    let most = lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max);
    values.iter().position(|value| *value == most)
}

/// Turns scores into probabilities in place. Values of minus infinity become zero; with no finite value at all, nothing
/// changes.
pub fn softmax(values: &mut [f32]) {
    let max = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if !max.is_finite() {
        return;
    }
    let mut sum = 0.0f64;
    for value in values.iter_mut() {
        *value = (*value - max).exp();
        sum += f64::from(*value);
    }
    let inverse = (1.0 / sum) as f32;
    values.iter_mut().for_each(|v| *v *= inverse);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argmax_takes_the_first_and_passes_over_nan() {
        assert_eq!(argmax(&[]), None);
        assert_eq!(argmax(&[f32::NAN]), None);
        assert_eq!(argmax(&[f32::NAN, 1.0, 3.0, 3.0]), Some(2));
        assert_eq!(argmax(&[f32::NEG_INFINITY, f32::NEG_INFINITY]), Some(0));
    }

    #[test]
    fn softmax_sums_to_one_at_any_height() {
        for shift in [-1e4, 0.0, 1e4] {
            let mut values = [1.0, 2.0, f32::NEG_INFINITY, 3.0].map(|v| v + shift);
            softmax(&mut values);
            assert!((values.iter().sum::<f32>() - 1.0).abs() < 1e-6);
            assert_eq!(values[2], 0.0);
            assert!((values[3] / values[1] - 1f32.exp()).abs() < 1e-5);
        }
    }
}
