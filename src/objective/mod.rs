//! Objectives: losses whose minimum is a policy that samples in proportion to the reward.
//!
//! | objective | one residual or term per | needs besides log P_F, log P_B, log R | defined for | trajectories |
//! |---|---|---|---|---|
//! | [`TrajectoryBalance`] | trajectory | log Z | all | any |
//! | [`LogPartitionVariance`] (VarGrad) | trajectory | nothing | all | any |
//! | [`LogPartitionDeviation`] | trajectory | nothing | all | any |
//! | [`RelativeTrajectoryBalance`] | trajectory | log Z, a prior policy | all | any |
//! | [`RelativeLogPartitionVariance`] | trajectory | a prior policy | all | any |
//! | [`TrustPcl`] | trajectory | log Z, a prior policy | all | any |
//! | [`DetailedBalance`] | transition | log F | all | any |
//! | ... [`StateFlow::ForwardLooking`] | transition | log F, rewards of partial states | rewards that offer them | any |
//! | [`ModifiedDetailedBalance`] | transition | P_F(exit), rewards of partial states | every state terminating | any |
//! | [`SubTrajectoryBalance`] | sub-trajectory | log F; forward-looking as above | all | any |
//! | [`AugmentedTrajectoryBalance`], [`AugmentedDetailedBalance`] | trajectory, transition | log F (and log Z), intrinsic rewards | all; another target while intrinsic rewards aren't 0 | any |
//! | [`FlowMatching`] | state | edge flows: logits, and all parents | discrete actions | any |
//! | [`PolicyGradient`] | transition | log F with a baseline or GAE | all | the policy's own |
//! | [`ProximalPolicy`] | transition | log F with a baseline or GAE | all | the policy's own |
//! | ... [`KlEstimator::Exact`] | transition | P_F of all actions | discrete actions | the policy's own |
//! | [`TrajectoryLikelihood`] (trains P_B) | trajectory | a learned P_B | all | any |
//! | [`MaximumEntropyBackward`] (trains P_B) | transition | a learned P_B, log n | all | any |
//! | [`MaximumLikelihood`] | trajectory | nothing (P_B and rewards aren't used) | all | given ones |
//!
//! [`WithBackward`] trains P_F by one objective and P_B by another; [`WithRegression`] fixes the regression
//! loss of an objective. An objective's only input is [`Scores`], so it works for every environment and can
//! be tested by hand. If environment, reward or policy lack something that the objective needs, training
//! returns an error that names what is missing.
//!
//! Objectives that accept *any* trajectories have residuals that vanish on each trajectory if the policy
//! samples exactly in proportion to the reward. Such trajectories may come from exploration, a buffer or a
//! file, as long as they cover the objects to be learned. Policy gradients are expectations under the policy
//! itself, so a trainer with such an objective refuses exploration and replay.

mod backward;
mod balance;
mod gradient;
mod loss;
mod score;

pub use crate::quantity::{Per, Quantities, Quantity, Values};
pub use backward::{MaximumEntropyBackward, TrajectoryLikelihood, WithBackward};
pub use balance::{
    AugmentedDetailedBalance, AugmentedTrajectoryBalance, DetailedBalance, FlowMatching,
    LogPartitionDeviation, LogPartitionVariance, ModifiedDetailedBalance, NextExit,
    RelativeLogPartitionVariance, RelativeTrajectoryBalance, StateFlow, SubTrajectoryBalance,
    TrajectoryBalance, TrustPcl, Weighting,
};
pub use gradient::{Advantage, Critic, KlEstimator, MaximumLikelihood, PolicyGradient, ProximalPolicy};
pub use loss::{CustomLoss, FDivergence, Regression, RegressionLoss, WithRegression, check_regression};
pub(crate) use score::SCORING;
pub use score::{Scores, score, score_target, score_transitions};
pub(crate) use score::{Scoring, score_as};

use serde::Serialize;
use serde_json::Value;
use tch::Tensor;

use crate::{Error, Result};

/// Residuals with weights. The loss is the sum of `weights * regression(values)`, where `regression` is the
/// [`RegressionLoss`].
#[derive(Debug)]
pub struct Residuals {
    /// The residuals, `[k]`, with gradient.
    pub values: Tensor,
    /// The weight of each residual, `[k]`. If the weights sum to 1, the loss is a mean.
    pub weights: Tensor,
}

