//! Updates on single transitions.

use crate::env::Env;
use crate::objective::Scoring;
use crate::rollout::{Container, Trajectories};
use crate::train::Context;
use crate::{Result, Rng};

/// Transitions that were drawn from a batch, cut out of their trajectories.
pub(in crate::train) struct SingleTransitions<E: Env> {
    pieces: Trajectories<E>,
    ahead: Vec<bool>,
}

impl<E: Env> SingleTransitions<E> {
    /// Those of one update; `None` where whole trajectories are learned from.
    pub(in crate::train) fn of(
        context: &Context<E>,
        trajectories: &Trajectories<E>,
        rng: &mut Rng,
    ) -> Result<Option<Self>> {
        let Some(some) = context.config.transitions else { return Ok(None) };
        let all = trajectories.transitions();
        let drawn = if some.size < all.len() { all.sample(some.size, rng)? } else { all };
        let (pieces, ahead) = drawn.cut_out(context.reward.as_ref())?;
        Ok(Some(Self { pieces, ahead }))
    }

    /// What is scored, and how: these, or the whole trajectories where there are none.
    pub(in crate::train) fn or_all<'a>(
        single: &'a Option<Self>,
        context: &Context<E>,
        trajectories: &'a Trajectories<E>,
    ) -> (&'a Trajectories<E>, Scoring<'a>) {
        match single {
            None => (trajectories, context.scoring()),
            Some(Self { pieces, ahead }) => (pieces, Scoring { ahead: Some(ahead), ..context.scoring() }),
        }
    }
}
