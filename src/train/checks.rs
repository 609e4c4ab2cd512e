//! Checks that refuse training with nothing to learn, or towards another target than was asked for.

use tch::Tensor;

use super::{ReplayPath, Trainer, TrainerConfig};
use crate::condition::Conditions;
use crate::nn::Parameters;
use crate::objective::{Objective, SCORING};
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::train::sources::draws_by_loss;
use crate::{Error, Result};

/// Refuses batches of one trajectory for an objective that compares with the batch mean.
pub(super) fn check_batch(objective: &dyn Objective, config: &TrainerConfig) -> Result<()> {
    match config.batch < objective.smallest_batch() {
        true => Err(Error::Missing {
            objective: objective.name(),
            needs: "at least two trajectories per batch, which it compares with their mean",
            remedy: "raise `TrainerConfig::batch`, or choose an objective that learns from one",
        }),
        false => Ok(()),
    }
}

/// Refuses a loss that isn't a single number.
pub(super) fn check_loss(objective: &dyn Objective, loss: &Tensor) -> Result<()> {
    match loss.numel() {
        1 => Ok(()),
        _ => Err(Error::Shape {
            what: format!("the loss of {}", objective.name()),
            expected: vec![],
            got: loss.size(),
            remedy: "an objective gives one number for the whole batch: take the mean of its losses",
        }),
    }
}

/// Refuses a loss without a gradient while there are parameters to train.
pub(super) fn check_gradient(
    objective: &dyn Objective,
    parameters: Option<&Parameters>,
    has_gradient: bool,
) -> Result<()> {
    let trained = || parameters.is_some_and(|p| p.iter().any(|parameter| parameter.tensor.requires_grad()));
    match has_gradient || !trained() {
        true => Ok(()),
        false => Err(Error::Missing {
            objective: objective.name(),
            needs: "a loss with a gradient",
            remedy: "train outside of `tch::no_grad`, and let policy and objective neither detach nor copy what they compute",
        }),
    }
}

/// Adds the objective's name to an error of scoring about a missing quantity.
pub(super) fn asked_by(objective: &dyn Objective, error: Error) -> Error {
    match error {
        Error::Missing { objective: SCORING, needs, remedy } => {
            Error::Missing { objective: objective.name(), needs, remedy }
        }
        other => other,
    }
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Refuses draws of given trajectories by loss, because their losses are never updated, and uniform backward paths
    /// for an objective that learns from paths.
    pub(super) fn check_draws(&self) -> Result<()> {
        if self.data.as_ref().is_some_and(draws_by_loss) {
            return Err(Error::Config {
                setting: "the draw of given trajectories",
                got: "a draw by losses, which given trajectories are never told: all would be drawn alike".into(),
                expected: "a uniform draw or one by reward (`Draw`); only a replay buffer (`with_replay`) has losses",
            });
        }
        let again = self.replay.is_some() || self.data.is_some();
        if again && self.objective.needs_taken_paths() && self.config.replay_path == ReplayPath::UniformBackward {
            return Err(Error::Missing {
                objective: "an objective of P_B",
                needs: "paths that a policy took, because uniform backward steps would teach P_B to be uniform",
                remedy: "set `TrainerConfig::replay_path` to `ReplayPath::Stored`, or to `ReplayPath::PolicyBackward` if no paths are stored",
            });
        }
        Ok(())
    }

    /// Draws the conditions of `n` trajectories, if there is a source of them.
    pub(super) fn draw_conditions(&mut self, n: usize) -> Result<Option<Tensor>> {
        let Some(source) = &self.conditions else { return Ok(None) };
        let Conditions(drawn) = Conditions::checked(source.draw(n, &mut self.rng)?, n)?;
        Ok(Some(drawn))
    }
}
