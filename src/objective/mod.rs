//! Objectives: residuals that vanish where a policy samples in proportion to the reward, and what is made of them.
//!
//! | objective | residual of | needs | paper |
//! |---|---|---|---|
//! | [`TrajectoryBalance`] | trajectory | log Z | Malkin et al. 2022 |
//! | [`LogPartitionVariance`] | trajectory | nothing | Richter et al. 2020, Zhang et al. 2023 |
//! | [`DetailedBalance`] | transition | log F | Bengio et al. 2023 |
//! | [`SubTrajectoryBalance`] | sub-trajectory | log F | Madan et al. 2023 |
//!
//! All of them are off-policy: the trajectories may come from anywhere that covers what is to be learned. They see
//! [`Scores`] and nothing else, so they are the same for every environment and testable by hand.

mod balance;
mod loss;
mod subtb;

pub use balance::{DetailedBalance, LogPartitionVariance, TrajectoryBalance};
pub use loss::RegressionLoss;
pub use subtb::{SubTrajectoryBalance, Weighting};

use tch::Tensor;

use crate::Result;
use crate::score::{Needs, Scores};

/// Weighted residuals: the loss is the sum of `weights * regression(values)`.
#[derive(Debug)]
pub struct Residuals {
    /// The residuals, `[k]`, with gradient.
    pub values: Tensor,
    /// What each counts, `[k]`; they sum to 1 where the loss is a mean.
    pub weights: Tensor,
}

/// A training objective: what must vanish for the policy to sample in proportion to the reward.
pub trait Objective: Send + std::fmt::Debug {
    /// The name, for messages and reports.
    fn name(&self) -> &'static str;

    /// What it needs besides log-probabilities and rewards.
    fn needs(&self) -> Needs;

    /// The residuals of a batch and how much each counts.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) for scores without what the objective needs.
    fn residuals(&self, scores: &Scores) -> Result<Residuals>;

    /// The loss of a batch, a scalar with gradient.
    ///
    /// # Errors
    /// Those of [`residuals`](Self::residuals).
    fn loss(&self, scores: &Scores, regression: RegressionLoss) -> Result<Tensor> {
        let residuals = self.residuals(scores)?;
        Ok((regression.apply(&residuals.values) * residuals.weights).sum(residuals.values.kind()))
    }
}

/// An estimator's tensor, or the error that says that it is missing.
pub(crate) fn needed<'a>(
    value: Option<&'a Tensor>,
    objective: &'static str,
    needs: &'static str,
) -> Result<&'a Tensor> {
    value.ok_or(crate::Error::Missing {
        objective,
        needs,
        remedy: "give the policy an estimator for it, or choose an objective that does without",
    })
}

/// Equal weights that sum to 1.
pub(crate) fn mean_weights(values: &Tensor) -> Tensor {
    let n = values.numel().max(1) as f64;
    Tensor::full_like(values, 1.0 / n).detach()
}
