//! Eight floats in two registers: what the layouts come in.

use std::arch::aarch64::*;

/// Below this, e^x is under the smallest normal number; the result is zero.
const LOW: f32 = -87.336_54;
/// Above this, e^x is beyond the largest number; the argument stays here.
const HIGH: f32 = 88.376_26;
/// ln 2 in two parts; the first has few enough bits that its product with an exponent is exact.
const LN2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
/// e^r on ±ln2/2, from r² on, highest power first (Cephes).
const SERIES: [f32; 6] = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];

/// Eight floats, the first four in the first register.
#[derive(Clone, Copy)]
pub(super) struct Eight(pub(super) float32x4_t, pub(super) float32x4_t);

impl Eight {
    #[inline]
    pub(super) fn splat(value: f32) -> Self {
        // SAFETY: NEON is part of the target.
        unsafe { Self(vdupq_n_f32(value), vdupq_n_f32(value)) }
    }

    #[inline]
    pub(super) fn load(from: &[f32; 8]) -> Self {
        // SAFETY: the reference is to eight floats.
        unsafe { Self(vld1q_f32(from.as_ptr()), vld1q_f32(from.as_ptr().add(4))) }
    }

    /// Eight 16-bit floats, widened.
    #[inline]
    pub(super) fn widen(from: &[u16; 8]) -> Self {
        // SAFETY: the reference is to eight numbers.
        unsafe {
            let both = vld1q_u16(from.as_ptr());
            let wide = |half| vcvt_f32_f16(vreinterpret_f16_u16(half));
            Self(wide(vget_low_u16(both)), wide(vget_high_u16(both)))
        }
    }

    /// Eight numbers of the upper halves of floats (bfloat16), widened.
    #[inline]
    pub(super) fn widen_upper(from: &[u16; 8]) -> Self {
        // SAFETY: the reference is to eight numbers.
        unsafe {
            let both = vld1q_u16(from.as_ptr());
            let wide = |half| vreinterpretq_f32_u32(vshll_n_u16::<16>(half));
            Self(wide(vget_low_u16(both)), wide(vget_high_u16(both)))
        }
    }

    #[inline]
    pub(super) fn store(self, to: &mut [f32; 8]) {
        // SAFETY: the reference is to eight floats.
        unsafe {
            vst1q_f32(to.as_mut_ptr(), self.0);
            vst1q_f32(to.as_mut_ptr().add(4), self.1);
        }
    }

    /// Stores them as 16-bit floats, rounded to nearest.
    #[inline]
    pub(super) fn store_half(self, to: &mut [u16; 8]) {
        // SAFETY: the reference is to eight numbers.
        unsafe {
            let half = |x| vreinterpret_u16_f16(vcvt_f16_f32(x));
            vst1q_u16(to.as_mut_ptr(), vcombine_u16(half(self.0), half(self.1)));
        }
    }

    #[inline]
    pub(super) fn add(self, other: Self) -> Self {
        // SAFETY: NEON is part of the target.
        unsafe { Self(vaddq_f32(self.0, other.0), vaddq_f32(self.1, other.1)) }
    }

    #[inline]
    pub(super) fn sub(self, other: Self) -> Self {
        // SAFETY: NEON is part of the target.
        unsafe { Self(vsubq_f32(self.0, other.0), vsubq_f32(self.1, other.1)) }
    }

    #[inline]
    pub(super) fn mul(self, other: Self) -> Self {
        // SAFETY: NEON is part of the target.
        unsafe { Self(vmulq_f32(self.0, other.0), vmulq_f32(self.1, other.1)) }
    }

    #[inline]
    pub(super) fn div(self, other: Self) -> Self {
        // SAFETY: NEON is part of the target.
        unsafe { Self(vdivq_f32(self.0, other.0), vdivq_f32(self.1, other.1)) }
    }

    #[inline]
    pub(super) fn max(self, other: Self) -> Self {
        // SAFETY: NEON is part of the target.
        unsafe { Self(vmaxq_f32(self.0, other.0), vmaxq_f32(self.1, other.1)) }
    }

    /// self + a · b, rounded once
    #[inline]
    pub(super) fn add_product(self, a: Self, b: Self) -> Self {
        // SAFETY: NEON is part of the target.
        unsafe { Self(vfmaq_f32(self.0, a.0, b.0), vfmaq_f32(self.1, a.1, b.1)) }
    }

    /// self + a · b with one b for all, rounded once
    #[inline]
    pub(super) fn add_scaled(self, a: Self, b: f32) -> Self {
        // SAFETY: NEON is part of the target.
        unsafe { Self(vfmaq_n_f32(self.0, a.0, b), vfmaq_n_f32(self.1, a.1, b)) }
    }

    /// self − a · b, rounded once
    #[inline]
    pub(super) fn sub_product(self, a: Self, b: Self) -> Self {
        // SAFETY: NEON is part of the target.
        unsafe { Self(vfmsq_f32(self.0, a.0, b.0), vfmsq_f32(self.1, a.1, b.1)) }
    }

    /// The sum of the eight, always in the same order.
    #[inline]
    pub(super) fn sum(self) -> f32 {
        // SAFETY: NEON is part of the target.
        unsafe { vaddvq_f32(vaddq_f32(self.0, self.1)) }
    }

    /// The largest of the eight.
    #[inline]
    pub(super) fn largest(self) -> f32 {
        // SAFETY: NEON is part of the target.
        unsafe { vmaxvq_f32(vmaxq_f32(self.0, self.1)) }
    }

    /// e^x within two units in the last place; minus infinity gives zero, NaN stays NaN.
    #[inline]
    pub(super) fn exp(self) -> Self {
        Self(exp(self.0), exp(self.1))
    }
}

#[inline]
fn exp(x: float32x4_t) -> float32x4_t {
    // SAFETY: NEON is part of the target.
    unsafe {
        let under = vcltq_f32(x, vdupq_n_f32(LOW));
        let x = vminq_f32(vdupq_n_f32(HIGH), vmaxq_f32(vdupq_n_f32(LOW), x));
        let n = vrndnq_f32(vmulq_n_f32(x, std::f32::consts::LOG2_E));
        let r = vfmsq_n_f32(x, n, LN2[0]);
        let r = vfmsq_n_f32(r, n, LN2[1]);
        let mut series = vdupq_n_f32(SERIES[0]);
        for term in &SERIES[1..] {
            series = vfmaq_f32(vdupq_n_f32(*term), series, r);
        }
        let series = vfmaq_f32(vaddq_f32(r, vdupq_n_f32(1.0)), series, vmulq_f32(r, r));
        let exponent = vshlq_n_s32::<23>(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127)));
        let value = vmulq_f32(series, vreinterpretq_f32_s32(exponent));
        vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(value), under))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exp_of(x: f32) -> f32 {
        let mut out = [0.0; 8];
        Eight::splat(x).exp().store(&mut out);
        assert!(out.iter().all(|v| v.to_bits() == out[0].to_bits()));
        out[0]
    }

    #[test]
    fn agrees_with_the_library() {
        for step in -8700..=8830 {
            let x = step as f32 / 100.0 + 0.001;
            let (got, want) = (exp_of(x), x.exp());
            assert!((got - want).abs() <= want * 2.5e-7, "e^{x}: {got} for {want}");
        }
        assert_eq!(exp_of(0.0), 1.0);
        assert_eq!(exp_of(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp_of(-1e9), 0.0);
        assert!(exp_of(1e9) > 1e38);
        assert!(exp_of(f32::NAN).is_nan());
    }
}
