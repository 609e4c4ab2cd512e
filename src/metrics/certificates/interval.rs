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

/// A figure and its interval, meant to hold for 95 % of policies. A [`Certificate`](super::Certificate) has
/// such intervals only around estimates: they are no bounds. Those of a [`Judgement`](super::Judgement) are
/// bounds.
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
        let half = Z_95 * of.standard_error;
        if of.mean.is_finite() && half.is_finite() {
            Self { estimate: of.mean, low: of.mean - half, high: of.mean + half }
        } else {
            Self { estimate: of.mean, low: f64::NEG_INFINITY, high: f64::INFINITY }
        }
    }

    /// The log of the mean of the exponentials of these, with the interval of the studentised bootstrap
    /// (Efron and Tibshirani, *An introduction to the bootstrap*, 12.5): weights are skewed, and where their
    /// mean is too small, so is its error.
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

/// Stakes of the bets of [`log_mean_at_least`]: 1, 1/2, 1/4 and so on.
const STAKES: i32 = 16;
/// How far below the log of the mean the bound is searched for.
const SEARCHED_NATS: f64 = 100.0;

/// The log of a lower bound on the mean of independent variables that are never negative, from the logs of
/// draws of them. The bound is false with a probability of at most `risk`, however heavy the tail is
/// (betting; Waudby-Smith and Ramdas, *Estimating means of bounded random variables by betting*, 2024).
///
/// If the mean is m, a bet with the stake s in [0, 1] multiplies a capital by `1 + s (x / m - 1)`, by no more
/// than 1 in expectation. So the capital that started at 1, dealt out to several stakes, reaches 1 / risk
/// with a probability of at most `risk`. The bound is the largest m at which it does. For n equal draws it is
/// too small by the factor `(risk / 2)^(1 / n)`.
pub(super) fn log_mean_at_least(logs: &[f64], risk: f64) -> f64 {
    let mut high = log_sum_exp(logs.iter().copied()) - (logs.len() as f64).ln();
    let mut low = high - SEARCHED_NATS;
    let is_refuted = |log_m: f64| {
        let ratios: Vec<f64> = logs.iter().map(|log| (log - log_m).exp()).collect();
        let log_capital = |k: i32| {
            let stake = 0.5f64.powi(k);
            // Logs of products of four factors are cheaper than four logs, and can't overflow.
            let product = |some: &[f64]| some.iter().map(|ratio| 1.0 - stake + stake * ratio).product::<f64>().ln();
            (stake / 2.0).ln() + ratios.chunks(4).map(product).sum::<f64>()
        };
        log_sum_exp((0..STAKES).map(log_capital).collect::<Vec<_>>()) >= -risk.ln()
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

/// A lower bound on the probability of an event that was seen in this share of `n` draws. It is false with a
/// probability of at most `risk`: the smallest `p` with `n KL(share || p) <= ln(1 / risk)` (Chernoff).
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

    /// Equal draws: the bound is below them by the risk of not having seen what else there is.
    #[test]
    fn means_of_equal_draws_lose_what_they_cannot_exclude() {
        for n in [1, 20, 1_000] {
            let bound = log_mean_at_least(&vec![-700.0; n], 0.025);
            let stakes: f64 = (0..STAKES).map(|k| 0.5f64.powi(k)).sum();
            assert!(bound < -700.0 + (0.025f64).ln() / n as f64 + 1e-6 && stakes < 2.0, "{n}: {bound}");
            assert!(bound > -700.0 + (0.025f64 / 2.0).ln() / n as f64 - 1e-6, "{n}: {bound}");
        }
        assert!(log_mean_at_least(&[], 0.025) == f64::NEG_INFINITY);
        assert!(log_mean_at_least(&[f64::NEG_INFINITY; 3], 0.025) == f64::NEG_INFINITY);
        // One draw that is nearly the whole sum: no more than Markov's inequality says.
        let mut logs = vec![0.0; 999];
        logs.push(500.0);
        let bound = log_mean_at_least(&logs, 0.025);
        assert!(480.0 < bound && bound < 500.0 - 1_000f64.ln() + 0.025f64.ln(), "{bound}");
    }

    /// Variables of mean 1 whose mean is almost all in rare draws, in 400 samples of each: the bound is above
    /// the mean in no more than 5 %.
    #[test]
    fn bounds_on_means_hold_for_heavy_tails() {
        let rng = &mut Rng::seeded(0);
        let two = |p: f64, rng: &mut Rng| if rng.uniform() < p { -p.ln() } else { f64::NEG_INFINITY };
        let normal = |sd: f64, rng: &mut Rng| sd * rng.normal() - sd * sd / 2.0;
        let variables: [&dyn Fn(&mut Rng) -> f64; 5] = [
            &|rng| two(0.5, rng),
            &|rng| two(0.02, rng),
            &|rng| (0.05 + 0.95 * two(0.01, rng).exp()).ln(),
            &|rng| normal(0.3, rng),
            &|rng| normal(2.0, rng),
        ];
        for (k, variable) in variables.iter().enumerate() {
            let mut wrong = 0;
            for _ in 0..400 {
                let logs: Vec<f64> = (0..50).map(|_| variable(rng)).collect();
                wrong += usize::from(log_mean_at_least(&logs, 0.05) > 0.0);
            }
            assert!(wrong <= 20, "variable {k}: {wrong} of 400");
        }
        // It isn't empty: a spread of 0.3 is known to a few hundredths.
        let logs: Vec<f64> = (0..2_000).map(|_| normal(0.3, rng)).collect();
        assert!(log_mean_at_least(&logs, 0.01) > -0.04);
    }

    /// Neither end of an interval around an infinite mean is NaN.
    #[test]
    fn intervals_of_infinite_means_have_no_nan() {
        for mean in [f64::INFINITY, f64::NEG_INFINITY] {
            let interval = Interval::normal(Estimate { mean, standard_error: f64::NAN });
            assert!((interval.low, interval.high) == (f64::NEG_INFINITY, f64::INFINITY), "{interval:?}");
        }
    }
}
