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
    fn checked(self) -> Result<Self> {
        if let Self::Gae { lambda } = self {
            check_setting("lambda", lambda, (0.0..=1.0).contains(&lambda), "a number in [0, 1]")?;
        }
        Ok(self)
    }

    fn needs(self) -> Quantities {
        match self {
            Self::Baseline | Self::Gae { .. } => Quantity::LogFlow.into(),
            Self::Total | Self::RewardToGo => Quantities::NONE,
        }
    }

    /// Returns the smallest number of trajectories in a batch: 2 for [`Total`](Self::Total), otherwise 1. The
    /// batch mean of a single trajectory is that trajectory's return, so the advantage would be 0.
    fn smallest_batch(self) -> usize {
        if self == Self::Total { 2 } else { 1 }
    }
}

/// The advantage of each transition, and the return from each transition to the end, `[transitions]` each,
/// without gradient. [`PolicyGradient`] and [`ProximalPolicy`] use these values.
struct Constants {
    advantages: Tensor,
    returns: Tensor,
}

/// Computes advantages and returns on the host, in one pass from the last transition to the first. `log_pf`
/// and `log_flow` come from the policy that sampled the batch.
fn compute_constants(
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

fn check_weight(setting: &'static str, weight: f64) -> Result<()> {
    check_setting(setting, weight, weight >= 0.0 && weight.is_finite(), "0 or a positive number").map(drop)
}

/// Returns the sum of `terms`, `[transitions]`, divided by the number of trajectories, plus `value_weight`
/// times the critic's loss. The critic's loss is the mean regression loss of log F against the returns;
/// without log F it is left out.
fn loss_with_critic(
    terms: &Tensor,
    scores: &Scores,
    returns: &Tensor,
    value_weight: f64,
    regression: RegressionLoss,
) -> Tensor {
    let policy = terms.sum(terms.kind()) / scores.len().max(1) as f64;
    let Some(log_flow) = scores.get(Quantity::LogFlow) else { return policy };
    policy + regression.apply(&(log_flow - returns)).mean(log_flow.kind()) * value_weight
}

/// The policy gradient of the soft return (REINFORCE), with a critic (log F) if the advantage needs log F.
///
/// The loss is `-mean over trajectories of sum A_t log P_F` with constant advantages A_t, plus `value_weight`
/// times the mean regression loss of `log F(s_t) - G_t`, where G_t is the return from transition t to the
/// end. P_B is part of the soft reward and isn't trained. The objective is on-policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PolicyGradient {
    /// The advantage of a transition.
    pub advantage: Advantage,
    /// The weight of the critic's loss: 0 or a positive number.
    pub value_weight: f64,
}

impl PolicyGradient {
    /// Returns a policy gradient with this advantage; the weight of the critic's loss is 1/2.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a lambda outside `[0, 1]`.
    pub fn new(advantage: Advantage) -> Result<Self> {
        Ok(Self { advantage: advantage.checked()?, value_weight: 0.5 })
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
        self.advantage.checked()?;
        check_weight("value_weight", self.value_weight)
    }
    fn loss(&self, scores: &Scores, regression: RegressionLoss) -> Result<Tensor> {
        let constants =
            compute_constants(self.advantage, scores, &scores.log_pf, scores.get(Quantity::LogFlow))?;
        let terms = -(&constants.advantages * &scores.log_pf);
        Ok(loss_with_critic(&terms, scores, &constants.returns, self.value_weight, regression))
    }
}

/// Entropy-regularised proximal policy optimisation (Schulman et al., 2017, with soft rewards): several
/// updates on one batch, which keep the policy close to the policy that sampled the batch.
///
/// With `rho = P_F / P_F,old` and advantages of the old policy, the loss is
/// `mean over trajectories of sum (-min(rho A, clip(rho, 1 - clip, 1 + clip) A) + kl (rho - 1 - log rho))`,
/// plus the loss of the critic as in [`PolicyGradient`]. `rho - 1 - log rho` estimates KL(old || new) without
/// bias. log rho is clamped to +-20. The objective is on-policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProximalPolicy {
    /// The advantage of a transition.
    pub advantage: Advantage,
    /// The clipping range: the objective doesn't reward a ratio `rho = P_F / P_F,old` that differs from 1 by
    /// more than `clip`. Infinity disables clipping.
    pub clip: f64,
    /// The weight of the estimated divergence between the policy that sampled the batch and the current
    /// policy: 0 or a positive number.
    pub kl: f64,
    /// The weight of the critic's loss: 0 or a positive number.
    pub value_weight: f64,
    /// The number of updates per batch, at least 1.
    pub epochs: usize,
}

