use serde::{Deserialize, Serialize};
use serde_json::Value;
use tch::Tensor;

use super::critic::{Critic, check_weight};
use super::policy_gradient::{Advantage, compute_constants};
use crate::Result;
use crate::error::check_setting;
use crate::objective::{Objective, Origin, RegressionLoss, Scores, as_json};
use crate::quantity::{Quantities, Quantity};

/// The computation of the divergence KL(P_F, P_F,old) of [`ProximalPolicy`], P_F,old being the policy that
/// sampled the batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum KlEstimator {
    /// The estimate `rho log rho + 1 - rho` from each action of the batch, with `rho = P_F / P_F,old`. For a
    /// P_F that doesn't depend on these actions its mean is the exact divergence; after the first update
    /// on a batch P_F depends on them, so the estimate has a bias. For any actions.
    #[default]
    Sampled,
    /// The exact divergence in each state of the batch, from the probabilities of all legal actions. For
    /// discrete actions.
    Exact,
}

/// Entropy-regularised proximal policy optimisation (Schulman et al., 2017, with soft rewards): several
/// updates on one batch, which keep the policy close to the policy that sampled the batch.
///
/// With `rho = P_F / P_F,old` and advantages of the old policy, the loss is
/// `mean over trajectories of sum (-min(rho A, clip(rho, 1 - clip, 1 + clip) A) + kl KL(P_F, P_F,old))`, plus
/// the loss of the critic as in [`PolicyGradient`](super::PolicyGradient). log rho is clamped to +-20. The
/// objective is on-policy.
///
/// With `kl` 1 and [`KlEstimator::Exact`] this is Ent-PPO (Zykova-Myzina et al., *Proximal Policy
/// Optimization for Amortized Discrete Sampling*, 2026, arXiv:2606.15793, eq. 20):
/// [`entropic`](Self::entropic). Soft policy improvement maximizes, in each state, the expected soft
/// advantage of the old policy minus the divergence from the old policy. With this term and infinite `clip`,
/// the expectation of the loss over trajectories of the old policy has this improvement as its minimum. A
/// finite `clip`, such as the default, moves the minimum, and a single batch has sampling errors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProximalPolicy {
    /// The advantage of a transition.
    pub advantage: Advantage,
    /// The clipping range: the objective doesn't reward a ratio `rho = P_F / P_F,old` that differs from 1 by
    /// more than `clip`. Infinity disables clipping.
    pub clip: f64,
    /// The weight of the divergence of P_F from the P_F that sampled the batch: 0 or a positive number.
    pub kl: f64,
    /// The computation of the divergence. Without effect if `kl` is 0.
    pub divergence: KlEstimator,
    /// The loss by which log F is trained.
    pub critic: Critic,
    /// The weight of the critic's loss: 0 or a positive number.
    pub value_weight: f64,
    /// The number of passes over each batch, at least 1.
    pub epochs: usize,
    /// The number of minibatches into which a batch is split at random, at least 1. Each pass makes an update
    /// on each minibatch.
    pub n_minibatches: usize,
}

impl Default for ProximalPolicy {
    /// Returns torchgfn's settings: GAE with lambda 0.7, `clip` 0.2, four epochs, no divergence term.
    /// `value_weight` is 1/2.
    fn default() -> Self {
        Self {
            advantage: Advantage::Gae { lambda: 0.7 },
            clip: 0.2,
            kl: 0.0,
            divergence: KlEstimator::Sampled,
            critic: Critic::Returns,
            value_weight: 0.5,
            epochs: 4,
            n_minibatches: 1,
        }
    }
}

impl ProximalPolicy {
    /// Returns the settings of Ent-PPO: the exact divergence with the weight 1, the critic of lambda-returns,
    /// and otherwise the [default](Self::default).
    #[must_use]
    pub fn entropic() -> Self {
        Self { kl: 1.0, divergence: KlEstimator::Exact, critic: Critic::LambdaReturns, ..Self::default() }
    }

    /// Returns the divergence of P_F from `old`, summed over all transitions.
    fn divergence(&self, scores: &Scores, log_rho: &Tensor) -> Result<Tensor> {
        if self.divergence == KlEstimator::Sampled {
            // The term 1 - rho has the mean 0, and makes each estimate positive.
            let rho = log_rho.exp();
            return Ok((&rho * log_rho + 1.0 - rho).sum(log_rho.kind()));
        }
        let log_pf = scores.need(Quantity::AllLogPf, self.name())?;
        let old = match &scores.old {
            Some(old) => old.need(Quantity::AllLogPf, self.name())?.shallow_clone(),
            None => log_pf.detach(),
        };
        Ok((log_pf.exp() * (log_pf - old)).sum(log_pf.kind()))
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
        let needs = self.advantage.needs();
        let is_exact = self.kl > 0.0 && self.divergence == KlEstimator::Exact;
        if is_exact { needs | Quantity::AllLogPf } else { needs }
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
    fn n_minibatches(&self) -> usize {
        self.n_minibatches
    }
    fn settings(&self) -> Value {
        as_json(self)
    }
    fn check(&self) -> Result<()> {
        self.critic.check(self.advantage)?;
        check_weight("value_weight", self.value_weight)?;
        check_weight("kl", self.kl)?;
        check_setting("clip", self.clip, self.clip > 0.0, "a positive number")?;
        check_setting("epochs", self.epochs as f64, self.epochs > 0, "at least one update per batch")
            .map(drop)
    }
    fn loss(&self, scores: &Scores, regression: &dyn RegressionLoss) -> Result<Tensor> {
        let (old_log_pf, old_log_flow) = match &scores.old {
            Some(old) => {
                let log_pf = old.need(Quantity::LogPf, self.name())?;
                (log_pf.shallow_clone(), old.get(Quantity::LogFlow).map(Tensor::shallow_clone))
            }
            None => (scores.log_pf.detach(), scores.get(Quantity::LogFlow).map(Tensor::detach)),
        };
        let constants = compute_constants(self.advantage, scores, &old_log_pf, old_log_flow.as_ref())?;
        let log_rho = (&scores.log_pf - &old_log_pf).clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO);
        let rho = log_rho.exp();
        let clipped = if self.clip.is_finite() {
            rho.clamp(1.0 - self.clip, 1.0 + self.clip)
        } else {
            rho.shallow_clone()
        };
        let gain = (&rho * &constants.advantages).minimum(&(clipped * &constants.advantages));
        let mut policy = -gain.sum(gain.kind());
        if self.kl > 0.0 {
            policy += self.divergence(scores, &log_rho)? * self.kl;
        }
        let policy = policy / scores.len().max(1) as f64;
        let critic = self.critic.loss(scores, &constants, &old_log_pf, regression)?;
        Ok(critic.map_or(policy.shallow_clone(), |critic| policy + critic * self.value_weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::Regression;
    use crate::quantity::Values;

    fn numbers(values: &[f64]) -> Tensor {
        Tensor::from_slice(values)
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
        let loss = objective.loss(&scores, &Regression::Squared).unwrap().double_value(&[]);
        assert!((loss + (1.2 + 0.5 - 1.5 - 0.8) / 4.0).abs() < 1e-12, "{loss}");
    }
}
