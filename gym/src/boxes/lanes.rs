//! The logarithm and the exponential without branches and calls, so that the compiler can compute several
//! numbers at once.

/// Computes `ln(x)` for a positive normal number, to about one unit in the last place, by fdlibm's method
/// (Sun Microsystems, 1993). The result is meaningless for any other number.
#[inline(always)]
pub(super) fn ln(x: f64) -> f64 {
    /// The bits of the square root of one half. `ln` splits off a power of two from its argument, and the
    /// remaining factor lies between this number and the square root of two.
    const LEAST: u64 = 0x3fe6_a09e_667f_3bcd;
    /// The bits of the floating-point number 1.
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    /// The bits of the number 2^52. If a small whole number is written into its last bits, the float is 2^52
    /// plus this whole number.
    const WHOLE: u64 = 0x4330_0000_0000_0000;
    /// The logarithm of 2, as the sum of a rounded number and of the remainder.
    const LN_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    const SERIES: [f64; 7] = [
        6.666_666_666_666_735e-1,
        3.999_999_999_940_942e-1,
        2.857_142_874_366_239e-1,
        2.222_219_843_214_978_4e-1,
        1.818_357_216_161_805e-1,
        1.531_383_769_920_937_3e-1,
        1.479_819_860_511_658_6e-1,
    ];
    let bits = x.to_bits().wrapping_add(ONE - LEAST);
    let power = f64::from_bits(WHOLE | (bits >> 52)) - (f64::from_bits(WHOLE) + 1023.0);
    let f = f64::from_bits((bits & (u64::MAX >> 12)) + LEAST) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let series = z * polynomial(&SERIES, z);
    let half = 0.5 * f * f;
    power * LN_2[0] - ((half - (s * (half + series) + power * LN_2[1])) - f)
}

/// Computes `exp(x)`, to about one unit in the last place, by fdlibm's method. Arguments are clamped to the
/// range from -708, where exp is 3e-308, to 709. The exponential of NaN is NaN.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    /// The number 1.5 * 2^52. If it is added to a number and then subtracted, the number is rounded to a
    /// whole number.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// The logarithm of 2, as the sum of a rounded number and of the remainder.
    const LN_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    const SERIES: [f64; 5] = [
        1.666_666_666_666_660_2e-1,
        -2.777_777_777_701_559_3e-3,
        6.613_756_321_437_934e-5,
        -1.653_390_220_546_525_2e-6,
        4.138_136_797_057_238_5e-8,
    ];
    let x = x.clamp(-708.0, 709.0);
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let power = shifted - ROUND;
    let high = x - power * LN_2[0];
    let low = power * LN_2[1];
    let r = high - low;
    let square = r * r;
    let c = r - square * polynomial(&SERIES, square);
    let value = 1.0 - ((low - (r * c) / (2.0 - c)) - high);
    // The last bits of `shifted` hold the exponent of the power of two, which may be negative.
    value * f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52))
}

/// Computes the sum of `terms[k] x^k`.
#[inline(always)]
pub(super) fn polynomial<const N: usize>(terms: &[f64; N], x: f64) -> f64 {
    let mut sum = terms[N - 1];
    for k in 1..N {
        sum = sum * x + terms[N - 1 - k];
    }
    sum
}
