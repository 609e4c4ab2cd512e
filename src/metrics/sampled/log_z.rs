//! Estimates of log Z, and of bounds on log Z, from sampled trajectories, for environments whose states can't
//! be listed.

use super::empirical::mean_and_sd;
use super::objects::in_batches;
use crate::env::{Env, Forms, Reward, Rows, check_one_instance};
use crate::error::check_finite;
use crate::objective::score;
use crate::policy::Policy;
use crate::quantity::Quantities;
use crate::rollout::{Sampler, Trajectories};
use crate::tensor::log_sum_exp;
use crate::{Error, Result, Rng};

/// The half-width of a 95 % confidence interval, in standard errors.
const Z_95: f64 = 1.959_963_984_540_054;

/// The estimated mean of a distribution, with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate of the distribution's mean.
    pub mean: f64,
    /// The standard error of the mean.
    pub standard_error: f64,
}

impl Estimate {
    /// Estimates the mean of a distribution from independent samples.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Self {
        let (mean, sd) = mean_and_sd(values);
        Self { mean, standard_error: sd / (values.len() as f64).sqrt() }
    }
}

/// An estimate of log Z from forward trajectories. Each trajectory has the importance weight w, with `log w =
/// log R + log P_B - log P_F`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogZEstimate {
    /// The mean of log w. Its expectation, the evidence lower bound (ELBO), is at most log Z, and equals log
    /// Z if P_F and P_B satisfy trajectory balance exactly.
    pub elbo: Estimate,
    /// The log of the mean of w. This estimate converges to log Z as the number of trajectories grows.
    pub log_z: f64,
    /// The 95 % confidence interval of `log_z`, computed by the delta method. The interval is an estimate and
    /// not a bound: it is reliable only if `effective_samples` is large.
    pub interval: (f64, f64),
    /// The effective sample size `(sum w)^2 / sum w^2`: the number of equally weighted samples with the same
    /// information.
    pub effective_samples: f64,
}

/// Estimates log Z from `n` forward trajectories of a policy.
///
/// The weights use the reward as training uses it, with the environment's correction for symmetry. The
/// estimated log Z is the log of the sum of the uncorrected rewards over all objects.
///
/// # Errors
/// The errors of sampling and scoring; [`Error::Config`] if `n` is 0.
pub fn estimate_log_z<E>(
    env: &E,
    policy: &dyn Policy<E>,
    reward: &dyn Reward<E::States>,
    n: usize,
    rng: &mut Rng,
) -> Result<LogZEstimate>
where
    E: Env,
{
    check_one_instance(env, "one instance, because each instance has another log Z")?;
    let sampler = Sampler::new(env, policy);
    let log_weights = in_batches(n, rng, |range, rng| {
        log_weights(env, policy, reward, &sampler.forward(range.len(), rng)?)
    })?;
    importance_log_z(&log_weights)
}

/// Estimates log Z from log importance weights of trajectories, such as
/// [`Scores::relative_log_weights`](crate::objective::Scores::relative_log_weights). [`estimate_log_z`]
/// samples trajectories and calls this function.
///
/// # Errors
/// [`Error::Config`] for an empty list; [`Error::NonFinite`] for a log-weight that isn't finite.
pub fn importance_log_z(log_weights: &[f64]) -> Result<LogZEstimate> {
    let n = log_weights.len();
    if n == 0 {
        return Err(Error::config("the list of weights to estimate from", "none", "at least one"));
    }
    let remedy = "give each trajectory a finite log-reward and finite log-probabilities, or leave it out";
    check_finite("log importance weight", log_weights, remedy)?;
    let log_sum = log_sum_exp(log_weights.iter().copied());
    let log_z = log_sum - (n as f64).ln();
    let effective_samples = (2.0 * log_sum - log_sum_exp(log_weights.iter().map(|w| 2.0 * w))).exp();
    let relative: Vec<f64> = log_weights.iter().map(|w| (w - log_z).exp()).collect();
    // A single weight gives no information about the spread of the weights, so the interval is infinite.
    let half = if n > 1 { Z_95 * Estimate::from_values(&relative).standard_error } else { f64::INFINITY };
    Ok(LogZEstimate {
        elbo: Estimate::from_values(log_weights),
        log_z,
        interval: (log_z - half, log_z + half),
        effective_samples,
    })
}

/// Estimates an upper bound on log Z: the mean of log w over trajectories sampled backwards from finished
/// objects that were drawn from the *target* distribution.
///
/// The expectation (the evidence upper bound, EUBO) is at least log Z for any policy. The mean over few
/// objects can be far below the expectation, because rare objects that weren't drawn affect neither the mean
/// nor its standard error. `certify` of the package `gfn-judge` computes a rigorous bound from objects drawn
/// from the target.
///
/// # Errors
/// The errors of sampling and scoring; [`Error::Config`] if there are no objects.
pub fn eubo<E>(
    env: &E,
    policy: &dyn Policy<E>,
    reward: &dyn Reward<E::States>,
    terminal: &E::States,
    rng: &mut Rng,
) -> Result<Estimate>
where
    E: Env,
{
    Ok(Estimate::from_values(&target_log_weights(env, policy, reward, terminal, rng)?))
}

/// Returns log w, which is `log R + log P_B - log P_F`, of one trajectory sampled backwards from each of
/// these finished objects.
///
/// If an object has several states, the trajectory ends in one of them, which is drawn uniformly. [`eubo`] is
/// the mean of log w for objects drawn from the target distribution.
///
/// # Errors
/// The errors of sampling and scoring; [`Error::Config`] if there are no objects.
pub fn target_log_weights<E: Env>(
    env: &E,
    policy: &dyn Policy<E>,
    reward: &dyn Reward<E::States>,
    objects: &E::States,
    rng: &mut Rng,
) -> Result<Vec<f64>> {
    let drawn = env.symmetry().forms(objects)?.map(|Forms { states, offsets }| {
        let rows = offsets.windows(2).map(|ends| ends[0] + rng.below(ends[1] - ends[0]));
        states.select(&rows.collect::<Vec<_>>())
    });
    let states = drawn.as_ref().unwrap_or(objects);
    let sampler = Sampler::new(env, policy);
    in_batches(states.len(), rng, |range, rng| {
        let trajectories = sampler.backward(&states.select(&range.collect::<Vec<_>>()), rng)?;
        log_weights(env, policy, reward, &trajectories)
    })
}

/// Returns `log R + sum log P_B - sum log P_F` of each trajectory.
pub(super) fn log_weights<E: Env>(
    env: &E,
    policy: &dyn Policy<E>,
    reward: &dyn Reward<E::States>,
    trajectories: &Trajectories<E>,
) -> Result<Vec<f64>> {
    let scores = tch::no_grad(|| score(env, reward, policy, trajectories, Quantities::NONE))?;
    Ok(scores.log_weights(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the effective sample size, `(sum w)^2 / sum w^2`, on small examples.
    #[test]
    fn effective_samples_are_fewer_where_weights_differ() {
        let of = |log_weights: &[f64]| importance_log_z(log_weights).unwrap().effective_samples;
        assert!((of(&[-5.0; 7]) - 7.0).abs() < 1e-9);
        assert!((of(&[0.0, 3f64.ln()]) - 16.0 / 10.0).abs() < 1e-9);
        assert!((of(&[0.0, 0.0, 900.0]) - 1.0).abs() < 1e-9);
    }
}
