//! New trajectories, sampled by the policy, its average, one of its heads, or a teacher.

use tch::Tensor;

use crate::Result;
use crate::distribution::Exploration;
use crate::policy::Policy;
use crate::rollout::{ReplayEnv, Sampler, Trajectories};
use crate::tensor::index_tensor;
use crate::train::Trainer;
use crate::train::companions::for_sampling;

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Samples `n` new trajectories: the policy's first, a teacher's last.
    pub(in crate::train) fn sample_new(&mut self, n: usize, exploration: Exploration) -> Result<Trajectories<E>> {
        let conditions = self.draw_conditions(n)?;
        let of = |rows: std::ops::Range<usize>| {
            conditions.as_ref().map(|c| c.narrow(0, rows.start as i64, rows.len() as i64))
        };
        let taught = self.teacher.as_ref().map_or(0, |teacher| teacher.count(n, &mut self.rng));
        let mut parts = Vec::new();
        if taught < n {
            parts.push(self.sample_own(n - taught, of(0..n - taught).as_ref(), exploration)?);
        }
        if let (Some(teacher), true) = (&self.teacher, taught > 0) {
            let (conditions, max_steps) = (of(n - taught..n), self.config.max_steps);
            let drawn =
                teacher.sample(&self.env, taught, conditions.as_ref(), (exploration, max_steps), &mut self.rng)?;
            parts.push(drawn);
        }
        joined(parts)
    }

    /// Samples from the policy, its average or its heads.
    fn sample_own(
        &mut self,
        n: usize,
        conditions: Option<&Tensor>,
        exploration: Exploration,
    ) -> Result<Trajectories<E>> {
        let sampler = Sampler::new(&self.env, &self.policy).exploration(exploration).max_steps(self.config.max_steps);
        let rng = &mut self.rng;
        let mut draw = || match &self.thompson {
            None => forward(&sampler, n, conditions, rng),
            Some(thompson) => {
                let mut rows = vec![Vec::new(); thompson.n_heads()];
                (0..n).for_each(|i| rows[rng.below(thompson.n_heads())].push(i));
                let home = thompson.head(&self.policy);
                let mut parts = Vec::new();
                for (head, rows) in rows.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
                    thompson.use_head(&self.policy, head)?;
                    let conditions = conditions.map(|c| c.index_select(0, &index_tensor(rows, c.device())));
                    parts.push(forward(&sampler, rows.len(), conditions.as_ref(), rng));
                }
                thompson.use_head(&self.policy, home)?;
                joined(parts.into_iter().collect::<Result<_>>()?)
            }
        };
        match (for_sampling(self.average.as_ref()), self.policy.parameters()) {
            (Some(average), Some(parameters)) => average.with(parameters, draw)?,
            _ => draw(),
        }
    }
}

/// Samples forward trajectories, under conditions if there are any.
pub(in crate::train) fn forward<E: ReplayEnv, P: Policy<E>>(
    sampler: &Sampler<'_, E, P>,
    n: usize,
    conditions: Option<&Tensor>,
    rng: &mut crate::Rng,
) -> Result<Trajectories<E>> {
    match conditions {
        Some(conditions) => sampler.forward_conditional(conditions, rng),
        None => sampler.forward(n, rng),
    }
}

/// Joins the parts of a batch.
pub(in crate::train) fn joined<E: ReplayEnv>(parts: Vec<Trajectories<E>>) -> Result<Trajectories<E>> {
    let mut parts = parts.into_iter();
    let mut whole = parts.next().ok_or(crate::Error::Config {
        setting: "batch",
        got: "no trajectory".into(),
        expected: "at least one trajectory",
    })?;
    parts.try_for_each(|part| whole.append(part))?;
    Ok(whole)
}