impl Default for ProximalPolicy {
    /// Returns torchgfn's settings: GAE with lambda 0.7, `clip` 0.2, four epochs, no divergence term.
    /// `value_weight` is 1/2.
    fn default() -> Self {
        Self { advantage: Advantage::Gae { lambda: 0.7 }, clip: 0.2, kl: 0.0, value_weight: 0.5, epochs: 4 }
    }
}

/// The bound on the absolute value of `log rho`, where `rho` is the ratio of P_F to the P_F that sampled the
/// batch. The bound keeps `rho` finite.
const LARGEST_LOG_RATIO: f64 = 20.0;

impl Objective for ProximalPolicy {
    fn name(&self) -> &'static str {
        "proximal policy optimisation"
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
    fn epochs(&self) -> usize {
        self.epochs
    }
    fn settings(&self) -> Value {
        as_json(self)
    }
    fn check(&self) -> Result<()> {
        self.advantage.checked()?;
        check_weight("value_weight", self.value_weight)?;
        check_weight("kl", self.kl)?;
        check_setting("clip", self.clip, self.clip > 0.0, "a positive number")?;
        check_setting("epochs", self.epochs as f64, self.epochs > 0, "at least one update per batch")
            .map(drop)
    }
    fn loss(&self, scores: &Scores, regression: RegressionLoss) -> Result<Tensor> {
        let (old_log_pf, old_log_flow) = match &scores.old {
            Some(old) => {
                let log_pf = old.need(Quantity::LogPf, self.name())?;
                (log_pf.shallow_clone(), old.get(Quantity::LogFlow).map(Tensor::shallow_clone))
            }
            None => (scores.log_pf.detach(), scores.get(Quantity::LogFlow).map(Tensor::detach)),
        };
        let constants = compute_constants(self.advantage, scores, &old_log_pf, old_log_flow.as_ref())?;
        let log_rho = (&scores.log_pf - old_log_pf).clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO);
        let rho = log_rho.exp();
        let clipped = if self.clip.is_finite() {
            rho.clamp(1.0 - self.clip, 1.0 + self.clip)
        } else {
            rho.shallow_clone()
        };
        let gain = (&rho * &constants.advantages).minimum(&(clipped * &constants.advantages));
        let divergence = (rho - 1.0 - log_rho) * self.kl;
        Ok(loss_with_critic(&(divergence - gain), scores, &constants.returns, self.value_weight, regression))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Values;

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
            let objective = PolicyGradient { advantage, value_weight: 0.0 };
            objective.loss(&scores(&log_pf), RegressionLoss::Squared).unwrap().backward();
            let off = (log_pf.grad() * -2.0 - numbers(&expected)).abs().max().double_value(&[]);
            assert!(off < 1e-12, "{advantage:?} is off by {off}");
        }
    }

    /// Checks that the product of the ratio `rho` and the advantage is clipped only if the clipped product is
    /// smaller. Also checks that advantages are computed from the log F of the policy that sampled the batch.
    #[test]
    fn clipped_gains_equal_hand_computed_ones() {
        let ratios = [1.5, 0.5, 1.5, 0.5];
        let flows = [0.0, 0.0, 2.0, 2.0];
        let old = numbers(&[-1.0; 4]);
        let zeros = numbers(&[0.0; 4]);
        let mut scores = Scores::new(
            (0..=4).collect(),
            &old + numbers(&ratios).log(),
            zeros.shallow_clone(),
            zeros.shallow_clone(),
        );
        // All returns are 1, and log F before the update is 0 or 2, so the advantages are 1 or -1.
        scores.set(Quantity::LogFlow, zeros).unwrap();
        scores.old =
            Some(Values::default().with(Quantity::LogPf, old).with(Quantity::LogFlow, numbers(&flows)));
        let objective =
            ProximalPolicy { advantage: Advantage::Baseline, value_weight: 0.0, ..ProximalPolicy::default() };
        let loss = objective.loss(&scores, RegressionLoss::Squared).unwrap().double_value(&[]);
        assert!((loss + (1.2 + 0.5 - 1.5 - 0.8) / 4.0).abs() < 1e-12, "{loss}");
    }
}
