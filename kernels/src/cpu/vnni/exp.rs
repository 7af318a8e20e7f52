//! The exponential function, sixteen at a time: the series of `avx2/exp.rs`.

use std::arch::x86_64::*;

use crate::cpu::avx2::series::{HIGH, LN2, LOW, SERIES};

/// e^x within two units in the last place; minus infinity gives zero, NaN stays NaN.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn exp(x: __m512) -> __m512 {
    let normal = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, _mm512_set1_ps(LOW));
    // The second operand is the answer when either is NaN.
    let x = _mm512_min_ps(_mm512_set1_ps(HIGH), _mm512_max_ps(_mm512_set1_ps(LOW), x));
    let n = _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(_mm512_mul_ps(
        x,
        _mm512_set1_ps(std::f32::consts::LOG2_E),
    ));
    let r = _mm512_fnmadd_ps(n, _mm512_set1_ps(LN2[0]), x);
    let r = _mm512_fnmadd_ps(n, _mm512_set1_ps(LN2[1]), r);
    let mut series = _mm512_set1_ps(SERIES[0]);
    for term in &SERIES[1..] {
        series = _mm512_fmadd_ps(series, r, _mm512_set1_ps(*term));
    }
    let series = _mm512_fmadd_ps(series, _mm512_mul_ps(r, r), _mm512_add_ps(r, _mm512_set1_ps(1.0)));
    _mm512_maskz_scalef_ps(normal, series, n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn exp_of(x: f32) -> f32 {
        _mm512_reduce_max_ps(exp(_mm512_set1_ps(x)))
    }

    #[test]
    fn agrees_with_the_library() {
        if super::super::Vnni::detect_avx512().is_none() {
            return;
        }
        let exp_of = |x: f32| {
            // SAFETY: detected above.
            unsafe { exp_of(x) }
        };
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