impl Residuals {
    /// Returns residuals with equal weights that sum to 1, so that the loss is a mean.
    #[must_use]
    pub(crate) fn mean(values: Tensor) -> Self {
        Self { weights: mean_weights(&values), values }
    }

    /// Checks that values and weights are flat lists of the same length. Otherwise a column and a flat list
    /// would be broadcast to a table, and the loss would be wrong.
    fn check(&self, objective: &str) -> Result<()> {
        let values = self.values.size();
        let weights = self.weights.size();
        let refuse = |what: String, expected, got| {
            Err(Error::shape(
                what,
                expected,
                got,
                "give residuals and weights as flat lists `[k]` of one length; `squeeze_dim(-1)` turns a \
                 column `[k, 1]` into a flat list",
            ))
        };
        if values.len() != 1 {
            return refuse(
                format!("the list of residuals of {objective}"),
                vec![self.values.numel() as i64],
                values,
            );
        }
        if values == weights {
            Ok(())
        } else {
            refuse(format!("the list of weights of {objective}"), values, weights)
        }
    }
}

/// The origin of the trajectories that an objective may learn from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Origin {
    /// Trajectories of any origin, for example the policy, exploration, a replay buffer or a file.
    #[default]
    Any,
    /// Trajectories sampled from the policy itself, without exploration or replay.
    OnPolicy,
    /// Trajectories from external data only, never from the policy itself.
    Given,
}

impl Origin {
    /// Returns the origin that satisfies both `self` and `other`. If no origin satisfies both, it returns
    /// `self`.
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::Any { other } else { self }
    }
}

/// A training objective: a loss whose minimum is a policy that samples in proportion to the reward.
///
/// An objective made of residuals implements [`residuals`](Self::residuals): all residuals vanish, on any
/// trajectories, if the policy samples in proportion to the reward. Any other objective implements
/// [`loss`](Self::loss).
pub trait Objective: Send + std::fmt::Debug {
    /// Returns the name of the objective for messages and reports.
    fn name(&self) -> &'static str;

    /// Returns the quantities that the objective needs besides log-probabilities and rewards.
    fn needs(&self) -> Quantities;

    /// Returns the smallest number of trajectories in a batch. An objective that compares trajectories with
    /// the mean of their batch must return 2. The default is 1.
    fn smallest_batch(&self) -> usize {
        1
    }

    /// Returns `true` if the objective trains P_B to imitate the trajectories of the batch. A trainer then
    /// refuses trajectories of uniform backward steps, because P_B would become uniform. The default is
    /// `false`.
    fn needs_taken_paths(&self) -> bool {
        false
    }

    /// Returns the origin of the trajectories from which the objective may learn. The default is
    /// [`Origin::Any`].
    fn origin(&self) -> Origin {
        Origin::Any
    }

    /// Returns the number of updates per batch of trajectories. From the second update on, [`Scores::old`]
    /// holds the quantities from before the first update. The default is 1.
    fn epochs(&self) -> usize {
        1
    }

    /// Returns the number of minibatches into which a trainer's step splits its batch at random. Each epoch
    /// makes one update per minibatch, and [`Scores::old`] holds the quantities of the minibatch's
    /// trajectories from before the first update of the step. The default is 1.
    fn n_minibatches(&self) -> usize {
        1
    }

    /// Returns `true` if the objective has a regression loss of its own. A trainer then refuses settings with
    /// another loss than the default. The default is `false`.
    fn fixes_regression(&self) -> bool {
        false
    }

    /// Returns `true` if the objective can learn from [single transitions](score_transitions). Such an
    /// objective must have residuals that each depend on a single transition, with the weights
    /// [`Scores::mean_weights`]. The default is `false`.
    fn learns_from_transitions(&self) -> bool {
        false
    }

    /// Returns the exponent beta of R in the target prior(x) R(x)^beta, for an objective that is relative to
    /// a prior. The default is 1.
    fn reward_exponent(&self) -> f64 {
        1.0
    }

    /// Returns the settings that distinguish objectives with the same name. Checkpoints store these settings,
    /// and a run can be resumed only with equal settings. The default is the `Debug` text. Override the
    /// method if the `Debug` text changes during training.
    fn settings(&self) -> Value {
        Value::String(format!("{self:?}"))
    }

