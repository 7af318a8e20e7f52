//! Integer products: a tile of eight rows by four tokens. Codes are taken as signed, which those of all stores fit.

use std::arch::aarch64::*;
use std::arch::asm;
use std::marker::PhantomData;
use std::ops::Range;

use super::eight::Eight;
use crate::Isa;
use crate::cpu::dot::{Activations, Dot, Format, View, chunk_codes, tokens, whole_products};
use crate::shared::OutMatrix;

/// What integer products are made with.
///
/// # Safety
/// For `dot` and `square`: the processor has the instructions of this one and, for `square`, [`PAIRS`](Self::PAIRS).
pub(super) trait Instruction: Send + Sync + 'static {
    const ISA: Isa;
    /// Whether there is `square`.
    const PAIRS: bool = false;

    /// sum + the four products of each lane.
    unsafe fn dot(sum: int32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t;

    /// sum + a · bᵀ, where a and b are two rows of eight bytes, and the sum two by two.
    unsafe fn square(sum: int32x4_t, _a: int32x4_t, _b: int32x4_t) -> int32x4_t {
        sum
    }
}

/// `smull` and sums of pairs: what every 64-bit ARM has.
pub(super) struct Widening;

impl Instruction for Widening {
    const ISA: Isa = Isa::Neon;

