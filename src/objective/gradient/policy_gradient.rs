//! Policy gradients, which treat sampling in proportion to a reward as entropy-regularised reinforcement
//! learning.
//!
//! The soft reward of a transition is `log P_B - log P_F`, plus `log R(x)` for the last transition. The
//! return of a trajectory is therefore `log R(x) + sum log P_B - sum log P_F`. The mean return is at most log
//! Z, and equal to log Z if P_F samples in proportion to R (Tiapkin et al., *Generative Flow Networks as
//! Entropy-Regularized RL*, 2024; Niu et al., *GFlowNet Training by Policy Gradients*, 2024).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tch::Tensor;

use super::critic::{Critic, check_weight};
use crate::Result;
use crate::error::check_setting;
use crate::objective::{Objective, Origin, RegressionLoss, Scores, as_json};
use crate::quantity::{Quantities, Quantity};
use crate::tensor::{fetch_all, from_host, to_host};

/// The advantage of a transition: the estimated return of its action, minus a baseline.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Advantage {
    /// The return of the whole trajectory, minus the mean return of the batch. A batch needs at least two
    /// trajectories, because the advantage in a batch of one trajectory would be 0.
    Total,
    /// The return from this transition to the end, minus the batch mean of the returns of whole trajectories.
    RewardToGo,
    /// The return from this transition to the end, minus log F(s), the soft value of the state before the
    /// transition.
    Baseline,
    /// Generalised advantage estimation (Schulman et al., 2016): `sum_k lambda^k delta_(t+k)` with the
    /// temporal differences `delta_t = r_t + log F(s_(t+1)) - log F(s_t)`.
    Gae {
        /// The factor by which each later difference is discounted, in `[0, 1]`. With 0 only the temporal
        /// difference of this transition counts; with 1 the advantage equals that of `Baseline`.
        lambda: f64,
    },
}

impl Advantage {
    /// Returns the advantage if lambda is in `[0, 1]`, otherwise an error.
    pub(super) fn checked(self) -> Result<Self> {
        if let Self::Gae { lambda } = self {
            check_setting("lambda", lambda, (0.0..=1.0).contains(&lambda), "a number in [0, 1]")?;
        }
        Ok(self)
    }

    pub(super) fn needs(self) -> Quantities {
        match self {
            Self::Baseline | Self::Gae { .. } => Quantity::LogFlow.into(),
            Self::Total | Self::RewardToGo => Quantities::NONE,
        }
    }

    /// Returns the smallest number of trajectories in a batch: 2 for [`Total`](Self::Total), otherwise 1. The
    /// batch mean of a single trajectory is that trajectory's return, so the advantage would be 0.
    pub(super) fn smallest_batch(self) -> usize {
        if self == Self::Total { 2 } else { 1 }
    }
}

/// The advantage of each transition, and the return from each transition to the end, `[transitions]` each,
/// without gradient. [`PolicyGradient`] and [`ProximalPolicy`] use these values.
pub(super) struct Constants {
    pub(super) advantages: Tensor,
    pub(super) returns: Tensor,
}

/// Computes advantages and returns on the host, in one pass from the last transition to the first. `log_pf`
/// and `log_flow` come from the policy that sampled the batch.
pub(super) fn compute_constants(
    advantage: Advantage,
    scores: &Scores,
    log_pf: &Tensor,
    log_flow: Option<&Tensor>,
) -> Result<Constants> {
    let missing = || Quantity::LogFlow.missing("a policy gradient with a baseline");
    let mut inputs = vec![log_pf, &scores.log_pb, &scores.log_reward];
    if advantage.needs().has(Quantity::LogFlow) {
        inputs.push(log_flow.ok_or_else(missing)?);
    }
    let inputs: Vec<Vec<f64>> = fetch_all(&inputs).iter().map(to_host).collect();
    let [log_pf_host, log_pb, log_reward] = [0, 1, 2].map(|i| &inputs[i]);
    let values = inputs.get(3);
    let n = log_pf_host.len();
    let mut returns = vec![0.0; n];
    let mut advantages = vec![0.0; n];
    for (ends, &log_reward) in scores.offsets.windows(2).zip(log_reward) {
        let mut to_go = 0.0;
        let mut gae = 0.0;
        let mut next_value = 0.0;
        for t in (ends[0]..ends[1]).rev() {
            let last = t + 1 == ends[1];
            let reward = log_pb[t] - log_pf_host[t] + if last { log_reward } else { 0.0 };
            to_go += reward;
            returns[t] = to_go;
            match (advantage, values) {
                (Advantage::Baseline, Some(values)) => advantages[t] = to_go - values[t],
                (Advantage::Gae { lambda }, Some(values)) => {
                    gae = reward + next_value - values[t] + lambda * gae;
                    advantages[t] = gae;
                    next_value = values[t];
                }
                _ => advantages[t] = to_go,
            }
        }
    }
    if values.is_none() {
        let starts = &scores.offsets[..scores.len()];
        let mean = starts.iter().map(|&start| returns[start]).sum::<f64>() / scores.len().max(1) as f64;
        if advantage == Advantage::Total {
            for ends in scores.offsets.windows(2) {
                let total = returns[ends[0]];
                advantages[ends[0]..ends[1]].fill(total);
            }
        }
        for a in &mut advantages {
            *a -= mean;
        }
    }
    let kind = log_pf.kind();
    let device = log_pf.device();
    Ok(Constants {
        advantages: from_host(&advantages, kind, device),
        returns: from_host(&returns, kind, device),
    })
}

