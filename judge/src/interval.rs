//! Estimates with intervals, and lower bounds on means and on probabilities.

use gfn::Rng;
use gfn::metrics::Estimate;
use gfn::tensor::log_sum_exp;
use serde::{Deserialize, Serialize};

/// The number of standard errors from the middle to each end of a normal 95 % interval.
const Z_95: f64 = 1.959_963_984_540_054;

/// The number of bootstrap samples.
const BOOTSTRAP_ROUNDS: usize = 400;
/// The relative standard error below which the bootstrap isn't used, because rounding errors can be of this
/// size.
const TOLERANCE: f64 = 1e-9;

/// An estimate with an interval. In a [`Certificate`](super::Certificate) the interval is meant to contain
/// the true value for 95 % of policies, but its ends aren't bounds. In a [`Judgement`](super::Judgement) the
/// ends of the interval are bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimated value.
    pub estimate: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Interval {
    /// Converts an estimate of a mean to an interval. The interval has 1.96 standard errors on each side. The
    /// interval is infinite if the mean or the standard error isn't finite.
    #[must_use]
    pub fn from_estimate(found: Estimate) -> Self {
        let half = Z_95 * found.standard_error;
        if found.mean.is_finite() && half.is_finite() {
            Self { estimate: found.mean, low: found.mean - half, high: found.mean + half }
        } else {
            Self { estimate: found.mean, low: f64::NEG_INFINITY, high: f64::INFINITY }
        }
    }

    /// Returns the log of the mean of the exponentials of `logs`, with an interval by the studentised
    /// bootstrap (Efron and Tibshirani, *An introduction to the bootstrap*, 12.5). A normal interval would be
    /// wrong, because importance weights are skewed: if their mean is too small, their standard error is too
    /// small, too.
    pub(crate) fn from_log_draws(logs: &[f64], rng: &mut Rng) -> Self {
        let n = logs.len();
        let estimate = log_sum_exp(logs.iter().copied()) - (n as f64).ln();
        let shares: Vec<f64> = logs.iter().map(|log| (log - estimate).exp()).collect();
        let error_of =
            |mean: f64, squares: f64| ((squares / n as f64 - mean * mean).max(0.0) / n as f64).sqrt() / mean;
        let error = error_of(1.0, shares.iter().map(|share| share * share).sum());
        if n < 2 {
            return Self { estimate, low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        if error < TOLERANCE {
            return Self { estimate, low: estimate - Z_95 * error, high: estimate + Z_95 * error };
        }
        let mut deviations: Vec<f64> = (0..BOOTSTRAP_ROUNDS)
            .map(|_| {
                let mut sum = 0.0;
                let mut squares = 0.0;
                for _ in 0..n {
                    let share = shares[rng.below(n)];
                    sum += share;
                    squares += share * share;
                }
                let mean = sum / n as f64;
                if mean > 0.0 {
                    mean.ln() / error_of(mean, squares).max(TOLERANCE)
                } else {
                    f64::NEG_INFINITY
                }
            })
            .collect();
        deviations.sort_by(f64::total_cmp);
        let at = |share: f64| deviations[(share * (BOOTSTRAP_ROUNDS - 1) as f64).round() as usize];
        Self { estimate, low: estimate - at(0.975) * error, high: estimate - at(0.025) * error }
    }

    /// Returns `true` if a value is within the interval, ends included.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The number of bets by which [`log_mean_at_least`] computes a bound. A bet has a stake, the share of its
/// capital that it risks: 1, 1/2, 1/4 and so on. The initial capital is divided equally among the bets.
const N_STAKES: i32 = 16;
/// The lower end of the range in which [`log_mean_at_least`] searches, in nats below the log of the mean of
/// the draws.
const MAX_SEARCH_NATS: f64 = 100.0;

/// Returns the log of a lower bound on the mean of independent nonnegative random variables; `logs` are the
/// logs of their draws. The bound is false with a probability of at most `risk`, even for heavy tails. The
/// method is betting (Waudby-Smith and Ramdas, *Estimating means of bounded random variables by betting*,
/// 2024).
///
/// If the mean is m, a bet with the stake s in [0, 1] multiplies a capital by `1 + s (x / m - 1)`, which is
/// at most 1 in expectation. A capital of 1, divided among several stakes, therefore reaches 1 / risk with a
/// probability of at most `risk`. The bound is the largest m at which the capital reaches 1 / risk. For n
/// equal draws, the bound is their mean times `(risk / 2)^(1 / n)`.
///
/// Returns minus infinity if no positive bound holds: without draws, and if all draws are 0.
///
/// ```
/// let bound = gfn_judge::log_mean_at_least(&[0.0; 1_000], 0.01);
/// // A thousand draws of 1.
/// assert!(-0.006 < bound && bound < 0.0);
/// ```
#[must_use]
pub fn log_mean_at_least(logs: &[f64], risk: f64) -> f64 {
    let mut high = log_sum_exp(logs.iter().copied()) - (logs.len() as f64).ln();
    let mut low = high - MAX_SEARCH_NATS;
    let is_refuted = |log_m: f64| {
        let ratios: Vec<f64> = logs.iter().map(|log| (log - log_m).exp()).collect();
        let log_capital = |k: i32| {
            let stake = 0.5f64.powi(k);
            // One log of a product of four factors is cheaper than four logs. Each factor is at most e^100
            // times the number of draws, so that the product can't overflow.
            let product =
                |some: &[f64]| some.iter().map(|ratio| 1.0 - stake + stake * ratio).product::<f64>().ln();
            (stake / 2.0).ln() + ratios.chunks(4).map(product).sum::<f64>()
        };
        log_sum_exp((0..N_STAKES).map(log_capital).collect::<Vec<_>>()) >= -risk.ln()
    };
    if !high.is_finite() || !is_refuted(low) {
        return f64::NEG_INFINITY;
    }
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if is_refuted(middle) { low = middle } else { high = middle }
    }
    low
}

/// Returns a lower bound on the probability of an event, which happened in a share `share` of `n` independent
/// draws. The bound is false with a probability of at most `risk`. The bound is the smallest `p` with `n
/// KL(share || p) <= ln(1 / risk)` (Chernoff).
///
/// ```
/// // 100 heads of 100 tosses: p^100 is the risk at the bound.
/// assert!((gfn_judge::probability_at_least(1.0, 100, 0.025) - 0.025f64.powf(0.01)).abs() < 1e-12);
/// ```
#[must_use]
pub fn probability_at_least(share: f64, n: usize, risk: f64) -> f64 {
    let limit = -risk.ln() / n.max(1) as f64;
    let term = |p: f64, q: f64| if p > 0.0 { p * (p / q).ln() } else { 0.0 };
    let mut low = 0.0;
    let mut high = share;
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if term(share, middle) + term(1.0 - share, 1.0 - middle) > limit {
            low = middle
        } else {
            high = middle
        }
    }
    low
}
