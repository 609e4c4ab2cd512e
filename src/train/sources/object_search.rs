//! A search among objects beside the policy, whose finds go into the replay buffer.

use crate::env::{Env, Reward, Rows};
use crate::replay::ReplayBuffer;
use crate::rollout::{ReplayEnv, Sampler, Walks};
use crate::train::Context;
use crate::{Result, Rng};

/// What a search found.
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
    /// Whatever keeps it from searching.
    fn search(
        &self,
        env: &E,
        objects: &E::States,
        reward: &dyn Reward<E::States>,
        rng: &mut Rng,
    ) -> Result<Found<E::States>>;
}

/// A search, and when it is made.
pub(in crate::train) struct Searching<E: Env> {
    pub(in crate::train) search: Box<dyn ObjectSearch<E>>,
    pub(in crate::train) every: usize,
    /// How many objects it starts from.
    pub(in crate::train) objects: usize,
}

impl<E: ReplayEnv> Searching<E> {
    /// Makes the search if its time has come; says how many objects the reward was asked for.
    pub(super) fn fill<P>(
        &self,
        buffer: &mut ReplayBuffer<E>,
        context: &Context<E, P>,
        rng: &mut Rng,
    ) -> Result<usize> {
        if context.step == 0 || !context.step.is_multiple_of(self.every) || buffer.is_empty() {
            return Ok(0);
        }
        let (env, start) = (&context.env, buffer.draw(self.objects, rng)?.terminal);
        let Found { objects, log_rewards, reward_calls } =
            self.search.search(env, &start, context.reward.as_ref(), rng)?;
        if objects.is_empty() {
            return Ok(reward_calls);
        }
        let walks = if buffer.keeps_paths() {
            let uniform = env.uniform();
            let sampler = Sampler::new(env, &uniform).max_steps(context.config.max_steps);
            sampler.backward(&objects, rng)?.walks(env)?
        } else {
            let offsets = vec![0; objects.len() + 1];
            Walks { actions: env.no_actions(), offsets, terminal: objects, conditions: None }
        };
        buffer.add(env, &walks, &log_rewards)?;
        Ok(reward_calls)
    }
}
