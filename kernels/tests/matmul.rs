//! Products: every instruction set against the scalar reference, the reference against 64-bit arithmetic.

mod common;

use std::sync::Arc;

use common::{Random, few, weights};
use jackfield_kernels::{Cpu, GgmlType, Isa, Matrix, Projection, Quantized, dequantize};

/// One of each instruction set found here, the scalar one last.
fn cpus() -> Vec<Arc<Cpu>> {
    Isa::ALL.into_iter().filter_map(|isa| Cpu::with_isa(3, isa).ok()).collect()
}

fn product(cpu: &Cpu, w: &Matrix, x: &[f32], tokens: usize) -> Vec<f32> {
    let mut quantized = Quantized::new();
    cpu.quantize(x, tokens, &mut quantized);
    let mut y = vec![f32::NAN; tokens * w.rows()];
    cpu.matmul(w, &quantized, &mut y);
    y
}

/// Σ |w·x| for each cell: what rounding errors are measured against.
fn magnitudes(w: &Matrix, x: &[f32], tokens: usize) -> Vec<f32> {
    let mut row = vec![0.0; w.cols()];
    let mut sizes = vec![0.0; tokens * w.rows()];
    for index in 0..w.rows() {
        w.row(index, &mut row);
        // Codes and minima are multiplied apart from each other, so each counts with its own size.
        let largest = row.iter().fold(0.0f32, |m, v| m.max(v.abs()));
        for (token, x) in x.chunks_exact(w.cols()).enumerate() {
            sizes[token * w.rows() + index] = x.iter().map(|x| x.abs() * largest).sum::<f32>();
        }
    }
    sizes
}

#[test]
fn every_instruction_set_agrees_on_every_type_and_size() {
    let mut random = Random(1);
    let cpus = cpus();
    for ty in GgmlType::ALL {
        let sizes = [(9, 64), (1, 32usize), (3, 96), (8, 64), (9, 256), (17, 512), (40, 1280), (67, 7)];
        for &(rows, cols) in few(&sizes, 1) {
            let cols = if ty.block_elems() == 1 { cols } else { cols.next_multiple_of(ty.block_elems()) };
            let bytes = weights(&mut random, ty, rows * cols);
            let w = Matrix::pack(&cpus[0], ty, &bytes, rows, cols).unwrap();
            for &tokens in few(&[1, 5, 2, 3, 4, 7, 8, 9, 13, 33], 2) {
                let x = random.activations(tokens * cols);
                let sizes = magnitudes(&w, &x, tokens);
                let [results @ .., reference] =
                    &*cpus.iter().map(|c| product(c, &w, &x, tokens)).collect::<Vec<_>>()
                else {
                    unreachable!("the scalar one is always there")
                };
                for result in results {
                    for ((got, want), size) in result.iter().zip(reference).zip(&sizes) {
                        let close = (got - want).abs() <= 2e-6 * size + 1e-30;
                        assert!(close, "{} {rows}x{cols} {tokens} tokens: {got} for {want}", ty.name());
                    }
                }
            }
        }
    }
}

/// Every number of tokens to 67 and so every cut into register tiles, rows and columns that fill them and that do not.
/// Each prefix is held to the whole, bit for bit, and the whole to the reference.
#[test]
fn every_number_of_tokens() {
    const MOST: usize = if cfg!(miri) { 5 } else { 67 };
    let mut random = Random(7);
    let [fast @ .., reference] = &*cpus() else { unreachable!("the scalar one is always there") };
    for ty in GgmlType::ALL {
        // Two odd shapes; blocks in a row for the types that have blocks.
        let shapes = [(1 + random.below(8), 1), (9 + random.below(60), 1 + random.below(4))];
        for &(rows, cols) in few(&shapes, 1) {
            let cols = if w_is_float(ty) { 8 * cols - 1 } else { cols * ty.block_elems() };
            let w = Matrix::pack(reference, ty, &weights(&mut random, ty, rows * cols), rows, cols).unwrap();
            let x = random.activations(MOST * cols);
            let (want, sizes) = (product(reference, &w, &x, MOST), magnitudes(&w, &x, MOST));
            for cpu in fast {
                let whole = product(cpu, &w, &x, MOST);
                for (cell, (got, want)) in whole.iter().zip(&want).enumerate() {
                    let close = (got - want).abs() <= 2e-6 * sizes[cell] + 1e-30;
                    let (name, isa) = (ty.name(), cpu.isa().name());
                    assert!(close, "{isa} {name} {rows}x{cols}, cell {cell}: {got} for {want}");
                }
                for tokens in 1..MOST {
                    let part = product(cpu, &w, &x[..tokens * cols], tokens);
                    let same = part.iter().zip(&whole).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "{} {} {rows}x{cols}, {tokens} tokens", cpu.isa().name(), ty.name());
                }
            }
        }
    }
}

