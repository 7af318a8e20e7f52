//! Speed of the products: `cargo run --release -p jackfield-kernels --example matmul_bench [THREADS [TYPE [ISA]]]`.
//!
//! Prints GMAC/s and the GB/s of weights read, the best of a few tries, for each type, shape and number of tokens; the
//! scalar reference once beside it.

use std::time::{Duration, Instant};

use jackfield_kernels::{Cpu, GgmlType, Isa, Matrix, Quantized};

const SHAPES: [(usize, usize); 4] = [(576, 576), (1536, 576), (576, 1536), (49152, 576)];
const TOKENS: [usize; 4] = [1, 4, 16, 128];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let threads = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(2);
    let only = arguments.next();
    let isa = arguments.next();
    let scalar = Cpu::with_isa(threads, Isa::Scalar).expect("always there");
    let fast = match isa {
        None => Cpu::new(threads),
        Some(name) => {
            let isa = Isa::ALL.into_iter().find(|isa| isa.name() == name).expect("a name that Isa has");
            Cpu::with_isa(threads, isa).expect("an instruction set that is here")
        }
    };
    println!("{} threads, {}; best of the tries within 60 ms each", fast.threads(), fast.isa().name());
    println!("{:>6} {:>11} {:>6} {:>10} {:>8} {:>10}", "type", "shape", "tokens", "GMAC/s", "GB/s", "scalar");
    for ty in GgmlType::ALL {
        if only.as_ref().is_some_and(|only| only != ty.name()) {
            continue;
        }
        for (rows, cols) in SHAPES {
            let cols = cols.next_multiple_of(ty.block_elems());
            let bytes = weights(ty, rows * cols);
            let matrix = Matrix::pack(&fast, ty, &bytes, rows, cols).expect("sound weights");
            for tokens in TOKENS {
                line(ty, &matrix, tokens, [&fast, &scalar]);
            }
        }
    }
}

fn line(ty: GgmlType, matrix: &Matrix, tokens: usize, [fast, scalar]: [&Cpu; 2]) {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let x: Vec<f32> = (0..tokens * cols).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
    let mut quantized = Quantized::new();
    fast.quantize(&x, tokens, &mut quantized);
    let mut y = vec![0.0; tokens * rows];
    let macs = (rows * cols * tokens) as f64;
    let seconds = best(&mut || fast.matmul(matrix, &quantized, &mut y), Duration::from_millis(60));
    let small = rows * tokens <= 576 * 16;
    let reference = if small {
        best(&mut || scalar.matmul(matrix, &quantized, &mut y), Duration::ZERO)
    } else {
        f64::NAN
    };
    println!(
        "{:>6} {:>11} {tokens:>6} {:>10.1} {:>8.2} {:>10.2}",
        ty.name(),
        format!("{rows}x{cols}"),
        macs / seconds / 1e9,
        matrix.bytes() as f64 / seconds / 1e9,
        macs / reference / 1e9,
    );
}

fn best(run: &mut dyn FnMut(), budget: Duration) -> f64 {
    run();
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    loop {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
        if begin.elapsed() >= budget {
            return best;
        }
    }
}

/// Bytes whose 16-bit floats are all finite.
fn weights(ty: GgmlType, values: usize) -> Vec<u8> {
    let len = ty.bytes_for(values).expect("whole blocks");
    (0..len).map(|i| (i * 7 + i / 255) as u8 & 0x37).collect()
}
