//! The losses by which policy gradients train log F, the soft value of a state.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::policy_gradient::{Advantage, Constants};
use crate::error::check_setting;
use crate::objective::{Objective, RegressionLoss, Scores, SubTrajectoryBalance, Weighting};
use crate::quantity::Quantity;
use crate::{Error, Result};

/// The loss by which a policy gradient trains log F, the soft value of a state under the policy. It is used
/// if the [`Advantage`] needs log F.
///
/// ```
/// use gfn::objective::{Advantage, Critic, Objective, PolicyGradient, Weighting};
/// let critic = Critic::EvaluationBalance(Weighting::GeometricWithin { lambda: 0.9 });
/// let advantage = Advantage::Gae { lambda: 0.99 };
/// assert!(PolicyGradient { critic, ..PolicyGradient::new(advantage)? }.check().is_ok());
/// // Returns minus their mean need no log F.
/// assert!(PolicyGradient { critic, ..PolicyGradient::new(Advantage::Total)? }.check().is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub enum Critic {
    /// The mean regression loss of `log F(s_t) - G_t`, with the return G_t from transition t to the end.
    #[default]
    Returns,
    /// The same for lambda-returns, that is with the constant `A_t + log F(s_t)` in place of G_t. Here A_t is
    /// the advantage, and both terms are those of the policy that sampled the batch. With
    /// [`Advantage::Baseline`] this is `Returns`.
    LambdaReturns,
    /// Subtrajectory evaluation balance, Sub-EB (Niu et al., *Evaluating GFlowNet from partial episodes*,
    /// ICLR 2026, arXiv:2603.01047): the loss of [`SubTrajectoryBalance`] with this weighting, in which P_F
    /// and P_B are constants of the policy that sampled the batch. The residual of the states `s_i` and `s_j`
    /// is `log F(s_i) + sum log P_F - log F(s_j) - sum log P_B`, with R(x) for F(s_j) after the last
    /// transition.
    EvaluationBalance(Weighting),
}

impl Critic {
    /// Checks the settings of the critic and of the advantage that uses it.
    pub(super) fn check(self, advantage: Advantage) -> Result<()> {
        advantage.checked()?;
        if let Self::EvaluationBalance(weighting) = self {
            SubTrajectoryBalance::new(weighting)?;
        }
        if self != Self::Returns && !advantage.needs().has(Quantity::LogFlow) {
            let expected = "`Returns`, or an advantage that needs log F (`Baseline`, `Gae`)";
            return Err(Error::config("critic", format!("{self:?} with {advantage:?}"), expected));
        }
        Ok(())
    }

    /// Returns the loss of log F; `None` for scores without log F. `old_log_pf` is log P_F of the policy that
    /// sampled the batch, and `constants` belong to the same policy.
    pub(super) fn loss(
        self,
        scores: &Scores,
        constants: &Constants,
        old_log_pf: &Tensor,
        regression: &dyn RegressionLoss,
    ) -> Result<Option<Tensor>> {
        let Some(log_flow) = scores.get(Quantity::LogFlow) else { return Ok(None) };
        let targets = match self {
            Self::Returns => constants.returns.shallow_clone(),
            Self::LambdaReturns => {
                let old = scores.old.as_ref().and_then(|old| old.get(Quantity::LogFlow)).unwrap_or(log_flow);
                &constants.advantages + old.detach()
            }
            Self::EvaluationBalance(weighting) => {
                let constants = scores.with_constant_policies(old_log_pf);
                return SubTrajectoryBalance::new(weighting)?.loss(&constants, regression).map(Some);
            }
        };
        Ok(Some(regression.apply(&(log_flow - targets))?.mean(log_flow.kind())))
    }
}

/// Checks that the weight of a term of a loss is 0 or positive.
pub(super) fn check_weight(setting: &'static str, weight: f64) -> Result<()> {
    check_setting(setting, weight, weight >= 0.0 && weight.is_finite(), "0 or a positive number").map(drop)
}
