//! Fresh trajectories: of the policy, its average, its heads; a teacher's; local search around them.

use tch::Tensor;

use super::thompson::{Home, Thompson};
use super::{Facts, Source, Wanted, local_search};
use crate::distribution::Exploration;
use crate::env::Env;
use crate::optim::Average;
use crate::policy::Policy;
use crate::rollout::{Container, ReplayEnv, Sampler, Trajectories};
use crate::tensor::index_tensor;
use crate::train::Context;
use crate::{Error, Result, Rng};

/// A trainer's own draws.
pub(in crate::train) struct Own<E: Env, P> {
    /// Its share of the fresh trajectories, and a teacher.
    pub(in crate::train) teacher: Option<(f64, Box<dyn Source<E, P>>)>,
    pub(in crate::train) thompson: Option<Thompson<P>>,
}

impl<E: ReplayEnv, P: Policy<E>> Own<E, P> {
    /// A part that has a say in these draws.
    pub(super) fn part(&self, context: &Context<E, P>, average: Option<&Average>) -> Option<&'static str> {
        let parts = [
            (self.teacher.is_some(), "an adaptive teacher"),
            (self.thompson.is_some(), "Thompson sampling"),
            (average.is_some(), "sampling by the average"),
            (context.config.local_search.is_some(), "local search"),
        ];
        parts.into_iter().find(|(there, _)| *there).map(|(_, part)| part)
    }

    pub(super) fn facts(&self, context: &Context<E, P>, average: Option<&Average>) -> Result<Facts> {
        let on_policy = context.exploration()? == Exploration::none() && self.part(context, average).is_none();
        Ok(Facts { on_policy, ..Facts::default() })
    }

    /// `n` trajectories, the policy's (or its average's) first, a teacher's last; and what local search found around them.
    pub(super) fn draw(
        &mut self,
        n: usize,
        context: &Context<E, P>,
        average: Option<&Average>,
        rng: &mut Rng,
    ) -> Result<Vec<Trajectories<E>>> {
        let (policy, config, exploration) = (&context.policy, &context.config, context.exploration()?);
        let taught = self.teacher.as_ref().map_or(0, |(share, _)| rounded(share * n as f64, rng));
        let mut parts = Vec::new();
        if taught < n {
            let conditions = context.draw_conditions(n - taught, rng)?;
            let sampler = Sampler::new(&context.env, policy).exploration(exploration).max_steps(config.max_steps);
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
        let found = local_search::around(&fresh, search, exploration, context, rng)?;
        Ok(vec![fresh, found])
    }

    /// The parts of a batch that are learned from by themselves: all of it, or each head's share of it.
    pub(in crate::train) fn parts<'a>(
        &self,
        context: &'a Context<E, P>,
        batch: &'a Trajectories<E>,
        rng: &mut Rng,
    ) -> Result<Parts<'a, E, P>> {
        let least = context.objective.smallest_batch().max(1);
        let shares = self.thompson.as_ref().map(|thompson| thompson.shares(batch, least, rng)).transpose()?;
        Ok(Parts { batch, shares, home: self.thompson.as_ref().map(|thompson| thompson.home(&context.policy)) })
    }

    /// Trajectories of the policy or of its heads.
    fn by_heads(
        &self,
        sampler: &Sampler<'_, E, P>,
        policy: &P,
        n: usize,
        conditions: Option<&Tensor>,
        rng: &mut Rng,
    ) -> Result<Trajectories<E>> {
        let Some(thompson) = &self.thompson else { return forward(sampler, n, conditions, rng) };
        let mut rows = vec![Vec::new(); thompson.n_heads()];
        (0..n).for_each(|i| rows[rng.below(thompson.n_heads())].push(i));
        let home = thompson.home(policy);
        let mut parts = Vec::new();
        for (head, rows) in rows.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            home.enter(head)?;
            let conditions = conditions.map(|c| c.index_select(0, &index_tensor(rows, c.device())));
            parts.push(forward(sampler, rows.len(), conditions.as_ref(), rng)?);
        }
        joined(parts)
    }
}

/// The parts of a batch that are learned from by themselves.
pub(in crate::train) struct Parts<'a, E: Env, P> {
    batch: &'a Trajectories<E>,
    shares: Option<Vec<Trajectories<E>>>,
    home: Option<Home<'a, P>>,
}

impl<E: Env, P> Parts<'_, E, P> {
    pub(in crate::train) fn len(&self) -> usize {
        self.shares.as_ref().map_or(1, Vec::len)
    }

    /// Each part, with its head in use.
    pub(in crate::train) fn each(&self) -> impl Iterator<Item = Result<&Trajectories<E>>> {
        let all = self.shares.as_deref().unwrap_or(std::slice::from_ref(self.batch));
        all.iter().enumerate().map(|(head, part)| {
            self.home.as_ref().map_or(Ok(()), |home| home.enter(head))?;
            Ok(part)
        })
    }
}

/// A number rounded up or down at random where it isn't whole, so that its mean is kept.
fn rounded(x: f64, rng: &mut Rng) -> usize {
    x.floor() as usize + usize::from(x.fract() > 0.0 && rng.uniform() < x.fract())
}

/// Forward trajectories, under conditions if there are any.
pub(super) fn forward<E: ReplayEnv, P: Policy<E>>(
    sampler: &Sampler<'_, E, P>,
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
pub(super) fn joined<E: ReplayEnv>(parts: Vec<Trajectories<E>>) -> Result<Trajectories<E>> {
    let mut parts = parts.into_iter();
    let mut whole = parts.next().ok_or(Error::config("batch", "no trajectory", "at least one trajectory"))?;
    whole.extend(parts)?;
    Ok(whole)
}
