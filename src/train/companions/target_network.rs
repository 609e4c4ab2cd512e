//! Target network: a copy of the policy that is updated only every few steps.

use crate::objective::score_target;
use crate::optim::Average;
use crate::policy::Policy;
use crate::quantity::{Quantity, Values};
use crate::rollout::{ReplayEnv, Trajectories};
use crate::train::Trainer;
use crate::{Error, Result};

/// A target network and its update interval.
#[derive(Debug)]
pub(in crate::train) struct Lagged {
    pub(in crate::train) copy: Average,
    every: usize,
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Keeps a copy of the parameters that takes their values every `every` steps, for objectives that compare with it
    /// ([`NextExit::Lagged`](crate::objective::NextExit::Lagged), [`Quantity::TargetLogFlow`]). It is saved in checkpoints.
    ///
    /// ```
    /// use gfn::objective::{ModifiedDetailedBalance, NextExit};
    /// use gfn::policy::{ByKey, MlpPolicy, MlpPolicyConfig};
    /// use gfn::{env::{Reward, VectorStates}, testing::Words, train::{Trainer, TrainerConfig}, Result, Rng};
    /// use tch::{Device, Kind, Tensor};
    /// struct Length;
    /// impl Reward<VectorStates> for Length {
    ///     fn log_reward(&self, words: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    ///         Ok(words.rows().map(|word| word.iter().filter(|&&letter| letter > 0).count() as f64).collect())
    ///     }
    ///     fn partial_log_reward(&self, words: &VectorStates, c: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
    ///         self.log_reward(words, c).map(Some)
    ///     }
    /// }
    /// let (env, rng) = (Words::new(2, 2), Rng::seeded(0));
    /// let policy = MlpPolicy::tabular(&env, ByKey::new(env, 9), MlpPolicyConfig::default(), Device::Cpu, Kind::Float)?;
    /// let objective = ModifiedDetailedBalance { next_exit: NextExit::Lagged };
    /// let trainer = Trainer::new(env, Length, policy, objective, TrainerConfig::default(), rng)?;
    /// assert!(trainer.with_lagged(100)?.step()?.loss.is_finite());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters; [`Error::Config`] for an interval of 0 steps.
    pub fn with_lagged(mut self, every: usize) -> Result<Self> {
        let Some(parameters) = self.policy.parameters() else {
            return Err(Error::Missing {
                objective: "a copy that lags behind",
                needs: "a policy with parameters",
                remedy: "there is nothing to copy",
            });
        };
        crate::train::fit::check_interval("steps between copies", Some(every))?;
        // An average with decay 0 is a copy.
        self.lagged = Some(Lagged { copy: Average::new(parameters, 0.0)?, every });
        Ok(self)
    }

    /// What the objective asks of the lagging copy.
    pub(in crate::train) fn ask_lagged(&self, trajectories: &Trajectories<E>) -> Result<Values> {
        let needs = self.objective.needs();
        let asked =
            [Quantity::TargetLogFlow, Quantity::TargetLogExit].into_iter().find(|&quantity| needs.has(quantity));
        match (asked, &self.lagged, self.policy.parameters()) {
            (None, ..) => Ok(Values::default()),
            (Some(_), Some(lagged), Some(parameters)) => {
                lagged.copy.with(parameters, || score_target(&self.env, &self.policy, trajectories, needs))?
            }
            (Some(quantity), ..) => Err(quantity.missing(self.objective.name())),
        }
    }

    /// Updates the target network if its interval is over.
    pub(in crate::train) fn update_lagged(&mut self) -> Result<()> {
        match (&mut self.lagged, self.policy.parameters()) {
            (Some(lagged), Some(parameters)) if (self.step + 1).is_multiple_of(lagged.every) => {
                lagged.copy.update(parameters)
            }
            _ => Ok(()),
        }
    }
}
