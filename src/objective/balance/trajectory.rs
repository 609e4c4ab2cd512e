use serde::Serialize;
use serde_json::Value;
use tch::Tensor;

use crate::error::check_positive;
use crate::objective::{Objective, RegressionLoss, Residuals, Scores, as_json};
use crate::quantity::{Quantities, Quantity};
use crate::tensor::to_host;
use crate::{Error, Result};

/// Returns the sum of log P_F - log P_B over each trajectory, `[n]`.
fn log_ratio(scores: &Scores) -> Tensor {
    scores.sums(&(&scores.log_pf - &scores.log_pb))
}

/// Trajectory balance (Malkin et al., *Trajectory Balance*, 2022, eq. 14).
///
/// The residual of a trajectory is `log Z + sum log P_F - log R(x) - sum log P_B`. The objective needs log Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrajectoryBalance;

impl Objective for TrajectoryBalance {
    fn name(&self) -> &'static str {
        "trajectory balance"
    }
    fn needs(&self) -> Quantities {
        Quantity::LogZ.into()
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let log_z = scores.need(Quantity::LogZ, self.name())?;
        Ok(Residuals::mean(log_z + log_ratio(scores) - &scores.log_reward))
    }
}

/// Log-partition variance, also called VarGrad (Richter et al. 2020; Zhang et al., *Robust Scheduling with
/// GFlowNets*, 2023).
///
/// Each trajectory gives the estimate `v = log R(x) + sum log P_B - sum log P_F` of log Z. The residual is
/// `mean(v) - v`: the batch mean replaces log Z, and gradients flow through the mean. The objective needs no
/// further quantity. A batch must have at least two trajectories, because the residual of a single trajectory
/// is always 0. A batch with several conditions is refused, because log Z depends on the condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPartitionVariance;

impl Objective for LogPartitionVariance {
    fn name(&self) -> &'static str {
        "log-partition variance"
    }
    fn needs(&self) -> Quantities {
        Quantities::NONE
    }
    fn smallest_batch(&self) -> usize {
        2
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        check_one_condition(scores, self.name())?;
        let estimate = &scores.log_reward - log_ratio(scores);
        Ok(Residuals::mean(estimate.mean(estimate.kind()) - estimate))
    }
}

/// Trajectory balance in which log Z is the minimizer of the batch's loss (Fawkes and Hartford, *f-Trajectory
/// Balance*, ICML 2026), for any regression loss.
///
/// The residual of a trajectory is `c + sum log P_F - log R(x) - sum log P_B`, in which the number c
/// minimizes the mean regression loss of the batch. Because c is a minimizer, no gradient flows through it.
/// For the squared loss c is the batch mean, so that the objective is [`LogPartitionVariance`]; for
/// [`FDivergence::ForwardKl`](crate::objective::FDivergence::ForwardKl) it is the log of the mean importance
/// weight. A batch must have at least two trajectories, all under one condition. c is found by bisection on
/// the host. If the regression loss isn't convex, c may be another point at which the slope is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPartitionDeviation;

impl Objective for LogPartitionDeviation {
    fn name(&self) -> &'static str {
        "log-partition deviation"
    }
    fn needs(&self) -> Quantities {
        Quantities::NONE
    }
    fn smallest_batch(&self) -> usize {
        2
    }
    fn loss(&self, scores: &Scores, regression: &dyn RegressionLoss) -> Result<Tensor> {
        check_one_condition(scores, self.name())?;
        let deviation = log_ratio(scores) - &scores.log_reward;
        let center = find_center(&to_host(&deviation), regression)?;
        Ok(regression.apply(&(deviation + center))?.mean(scores.log_pf.kind()))
    }
}

/// The width of the interval at which the search for a minimizer ends, relative to the larger of the
/// minimizer and 1.
const CENTER_TOLERANCE: f64 = 1e-12;

/// Returns the number c that minimizes the sum of the regression losses of `c + deviations`.
fn find_center(deviations: &[f64], regression: &dyn RegressionLoss) -> Result<f64> {
    // At the lower end no residual is positive, at the upper end none is negative.
    let mut low = -deviations.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut high = -deviations.iter().copied().fold(f64::INFINITY, f64::min);
    while high - low > CENTER_TOLERANCE * low.abs().max(high.abs()).max(1.0) {
        let center = f64::midpoint(low, high);
        let residuals: Vec<f64> = deviations.iter().map(|deviation| center + deviation).collect();
        let slope: f64 = regression.costs(&residuals)?.1.iter().sum();
        if slope > 0.0 {
            high = center;
        } else {
            low = center;
        }
    }
    Ok(f64::midpoint(low, high))
}

/// Returns the sum of log P_F - log prior over each trajectory, `[n]`.
fn log_posterior_ratio(scores: &Scores, objective: &'static str) -> Result<Tensor> {
    Ok(scores.sums(&(&scores.log_pf - scores.need(Quantity::LogPrior, objective)?)))
}

