//! Log-densities of many Beta distributions at once, with their derivatives.
//!
//! libtorch computes them in f64 by some forty operations on `[states, components]`, each through memory and most of them once more for
//! the gradient. One pass on the host that keeps value and derivatives takes a third of the time.

use super::dist::BetaMixtures;

/// One Beta distribution: what its log-density at a point and the derivatives of that are made of.
#[derive(Clone, Copy)]
struct Term {
    /// alpha and beta.
    concentrations: [f64; 2],
    /// -ln B(alpha, beta).
    log_norm: f64,
    /// The derivatives of `log_norm` by alpha and beta.
    by_concentration: [f64; 2],
    /// The derivatives of alpha and beta by the raw numbers that they are made from.
    slopes: [f64; 2],
}

impl Term {
    fn new(mixtures: &BetaMixtures, raw: [f64; 2]) -> Self {
        let (min, range) = (mixtures.min_concentration, mixtures.max_concentration - mixtures.min_concentration);
        let concentrations = raw.map(|raw| mixtures.concentration(raw));
        let [alpha, beta] = concentrations;
        let (of_alpha, of_beta, of_both) = (LogGamma::at(alpha), LogGamma::at(beta), LogGamma::at(alpha + beta));
        Self {
            concentrations,
            log_norm: of_both.value - of_alpha.value - of_beta.value
                + (of_alpha.product * of_beta.product / of_both.product).ln(),
            by_concentration: [of_both.slope - of_alpha.slope, of_both.slope - of_beta.slope],
            slopes: concentrations.map(|c| (c - min) * (1.0 - (c - min) / range)),
        }
    }
}

/// Log-densities and their derivatives by the raw numbers.
pub(super) struct BetaLogDensities {
    /// `[points, axes, K]`.
    pub(super) values: Vec<f64>,
    /// `[points, 2, axes, K]`: by raw alphas, then by raw betas.
    pub(super) by_raw: Vec<f64>,
}

/// The log-density of each component along each axis: `raw` holds `[2, axes, K]` raw numbers for each state (alphas, then betas), `of` says
/// which state each point belongs to, `points` holds its `axes` unit coordinates, inside of (0, 1).
pub(super) fn beta_log_densities(
    mixtures: &BetaMixtures,
    raw: &[f64],
    of: &[usize],
    points: &[&[f64]],
) -> BetaLogDensities {
    let k = mixtures.components;
    let width = points.first().map_or(0, |point| point.len()) * k;
    let terms: Vec<Term> = raw
        .chunks_exact(2 * width)
        .flat_map(|state| {
            let (alphas, betas) = state.split_at(width);
            alphas.iter().zip(betas).map(|(&alpha, &beta)| Term::new(mixtures, [alpha, beta]))
        })
        .collect();
    let mut values = Vec::with_capacity(points.len() * width);
    let mut by_raw = vec![0.0; points.len() * 2 * width];
    for ((&state, point), by_raw) in of.iter().zip(points).zip(by_raw.chunks_exact_mut(2 * width)) {
        let (by_alphas, by_betas) = by_raw.split_at_mut(width);
        let terms = terms[state * width..][..width].chunks_exact(k);
        let slopes = by_alphas.chunks_exact_mut(k).zip(by_betas.chunks_exact_mut(k));
        for ((&u, terms), (by_alphas, by_betas)) in point.iter().zip(terms).zip(slopes) {
            let logs = [u.ln(), (-u).ln_1p()];
            for ((term, by_alpha), by_beta) in terms.iter().zip(by_alphas).zip(by_betas) {
                let [alpha, beta] = term.concentrations;
                values.push((alpha - 1.0) * logs[0] + (beta - 1.0) * logs[1] + term.log_norm);
                *by_alpha = (logs[0] + term.by_concentration[0]) * term.slopes[0];
                *by_beta = (logs[1] + term.by_concentration[1]) * term.slopes[1];
            }
        }
    }
    BetaLogDensities { values, by_raw }
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
    fn at(x: f64) -> Self {
        /// From here on the terms that are left out are below 4e-14.
        const FROM: f64 = 6.0;
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
        // The product of the arguments that are stepped over, and its derivative.
        let (mut z, mut product, mut derivative) = (x, 1.0, 0.0);
        while z < FROM {
            derivative = derivative * z + product;
            product *= z;
            z += 1.0;
        }
        let (inverse, log) = (z.recip(), z.ln());
        let square = inverse * inverse;
        let series = |terms: &[f64]| terms.iter().rev().fold(0.0, |sum, term| sum * square + term);
        let value = (z - 0.5) * log - z + HALF_LOG_TWO_PI + inverse * series(&VALUE);
        let slope = log - 0.5 * inverse - square * series(&SLOPE);
        Self { value, product, slope: slope - derivative / product }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxes::Coupling;

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

    #[test]
    fn densities_and_derivatives_are_those_of_the_formula() {
        let mixtures =
            BetaMixtures { coupling: Coupling::Joint, components: 2, min_concentration: 0.6, max_concentration: 300.0 };
        let raw: Vec<f64> = (0..16).map(|i| ((i * 7 % 16) as f64 - 8.0) * 0.7).collect();
        // Two states of two axes; the second is asked at two points, the first at one.
        let (of, points): (_, [&[f64]; 3]) = ([1, 0, 1], [&[0.2, 0.7], &[1e-9, 0.5], &[0.999, 0.01]]);
        let values = |raw: &[f64]| beta_log_densities(&mixtures, raw, &of, &points);
        let got = values(&raw);
        for (p, (&state, point)) in of.iter().zip(points).enumerate() {
            for (axis, &u) in point.iter().enumerate() {
                for k in 0..2 {
                    let at = |part: usize| state * 8 + part * 4 + axis * 2 + k;
                    let [a, b] = [0, 1].map(|part| 0.6 + 299.4 / (1.0 + (-raw[at(part)]).exp()));
                    let log_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
                    let expected = (a - 1.0) * u.ln() + (b - 1.0) * (1.0 - u).ln() - log_beta;
                    let value = got.values[p * 4 + axis * 2 + k];
                    assert!((value - expected).abs() < 1e-11 * expected.abs().max(100.0), "{value} {expected}");
                    for part in 0..2 {
                        let moved = |step: f64| {
                            let mut raw = raw.clone();
                            raw[at(part)] += step;
                            values(&raw).values[p * 4 + axis * 2 + k]
                        };
                        let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                        let by_raw = got.by_raw[p * 8 + part * 4 + axis * 2 + k];
                        assert!((by_raw - slope).abs() < 1e-5 * slope.abs().max(1.0), "{by_raw} {slope}");
                    }
                }
            }
        }
    }
}
