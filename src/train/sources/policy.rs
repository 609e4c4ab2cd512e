//! Fresh trajectories of the policy or its average, and local search around them.

use super::{BatchRequest, Source, SourceTraits};
use crate::distribution::Exploration;
use crate::rollout::{Container, Sampler, Trajectories};
use crate::train::{AverageFor, Context, Persist, TrainEnv};
use crate::{Error, Result, Rng};

/// The policy as a source of trajectories.
#[derive(Debug, Default)]
pub(in crate::train) struct PolicySource {
    /// The reward calls of the last draw that local search made.
    search_calls: u64,
}

impl<E: TrainEnv> Persist<E> for PolicySource {
    fn name(&self) -> &str {
        "policy"
    }
}

impl<E: TrainEnv> Source<E> for PolicySource {
    fn traits(&self, context: &Context<E>) -> SourceTraits {
        let samples_average = context.average.as_ref().is_some_and(|average| average.purpose == AverageFor::Sampling);
        // A schedule that leaves its bounds is an error of `draw`.
        let explores = context.exploration().is_ok_and(|exploration| exploration != Exploration::none());
        let on_policy = !explores && !samples_average && context.config.local_search.is_none();
        SourceTraits { on_policy, is_external: false, ..SourceTraits::default() }
    }

    /// Draws trajectories, and with local search the objects found around them in addition, in front.
    fn draw(&mut self, request: BatchRequest, context: &Context<E>, rng: &mut Rng) -> Result<Option<Trajectories<E>>> {
        let policy = context.policy();
        let config = &context.config;
        let sampler =
            Sampler::new(&context.env, policy).exploration(context.exploration()?).max_steps(config.max_steps);
        let conditions = context.draw_conditions(request.max, rng)?;
        let mut sample = || match &conditions {
            Some(conditions) => sampler.forward_conditional(conditions, rng),
            None => sampler.forward(request.max, rng),
        };
        let average = context.average.as_ref().filter(|average| average.purpose == AverageFor::Sampling);
        let fresh = match (average, policy.parameters()) {
            (Some(averaged), Some(parameters)) => averaged.average.with(parameters, sample)??,
            _ => sample()?,
        };
        self.search_calls = 0;
        let Some(search) = config.local_search else { return Ok(Some(fresh)) };
        if conditions.is_some() {
            let remedy = "train a conditional policy without local search";
            return Err(Error::missing("local search", "objects without conditions", remedy));
        }
        let fresh = context.rewarded(fresh)?;
        self.search_calls = (request.max * (1 + search.rounds)) as u64;
        let rewards = fresh.recorded_log_rewards().unwrap_or_default();
        let reward = context.reward.as_ref();
        let (found, rewards) = sampler.local_search_from(search, fresh.terminal_states(), rewards, reward, rng)?;
        let mut all = sampler.backward(&found, rng)?.with_log_rewards(rewards)?;
        all.extend([fresh])?;
        Ok(Some(all))
    }

    fn reward_calls(&self) -> u64 {
        self.search_calls
    }
}
