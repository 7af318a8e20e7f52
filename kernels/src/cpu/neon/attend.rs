//! Attention with vectors of eight.

use std::arch::aarch64::*;

use super::eight::Eight;
use super::products::{Instruction, Products};
use crate::cpu::attend::{Cell, Lanes, tile};
use crate::cpu::dot::Dot;
use crate::cpu::kernels::{Attend, Keys};

impl<I: Instruction> Lanes for Products<I> {
    type Floats = Eight;
    type Ints = <Self as Dot>::Ints;
    type Codes = <Self as Dot>::Ints;
    const LANES: usize = 8;
    /// With two vectors each, 24 of the 32 registers are sums.
    const QUERIES: usize = 6;
    const RAISED: i32 = 0;

    unsafe fn tile<T: Cell>(keys: &Keys<'_, T>, state: &mut Attend<'_>, first: usize) -> usize {
        // SAFETY: the caller's promises.
        unsafe {
            match state.visible.len() - first {
                Self::QUERIES.. => tile::<Self, T, 6, 2>(keys, state, first),
                3.. => tile::<Self, T, 3, 2>(keys, state, first),
                2.. => tile::<Self, T, 2, 2>(keys, state, first),
                _ => tile::<Self, T, 1, 2>(keys, state, first),
            }
        }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> Eight {
        Eight::splat(value)
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

    #[inline(always)]
    unsafe fn halves(from: *const u16) -> Eight {
        // SAFETY: the caller's promise.
        Eight::widen(unsafe { &*from.cast() })
    }

    #[inline(always)]
    unsafe fn codes(from: *const i8) -> Eight {
        // SAFETY: the caller's promise.
        unsafe {
            let short = vmovl_s8(vld1_s8(from));
            let wide = |half| vcvtq_f32_s32(vmovl_s16(half));
            Eight(wide(vget_low_s16(short)), wide(vget_high_s16(short)))
        }
    }

    #[inline(always)]
    unsafe fn fours(from: *const i8) -> Self::Codes {
        // SAFETY: the caller's promise: 32 bytes.
        unsafe { <Self as Dot>::codes(from.cast(), 0) }
    }

    #[inline(always)]
    unsafe fn dot(sum: Self::Ints, k: Self::Codes, q: *const i8) -> Self::Ints {
        // SAFETY: the caller's promise.
        unsafe { <Self as Dot>::dot(sum, k, Self::four(q)) }
    }

    #[inline(always)]
    unsafe fn whole(value: i32) -> Self::Ints {
        // SAFETY: NEON is part of the target.
        unsafe { (vdupq_n_s32(value), vdupq_n_s32(value)) }
    }

    #[inline(always)]
    unsafe fn float(sums: Self::Ints) -> Eight {
        // SAFETY: the caller's promise.
        unsafe { <Self as Dot>::float(sums) }
    }

    #[inline(always)]
    unsafe fn add(a: Eight, b: Eight) -> Eight {
        a.add(b)
    }

    #[inline(always)]
    unsafe fn sub(a: Eight, b: Eight) -> Eight {
        a.sub(b)
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
    unsafe fn max(a: Eight, b: Eight) -> Eight {
        a.max(b)
    }

    #[inline(always)]
    unsafe fn exp(x: Eight) -> Eight {
        x.exp()
    }

    #[inline(always)]
    unsafe fn sum(x: Eight) -> f32 {
        x.sum()
    }

    #[inline(always)]
    unsafe fn largest(x: Eight) -> f32 {
        x.largest()
    }
}