    /// Checks the settings of the objective. A trainer calls this method when it is built. The default
    /// accepts all settings.
    ///
    /// # Errors
    /// [`Error::Config`] for invalid settings.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the residuals of a batch and their weights.
    ///
    /// # Errors
    /// [`Error::Missing`] for scores without a quantity that the objective needs. The default implementation
    /// is for objectives without residuals and always returns this error.
    fn residuals(&self, _scores: &Scores) -> Result<Residuals> {
        Err(Error::missing(
            self.name(),
            "residuals or a loss",
            "implement `Objective::residuals` or `Objective::loss`",
        ))
    }

    /// Returns the loss of a batch, a scalar with gradient. A trainer refuses any other shape. The default is
    /// the weighted sum of the regression losses of the residuals. Override the method for another loss, or
    /// if the residuals need too much memory.
    ///
    /// Operations of `tch` panic if shapes don't match; their `f_` variants return an error (`a.f_sub(&b)?`
    /// for `&a - &b`), to which a trainer adds the objective's name and the numbers of trajectories and
    /// transitions.
    ///
    /// # Errors
    /// The errors of [`residuals`](Self::residuals); [`Error::Shape`] for residuals and weights that aren't
    /// flat lists of the same length.
    fn loss(&self, scores: &Scores, regression: &dyn RegressionLoss) -> Result<Tensor> {
        let residuals = self.residuals(scores)?;
        residuals.check(self.name())?;
        Ok((regression.apply(&residuals.values)? * residuals.weights).sum(residuals.values.kind()))
    }
}

impl<O: Objective + 'static> From<O> for Box<dyn Objective> {
    fn from(objective: O) -> Self {
        Box::new(objective)
    }
}

/// Computes the loss of a batch, and checks that it is a single number. An error of libtorch or a loss of
/// another shape is reported with the objective's name and the lengths of the scores, because most such
/// errors come from a mixture of numbers per trajectory and per transition.
pub(crate) fn checked_loss(
    objective: &dyn Objective,
    scores: &Scores,
    regression: &dyn RegressionLoss,
) -> Result<Tensor> {
    let n_trajectories = scores.offsets.len().saturating_sub(1);
    let lengths = format!("{n_trajectories} trajectories with {} transitions", scores.log_pf.numel());
    let loss = objective.loss(scores, regression).map_err(|error| match error {
        Error::Torch(_) => Error::external(objective.name(), format!("{error} (in the loss of {lengths})")),
        other => other,
    })?;
    if loss.numel() == 1 {
        return Ok(loss);
    }
    let remedy = "let the objective return one number for the whole batch, such as the mean of its losses";
    let what = format!("the loss of {} for {lengths}", objective.name());
    Err(Error::shape(what, vec![], loss.size(), remedy))
}

/// Converts the settings of an objective to JSON.
fn as_json(settings: &impl Serialize) -> Value {
    // Settings are numbers and enums of numbers, which JSON can always represent.
    serde_json::to_value(settings).unwrap_or_default()
}

/// Returns equal weights that sum to 1, in the shape of `values`.
pub(crate) fn mean_weights(values: &Tensor) -> Tensor {
    let n = values.numel().max(1) as f64;
    Tensor::full_like(values, 1.0 / n).detach()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wrong objective, which adds numbers per transition to numbers per trajectory, or returns a number
    /// per trajectory.
    #[derive(Debug)]
    struct Wrong {
        mixes: bool,
    }

    impl Objective for Wrong {
        fn name(&self) -> &'static str {
            "a wrong objective"
        }
        fn needs(&self) -> Quantities {
            Quantities::default()
        }
        fn loss(&self, scores: &Scores, _: &dyn RegressionLoss) -> Result<Tensor> {
            let other = if self.mixes { &scores.log_pf } else { &scores.log_reward };
            Ok(scores.log_reward.f_sub(other)?)
        }
    }

    #[test]
    fn errors_of_a_loss_name_the_objective_and_both_lengths() {
        let [pf, pb, r] = [3, 3, 2].map(|n| Tensor::zeros([n], (tch::Kind::Float, tch::Device::Cpu)));
        let scores = Scores::new(vec![0, 1, 3], pf, pb, r);
        for (mixes, shown) in [(true, "must match"), (false, "[2]")] {
            let error = checked_loss(&Wrong { mixes }, &scores, &Regression::default()).unwrap_err();
            let message = error.to_string();
            for part in ["a wrong objective", "2 trajectories with 3 transitions", shown] {
                assert!(message.contains(part), "{message}");
            }
        }
    }
}
