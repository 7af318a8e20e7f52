//! Numbers in 8 bits with one scale for a run of them: keys, values and queries.
//!
//! Plain Rust that compilers make vectors of, wide ones where it is compiled into a function of an instruction set; so it
//! gives the same bits on all.

use half::f16;

/// Codes are in -LARGEST..=LARGEST.
const LARGEST: f32 = 127.0;
/// 1.5 · 2²³: added to a small number, it leaves the nearest whole number in the low bits.
const ROUND: f32 = 12_582_912.0;

/// The scale of numbers up to `largest`.
pub(crate) fn scale(largest: f32) -> f32 {
    largest / LARGEST
}

/// The same in 16 bits. It is rounded before the codes are made, which costs nothing but that the largest number may be
/// cut by a part of a step; numbers below about 4e-6, whose scale is none in 16 bits, become 0. Where something is not finite the scale is not either, so that it shows in what is computed.
pub(crate) fn half_scale(largest: f32) -> f16 {
    f16::from_f32(largest / LARGEST)
}

/// The largest magnitude; NaN where there is one. As integers, magnitudes are ordered as the numbers are, and NaN is
/// above all.
#[inline(always)]
pub(crate) fn largest(x: &[f32]) -> f32 {
    f32::from_bits(x.iter().fold(0, |m, x| (x.to_bits() & !(1 << 31)).max(m)))
}

/// Codes of `x` by a scale; of no use where that is not finite.
#[inline(always)]
pub(crate) fn put(x: &[f32], scale: f32, codes: &mut [i8]) {
    // Below this the inverse is infinite, and all of it nothing beside any other number of a model.
    let inverse = if scale < f32::MIN_POSITIVE { 0.0 } else { 1.0 / scale };
    for (x, code) in x.iter().zip(codes) {
        let x = (x * inverse).clamp(-LARGEST, LARGEST);
        *code = (x + ROUND).to_bits() as i8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_within_half_a_step() {
        for power in [-20, -8, 0, 9, 15] {
            for len in 1..=70 {
                let number =
                    |i: usize| ((i * 2_654_435_761 + len) as u32 as f32 / 2e9 - 1.0) * 2f32.powi(power);
                let x: Vec<f32> = (0..len).map(number).collect();
                let most = x.iter().fold(0.0f32, |m, x| m.max(x.abs()));
                let mut codes = vec![99; len];
                assert_eq!(largest(&x), most);
                let scale = scale(most);
                put(&x, scale, &mut codes);
                for (x, code) in x.iter().zip(&codes) {
                    assert!((x - scale * f32::from(*code)).abs() <= 0.5001 * scale, "{x} {code} {scale}");
                }
                let half = half_scale(most).to_f32();
                put(&x, half, &mut codes);
                // The scale's own rounding: 2⁻¹¹, or 2⁻²⁵ where 16-bit floats end.
                assert!((half - scale).abs() <= (scale / 2048.0).max(3e-8));
                for (x, code) in x.iter().zip(&codes) {
                    let cut = 127.0 * (scale - half).max(0.0);
                    assert!((x - half * f32::from(*code)).abs() <= 0.5001 * half + cut, "{x} {code} {half}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_zero_and_what_is_not_finite_shows() {
        let mut codes = [99; 3];
        put(&[0.0, -0.0, 1e-44], scale(1e-44), &mut codes);
        assert_eq!(codes, [0; 3]);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30] {
            let scale = half_scale(largest(&[1.0, bad, 2.0]));
            assert!(!scale.is_finite());
            put(&[1.0, bad, 2.0], scale.to_f32(), &mut codes);
        }
    }
}
