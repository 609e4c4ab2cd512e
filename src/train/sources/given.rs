//! Given trajectories: a data set that is drawn from and never added to.

use super::BatchSource;
use super::replay::walk_again;
use crate::env::Env;
use crate::policy::Policy;
use crate::replay::ReplayBuffer;
use crate::rollout::{ReplayEnv, Trajectories};
use crate::train::{Context, Persist};
use crate::{Result, Rng};

pub(in crate::train) struct Given<E: Env>(pub(in crate::train) ReplayBuffer<E>);

impl<E: Env> Persist<E> for Given<E> {
    fn name(&self) -> &str {
        "data"
    }
}

impl<E: ReplayEnv, P: Policy<E>> BatchSource<E, P> for Given<E> {
    fn draw(&mut self, n: usize, context: &Context<E, P>, rng: &mut Rng) -> Result<Trajectories<E>> {
        let drawn = self.0.draw_entries(n, rng)?;
        walk_again(&drawn.walks, context, rng)?.with_log_rewards(drawn.log_rewards)
    }
}
