//! The exponential function, eight at a time.

use std::arch::x86_64::*;

use super::series::{HIGH, LN2, LOW, SERIES};

/// e^x within two units in the last place; minus infinity gives zero, NaN stays NaN.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn exp(x: __m256) -> __m256 {
    let under = _mm256_cmp_ps::<_CMP_LT_OQ>(x, _mm256_set1_ps(LOW));
    // The second operand is the answer when either is NaN.
    let x = _mm256_min_ps(_mm256_set1_ps(HIGH), _mm256_max_ps(_mm256_set1_ps(LOW), x));
    let n = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(_mm256_mul_ps(
        x,
        _mm256_set1_ps(std::f32::consts::LOG2_E),
    ));
    let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(LN2[0]), x);
    let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(LN2[1]), r);
    let mut series = _mm256_set1_ps(SERIES[0]);
    for term in &SERIES[1..] {
        series = _mm256_fmadd_ps(series, r, _mm256_set1_ps(*term));
    }
    let series = _mm256_fmadd_ps(series, _mm256_mul_ps(r, r), _mm256_add_ps(r, _mm256_set1_ps(1.0)));
    let exponent = _mm256_slli_epi32::<23>(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)));
    _mm256_andnot_ps(under, _mm256_mul_ps(series, _mm256_castsi256_ps(exponent)))
}

/// The sum of the lanes, always in the same order.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn sum(x: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}

/// The largest lane.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn max(x: __m256) -> f32 {
    let four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
    let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps::<1>(two, two)))
}

/// Eight floats from a slice that has them.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn load(from: &[f32; 8]) -> __m256 {
    // SAFETY: the reference is to eight floats.
    unsafe { _mm256_loadu_ps(from.as_ptr()) }
}

/// Eight floats to a slice that has room.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn store(to: &mut [f32; 8], x: __m256) {
    // SAFETY: the reference is to eight floats.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[target_feature(enable = "avx2,fma,f16c")]
    fn exp_of(x: f32) -> f32 {
        let mut out = [0.0; 8];
        store(&mut out, exp(_mm256_set1_ps(x)));
        assert!(out.iter().all(|v| v.to_bits() == out[0].to_bits()));
        out[0]
    }

    #[test]
    fn agrees_with_the_library() {
        if super::super::Avx2::detect().is_none() {
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
