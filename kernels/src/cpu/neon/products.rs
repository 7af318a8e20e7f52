//! Integer products: a tile of eight rows by four tokens. Codes are taken as signed, which those of all stores fit.

use std::arch::aarch64::*;
use std::arch::asm;
use std::ops::Range;

use super::eight::Eight;
use crate::cpu::dot::{Dot, Format, View, tokens};
use crate::shared::OutMatrix;

/// By `sdot`, four products in one instruction, or by `smull` and sums of pairs.
pub(super) struct Products<const SDOT: bool>;

impl<const SDOT: bool> Dot for Products<SDOT> {
    /// Rows 0..4 and 4..8.
    type Ints = (int32x4_t, int32x4_t);
    type Floats = Eight;
    const TILES: usize = 1;
    const TOKENS: usize = 4;
    const SIGNED: bool = true;

    unsafe fn tokens<F: Format>(view: &View, tiles: Range<usize>, all: Range<usize>, out: &OutMatrix<'_>) {
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
    unsafe fn four(x: *const i8) -> Self::Ints {
        // SAFETY: the caller's promise.
        let x = unsafe { vdupq_n_s32(x.cast::<i32>().read_unaligned()) };
        (x, x)
    }

    #[inline(always)]
    unsafe fn dot(sum: Self::Ints, codes: Self::Ints, x: Self::Ints) -> Self::Ints {
        if SDOT {
            // SAFETY: the caller's promise that the processor has it.
            unsafe { (sdot(sum.0, codes.0, x.0), sdot(sum.1, codes.1, x.1)) }
        } else {
            (widening(sum.0, codes.0, x.0), widening(sum.1, codes.1, x.1))
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

/// sum + the four products of each lane.
///
/// # Safety
/// The processor has `sdot`.
#[inline(always)]
unsafe fn sdot(mut sum: int32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t {
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

/// The same from what every 64-bit ARM has. Pairs of products fit 16 bits: 2 · 128 · 127 = 32512.
#[inline(always)]
fn widening(sum: int32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t {
    // SAFETY: NEON is part of the target.
    unsafe {
        let (a, b) = (vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
        let low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
        vpadalq_s16(sum, vpaddq_s16(low, vmull_high_s8(a, b)))
    }
}
