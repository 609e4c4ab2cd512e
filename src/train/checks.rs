//! What a trainer refuses to learn from: it would learn nothing, or something else than was asked for.

use tch::Tensor;

use super::{ReplayPath, Trainer, TrainerConfig};
use crate::condition::Conditions;
use crate::nn::Parameters;
use crate::objective::{Objective, SCORING};
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::train::sources::draws_by_loss;
use crate::{Error, Result};

/// A batch of one trajectory, for an objective that compares with the batch's mean.
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

/// A loss that isn't one number.
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

/// Parameters that are to be trained, and a loss that no gradient leads away from.
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

/// What scoring misses is what the objective asked for.
pub(super) fn asked_by(objective: &dyn Objective, error: Error) -> Error {
    match error {
        Error::Missing { objective: SCORING, needs, remedy } => {
            Error::Missing { objective: objective.name(), needs, remedy }
        }
        other => other,
    }
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Given trajectories that are to be drawn by losses which nobody tells, and ways back that nobody took for an objective that learns
    /// from the way.
    pub(super) fn check_draws(&self) -> Result<()> {
        if self.data.as_ref().is_some_and(draws_by_loss) {
            return Err(Error::Config {
                setting: "the draw of given trajectories",
                got: "one by their losses, which are never told: all would be drawn alike".into(),
                expected: "a uniform draw or one by reward (`Draw`); a replay buffer (`with_replay`) is told losses",
            });
        }
        let again = self.replay.is_some() || self.data.is_some();
        if again && self.objective.needs_taken_paths() && self.config.replay_path == ReplayPath::UniformBackward {
            return Err(Error::Missing {
                objective: "an objective of P_B",
                needs: "paths that a policy took, as uniform steps back would teach it to be uniform",
                remedy: "set `TrainerConfig::replay_path` to `ReplayPath::Stored`, or to `ReplayPath::PolicyBackward` where no paths are kept",
            });
        }
        Ok(())
    }

    /// Conditions of `n` trajectories, if there is a source of them.
    pub(super) fn draw_conditions(&mut self, n: usize) -> Result<Option<Tensor>> {
        let Some(source) = &self.conditions else { return Ok(None) };
        let Conditions(drawn) = Conditions::checked(source.draw(n, &mut self.rng)?, n)?;
        Ok(Some(drawn))
    }
}
