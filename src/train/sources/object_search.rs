//! A search among objects beside the policy, whose finds go into the replay buffer.

use crate::env::{Env, Reward};
use crate::{Result, Rng};

/// The finds of a search.
#[derive(Clone, Debug)]
pub struct Found<S> {
    /// Finished objects, as many as it likes.
    pub objects: S,
    /// Their log-rewards.
    pub log_rewards: Vec<f64>,
    /// How many objects it asked the reward for.
    pub reward_calls: usize,
}

/// A search that starts from finished objects and knows more of the reward than its values: Langevin steps along a gradient, a chemist's
/// moves. It holds nothing that changes, so that a run that resumes goes on with the same search.
///
/// What works on trajectories instead is [`LocalSearch`](crate::rollout::LocalSearch).
pub trait ObjectSearch<E: Env>: Send {
    /// Objects found from these.
    ///
    /// # Errors
    /// Any error that must end the step.
    fn search(
        &self,
        env: &E,
        objects: &E::States,
        reward: &dyn Reward<E::States>,
        rng: &mut Rng,
    ) -> Result<Found<E::States>>;
}
