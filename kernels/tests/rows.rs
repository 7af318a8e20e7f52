//! Norms, rotations, activations: every instruction set against 64-bit arithmetic.

mod common;

use std::sync::Arc;

use common::{Random, few};
use jackfield_kernels::{Angles, Cpu, Isa, Rope, RopeStyle};

fn cpus() -> Vec<Arc<Cpu>> {
    Isa::ALL.into_iter().filter_map(|isa| Cpu::with_isa(3, isa).ok()).collect()
}

fn close(got: &[f32], want: impl IntoIterator<Item = f64>, tolerance: f64) {
    for (place, (got, want)) in got.iter().zip(want).enumerate() {
        assert!(
            (f64::from(*got) - want).abs() <= tolerance * want.abs().max(1.0),
            "{place}: {got} for {want}"
        );
    }
}

#[test]
fn rms_norm() {
    let mut random = Random(20);
    for cpu in cpus() {
        for &(rows, width) in few(&[(3, 7), (1, 1), (5, 64), (1, 576), (2, 300), (200, 576)], 3) {
            let (x, weight) = (random.floats(rows * width), random.floats(width));
            let mut out = vec![f32::NAN; x.len()];
            cpu.rms_norm(&x, &weight, 1e-5, &mut out);
            let want = x.chunks(width).flat_map(|row| {
                let mean = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / width as f64;
                row.iter()
                    .zip(&weight)
                    .map(move |(x, w)| f64::from(*x) / (mean + 1e-5).sqrt() * f64::from(*w))
            });
            close(&out, want, 1e-6);
            let mut same = x.clone();
            cpu.rms_norm_in_place(&mut same, &weight, 1e-5);
            assert_eq!(same, out);
        }
    }
}

#[test]
fn silu_mul_and_bias() {
    let mut random = Random(21);
    for cpu in cpus() {
        for &len in few(&[1, 8, 13, 1536, 100_003], 3) {
            let gate: Vec<f32> = random.floats(len).iter().map(|v| v * 100.0).collect();
            let up = random.floats(len);
            let mut out = gate.clone();
            cpu.silu_mul(&mut out, &up);
            let want = gate.iter().zip(&up).map(|(g, u)| {
                let g = f64::from(*g);
                g / (1.0 + (-g).exp()) * f64::from(*u)
            });
            close(&out, want, 1e-6);
        }
        let mut x = vec![1.0; 6];
        cpu.add_bias(&mut x, &[1.0, 2.0, 3.0]);
        assert_eq!(x, [2.0, 3.0, 4.0, 2.0, 3.0, 4.0]);
        cpu.add_bias(&mut [], &[1.0]);
    }
}

#[test]
fn exp_scaled() {
    let mut random = Random(23);
    for cpu in cpus() {
        for &len in few(&[1, 8, 15, 49_152], 3) {
            let x: Vec<f32> = random.floats(len).iter().map(|v| v * 30.0).collect();
            let (shift, scale) = (12.5, 0.7);
            let mut out = vec![f32::NAN; len];
            cpu.exp_scaled(&x, shift, scale, &mut out);
            for (x, out) in x.iter().zip(out) {
                // The exponent itself is rounded to 32 bits.
                let want = ((f64::from(*x) - 12.5) * f64::from(scale)).exp();
                assert!((f64::from(out) - want).abs() <= 1e-5 * want, "{x}: {out} for {want}");
            }
        }
        let mut out = [9.0; 2];
        cpu.exp_scaled(&[f32::NEG_INFINITY, 1.0], 1.0, 2.0, &mut out);
        assert_eq!(out, [0.0, 1.0]);
    }
}

/// The rotation of one pair by its definition.
fn turned(a: f32, b: f32, angle: f64) -> (f64, f64) {
    let (sin, cos) = angle.sin_cos();
    let (a, b) = (f64::from(a), f64::from(b));
    (a * cos - b * sin, a * sin + b * cos)
}

#[test]
fn rope_turns_pairs() {
    let mut random = Random(22);
    let positions = [0, 1, 77, 8191, 131_071];
    for cpu in cpus() {
        for (head_dim, rotary) in [(64, 64), (64, 32), (10, 6), (128, 128)] {
            for style in [RopeStyle::Interleaved, RopeStyle::Half] {
                let pairs = rotary / 2;
                let factors: Vec<f32> = (0..pairs).map(|i| 1.0 + i as f32).collect();
                let rope = Rope::new(style, rotary, 10_000.0, 0.5, Some(&factors)).unwrap();
                let x = random.floats(positions.len() * 3 * head_dim);
                let mut out = x.clone();
                cpu.rope(&mut out, 3, head_dim, &positions, &rope);
                for (index, (x, out)) in x.chunks(head_dim).zip(out.chunks(head_dim)).enumerate() {
                    assert_eq!(x[rotary..], out[rotary..]);
                    for (pair, factor) in factors.iter().enumerate() {
                        let (i, j) = match style {
                            RopeStyle::Interleaved => (2 * pair, 2 * pair + 1),
                            RopeStyle::Half => (pair, pair + pairs),
                        };
                        let speed =
                            0.5 * 10_000f64.powf(-2.0 * pair as f64 / rotary as f64) / f64::from(*factor);
                        let (a, b) = turned(x[i], x[j], f64::from(positions[index / 3]) * speed);
                        close(&[out[i], out[j]], [a, b], 1e-6);
                    }
                }
                let mut angles = Angles::default();
                angles.set(&rope, &[9; 40]); // larger before: nothing of it may stay
                angles.set(&rope, &positions);
                let mut again = x.clone();
                cpu.rope_with(&mut again, 3, head_dim, &rope, &angles);
                assert_eq!(again, out);
            }
        }
    }
}

#[test]
fn impossible_rotations_are_errors() {
    let make = |dim, base, factors| Rope::new(RopeStyle::Half, dim, base, 1.0, factors);
    assert!(make(0, 1e4, None).is_err());
    assert!(make(7, 1e4, None).is_err());
    assert!(make(8, 0.0, None).is_err());
    assert!(make(8, f32::NAN, None).is_err());
    assert!(make(8, 1e4, Some(&[1.0; 3])).is_err());
    assert!(make(8, 1e4, Some(&[1.0, 0.0, 1.0, 1.0])).is_err());
    assert_eq!(make(8, 1e4, Some(&[1.0; 4])).unwrap().rotary_dim(), 8);
}