    #[inline(always)]
    unsafe fn dot(sum: int32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t {
        // SAFETY: NEON is part of the target. Pairs of products fit 16 bits: 2 · 128 · 127 = 32512.
        unsafe {
            let (a, b) = (vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
            let low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
            vpadalq_s16(sum, vpaddq_s16(low, vmull_high_s8(a, b)))
        }
    }
}

/// `sdot`: four products in each lane.
pub(super) struct Sdot;

impl Instruction for Sdot {
    const ISA: Isa = Isa::NeonDot;

    #[inline(always)]
    unsafe fn dot(mut sum: int32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t {
        // SAFETY: registers alone; the caller's promise. The intrinsic for it is not stable.
        unsafe {
            asm!(
                ".arch_extension dotprod",
                "sdot {sum:v}.4s, {a:v}.16b, {b:v}.16b",
                sum = inout(vreg) sum,
                a = in(vreg) a,
                b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sum
    }
}

/// `smmla`: eight products in each lane, for two rows by two tokens; `sdot` where there is one token.
pub(super) struct Smmla;

impl Instruction for Smmla {
    const ISA: Isa = Isa::NeonI8mm;
    const PAIRS: bool = true;

    #[inline(always)]
    unsafe fn dot(sum: int32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t {
        // SAFETY: the caller's promise.
        unsafe { Sdot::dot(sum, a, b) }
    }

    #[inline(always)]
    unsafe fn square(mut sum: int32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t {
        // SAFETY: registers alone; the caller's promise. The intrinsic for it is not stable.
        unsafe {
            asm!(
                ".arch_extension i8mm",
                "smmla {sum:v}.4s, {a:v}.16b, {b:v}.16b",
                sum = inout(vreg) sum,
                a = in(vreg) a,
                b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sum
    }
}

/// Products by one of them.
pub(super) struct Products<I>(PhantomData<I>);

impl<I: Instruction> Dot for Products<I> {
    /// Rows 0..4 and 4..8.
    type Ints = (int32x4_t, int32x4_t);
    type Floats = Eight;
    const TILES: usize = 1;
    const TOKENS: usize = 4;
    const SIGNED: bool = true;

    unsafe fn tokens<F: Format>(
        view: &View<'_>,
        tiles: Range<usize>,
        all: Range<usize>,
        out: &OutMatrix<'_>,
    ) {
        // SAFETY: the caller's promises.
        unsafe { tokens::<Self, F>(view, tiles, all, out) }
    }

    #[inline(always)]
    unsafe fn zero() -> Self::Ints {
        // SAFETY: NEON is part of the target.
        unsafe { (vdupq_n_s32(0), vdupq_n_s32(0)) }
    }

    #[inline(always)]
    unsafe fn codes(from: *const u8, _: usize) -> Self::Ints {
        // SAFETY: the caller's promise: 32 bytes.
        unsafe { (vreinterpretq_s32_u8(vld1q_u8(from)), vreinterpretq_s32_u8(vld1q_u8(from.add(16)))) }
    }

    #[inline(always)]
    unsafe fn low((a, b): Self::Ints) -> Self::Ints {
        // SAFETY: NEON is part of the target.
        unsafe {
            let mask = vdupq_n_s32(0x0f0f_0f0f);
            (vandq_s32(a, mask), vandq_s32(b, mask))
        }
    }

    #[inline(always)]
    unsafe fn high((a, b): Self::Ints) -> Self::Ints {
        // SAFETY: NEON is part of the target.
        unsafe {
            let high = |x| vreinterpretq_s32_u8(vshrq_n_u8::<4>(vreinterpretq_u8_s32(x)));
            (high(a), high(b))
        }
    }

    #[inline(always)]
    unsafe fn raise(codes: Self::Ints) -> Self::Ints {
        codes // never called: codes are taken as signed
    }

    #[inline(always)]
    unsafe fn up(codes: Self::Ints, _: u32) -> Self::Ints {
        codes // never called, either
    }

    #[inline(always)]
    unsafe fn byte((a, b): Self::Ints, i: usize) -> Self::Ints {
        // SAFETY: NEON is part of the target.
        unsafe {
            let up = vdupq_n_s32(24 - 8 * i as i32);
            (vshrq_n_s32::<24>(vshlq_s32(a, up)), vshrq_n_s32::<24>(vshlq_s32(b, up)))
        }
    }

    #[inline(always)]
    unsafe fn four(x: *const i8) -> Self::Ints {
        // SAFETY: the caller's promise.
        let x = unsafe { vdupq_n_s32(x.cast::<i32>().read_unaligned()) };
        (x, x)
    }

    #[inline(always)]
    unsafe fn dot(sum: Self::Ints, codes: Self::Ints, x: Self::Ints) -> Self::Ints {
        // SAFETY: the caller's promise that the processor has it.
        unsafe { (I::dot(sum.0, codes.0, x.0), I::dot(sum.1, codes.1, x.1)) }
    }

    #[inline(always)]
    unsafe fn whole_products<F: Format, const S: usize>(
        codes: *const u8,
        next: usize,
        x: Activations,
        sub: usize,
    ) -> [Self::Ints; S] {
        // SAFETY: the caller's promises.
        unsafe {
            match const { I::PAIRS && S.is_multiple_of(2) } {
                true => squares::<I, F, S>(codes, next, x, sub),
                false => whole_products::<Self, F, S>(codes, next, x, sub),
            }
        }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> Eight {
        Eight::splat(value)
    }

    #[inline(always)]
    unsafe fn halves(from: *const u16, _: usize) -> Eight {
        // SAFETY: the caller's promise: eight numbers.
        Eight::widen(unsafe { &*from.cast() })
    }

    #[inline(always)]
    unsafe fn float((a, b): Self::Ints) -> Eight {
        // SAFETY: NEON is part of the target.
        unsafe { Eight(vcvtq_f32_s32(a), vcvtq_f32_s32(b)) }
    }

    #[inline(always)]
    unsafe fn mul(a: Eight, b: Eight) -> Eight {
        a.mul(b)
    }

    #[inline(always)]
    unsafe fn mul_add(a: Eight, b: Eight, c: Eight) -> Eight {
        c.add_product(a, b)
    }

    #[inline(always)]
    unsafe fn add(a: Eight, b: Eight) -> Eight {
        a.add(b)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Eight {
        // SAFETY: the caller's promise.
        Eight::load(unsafe { &*from.cast() })
    }

    #[inline(always)]
    unsafe fn store(values: Eight, to: *mut f32) {
        // SAFETY: the caller's promise.
        values.store(unsafe { &mut *to.cast() });
    }
}

/// The same sums from squares of two rows by two tokens over eight columns.
///
/// # Safety
/// As for [`Dot::whole_products`]; `S` is even.
#[inline(always)]
unsafe fn squares<I: Instruction, F: Format, const S: usize>(
    codes: *const u8,
    next: usize,
    x: Activations,
    sub: usize,
) -> [(int32x4_t, int32x4_t); S] {
    // SAFETY: the caller's promises; the registers are NEON's.
    unsafe {
        let zero = vdupq_n_s32(0);
        // For each pair of tokens, in squares of rows 0, 1 and 2, 3, and of 4, 5 and 6, 7.
        let mut sums = [(zero, zero); S];
        let columns = F::CODING.group / 8;
        for eight in sub * columns..(sub + 1) * columns {
            let (a, b) = (
                chunk_codes::<Products<I>, F>(codes, next, 2 * eight),
                chunk_codes::<Products<I>, F>(codes, next, 2 * eight + 1),
            );
            let rows =
                [vzip1q_s32(a.0, b.0), vzip2q_s32(a.0, b.0), vzip1q_s32(a.1, b.1), vzip2q_s32(a.1, b.1)];
            for (pair, sums) in sums.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let token = |t: usize| vld1_s8(x.codes(2 * pair + t).add(8 * eight));
                let x = vreinterpretq_s32_s8(vcombine_s8(token(0), token(1)));
                let [low, high] = sums;
                *low = (I::square(low.0, rows[0], x), I::square(low.1, rows[1], x));
                *high = (I::square(high.0, rows[2], x), I::square(high.1, rows[3], x));
            }
        }
        // From squares to the rows of one token and of the other.
        for sums in sums.as_chunks_mut::<2>().0 {
            let [low, high] = *sums;
            *sums = [
                (vuzp1q_s32(low.0, low.1), vuzp1q_s32(high.0, high.1)),
                (vuzp2q_s32(low.0, low.1), vuzp2q_s32(high.0, high.1)),
            ];
        }
        sums
    }
}
