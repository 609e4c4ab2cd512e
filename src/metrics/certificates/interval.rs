//! Figures with intervals, and the bounds that they are made by.

use serde::{Deserialize, Serialize};

use crate::Rng;
use crate::metrics::Estimate;
use crate::tensor::log_sum_exp;

/// Half-width of an interval of 95 %, in standard errors.
pub(super) const Z_95: f64 = 1.959_963_984_540_054;

/// Rounds of the bootstrap.
const ROUNDS: usize = 400;
/// Relative errors that single precision makes.
const ROUNDING: f64 = 1e-9;

/// A figure and its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The figure.
    pub estimate: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// The mean with 1.96 standard errors on each side.
    pub(super) fn normal(of: Estimate) -> Self {
        let half = if of.standard_error.is_finite() { Z_95 * of.standard_error } else { f64::INFINITY };
        Self { estimate: of.mean, low: of.mean - half, high: of.mean + half }
    }

    /// The log of the mean of the exponentials of these, with the interval of the studentised bootstrap (Efron and Tibshirani, *An
    /// introduction to the bootstrap*, 12.5): weights are skewed, and where their mean is too small, so is its error.
    pub(super) fn of_log_mean(logs: &[f64], rng: &mut Rng) -> Self {
        let n = logs.len();
        let estimate = log_sum_exp(logs.iter().copied()) - (n as f64).ln();
        let shares: Vec<f64> = logs.iter().map(|log| (log - estimate).exp()).collect();
        let error_of = |mean: f64, squares: f64| ((squares / n as f64 - mean * mean).max(0.0) / n as f64).sqrt() / mean;
        let error = error_of(1.0, shares.iter().map(|share| share * share).sum());
        if n < 2 {
            return Self { estimate, low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        if error < ROUNDING {
            return Self { estimate, low: estimate - Z_95 * error, high: estimate + Z_95 * error };
        }
        let mut deviations: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let (mut sum, mut squares) = (0.0, 0.0);
                for _ in 0..n {
                    let share = shares[rng.below(n)];
                    sum += share;
                    squares += share * share;
                }
                let mean = sum / n as f64;
                if mean > 0.0 { mean.ln() / error_of(mean, squares).max(ROUNDING) } else { f64::NEG_INFINITY }
            })
            .collect();
        deviations.sort_by(f64::total_cmp);
        let at = |share: f64| deviations[(share * (ROUNDS - 1) as f64).round() as usize];
        Self { estimate, low: estimate - at(0.975) * error, high: estimate - at(0.025) * error }
    }

    /// `true` for a value within the interval.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// An upper bound on the mean of variables in [0, 1] that holds with probability 1 - `risk` (Maurer and Pontil, 2009, theorem 4).
pub(super) fn mean_at_most(values: &[f64], risk: f64) -> f64 {
    let Estimate { mean, standard_error } = Estimate::of(values);
    let (n, log) = (values.len() as f64, (2.0 / risk).ln());
    if values.len() < 2 {
        1.0
    } else {
        (mean + standard_error * (2.0 * log).sqrt() + 7.0 * log / (3.0 * (n - 1.0))).min(1.0)
    }
}

/// A lower bound on the probability of an event that was seen in this share of `n` draws, which holds with probability 1 - `risk`: the
/// smallest `p` with `n KL(share || p) <= ln(1 / risk)` (Chernoff).
pub(super) fn probability_at_least(share: f64, n: usize, risk: f64) -> f64 {
    let limit = -risk.ln() / n.max(1) as f64;
    let term = |p: f64, q: f64| if p > 0.0 { p * (p / q).ln() } else { 0.0 };
    let (mut low, mut high) = (0.0, share);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if term(share, middle) + term(1.0 - share, 1.0 - middle) > limit { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 heads of 100 tosses: p^100 = risk at the bound. 0 heads say nothing from below.
    #[test]
    fn shares_have_the_bounds_of_chernoff() {
        assert!((probability_at_least(1.0, 100, 0.025) - 0.025f64.powf(0.01)).abs() < 1e-12);
        assert!(probability_at_least(0.0, 100, 0.025) == 0.0);
        let low = probability_at_least(0.5, 10_000, 0.025);
        assert!(0.48 < low && low < 0.49, "{low}");
    }

    /// Without spread the bound is that of the second term alone; more draws bring it down.
    #[test]
    fn means_have_the_bounds_of_maurer_and_pontil() {
        let bound = mean_at_most(&[0.25; 1_001], 0.05);
        assert!((bound - 0.25 - 7.0 * 40f64.ln() / 3_000.0).abs() < 1e-12);
        assert!(mean_at_most(&[0.0, 1.0], 0.05) == 1.0);
        let spread: Vec<f64> = (0..20_000).map(|k| f64::from(k % 2)).collect();
        assert!((mean_at_most(&spread, 0.05) - 0.5).abs() < 0.012);
    }
}
