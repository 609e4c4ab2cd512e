//! The empirical distribution of samples, and the distance from the target that samples from the target
//! itself have.

use crate::env::{EnumerableEnv, Rows, StateGraph};
use crate::metrics::Distances;
use crate::metrics::distances::check_distribution;
use crate::{Error, Result, Rng};

impl<E: EnumerableEnv> StateGraph<E> {
    /// Returns the share of the samples that each state has, by state index. `samples` are finished objects.
    ///
    /// # Errors
    /// [`Error::Contract`] for an object in which no trajectory can end; [`Error::Config`] if there are no
    /// samples.
    pub fn empirical(&self, env: &E, samples: &E::States) -> Result<Vec<f64>> {
        if samples.is_empty() {
            return Err(Error::config("samples", "none", "at least one sample"));
        }
        let mut out = vec![0.0; self.len()];
        for (row, index) in self.indices(env, samples).into_iter().enumerate() {
            let state = index.filter(|&state| self.can_end(state)).ok_or_else(|| {
                Error::contract(
                    "every sample is a finished object of the environment that was enumerated",
                    format!(
                        "sample {row} isn't one of the {} finished objects of the environment",
                        self.ends().len()
                    ),
                )
            })?;
            out[state] += 1.0 / samples.len() as f64;
        }
        Ok(out)
    }
}

/// The distance from the target that a finite number of samples from the target itself has on average. Report
/// the noise floor beside any distance that is computed from samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseFloor {
    /// The mean total variation over the simulated rounds of sampling.
    pub tv: f64,
    /// The standard deviation of the total variation over the simulated rounds of sampling.
    pub tv_sd: f64,
    /// The mean Jensen-Shannon divergence over the simulated rounds of sampling.
    pub jsd: f64,
    /// The standard deviation of the Jensen-Shannon divergence over the simulated rounds of sampling.
    pub jsd_sd: f64,
}

impl NoiseFloor {
    /// Simulates `rounds` rounds. Each round draws `n_samples` samples from the target, and measures the
    /// distances between their empirical distribution and the target.
    ///
    /// ```
    /// use gfn::{metrics::NoiseFloor, Rng};
    /// let floor = NoiseFloor::simulate(&[0.5, 0.5], 10_000, 50, &mut Rng::seeded(0))?;
    /// // A fair coin: the expected |share - 1/2| is sqrt(1 / (2 pi n)).
    /// assert!((floor.tv - 0.00399).abs() < 0.0015);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] if `n_samples` or `rounds` is 0, and for a target that isn't a distribution.
    pub fn simulate(target: &[f64], n_samples: usize, rounds: usize, rng: &mut Rng) -> Result<Self> {
        if n_samples == 0 || rounds == 0 {
            let got = format!("{n_samples} samples and {rounds} rounds");
            return Err(Error::config("the noise floor's samples and rounds", got, "at least one of each"));
        }
        check_distribution("the target distribution", target)?;
        let perfect = Cumulative::new(target);
        let mut tv = Vec::with_capacity(rounds);
        let mut jsd = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let mut shares = vec![0.0; target.len()];
            for _ in 0..n_samples {
                shares[perfect.draw(rng)] += 1.0 / n_samples as f64;
            }
            let distances = Distances::between(&shares, target)?;
            tv.push(distances.tv);
            jsd.push(distances.jsd);
        }
        let ((tv, tv_sd), (jsd, jsd_sd)) = (mean_and_sd(&tv), mean_and_sd(&jsd));
        Ok(Self { tv, tv_sd, jsd, jsd_sd })
    }
}

/// The cumulative sums of weights, from which indices are drawn in proportion to the weights.
#[derive(Clone, Debug)]
pub struct Cumulative(Vec<f64>);

impl Cumulative {
    /// Creates the cumulative sums of weights. Weights must be 0 or more, and at least one weight must be
    /// above 0. Weights needn't sum to 1.
    #[must_use]
    pub fn new(weights: &[f64]) -> Self {
        let mut total = 0.0;
        let add = |weight: &f64| {
            total += weight;
            total
        };
        Self(weights.iter().map(add).collect())
    }

    /// Draws the index of a weight, in a time that grows with the logarithm of the number of weights.
    ///
    /// ```
    /// let weights = gfn::metrics::Cumulative::new(&[0.0, 2.0, 0.0]);
    /// assert_eq!(weights.draw(&mut gfn::Rng::seeded(0)), 1);
    /// ```
    ///
    /// # Panics
    /// Panics if there are no weights.
    #[must_use]
    pub fn draw(&self, rng: &mut Rng) -> usize {
        let u = rng.uniform() * self.0.last().copied().unwrap_or_default();
        self.0.partition_point(|&sum| sum <= u).min(self.0.len() - 1)
    }
}

/// Returns the mean and the sample standard deviation of values. The standard deviation of a single value is
/// 0.
pub(in crate::metrics) fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}
