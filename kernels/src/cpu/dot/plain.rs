//! The loop in plain Rust, one, two and four tiles wide, signed and unsigned: held to the reference on any processor.

use std::ops::Range;
use std::sync::Arc;

use half::f16;

use super::{Dot, Format, View, matmul, tokens};
use crate::cpu::kernels::Kernels;
use crate::cpu::scalar;
use crate::matrix::{Coded, TILE};
use crate::shared::OutMatrix;
use crate::{Cpu, GgmlType, Isa, Matrix, Quantized};

/// Does in words what the instructions are said to do.
struct Plain<const TILES: usize, const SIGNED: bool>;

type Lanes<T> = [[T; TILE]; 4];

fn lanes<T>(mut f: impl FnMut(usize, usize) -> T) -> Lanes<T> {
    std::array::from_fn(|tile| std::array::from_fn(|row| f(tile, row)))
}

fn bytes(ints: Lanes<u32>, f: impl Fn(u8) -> u8) -> Lanes<u32> {
    ints.map(|tile| tile.map(|four| u32::from_le_bytes(four.to_le_bytes().map(&f))))
}

impl<const TILES: usize, const SIGNED: bool> Dot for Plain<TILES, SIGNED> {
    type Ints = Lanes<u32>;
    type Floats = Lanes<f32>;
    const TILES: usize = TILES;
    const TOKENS: usize = if TILES == 1 { 4 } else { 16 };
    const SIGNED: bool = SIGNED;

    unsafe fn tokens<F: Format>(
        view: &View<'_>,
        tiles: Range<usize>,
        all: Range<usize>,
        out: &OutMatrix<'_>,
    ) {
        // SAFETY: passed on; no special instructions are needed.
        unsafe {
            match tiles.len() {
                1 if TILES == 4 => tokens::<Plain<1, SIGNED>, F>(view, tiles, all, out),
                n if n == TILES || TILES == 2 => tokens::<Self, F>(view, tiles, all, out),
                _ => tiles.for_each(|tile| Self::tokens::<F>(view, tile..tile + 1, all.clone(), out)),
            }
        }
    }
    unsafe fn zero() -> Lanes<u32> {
        [[0; TILE]; 4]
    }
    unsafe fn codes(from: *const u8, next: usize) -> Lanes<u32> {
        lanes(|tile, row| match tile < TILES {
            // SAFETY: the caller's promise.
            true => unsafe { from.add(tile * next + 4 * row).cast::<u32>().read_unaligned().to_le() },
            false => 0,
        })
    }
    unsafe fn low(both: Lanes<u32>) -> Lanes<u32> {
        bytes(both, |b| b & 15)
    }
    unsafe fn high(both: Lanes<u32>) -> Lanes<u32> {
        bytes(both, |b| b >> 4)
    }
    unsafe fn raise(codes: Lanes<u32>) -> Lanes<u32> {
        assert!(!SIGNED);
        bytes(codes, |b| b.cast_signed().wrapping_add(-128).cast_unsigned())
    }
    unsafe fn up(codes: Lanes<u32>, bits: u32) -> Lanes<u32> {
        assert!(!SIGNED);
        bytes(codes, |b| {
            assert!(b.leading_zeros() >= bits);
            b << bits
        })
    }
    unsafe fn byte(codes: Lanes<u32>, i: usize) -> Lanes<u32> {
        codes.map(|tile| tile.map(|four| i32::from(four.to_le_bytes()[i].cast_signed()).cast_unsigned()))
    }
    unsafe fn four(x: *const i8) -> Lanes<u32> {
        // SAFETY: the caller's promise.
        let four = unsafe { x.cast::<u32>().read_unaligned().to_le() };
        [[four; TILE]; 4]
    }
    unsafe fn dot(sum: Lanes<u32>, codes: Lanes<u32>, x: Lanes<u32>) -> Lanes<u32> {
        let code = |b: u8| if SIGNED { i32::from(b.cast_signed()) } else { i32::from(b) };
        lanes(|tile, row| {
            let pairs = codes[tile][row].to_le_bytes().into_iter().zip(x[tile][row].to_le_bytes());
            let products: i32 = pairs.map(|(c, x)| code(c) * i32::from(x.cast_signed())).sum();
            sum[tile][row].wrapping_add(products.cast_unsigned())
        })
    }
    unsafe fn splat(value: f32) -> Lanes<f32> {
        [[value; TILE]; 4]
    }
    unsafe fn halves(from: *const u16, next: usize) -> Lanes<f32> {
        lanes(|tile, row| match tile < TILES {
            // SAFETY: the caller's promise.
            true => f16::from_bits(unsafe { from.add(tile * next + row).read() }).to_f32(),
            false => 0.0,
        })
    }
    unsafe fn float(sums: Lanes<u32>) -> Lanes<f32> {
        sums.map(|tile| tile.map(|sum| sum.cast_signed() as f32))
    }
    unsafe fn mul(a: Lanes<f32>, b: Lanes<f32>) -> Lanes<f32> {
        lanes(|tile, row| a[tile][row] * b[tile][row])
    }
    unsafe fn mul_add(a: Lanes<f32>, b: Lanes<f32>, c: Lanes<f32>) -> Lanes<f32> {
        lanes(|tile, row| a[tile][row].mul_add(b[tile][row], c[tile][row]))
    }
    unsafe fn add(a: Lanes<f32>, b: Lanes<f32>) -> Lanes<f32> {
        lanes(|tile, row| a[tile][row] + b[tile][row])
    }
    unsafe fn load(from: *const f32) -> Lanes<f32> {
        lanes(|tile, row| match tile < TILES {
            // SAFETY: the caller's promise.
            true => unsafe { from.add(tile * TILE + row).read() },
            false => 0.0,
        })
    }
    unsafe fn store(values: Lanes<f32>, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { to.copy_from(values.as_flattened().as_ptr(), TILES * TILE) }
    }
}

