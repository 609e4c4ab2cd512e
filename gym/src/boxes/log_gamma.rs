//! The logarithm of the Gamma function and its derivative.

use super::lanes::{ln, polynomial};

/// The function ln Gamma and its derivative (digamma) at one argument. ln Gamma is `value - ln(product)`. A
/// sum of several ln Gammas therefore needs a single logarithm, that of the product of all `product`s.
#[derive(Clone, Copy)]
pub(super) struct LogGamma {
    pub(super) value: f64,
    pub(super) product: f64,
    pub(super) slope: f64,
}

impl LogGamma {
    /// Computes ln Gamma and digamma of x by Stirling's series. Arguments that are too small for the series
    /// are raised by the recurrence `Gamma(x + 1) = x Gamma(x)` (Abramowitz and Stegun, *Handbook of
    /// Mathematical Functions*, 6.1.15, 6.1.41, 6.3.5 and 6.3.18). The result is valid for `x > 0`, and its
    /// error is at most 1e-13 times its largest term.
    #[inline(always)]
    pub(super) fn at(x: f64) -> Self {
        /// The smallest argument for which the series is used. At this and larger arguments the omitted terms
        /// are below 4e-14.
        const FROM: f64 = 6.0;
        /// The number of times that the recurrence raises a smaller argument by 1.
        const STEPS: usize = 6;
        const HALF_LOG_TWO_PI: f64 = 0.918_938_533_204_672_8;
        /// The coefficients of Stirling's series for ln Gamma: B_2k / (2k (2k - 1)), with Bernoulli numbers
        /// B.
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
        /// The coefficients of the series for digamma: B_2k / 2k, with Bernoulli numbers B.
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
        // `product` is the product of x, x + 1, ..., by which the recurrence divides, and `derivative` is its
        // derivative. To avoid branches, the loop makes all steps, and its results are dropped if they aren't
        // needed.
        let mut stepped = x;
        let mut product = 1.0;
        let mut derivative = 0.0;
        for _ in 0..STEPS {
            derivative = derivative * stepped + product;
            product *= stepped;
            stepped += 1.0;
        }
        let below = x < FROM;
        let z = if below { stepped } else { x };
        let product = if below { product } else { 1.0 };
        let derivative = if below { derivative } else { 0.0 };
        let inverse = 1.0 / z;
        let log = ln(z);
        let square = inverse * inverse;
        let value = (z - 0.5) * log - z + HALF_LOG_TWO_PI + inverse * polynomial(&VALUE, square);
        let slope = log - 0.5 * inverse - square * polynomial(&SLOPE, square);
        Self { value, product, slope: slope - derivative / product }
    }
}
