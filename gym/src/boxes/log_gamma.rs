//! The logarithm of the Gamma function and its derivative.

use super::lanes::{ln, polynomial};

/// The function ln Gamma and its derivative (digamma) at one argument. ln Gamma is `value - ln(product)`, so
/// that a sum of several needs one logarithm of the products instead of one for each.
#[derive(Clone, Copy)]
pub(super) struct LogGamma {
    pub(super) value: f64,
    pub(super) product: f64,
    pub(super) slope: f64,
}

impl LogGamma {
    /// Computes Stirling's series; arguments below its range are raised by the recurrence `Gamma(x + 1) = x
    /// Gamma(x)` (Abramowitz and Stegun, *Handbook of Mathematical Functions*, 6.1.15, 6.1.41, 6.3.5 and
    /// 6.3.18). Value and slope share one logarithm. The result is valid for `x > 0` and exact to 1e-13 of
    /// its largest term.
    #[inline(always)]
    pub(super) fn at(x: f64) -> Self {
        /// The argument from which on the omitted terms of the series are below 4e-14.
        const FROM: f64 = 6.0;
        const STEPS: usize = 6;
        const HALF_LOG_TWO_PI: f64 = 0.918_938_533_204_672_8;
        /// The coefficients B_2k / (2k (2k - 1)) of ln Gamma, with Bernoulli numbers B.
        const VALUE: [f64; 8] = [
            1.0 / 12.0,
            -1.0 / 360.0,
            1.0 / 1260.0,
            -1.0 / 1680.0,
            1.0 / 1188.0,
            -691.0 / 360_360.0,
            1.0 / 156.0,
            -3617.0 / 122_400.0,
        ];
        /// The coefficients B_2k / 2k of digamma, with Bernoulli numbers B.
        const SLOPE: [f64; 8] = [
            1.0 / 12.0,
            -1.0 / 120.0,
            1.0 / 252.0,
            -1.0 / 240.0,
            1.0 / 132.0,
            -691.0 / 32_760.0,
            1.0 / 12.0,
            -3617.0 / 8160.0,
        ];
        // The product of the arguments that the recurrence passes, and its derivative. The loop always makes
        // all steps and the result is dropped if it isn't needed, so that nothing branches.
        let (mut stepped, mut product, mut derivative) = (x, 1.0, 0.0);
        for _ in 0..STEPS {
            derivative = derivative * stepped + product;
            product *= stepped;
            stepped += 1.0;
        }
        let below = x < FROM;
        let z = if below { stepped } else { x };
        let product = if below { product } else { 1.0 };
        let derivative = if below { derivative } else { 0.0 };
        let (inverse, log) = (1.0 / z, ln(z));
        let square = inverse * inverse;
        let value = (z - 0.5) * log - z + HALF_LOG_TWO_PI + inverse * polynomial(&VALUE, square);
        let slope = log - 0.5 * inverse - square * polynomial(&SLOPE, square);
        Self { value, product, slope: slope - derivative / product }
    }
}