#[test]
fn the_reference_is_within_the_activations_rounding() {
    let mut random = Random(2);
    let cpu = Cpu::with_isa(1, Isa::Scalar).unwrap();
    let (rows, cols, tokens) = if cfg!(miri) { (3, 256, 2) } else { (13, 768, 5) };
    for ty in GgmlType::ALL {
        let bytes = weights(&mut random, ty, rows * cols);
        let w = Matrix::pack(&cpu, ty, &bytes, rows, cols).unwrap();
        let x = random.floats(tokens * cols);
        let y = product(&cpu, &w, &x, tokens);
        let mut values = vec![0.0; rows * cols];
        dequantize(ty, &bytes, &mut values).unwrap();
        for (cell, y) in y.iter().enumerate() {
            let (x, w) = (&x[cell / rows * cols..][..cols], &values[cell % rows * cols..][..cols]);
            let exact: f64 = x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
            let most = w.iter().fold(0.0f64, |m, w| m.max(f64::from(w.abs())));
            // An activation moves by half a step, its group's largest over 254; scales by 2^-11, mins too.
            let moved = if w_is_float(ty) { 1e-5 } else { 1.0 / 254.0 + 2e-3 };
            let bound = moved * cols as f64 * most;
            assert!((exact - f64::from(*y)).abs() <= bound, "{}: {y} for {exact} ± {bound}", ty.name());
        }
    }
}

/// Held to the packed weights in 64 bits. What is not an outlier is so small that rounding it is next to nothing; in a row of
/// equal numbers there is none.
#[test]
fn outliers_are_not_rounded() {
    let mut random = Random(5);
    for cpu in cpus() {
        for ty in GgmlType::ALL.into_iter().filter(|ty| !w_is_float(*ty)) {
            for &tokens in few(&[1, 3, 8, 21, 35], 1) {
                let (rows, cols) = (37, ty.block_elems().max(96));
                let w = Matrix::pack(&cpu, ty, &weights(&mut random, ty, rows * cols), rows, cols).unwrap();
                let mut x: Vec<f32> = random.floats(tokens * cols).iter().map(|x| 1e-5 * x).collect();
                for (token, x) in x.chunks_exact_mut(cols).enumerate() {
                    // Up to as many as there can be; in the first token the last column is one.
                    for i in 0..=random.below(cols / 10 - 1) {
                        let column = if (token, i) == (0, 0) { cols - 1 } else { random.below(cols) };
                        x[column] = 3.0 + 0.1 * random.float();
                    }
                }
                let y = product(&cpu, &w, &x, tokens);
                let sizes = magnitudes(&w, &x, tokens);
                let mut row = vec![0.0; cols];
                for (cell, size) in sizes.iter().enumerate() {
                    w.row(cell % rows, &mut row);
                    let x = &x[cell / rows * cols..][..cols];
                    let exact: f64 = x.iter().zip(&row).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
                    let off = (f64::from(y[cell]) - exact).abs();
                    let bound = 2e-5 * f64::from(*size);
                    let name = (cpu.isa().name(), ty.name());
                    assert!(
                        off <= bound,
                        "{name:?} {tokens} tokens, cell {cell}: off by {off}, at most {bound}"
                    );
                }
                let alone = product(&cpu, &w, &x[..cols], 1);
                assert!(alone.iter().zip(&y).all(|(a, b)| a.to_bits() == b.to_bits()), "{}", ty.name());
            }
        }
    }
}

fn w_is_float(ty: GgmlType) -> bool {
    ty.block_elems() == 1
}

#[test]
fn a_token_does_not_depend_on_its_company() {
    let mut random = Random(3);
    for cpu in cpus() {
        for ty in GgmlType::ALL {
            let (rows, cols, tokens) =
                if cfg!(miri) { (9, ty.block_elems().max(32), 2) } else { (20, 512, 11) };
            let w = Matrix::pack(&cpu, ty, &weights(&mut random, ty, rows * cols), rows, cols).unwrap();
            let x = random.activations(tokens * cols);
            let together = product(&cpu, &w, &x, tokens);
            for (alone, together) in x.chunks_exact(cols).zip(together.chunks_exact(rows)) {
                let alone = product(&cpu, &w, alone, 1);
                assert!(alone.iter().zip(together).all(|(a, b)| a.to_bits() == b.to_bits()), "{}", ty.name());
            }
        }
    }
}

