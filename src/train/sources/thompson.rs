//! Thompson sampling: each trajectory follows its own head, and each head learns from a share of the batch.

use crate::objective::Scores;
use crate::policy::{MultiHead, Policy};
use crate::rollout::{Container, ReplayEnv, Trajectories};
use crate::train::{StepStats, Trainer};
use crate::{Error, Result};

/// The heads of a trainer's policy, and their shares.
pub(in crate::train) struct Thompson<P> {
    /// Probability that a head learns from a trajectory.
    share: f64,
    n_heads: usize,
    head: fn(&P) -> usize,
    use_head: fn(&P, usize) -> Result<()>,
}

impl<P> Thompson<P> {
    /// The head in use.
    pub(in crate::train) fn head(&self, policy: &P) -> usize {
        (self.head)(policy)
    }

    pub(in crate::train) fn use_head(&self, policy: &P, head: usize) -> Result<()> {
        (self.use_head)(policy, head)
    }

    pub(in crate::train) fn n_heads(&self) -> usize {
        self.n_heads
    }
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Explores by Thompson sampling (Rector-Brooks et al., *Thompson Sampling for Improved Exploration in GFlowNets*,
    /// 2023), that is, where the heads of P_F disagree. It changes the behaviour, not the target.
    ///
    /// Each new trajectory follows a head drawn for it. Each head then learns from a random share of the batch
    /// (bootstrapping): from each trajectory with probability `share`, independently, and from the whole batch if none
    /// was drawn for it. The loss is the mean over heads, which share torso, P_B, log F and log Z. Heads and shares are
    /// drawn from the trainer's own stream, so that a resumed run draws the same ones as an uninterrupted run. After
    /// each step the head in use is the one before the step, which evaluation sees.
    ///
    /// # Errors
    /// [`Error::Config`] for a policy with one head, and unless `0 < share <= 1`.
    pub fn with_thompson(mut self, share: f64) -> Result<Self>
    where
        P: MultiHead,
    {
        let n_heads = self.policy.n_heads();
        if n_heads < 2 {
            return Err(Error::Config {
                setting: "the heads of Thompson sampling",
                got: n_heads.to_string(),
                expected: "a policy with at least 2 heads of P_F (`MlpPolicyConfig::heads`)",
            });
        }
        if !(share > 0.0 && share <= 1.0) {
            return Err(Error::Config {
                setting: "the share of a batch that a head learns from",
                got: share.to_string(),
                expected: "0 < share <= 1",
            });
        }
        self.thompson = Some(Thompson { share, n_heads, head: P::head, use_head: P::use_head });
        Ok(self)
    }

    /// Adds the gradients of all heads, each on its share of the batch; returns the last head's scores and the mean
    /// loss.
    pub(in crate::train) fn differentiate_heads(
        &mut self,
        trajectories: &Trajectories<E>,
        stats: &mut StepStats,
    ) -> Result<(Scores, f64)> {
        let Some(thompson) = &self.thompson else {
            return self.differentiate(trajectories, None, 1.0, stats);
        };
        let n_heads = thompson.n_heads;
        // All draws come first, trajectory by trajectory, so that they don't depend on how heads are evaluated.
        let mut shares = vec![vec![false; trajectories.len()]; n_heads];
        for i in 0..trajectories.len() {
            shares.iter_mut().for_each(|share| share[i] = self.rng.uniform() < thompson.share);
        }
        let home = thompson.head(&self.policy);
        let done = self.each_head(thompson, &shares, trajectories, stats);
        thompson.use_head(&self.policy, home)?;
        done
    }

    fn each_head(
        &self,
        thompson: &Thompson<P>,
        shares: &[Vec<bool>],
        trajectories: &Trajectories<E>,
        stats: &mut StepStats,
    ) -> Result<(Scores, f64)> {
        let weight = 1.0 / thompson.n_heads as f64;
        let mut total = 0.0;
        let mut last = None;
        for (head, share) in shares.iter().enumerate() {
            thompson.use_head(&self.policy, head)?;
            let mine = if share.contains(&true) { trajectories.select(share)? } else { trajectories.clone() };
            let (scores, loss) = self.differentiate(&mine, None, weight, stats)?;
            total += weight * loss;
            last = Some(scores);
        }
        let none = || Error::Contract { check: "a policy of several heads has heads", detail: "there is none".into() };
        Ok((last.ok_or_else(none)?, total))
    }
}
