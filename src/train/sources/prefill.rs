//! Fills the replay buffer before training.

use crate::env::log_rewards;
use crate::rollout::{Container, Sampler};
use crate::train::TrainEnv;
use crate::train::Trainer;
use crate::{Error, Result};

impl<E: TrainEnv> Trainer<E> {
    /// Fills the replay buffer with `n` uniform random walks, without a network; under conditions, if trajectories have them. Of several
    /// replicas each fills its own with its share of them.
    ///
    /// # Errors
    /// [`Error::Missing`] without a buffer, and those of sampler and reward.
    pub fn prefill(&mut self, n: usize) -> Result<usize> {
        (E::trainer_code().prefill)(self, n)
    }

    pub(in crate::train) fn fill(&mut self, n: usize) -> Result<usize> {
        const CHUNK: usize = 8192;
        let Self { context, sources, rng, .. } = self;
        let Some(replay) = &mut sources.replay else {
            return Err(Error::missing("prefilling", "a replay buffer", "give the trainer one (`with_replay`)"));
        };
        let (env, uniform, mut stayed) = (&context.env, context.env.uniform(), 0);
        let mut split = context.own_stream(rng);
        let rng = split.as_mut().unwrap_or(rng);
        let sampler = Sampler::new(env, &uniform).max_steps(context.config.max_steps);
        let n = context.share_of(n);
        for start in (0..n).step_by(CHUNK) {
            let chunk = CHUNK.min(n - start);
            let mut walks = sampler.walks(chunk, rng)?;
            if let Some(conditions) = context.draw_conditions(chunk, rng)? {
                walks = walks.with_conditions(conditions)?;
            }
            let rewards = log_rewards(context.reward.as_ref(), &walks.terminal, walks.conditions())?;
            stayed += replay.buffer.add(env, &walks, &rewards)?;
            sources.reward_calls += chunk as u64;
        }
        Ok(stayed)
    }
}
