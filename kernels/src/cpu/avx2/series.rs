//! Numbers of the exponential function, for vectors of any width.

/// Below this, e^x is under the smallest normal number; the result is zero.
pub(in crate::cpu) const LOW: f32 = -87.336_54;
/// Above this, e^x is beyond the largest number; the argument stays here.
pub(in crate::cpu) const HIGH: f32 = 88.376_26;
/// ln 2 in two parts; the first has few enough bits that its product with an exponent is exact.
pub(in crate::cpu) const LN2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
/// e^r on ±ln2/2, from r² on, highest power first (Cephes).
pub(in crate::cpu) const SERIES: [f32; 6] =
    [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