/// Checks that all trajectories have the same instance and the same condition. Different instances or
/// conditions have different values of log Z, which a single batch mean can't replace.
fn check_one_condition(scores: &Scores, objective: &'static str) -> Result<()> {
    if scores.instance.is_none() {
        let remedy = "sample each batch from one instance (`Sampler::forward_in`), or use an objective of \
            state flows";
        return Err(Error::missing(objective, "one instance for the whole batch", remedy));
    }
    let Some(conditions) = &scores.conditions else { return Ok(()) };
    let first = conditions.narrow(0, 0, conditions.size()[0].min(1));
    if conditions.eq_tensor(&first).all().double_value(&[]) == 1.0 {
        return Ok(());
    }
    let remedy =
        "use an objective that estimates log Z or log F under each condition, such as trajectory balance";
    Err(Error::missing(objective, "one condition for the whole batch", remedy))
}

/// Relative trajectory balance (Venkatraman et al., *Amortizing intractable inference in diffusion models*,
/// 2024, eq. 8). The objective trains a policy that samples from the posterior proportional to `prior(x)
/// R(x)^beta`, given a frozen prior.
///
/// The residual of a trajectory is `log Z + sum log P_F - sum log prior - beta log R(x)`. P_B and the
/// symmetry correction of environments up to isomorphism occur in both posterior and prior, so they cancel,
/// and R is the uncorrected reward. The objective needs log Z and a prior
/// ([`WithPrior`](crate::policy::WithPrior)).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RelativeTrajectoryBalance {
    beta: f64,
}

impl RelativeTrajectoryBalance {
    /// Returns relative trajectory balance for the reward to the power `beta`.
    ///
    /// # Errors
    /// [`Error::Config`] unless `beta` is positive and finite.
    pub fn new(beta: f64) -> Result<Self> {
        Ok(Self { beta: check_positive("beta", beta)? })
    }
}

impl Objective for RelativeTrajectoryBalance {
    fn name(&self) -> &'static str {
        "relative trajectory balance"
    }
    fn needs(&self) -> Quantities {
        Quantity::LogZ | Quantity::LogPrior
    }
    fn reward_exponent(&self) -> f64 {
        self.beta
    }
    fn settings(&self) -> Value {
        as_json(self)
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let log_z = scores.need(Quantity::LogZ, self.name())?;
        Ok(Residuals::mean(
            log_z + log_posterior_ratio(scores, self.name())? - self.beta * &scores.raw_log_reward,
        ))
    }
}

/// The variance form of [`RelativeTrajectoryBalance`], in which the batch mean replaces log Z.
///
/// The residual of a trajectory is `v - mean(v)` with `v = sum log P_F - sum log prior - beta log R(x)`. The
/// objective needs a prior, and at least two trajectories per batch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RelativeLogPartitionVariance {
    beta: f64,
}

impl RelativeLogPartitionVariance {
    /// Returns the variance form of relative trajectory balance for the reward to the power `beta`.
    ///
    /// # Errors
    /// [`Error::Config`] unless `beta` is positive and finite.
    pub fn new(beta: f64) -> Result<Self> {
        Ok(Self { beta: check_positive("beta", beta)? })
    }
}

impl Objective for RelativeLogPartitionVariance {
    fn name(&self) -> &'static str {
        "relative log-partition variance"
    }
    fn needs(&self) -> Quantities {
        Quantity::LogPrior.into()
    }
    fn smallest_batch(&self) -> usize {
        2
    }
    fn reward_exponent(&self) -> f64 {
        self.beta
    }
    fn settings(&self) -> Value {
        as_json(self)
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        check_one_condition(scores, self.name())?;
        let score = log_posterior_ratio(scores, self.name())? - self.beta * &scores.raw_log_reward;
        Ok(Residuals::mean(&score - score.mean(score.kind())))
    }
}

/// Path consistency of KL-regularised reinforcement learning (Nachum et al., *Trust-PCL*, 2018) over whole
/// trajectories.
///
/// With the temperature `alpha = 1 / beta`, the soft value `V(s0) = alpha log Z`, and the prior as the
/// reference policy of the trust region, the residual is `V(s0) - log R(x) + alpha (sum log P_F - sum log
/// prior)`. This is `alpha` times the residual of [`RelativeTrajectoryBalance`], so both objectives have the
/// same solution. The objective needs log Z and a prior.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrustPcl {
    alpha: f64,
}

impl TrustPcl {
    /// Returns Trust-PCL with the temperature `alpha`.
    ///
    /// # Errors
    /// [`Error::Config`] unless `alpha` is positive and finite.
    pub fn new(alpha: f64) -> Result<Self> {
        Ok(Self { alpha: check_positive("alpha", alpha)? })
    }

    /// Returns the soft value of the initial state, `alpha log Z`, `[n]`.
    ///
    /// # Errors
    /// [`Error::Missing`] for scores without log Z.
    pub fn soft_value(&self, scores: &Scores) -> Result<Tensor> {
        Ok(scores.need(Quantity::LogZ, "Trust-PCL")? * self.alpha)
    }
}

impl Objective for TrustPcl {
    fn name(&self) -> &'static str {
        "Trust-PCL"
    }
    fn needs(&self) -> Quantities {
        Quantity::LogZ | Quantity::LogPrior
    }
    fn reward_exponent(&self) -> f64 {
        1.0 / self.alpha
    }
    fn settings(&self) -> Value {
        as_json(self)
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let values = self.soft_value(scores)? + self.alpha * log_posterior_ratio(scores, self.name())?
            - &scores.raw_log_reward;
        Ok(Residuals::mean(values))
    }
}