/// The policy gradient of the soft return (REINFORCE), with a critic (log F) if the advantage needs log F.
///
/// The loss is `-mean over trajectories of sum A_t log P_F` with constant advantages A_t, plus `value_weight`
/// times the loss of the [`Critic`], by default the mean regression loss of `log F(s_t) - G_t`, where G_t is
/// the return from transition t to the end. P_B is part of the soft reward and isn't trained. The objective
/// is on-policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PolicyGradient {
    /// The advantage of a transition.
    pub advantage: Advantage,
    /// The loss by which log F is trained.
    pub critic: Critic,
    /// The weight of the critic's loss: 0 or a positive number.
    pub value_weight: f64,
}

impl PolicyGradient {
    /// Returns a policy gradient with this advantage; the critic learns returns, with the weight 1/2.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a lambda outside `[0, 1]`.
    pub fn new(advantage: Advantage) -> Result<Self> {
        Ok(Self { advantage: advantage.checked()?, critic: Critic::Returns, value_weight: 0.5 })
    }
}

impl Objective for PolicyGradient {
    fn name(&self) -> &'static str {
        "policy gradient"
    }
    fn needs(&self) -> Quantities {
        self.advantage.needs()
    }
    fn smallest_batch(&self) -> usize {
        self.advantage.smallest_batch()
    }
    fn origin(&self) -> Origin {
        Origin::OnPolicy
    }
    fn settings(&self) -> Value {
        as_json(self)
    }
    fn check(&self) -> Result<()> {
        self.critic.check(self.advantage)?;
        check_weight("value_weight", self.value_weight)
    }
    fn loss(&self, scores: &Scores, regression: &dyn RegressionLoss) -> Result<Tensor> {
        let constants =
            compute_constants(self.advantage, scores, &scores.log_pf, scores.get(Quantity::LogFlow))?;
        let terms = -(&constants.advantages * &scores.log_pf);
        let policy = terms.sum(terms.kind()) / scores.len().max(1) as f64;
        let critic = self.critic.loss(scores, &constants, &scores.log_pf, regression)?;
        Ok(critic.map_or(policy.shallow_clone(), |critic| policy + critic * self.value_weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::Regression;

    fn numbers(values: &[f64]) -> Tensor {
        Tensor::from_slice(values)
    }

    /// Returns the scores of two trajectories: one with two transitions and one with one transition. log F is
    /// 0.5, -0.25 and 1 in the states before the three transitions.
    fn scores(log_pf: &Tensor) -> Scores {
        let log_pb = numbers(&[-0.5, 0.0, 0.0]);
        let mut scores = Scores::new(vec![0, 2, 3], log_pf.shallow_clone(), log_pb, numbers(&[2.0, -1.0]));
        scores.set(Quantity::LogFlow, numbers(&[0.5, -0.25, 1.0])).unwrap();
        scores
    }

    /// Compares the derivatives of the loss with advantages computed by hand. The derivative with respect to
    /// log P_F is minus the advantage divided by 2, the number of trajectories.
    #[test]
    fn advantages_equal_hand_computed_ones() {
        // The soft rewards of the three transitions of `scores` are -0.5 + 1, 0 + 2 + 2, and 0 + 0.5 - 1.
        let returns = [4.5, 4.0, -0.5];
        let gae = 4.0 + 0.25;
        let mean = f64::midpoint(4.5, -0.5);
        for (advantage, expected) in [
            (Advantage::Total, [4.5 - mean, 4.5 - mean, -0.5 - mean]),
            (Advantage::RewardToGo, returns.map(|to_go| to_go - mean)),
            (Advantage::Baseline, [4.5 - 0.5, gae, -0.5 - 1.0]),
            (Advantage::Gae { lambda: 0.6 }, [0.5 - 0.25 - 0.5 + 0.6 * gae, gae, -0.5 - 1.0]),
        ] {
            let log_pf = numbers(&[-1.0, -2.0, -0.5]).set_requires_grad(true);
            let objective = PolicyGradient { value_weight: 0.0, ..PolicyGradient::new(advantage).unwrap() };
            objective.loss(&scores(&log_pf), &Regression::Squared).unwrap().backward();
            let off = (log_pf.grad() * -2.0 - numbers(&expected)).abs().max().double_value(&[]);
            assert!(off < 1e-12, "{advantage:?} is off by {off}");
        }
    }
}
