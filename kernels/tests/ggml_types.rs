//! Every GGML type against an independent implementation, and what repacking does to the values.

use jackfield_kernels::{Cpu, GgmlType, KernelError, Matrix, dequantize};

/// Made by `data/make_blocks.py`.
const BLOCKS: &[u8] = include_bytes!("data/blocks.bin");

struct Case {
    ty: GgmlType,
    bytes: Vec<u8>,
    values: Vec<f32>,
}

fn cases() -> Vec<Case> {
    let mut rest = BLOCKS;
    let mut cases = Vec::new();
    let take = |rest: &mut &[u8], n: usize| {
        let (head, tail) = rest.split_at(n);
        *rest = tail;
        head.to_vec()
    };
    let number = |rest: &mut &[u8]| u32::from_le_bytes(take(rest, 4).try_into().unwrap());
    while !rest.is_empty() {
        let ty = GgmlType::from_id(number(&mut rest)).expect("a known type");
        let bytes = number(&mut rest) as usize;
        let bytes = take(&mut rest, bytes);
        let values = number(&mut rest) as usize;
        let values = take(&mut rest, 4 * values);
        let values = values.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        cases.push(Case { ty, bytes, values });
    }
    cases
}

#[test]
fn values_are_exactly_the_reference_values() {
    let cases = cases();
    assert_eq!(cases.len(), GgmlType::ALL.len());
    for Case { ty, bytes, values } in cases {
        let mut got = vec![f32::NAN; values.len()];
        dequantize(ty, &bytes, &mut got).unwrap();
        for (place, (got, want)) in got.iter().zip(&values).enumerate() {
            assert_eq!(got, want, "{} value {place}", ty.name());
        }
    }
}

/// The largest change of a value by repacking, over the largest value of its group of 16.
fn repacking_error(case: &Case, rows: usize) -> f32 {
    let cpu = Cpu::new(2);
    let cols = case.values.len() / rows;
    let matrix = Matrix::pack(&cpu, case.ty, &case.bytes, rows, cols).unwrap();
    let mut worst = 0.0f32;
    let mut row = vec![0.0; cols];
    for (index, want) in case.values.chunks_exact(cols).enumerate() {
        matrix.row(index, &mut row);
        for (got, want) in row.chunks(16).zip(want.chunks(16)) {
            // The rounding step of 16-bit floats below 6e-5, times the largest code, is no error of the layout.
            let size = want.iter().fold(63.0 * 2f32.powi(-14), |m, v| m.max(v.abs()));
            let change = got.iter().zip(want).fold(0.0f32, |m, (g, w)| m.max((g - w).abs()));
            worst = worst.max(change / size);
        }
    }
    worst
}

#[test]
fn repacking_keeps_the_values() {
    use GgmlType::*;
    for case in cases() {
        // Under an interpreter one of them has to do.
        for rows in [2, 1, 4].into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
            let error = repacking_error(&case, rows);
            println!("{} {rows} rows: {error:e}", case.ty.name());
            match case.ty {
                // A product of a 16-bit float and a small integer, rounded to a 16-bit float: half a unit in the last
                // place is 2^-11 of it. Where a min is subtracted, both roundings meet and the difference may be small
                // beside them.
                Q3K | Q6K => assert!(error <= 2f32.powi(-11), "{error}"),
                Q2K | Q4K | Q5K => assert!(error <= 2f32.powi(-9), "{error}"),
                _ => assert_eq!(error, 0.0, "{}", case.ty.name()),
            }
        }
    }
}

#[test]
fn damaged_tensors_are_errors() {
    let cpu = Cpu::new(1);
    let pack = |ty, bytes: &[u8], rows, cols| Matrix::pack(&cpu, ty, bytes, rows, cols).map(|m| m.bytes());
    assert!(matches!(
        pack(GgmlType::Q4_0, &[0; 36], 1, 40),
        Err(KernelError::RaggedRow { cols: 40, block: 32, .. })
    ));
    assert!(matches!(
        pack(GgmlType::Q4_0, &[0; 35], 1, 64),
        Err(KernelError::WrongBytes { expected: 36, found: 35, .. })
    ));
    assert!(matches!(pack(GgmlType::F32, &[], 0, 64), Err(KernelError::BadShape { .. })));
    assert!(matches!(pack(GgmlType::F32, &[], usize::MAX, 64), Err(KernelError::BadShape { .. })));
    assert!(matches!(pack(GgmlType::F16, &[], 1 << 62, 2), Err(KernelError::BadShape { .. })));
    let mut infinite = [0; 3 * 18];
    infinite[18..20].copy_from_slice(&0x7c00u16.to_le_bytes());
    assert_eq!(pack(GgmlType::Q4_0, &infinite, 3, 32), Err(KernelError::BadScale { row: 1 }));
    assert!(dequantize(GgmlType::Q6K, &[0; 210], &mut [0.0; 255]).is_err());
    assert!(dequantize(GgmlType::Q6K, &[0; 209], &mut [0.0; 256]).is_err());
}
