//! Local search around fresh trajectories.

use crate::distribution::Exploration;
use crate::policy::Policy;
use crate::rollout::{LocalSearch, ReplayEnv, Sampler, Trajectories};
use crate::train::Context;
use crate::{Error, Result, Rng};

/// Paths to what is found from the objects of fresh trajectories, with their log-rewards.
pub(super) fn around<E: ReplayEnv, P: Policy<E>>(
    fresh: &Trajectories<E>,
    search: LocalSearch,
    exploration: Exploration,
    context: &Context<E, P>,
    rng: &mut Rng,
) -> Result<Trajectories<E>> {
    if fresh.conditions().is_some() {
        let remedy = "train a conditional policy without local search";
        return Err(Error::missing("local search", "objects without conditions", remedy));
    }
    let sampler = Sampler::new(&context.env, &context.policy).exploration(exploration);
    let sampler = sampler.max_steps(context.config.max_steps);
    let (start, known) = (fresh.terminal_states(), fresh.recorded_log_rewards().unwrap_or_default());
    let (found, rewards) = sampler.local_search_from(search, start, known, context.reward.as_ref(), rng)?;
    sampler.backward(&found, rng)?.with_log_rewards(rewards)
}