impl<const TILES: usize, const SIGNED: bool> Kernels for Plain<TILES, SIGNED> {
    fn isa(&self) -> Isa {
        Isa::Scalar
    }
    unsafe fn matmul_coded(&self, w: &Coded, x: &Quantized, tiles: Range<usize>, out: &OutMatrix<'_>) {
        // SAFETY: passed on.
        unsafe { matmul::<Self>(w, x, tiles, out) }
    }
}

/// Numbers without a pattern (xorshift).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    /// Between -1 and 1.
    fn float(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

fn product(cpu: &Cpu, w: &Matrix, x: &[f32], tokens: usize) -> Vec<f32> {
    let mut quantized = Quantized::without_floats();
    cpu.quantize(x, tokens, &mut quantized);
    let mut y = vec![f32::NAN; tokens * w.rows()];
    cpu.matmul(w, &quantized, &mut y);
    y
}

/// Every coding, with tiles and tokens that fill registers and such that do not. Other processors' kernels run here as
/// they are but for the instruction.
#[test]
fn the_loop_agrees_with_the_reference() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let reference = Cpu::build(1, &scalar::Scalar);
    let cpus: [Arc<Cpu>; 6] = [
        Cpu::build(1, &Plain::<1, false>),
        Cpu::build(1, &Plain::<2, false>),
        Cpu::build(1, &Plain::<4, false>),
        Cpu::build(1, &Plain::<1, true>),
        Cpu::build(1, &Plain::<2, true>),
        Cpu::build(1, &Plain::<4, true>),
    ];
    // Under an interpreter one size has to do, and one type for each coding.
    let sizes: &[(usize, usize)] =
        if cfg!(miri) { &[(17, 25)] } else { &[(1, 1), (3, 8), (7, 24), (13, 40), (47, 56)] };
    let again = |ty| cfg!(miri) && matches!(ty, GgmlType::Q4K | GgmlType::Q5K);
    for ty in GgmlType::ALL.into_iter().filter(|ty| ty.block_elems() > 1 && !again(*ty)) {
        for (tokens, rows) in sizes {
            let cols = ty.block_elems().max(64);
            // Without bit 6, no 16-bit float is infinite or not a number, and codes still have their sign.
            let bytes: Vec<u8> = (0..ty.bytes_for(rows * cols).expect("whole blocks"))
                .map(|_| random.bits() as u8 & 0xbf)
                .collect();
            let w = Matrix::pack(&reference, ty, &bytes, *rows, cols).expect("sound weights");
            let x: Vec<f32> = (0..tokens * cols)
                .map(|i| if i % 29 == 7 { 30.0 } else { 1.0 } * random.float()) // outliers among them
                .collect();
            let largest: Vec<f32> = (0..*rows)
                .map(|index| {
                    let mut row = vec![0.0; cols];
                    w.row(index, &mut row);
                    row.iter().fold(0.0f32, |m, v| m.max(v.abs()))
                })
                .collect();
            let want = product(&reference, &w, &x, *tokens);
            for cpu in &cpus {
                let got = product(cpu, &w, &x, *tokens);
                for (cell, (got, want)) in got.iter().zip(&want).enumerate() {
                    let x = &x[cell / rows * cols..][..cols];
                    let size = largest[cell % rows] * x.iter().map(|x| x.abs()).sum::<f32>();
                    let close = (got - want).abs() <= 2e-6 * size;
                    assert!(close, "{} {tokens} tokens, cell {cell}: {got} for {want}", ty.name());
                }
            }
        }
    }
}
