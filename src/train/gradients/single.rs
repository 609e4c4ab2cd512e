//! Updates on single transitions.

use crate::env::Env;
use crate::rollout::{Container, Trajectories};
use crate::train::Context;
use crate::{Result, Rng};

/// Transitions that were drawn from a batch, cut out of their trajectories.
pub(in crate::train) struct SingleTransitions<E: Env> {
    pub(super) pieces: Trajectories<E>,
    pub(super) ahead: Vec<bool>,
}

impl<E: Env> SingleTransitions<E> {
    /// Draws the transitions of one update; returns `None` if the trainer learns from whole trajectories.
    pub(in crate::train) fn draw(
        context: &Context<E>,
        trajectories: &Trajectories<E>,
        rng: &mut Rng,
    ) -> Result<Option<Self>> {
        let Some(settings) = context.config.transitions else { return Ok(None) };
        let all = trajectories.transitions();
        let drawn = if settings.size < all.len() { all.sample(settings.size, rng)? } else { all };
        let (pieces, ahead) = drawn.cut_out(context.reward.as_ref())?;
        Ok(Some(Self { pieces, ahead }))
    }
}
