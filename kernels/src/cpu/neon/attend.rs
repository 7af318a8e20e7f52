//! Attention with vectors of eight.

use super::eight::Eight;
use super::products::Products;
use crate::cpu::attend::{Lanes, tile};
use crate::cpu::kernels::{Attend, Keys};

impl<const SDOT: bool> Lanes for Products<SDOT> {
    type Floats = Eight;
    const LANES: usize = 8;
    /// With two vectors each, 24 of the 32 registers are sums.
    const QUERIES: usize = 6;

    unsafe fn tile(keys: &Keys<'_>, state: &mut Attend<'_>, first: usize) -> usize {
        // SAFETY: the caller's promises.
        unsafe {
            match state.visible.len() - first {
                Self::QUERIES.. => tile::<Self, 6, 2>(keys, state, first),
                3.. => tile::<Self, 3, 2>(keys, state, first),
                2.. => tile::<Self, 2, 2>(keys, state, first),
                _ => tile::<Self, 1, 2>(keys, state, first),
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
