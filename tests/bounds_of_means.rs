//! Bounds on means and probabilities from the package `judge` are compared with known values.

use gfn::Rng;
use gfn::metrics::Estimate;
use gfn_judge::{Interval, log_mean_at_least, probability_at_least};

/// The number of stakes that `log_mean_at_least` uses: 1, 1/2, 1/4 and so on. The function computes its bound
/// by a method of betting, in which a stake is the share of the capital that is bet.
const N_STAKES: i32 = 16;

/// Tests bounds on the probability p of heads. If all 100 tosses are heads, the bound must be the p for which
/// p^100 equals the allowed risk of a false bound. If no toss is heads, there is no lower bound.
#[test]
fn shares_have_the_bounds_of_chernoff() {
    assert!((probability_at_least(1.0, 100, 0.025) - 0.025f64.powf(0.01)).abs() < 1e-12);
    assert!(probability_at_least(0.0, 100, 0.025) == 0.0);
    let low = probability_at_least(0.5, 10_000, 0.025);
    assert!(0.48 < low && low < 0.49, "{low}");
}

/// Tests the bound for equal samples. The bound must be below the samples, because rare smaller values
/// could have been missed.
#[test]
fn means_of_equal_draws_lose_what_they_cannot_exclude() {
    for n in [1, 20, 1_000] {
        let bound = log_mean_at_least(&vec![-700.0; n], 0.025);
        let stakes: f64 = (0..N_STAKES).map(|k| 0.5f64.powi(k)).sum();
        assert!(bound < -700.0 + (0.025f64).ln() / n as f64 + 1e-6 && stakes < 2.0, "{n}: {bound}");
        assert!(bound > -700.0 + (0.025f64 / 2.0).ln() / n as f64 - 1e-6, "{n}: {bound}");
    }
    assert!(log_mean_at_least(&[], 0.025) == f64::NEG_INFINITY);
    assert!(log_mean_at_least(&[f64::NEG_INFINITY; 3], 0.025) == f64::NEG_INFINITY);
    // One sample is nearly the whole sum. The bound must then be that of Markov's inequality.
    let mut logs = vec![0.0; 999];
    logs.push(500.0);
    let bound = log_mean_at_least(&logs, 0.025);
    assert!(480.0 < bound && bound < 500.0 - 1_000f64.ln() + 0.025f64.ln(), "{bound}");
}

/// Tests bounds for variables of mean 1 that are rarely very large. Each of 400 bounds is computed from 50
/// draws. At most 5 % of the bounds may be above the mean.
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
    // The bound must be tight: if the logs of the samples have a standard deviation of 0.3, the log of the
    // bound is less than 0.04 below the log of the mean, which is 0.
    let logs: Vec<f64> = (0..2_000).map(|_| normal(0.3, rng)).collect();
    assert!(log_mean_at_least(&logs, 0.01) > -0.04);
}

/// Tests intervals around infinite means. Neither end may be NaN.
#[test]
fn intervals_of_infinite_means_have_no_nan() {
    for mean in [f64::INFINITY, f64::NEG_INFINITY] {
        let interval = Interval::from_estimate(Estimate { mean, standard_error: f64::NAN });
        assert!((interval.low, interval.high) == (f64::NEG_INFINITY, f64::INFINITY), "{interval:?}");
    }
}
