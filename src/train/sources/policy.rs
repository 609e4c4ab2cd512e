//! The source of fresh trajectories: the policy or its average, and local search from the sampled objects.

use super::{BatchRequest, Source, SourceTraits};
use crate::distribution::Exploration;
use crate::rollout::{Container, Trajectories};
use crate::train::{Context, Persist, TrainEnv};
use crate::{Error, Result, Rng};

/// The name of the policy as a source. The name is reserved, so no custom source has it.
pub(super) const POLICY: &str = "policy";

/// The source that samples fresh trajectories from the policy.
#[derive(Debug, Default)]
pub(in crate::train) struct PolicySource {
    /// The number of objects for which local search computed rewards in the last draw.
    search_calls: u64,
}

impl<E: TrainEnv> Persist<E> for PolicySource {
    fn name(&self) -> &str {
        POLICY
    }
}

impl<E: TrainEnv> Source<E> for PolicySource {
    fn traits(&self, context: &Context<E>) -> SourceTraits {
        // If a schedule's value is out of bounds, this function counts it as no exploration, and `draw`
        // reports the error.
        let explores = context.exploration().is_ok_and(|exploration| exploration != Exploration::on_policy());
        let on_policy =
            !explores && context.sampling_average().is_none() && context.config.local_search.is_none();
        SourceTraits { on_policy, is_external: false, ..SourceTraits::default() }
    }

    /// Draws trajectories from the policy. With local search, trajectories to the objects that the search
    /// found are added, and come first.
    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<E>,
        rng: &mut Rng,
    ) -> Result<Option<Trajectories<E>>> {
        let config = &context.config;
        let sampler = context.sampler(&context.env, context.policy()).exploration(context.exploration()?);
        let conditions = context.draw_conditions(request.max, rng)?;
        let mut sample = || match &conditions {
            Some(conditions) => sampler.forward_conditional(conditions, rng),
            None => sampler.forward(request.max, rng),
        };
        let fresh = match context.sampling_average() {
            Some((average, parameters)) => average.with(parameters, sample)??,
            None => sample()?,
        };
        self.search_calls = 0;
        let Some(search) = config.local_search else { return Ok(Some(fresh)) };
        if conditions.is_some() {
            let remedy = "train without local search, because the policy has conditions";
            return Err(Error::missing("local search", "objects without conditions", remedy));
        }
        let fresh = context.rewarded(fresh)?;
        self.search_calls = (request.max * (1 + search.rounds)) as u64;
        let rewards = fresh.recorded_log_rewards().unwrap_or_default();
        let reward = context.reward.as_ref();
        let (found, rewards) =
            sampler.local_search_from(search, fresh.terminal_states(), rewards, reward, rng)?;
        let mut all = sampler.backward(&found, rng)?.with_log_rewards(rewards)?;
        all.extend([fresh])?;
        Ok(Some(all))
    }

    fn reward_calls(&self) -> u64 {
        self.search_calls
    }
}
