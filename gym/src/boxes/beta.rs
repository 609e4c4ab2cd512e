//! Log-densities of many Beta distributions at once, with derivatives.
//!
//! libtorch computes them in f64 by some forty operations on `[states, components]`, each through memory and most of them once more for
//! the gradient. One pass on the host that keeps value and derivatives takes a fraction of the time.

use super::dist::BetaMixtures;
use super::lanes::{exp, ln, polynomial};

/// Number of distributions that are computed together in vector registers.
const BLOCK: usize = 32;

/// Beta distributions side by side: the log-density at u is `(alpha - 1) ln u + (beta - 1) ln(1 - u) + log_norm`.
pub(super) struct Betas {
    /// alpha and beta.
    pub(super) concentrations: [Vec<f64>; 2],
    /// -ln B(alpha, beta).
    pub(super) log_norms: Vec<f64>,
    /// The derivatives of `log_norms` by alpha and beta.
    pub(super) by_concentrations: [Vec<f64>; 2],
    /// The derivatives of alpha and beta by the raw numbers that they are made from.
    pub(super) slopes: [Vec<f64>; 2],
}

impl Betas {
    /// The distributions of raw alphas and as many raw betas.
    #[inline(always)]
    pub(super) fn new(mixtures: &BetaMixtures, [alphas, betas]: [&[f64]; 2]) -> Self {
        let empty = || Vec::with_capacity(alphas.len());
        let pair = || [empty(), empty()];
        let mut out = Self { concentrations: pair(), log_norms: empty(), by_concentrations: pair(), slopes: pair() };
        for (alphas, betas) in alphas.chunks(BLOCK).zip(betas.chunks(BLOCK)) {
            let n = alphas.len();
            let mut raw = [[0.0; BLOCK]; 2];
            raw[0][..n].copy_from_slice(alphas);
            raw[1][..n].copy_from_slice(betas);
            let mut block = [[0.0; BLOCK]; 7];
            Self::block(mixtures, &raw, &mut block);
            let [alphas, betas] = &mut out.concentrations;
            let ([by_alphas, by_betas], [of_alphas, of_betas]) = (&mut out.by_concentrations, &mut out.slopes);
            let rows = [alphas, betas, &mut out.log_norms, by_alphas, by_betas, of_alphas, of_betas];
            rows.into_iter().zip(&block).for_each(|(row, values)| row.extend_from_slice(&values[..n]));
        }
        out
    }

    #[inline(always)]
    fn block(mixtures: &BetaMixtures, raw: &[[f64; BLOCK]; 2], out: &mut [[f64; BLOCK]; 7]) {
        let (min, range) = (mixtures.min_concentration, mixtures.max_concentration - mixtures.min_concentration);
        // Plain indices: with iterators the compiler doesn't vectorise.
        for i in 0..BLOCK {
            let shares = [raw[0][i], raw[1][i]].map(|raw| 1.0 / (1.0 + exp(-raw)));
            let [alpha, beta] = shares.map(|share| min + range * share);
            let (of_alpha, of_beta, of_both) = (LogGamma::at(alpha), LogGamma::at(beta), LogGamma::at(alpha + beta));
            out[0][i] = alpha;
            out[1][i] = beta;
            out[2][i] = of_both.value - of_alpha.value - of_beta.value
                + ln(of_alpha.product * of_beta.product / of_both.product);
            out[3][i] = of_both.slope - of_alpha.slope;
            out[4][i] = of_both.slope - of_beta.slope;
            out[5][i] = range * shares[0] * (1.0 - shares[0]);
            out[6][i] = range * shares[1] * (1.0 - shares[1]);
        }
    }
}

/// ln Gamma and its derivative (digamma) at one argument: ln Gamma is `value - ln(product)`, so that several need one more logarithm, not
/// one each.
#[derive(Clone, Copy)]
struct LogGamma {
    value: f64,
    product: f64,
    slope: f64,
}

impl LogGamma {
    /// Stirling's series, and below its range the recurrence `Gamma(x + 1) = x Gamma(x)` (Abramowitz and Stegun, *Handbook of
    /// Mathematical Functions*, 6.1.15, 6.1.41, 6.3.5 and 6.3.18). Both are computed together because they share the logarithm.
    /// For `x > 0`; exact to 1e-13 of the largest term.
    #[inline(always)]
    fn at(x: f64) -> Self {
        /// From here on the terms that are left out are below 4e-14.
        const FROM: f64 = 6.0;
        const STEPS: usize = 6;
        const HALF_LOG_TWO_PI: f64 = 0.918_938_533_204_672_8;
        /// B_2k / (2k (2k - 1)) of the Bernoulli numbers.
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
        /// B_2k / 2k.
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
        // The product of the arguments that are stepped over, and its derivative: all steps or none, so that nothing branches.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_gamma_and_digamma_are_right_over_the_whole_range() {
        let mut x = 1e-3;
        while x < 1e7 {
            let LogGamma { value, product, slope } = LogGamma::at(x);
            let value = value - product.ln();
            let expected = libm::lgamma(x);
            assert!((value - expected).abs() <= 1e-13 * expected.abs().max(x).max(10.0), "{x}: {value} {expected}");
            // psi(x + 1) = psi(x) + 1 / x, across the end of the recurrence, too.
            let next = LogGamma::at(x + 1.0).slope;
            assert!(
                (next - slope - 1.0 / x).abs() <= 2e-13 * (1.0 / x).max(slope.abs()).max(1.0),
                "{x}: {slope} {next}"
            );
            x *= 1.037;
        }
        const EULER: f64 = 0.577_215_664_901_532_9;
        assert!((LogGamma::at(1.0).slope + EULER).abs() < 1e-13);
        assert!((LogGamma::at(0.5).slope + EULER + 2.0 * 2f64.ln()).abs() < 1e-13);
        // ln Gamma(1/2) = ln sqrt(pi).
        let half = LogGamma::at(0.5);
        assert!((half.value - half.product.ln() - 0.5 * std::f64::consts::PI.ln()).abs() < 1e-13);
    }
}
