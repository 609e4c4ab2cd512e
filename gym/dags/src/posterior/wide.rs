//! Floating-point numbers with about 31 digits and any exponent. Sums over graphs need them: their terms have
//! both signs and can be as small as e^-5000.

use std::ops::{Add, Mul, Neg};

/// The binary logarithm of the factor 2^256. The field `steps` of a [`Wide`] counts how often the number has
/// this factor.
const STEP: i32 = 256;
/// The upper bound 2^200 of the field `high` of a [`Wide`]. A number with a larger `high` is rescaled.
const HIGH: f64 = 1.606_938_044_258_990_3e60;
/// The lower bound 2^-200 of the field `high` of a nonzero [`Wide`]. A number with a smaller `high` is
/// rescaled.
const LOW: f64 = 6.223_015_277_861_142e-61;

/// The number `(high + low) 2^(256 steps)`, where `low` is the rounding error of `high`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Wide {
    high: f64,
    low: f64,
    steps: i64,
}

fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// Returns the rounded sum of two numbers and its rounding error. The error is exact if |a| >= |b|.
fn quick_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

impl Wide {
    pub(super) const ZERO: Self = Self { high: 0.0, low: 0.0, steps: 0 };
    pub(super) const ONE: Self = Self { high: 1.0, low: 0.0, steps: 0 };

    /// Computes e^x, which is 0 for minus infinity.
    pub(super) fn exp(x: f64) -> Self {
        if x == f64::NEG_INFINITY {
            return Self::ZERO;
        }
        let step = f64::from(STEP) * std::f64::consts::LN_2;
        let steps = (x / step).round();
        Self { high: (x - steps * step).exp(), low: 0.0, steps: steps as i64 }.in_range()
    }

    /// Computes the natural logarithm of this number, which must be above 0.
    pub(super) fn ln(self) -> f64 {
        self.high.ln() + self.steps as f64 * f64::from(STEP) * std::f64::consts::LN_2
    }

    pub(super) fn is_zero(self) -> bool {
        self.high == 0.0
    }

    /// Returns this number divided by another one, as a double. The result is 0 if the quotient is too
    /// small for a double.
    pub(super) fn over(self, other: Self) -> f64 {
        if self.is_zero() {
            return 0.0;
        }
        let steps = (self.steps - other.steps).clamp(-8, 8) as i32;
        (self.high / other.high) * 2f64.powi(STEP / 2 * steps) * 2f64.powi(STEP / 2 * steps)
    }

    fn in_range(mut self) -> Self {
        while self.high.abs() >= HIGH {
            self = Self { steps: self.steps + 1, ..self.scaled(-STEP) };
        }
        while self.high.abs() < LOW && self.high != 0.0 {
            self = Self { steps: self.steps - 1, ..self.scaled(STEP) };
        }
        self
    }

    fn scaled(self, power: i32) -> Self {
        let factor = 2f64.powi(power);
        Self { high: self.high * factor, low: self.low * factor, ..self }
    }
}

impl Neg for Wide {
    type Output = Self;
    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low, ..self }
    }
}

impl Mul for Wide {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let product = self.high * other.high;
        let error = self.high.mul_add(other.high, -product);
        let (high, low) = quick_two_sum(product, error + (self.high * other.low + self.low * other.high));
        Self { high, low, steps: self.steps + other.steps }.in_range()
    }
}

impl Add for Wide {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        if self.is_zero() {
            return other;
        }
        if other.is_zero() {
            return self;
        }
        let (large, small) = if self.steps >= other.steps { (self, other) } else { (other, self) };
        let small = match large.steps - small.steps {
            0 => small,
            1 => small.scaled(-STEP),
            // The exponents differ by at least 512, and the field `high` of both numbers is between 2^-200
            // and 2^200. The smaller number is therefore below the last digit of the larger one, and has no
            // effect on the sum.
            _ => return large,
        };
        let (sum, error) = two_sum(large.high, small.high);
        let (lows, rest) = two_sum(large.low, small.low);
        let (sum, error) = quick_two_sum(sum, error + lows);
        let (high, low) = quick_two_sum(sum, error + rest);
        Self { high, low, steps: large.steps }.in_range()
    }
}
