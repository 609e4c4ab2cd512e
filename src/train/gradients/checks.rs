//! Checks of objectives, losses and gradients.

use tch::Tensor;

use crate::nn::Parameters;
use crate::objective::{Objective, SCORING};
use crate::train::TrainerConfig;
use crate::{Error, Result};

/// Refuses a batch of one trajectory for an objective that compares with the mean of the batch.
pub(in crate::train) fn check_batch(objective: &dyn Objective, config: &TrainerConfig) -> Result<()> {
    if config.batch < objective.smallest_batch() {
        Err(Error::missing(
            objective.name(),
            "at least two trajectories per batch, which it compares with their mean",
            "raise `TrainerConfig::batch`, or choose an objective that learns from one",
        ))
    } else {
        Ok(())
    }
}

/// Refuses single transitions for an objective whose residuals span several transitions.
pub(in crate::train) fn check_transitions(objective: &dyn Objective, config: &TrainerConfig) -> Result<()> {
    let (missing, remedy) = if !objective.learns_from_transitions() {
        (
            "whole trajectories",
            "leave `TrainerConfig::transitions` out, or choose detailed balance, modified or forward-looking",
        )
    } else if config.chunk.is_some() {
        (
            "a batch that is scored at once",
            "leave `TrainerConfig::chunk` out: an update on single transitions is a small batch by itself",
        )
    } else {
        return Ok(());
    };
    Err(Error::missing(objective.name(), missing, remedy))
}

/// Refuses a loss that isn't a single number.
pub(super) fn check_loss(objective: &dyn Objective, loss: &Tensor) -> Result<()> {
    match loss.numel() {
        1 => Ok(()),
        _ => Err(Error::shape(
            format!("the loss of {}", objective.name()),
            vec![],
            loss.size(),
            "an objective gives one number for the whole batch: take the mean of its losses",
        )),
    }
}

/// Refuses a loss without a gradient if there are parameters to train.
pub(super) fn check_gradient(
    objective: &dyn Objective,
    parameters: Option<&Parameters>,
    has_gradient: bool,
) -> Result<()> {
    let trained = || parameters.is_some_and(|p| p.iter().any(|parameter| parameter.tensor.requires_grad()));
    if has_gradient || !trained() {
        Ok(())
    } else {
        Err(Error::missing(
            objective.name(),
            "a loss with a gradient",
            "train outside of `tch::no_grad`, and let policy and objective neither detach nor copy what they compute",
        ))
    }
}

/// Names the objective in an error about a missing quantity, because the objective needs it.
pub(super) fn name_objective(objective: &dyn Objective, error: Error) -> Error {
    match error {
        Error::Missing { needed_by: SCORING, missing, remedy } => Error::missing(objective.name(), missing, remedy),
        other => other,
    }
}