/// All codes and activations at their ends: 16-bit sums inside the kernels are closest to overflow here.
#[test]
fn nothing_saturates_at_the_ends() {
    let cpus = cpus();
    for ty in GgmlType::ALL.into_iter().filter(|ty| !w_is_float(*ty)) {
        for &code in few(&[0xff, 0x80, 0x7f, 0x00], 2) {
            let (rows, cols, tokens) = if cfg!(miri) { (8, 256, 1) } else { (32, 512, 17) };
            let mut bytes = vec![code; ty.bytes_for(rows * cols).unwrap()];
            common::put_scales(ty, &mut bytes, || 1.0);
            let w = Matrix::pack(&cpus[0], ty, &bytes, rows, cols).unwrap();
            for sign in [1.0, -1.0] {
                let x: Vec<f32> = vec![127.0 * sign; tokens * cols];
                let mut row = vec![0.0; cols];
                w.row(0, &mut row);
                let exact: f64 = row.iter().map(|w| f64::from(*w) * 127.0 * f64::from(sign)).sum();
                let size: f64 =
                    row.iter().map(|w| f64::from(w.abs()) * 127.0).sum::<f64>() + 127.0 * 2048.0 * 512.0;
                for cpu in &cpus {
                    for y in product(cpu, &w, &x, tokens) {
                        let off = (f64::from(y) - exact).abs();
                        assert!(
                            off <= size * 1e-6,
                            "{} {:?} {code:x}: {y} for {exact}",
                            ty.name(),
                            cpu.isa()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn adding_and_several_at_once() {
    let mut random = Random(4);
    for cpu in cpus() {
        let (cols, tokens) = (96, 6);
        let [a, b, c] = [(GgmlType::Q4_1, 24), (GgmlType::F16, 9), (GgmlType::Q8_0, 5)].map(|(ty, rows)| {
            Matrix::pack(&cpu, ty, &weights(&mut random, ty, rows * cols), rows, cols).unwrap()
        });
        let x = random.floats(tokens * cols);
        let mut quantized = Quantized::new();
        cpu.quantize(&x, tokens, &mut quantized);
        let [want_a, want_b, want_c] = [&a, &b, &c].map(|w| product(&cpu, w, &x, tokens));
        let mut outs = [&a, &b, &c].map(|w| vec![f32::NAN; tokens * w.rows()]);
        let [out_a, out_b, out_c] = &mut outs;
        cpu.matmul_three(
            &quantized,
            [
                Projection { weights: &a, out: out_a },
                Projection { weights: &b, out: out_b },
                Projection { weights: &c, out: out_c },
            ],
        );
        assert_eq!(outs, [want_a.clone(), want_b.clone(), want_c]);
        let [out_a, out_b, _] = &mut outs;
        cpu.matmul_two(
            &quantized,
            [Projection { weights: &b, out: out_b }, Projection { weights: &a, out: out_a }],
        );
        assert_eq!(outs[0], want_a);
        assert_eq!(outs[1], want_b);
        let mut sum = vec![1.0; want_a.len()];
        cpu.matmul_add(&a, &quantized, &mut sum);
        assert!(sum.iter().zip(&want_a).all(|(sum, a)| *sum == 1.0 + a));
    }
}

#[test]
fn a_buffer_serves_inputs_of_any_size() {
    let mut random = Random(5);
    let cpu = Cpu::new(2);
    let mut quantized = Quantized::new();
    for (tokens, cols) in [(3, 64), (1, 32), (9, 128), (0, 0), (2, 64)] {
        let x = random.floats(tokens * cols);
        cpu.quantize(&x, tokens, &mut quantized);
        assert_eq!((quantized.tokens(), quantized.cols()), (tokens, cols));
        if tokens > 0 {
            let w =
                Matrix::pack(&cpu, GgmlType::Q4_0, &weights(&mut random, GgmlType::Q4_0, 8 * cols), 8, cols);
            let w = w.unwrap();
            let mut y = vec![0.0; 8 * tokens];
            cpu.matmul(&w, &quantized, &mut y);
            assert_eq!(y, product(&cpu, &w, &x, tokens));
        }
    }
}

#[test]
fn not_a_number_is_not_hidden() {
    for cpu in cpus() {
        let w = Matrix::pack(&cpu, GgmlType::Q8_0, &weights(&mut Random(6), GgmlType::Q8_0, 8 * 64), 8, 64)
            .unwrap();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = vec![1.0; 64];
            x[40] = bad;
            assert!(product(&cpu, &w, &x, 1).iter().all(|y| !y.is_finite()), "{:?}", cpu.isa());
        }
    }
}
