//! Who draws fresh trajectories: the policy, its average, one of its heads, a teacher.

use tch::Tensor;

use super::teacher::Teacher;
use super::thompson::Thompson;
use crate::condition::Conditions;
use crate::distribution::Exploration;
use crate::env::Env;
use crate::optim::Average;
use crate::policy::Policy;
use crate::rollout::{Container, ReplayEnv, Sampler, Trajectories};
use crate::tensor::index_tensor;
use crate::train::{Context, Persist};
use crate::{Error, Result, Rng};

/// What fresh trajectories are drawn by, beside the policy.
pub(in crate::train) struct OnPolicy<E: Env, P> {
    pub(in crate::train) teacher: Option<Box<dyn Teacher<E>>>,
    pub(in crate::train) thompson: Option<Thompson<P>>,
}

impl<E: Env, P> Default for OnPolicy<E, P> {
    fn default() -> Self {
        Self { teacher: None, thompson: None }
    }
}

impl<E: ReplayEnv, P: Policy<E>> OnPolicy<E, P> {
    /// `n` fresh trajectories: the policy's (or its average's) first, a teacher's last.
    pub(in crate::train) fn draw(
        &self,
        n: usize,
        exploration: Exploration,
        (context, average): (&Context<E, P>, Option<&Average>),
        rng: &mut Rng,
    ) -> Result<Trajectories<E>> {
        let drawn = context.conditions.as_ref().map(|source| source.draw(n, rng)).transpose()?;
        let conditions = drawn.map(|drawn| Conditions::checked(drawn, n)).transpose()?.map(|Conditions(drawn)| drawn);
        let of = |rows: std::ops::Range<usize>| {
            conditions.as_ref().map(|c| c.narrow(0, rows.start as i64, rows.len() as i64))
        };
        let taught = self.teacher.as_ref().map_or(0, |teacher| teacher.count(n, rng));
        let mut parts = Vec::new();
        if taught < n {
            let sampler = Sampler::new(&context.env, &context.policy).exploration(exploration);
            let sampler = sampler.max_steps(context.config.max_steps);
            let (conditions, policy) = (of(0..n - taught), &context.policy);
            let mut draw = || self.own(&sampler, policy, n - taught, conditions.as_ref(), rng);
            parts.push(match (average, context.policy.parameters()) {
                (Some(average), Some(parameters)) => average.with(parameters, draw)??,
                _ => draw()?,
            });
        }
        if let (Some(teacher), true) = (&self.teacher, taught > 0) {
            let (conditions, how) = (of(n - taught..n), (exploration, context.config.max_steps));
            parts.push(teacher.sample(&context.env, taught, conditions.as_ref(), how, rng)?);
        }
        joined(parts)
    }

    /// Trajectories of the policy or of its heads.
    fn own(
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
        let heads = (0..rows.len()).filter(|&head| !rows[head].is_empty());
        joined(thompson.each(policy, heads, |head| {
            let conditions = conditions.map(|c| c.index_select(0, &index_tensor(&rows[head], c.device())));
            forward(sampler, rows[head].len(), conditions.as_ref(), rng)
        })?)
    }
}

impl<E: Env, P> Persist<E> for OnPolicy<E, P> {
    fn name(&self) -> &str {
        "teacher"
    }
    fn describe(&self) -> String {
        "a teacher".into()
    }
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        self.teacher.as_ref().map_or(Ok(Vec::new()), |teacher| teacher.state())
    }
    fn load_state(&mut self, _env: &E, state: &[(String, Tensor)]) -> Result<()> {
        self.teacher.as_mut().map_or(Ok(()), |teacher| teacher.load_state(state))
    }
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
