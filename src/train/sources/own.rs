//! Fresh trajectories: of the policy, its average, its heads; a teacher's; local search around them.

use tch::Tensor;

use super::thompson::Thompson;
use super::{Facts, Source, Wanted};
use crate::distribution::Exploration;
use crate::env::Env;
use crate::optim::Average;
use crate::policy::Policy;
use crate::rollout::{Container, Sampler, Trajectories};
use crate::tensor::index_tensor;
use crate::train::Context;
use crate::train::TrainEnv;
use crate::{Error, Result, Rng};

/// A trainer's own draws.
pub(in crate::train) struct Own<E: Env> {
    /// Its share of the fresh trajectories, and a teacher.
    pub(in crate::train) teacher: Option<(f64, Box<dyn Source<E>>)>,
    pub(in crate::train) thompson: Option<Thompson>,
}

impl<E: TrainEnv> Own<E> {
    /// A part that has a say in these draws.
    pub(super) fn part(&self, context: &Context<E>, average: Option<&Average>) -> Option<&'static str> {
        let parts = [
            (self.teacher.is_some(), "an adaptive teacher"),
            (self.thompson.is_some(), "Thompson sampling"),
            (average.is_some(), "sampling by the average"),
            (context.config.local_search.is_some(), "local search"),
        ];
        parts.into_iter().find(|(there, _)| *there).map(|(_, part)| part)
    }

    pub(super) fn facts(&self, context: &Context<E>, average: Option<&Average>) -> Result<Facts> {
        let on_policy = context.exploration()? == Exploration::none() && self.part(context, average).is_none();
        Ok(Facts { on_policy, ..Facts::default() })
    }

    /// `n` trajectories, the policy's (or its average's) first, a teacher's last; and what local search found around them.
    pub(super) fn draw(
        &mut self,
        n: usize,
        context: &Context<E>,
        average: Option<&Average>,
        rng: &mut Rng,
    ) -> Result<Vec<Trajectories<E>>> {
        let (policy, config, exploration) = (context.policy(), &context.config, context.exploration()?);
        let taught = self.teacher.as_ref().map_or(0, |(share, _)| rounded(share * n as f64, rng));
        let sampler = Sampler::new(&context.env, policy).exploration(exploration).max_steps(config.max_steps);
        let mut parts = Vec::new();
        if taught < n {
            let conditions = context.draw_conditions(n - taught, rng)?;
            let mut draw = || self.by_heads(&sampler, policy, n - taught, conditions.as_ref(), rng);
            parts.push(match (average, policy.parameters()) {
                (Some(average), Some(parameters)) => average.with(parameters, draw)??,
                _ => draw()?,
            });
        }
        if let (Some((_, teacher)), 1..) = (&mut self.teacher, taught) {
            parts.extend(teacher.draw(Wanted::exactly(taught), context, rng)?);
        }
        let fresh = context.rewarded(joined(parts)?)?;
        let Some(search) = config.local_search else { return Ok(vec![fresh]) };
        if fresh.conditions().is_some() {
            let remedy = "train a conditional policy without local search";
            return Err(Error::missing("local search", "objects without conditions", remedy));
        }
        let (start, known) = (fresh.terminal_states(), fresh.recorded_log_rewards().unwrap_or_default());
        let (found, rewards) = sampler.local_search_from(search, start, known, context.reward.as_ref(), rng)?;
        let found = sampler.backward(&found, rng)?.with_log_rewards(rewards)?;
        Ok(vec![fresh, found])
    }

    /// Learns from each part of a batch by itself, with its weight: from all of it, or from each head's share of it. Gives the last one's result.
    pub(in crate::train) fn each_part<T>(
        &self,
        context: &Context<E>,
        batch: &Trajectories<E>,
        rng: &mut Rng,
        mut learn: impl FnMut(&Trajectories<E>, f64) -> Result<T>,
    ) -> Result<T> {
        let Some(thompson) = &self.thompson else { return learn(batch, 1.0) };
        let shares = thompson.shares(batch, context.objective.smallest_batch().max(1), rng)?;
        let weight = 1.0 / shares.len() as f64;
        let learned = thompson.each(context.policy(), 0..shares.len(), |head| learn(&shares[head], weight))?;
        learned
            .into_iter()
            .last()
            .ok_or_else(|| Error::contract("a policy of several heads has heads", "there is none"))
    }

    /// Trajectories of the policy or of its heads.
    fn by_heads(
        &self,
        sampler: &Sampler<'_, E>,
        policy: &dyn Policy<E>,
        n: usize,
        conditions: Option<&Tensor>,
        rng: &mut Rng,
    ) -> Result<Trajectories<E>> {
        let Some(thompson) = &self.thompson else { return forward(sampler, n, conditions, rng) };
        let mut rows = vec![Vec::new(); thompson.n_heads()];
        (0..n).for_each(|i| rows[rng.below(thompson.n_heads())].push(i));
        let heads = (0..rows.len()).filter(|&head| !rows[head].is_empty());
        joined(thompson.each(policy, heads, |head| {
            let conditions = conditions.map(|c| c.index_select(0, &index_tensor(&rows[head], c.device())));
            forward(sampler, rows[head].len(), conditions.as_ref(), rng)
        })?)
    }
}

/// A number rounded up or down at random where it isn't whole, so that its mean is kept.
fn rounded(x: f64, rng: &mut Rng) -> usize {
    x.floor() as usize + usize::from(x.fract() > 0.0 && rng.uniform() < x.fract())
}

/// Forward trajectories, under conditions if there are any.
pub(super) fn forward<E: TrainEnv>(
    sampler: &Sampler<'_, E>,
    n: usize,
    conditions: Option<&Tensor>,
    rng: &mut Rng,
) -> Result<Trajectories<E>> {
    match conditions {
        Some(conditions) => sampler.forward_conditional(conditions, rng),
        None => sampler.forward(n, rng),
    }
}

/// The parts of a batch as one.
pub(super) fn joined<E: TrainEnv>(parts: Vec<Trajectories<E>>) -> Result<Trajectories<E>> {
    let mut parts = parts.into_iter();
    let mut whole = parts.next().ok_or(Error::config("batch", "no trajectory", "at least one trajectory"))?;
    whole.extend(parts)?;
    Ok(whole)
}
