//! Target network: a copy of the policy that is updated only every few steps.

use tch::Tensor;

use crate::objective::lagged_exits;
use crate::optim::Average;
use crate::policy::Policy;
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
    /// Keeps a target network, that is, a copy of the parameters that is updated every `every` steps, for objectives
    /// that compare with it ([`NextExit::Lagged`](crate::objective::NextExit::Lagged)). It is saved in checkpoints.
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

    /// log P_F of the exits by the target network, if the objective needs it.
    pub(in crate::train) fn lagged_exits(&self, trajectories: &Trajectories<E>) -> Result<Option<Tensor>> {
        if !self.objective.needs().lagged_log_p_exit {
            return Ok(None);
        }
        let (Some(lagged), Some(parameters)) = (&self.lagged, self.policy.parameters()) else {
            return Err(Error::Missing {
                objective: self.objective.name(),
                needs: "a target network, that is, a copy of the policy that lags behind",
                remedy: "give the trainer one (`with_lagged`), or compare with the policy itself (`NextExit::Own`)",
            });
        };
        lagged.copy.with(parameters, || lagged_exits(&self.env, &self.policy, trajectories))?.map(Some)
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
