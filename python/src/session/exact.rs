//! The exact distribution of a policy, beside the reward's.

use gfn::Result;
use gfn::env::{EnumerableEnv, Rows, StateGraph, log_rewards};
use gfn::metrics::{Distances, Target};
use gfn::train::Trainer;
use numpy::IntoPyArray;
use pyo3::types::PyDictMethods;
use tch::Tensor;

use super::build::prior;
use super::sampled::{check_one_instance, in_batches, repeat_row};
use super::trained::Trained;
use crate::evaluation::{Evaluation, distances, places};
use crate::kinds::PyEnv;
use crate::watch::Watch;

/// The number of objects whose rewards are computed at once.
const MAX_BATCH: usize = 2048;

impl<E: PyEnv + EnumerableEnv> Trained<E> {
    /// Evaluates the policy in every state.
    pub(super) fn exact(&mut self, limit: usize, conditions: Option<&Tensor>) -> Result<Evaluation> {
        self.check_conditions(conditions)?;
        self.without_noise(|trainer, space, _| {
            let (env, watch) = (&space.env, Watch::new());
            check_one_instance(env)?;
            let graph = StateGraph::build_watched(env, 0, limit, |_| watch.look())?;
            graph.check_ways_back(env)?;
            let target = target(trainer, &graph, conditions, &watch)?;
            let learned = graph.terminating_distribution(env, &watch.over(trainer.policy()), conditions)?;
            let of_states = Distances::between(&learned.probs, &target.probs)?;
            let groups = graph.objects(env)?;
            let sum_groups = |probs: &[f64]| {
                let mut sums = vec![0.0; groups.first.len()];
                for (&object, prob) in groups.of.iter().zip(probs) {
                    sums[object] += prob;
                }
                sums
            };
            let of_objects = Distances::between(&sum_groups(&learned.probs), &sum_groups(&target.probs))?;
            let n_objects = groups.first.len();
            let groups: Vec<usize> = groups.of.iter().map(|&object| groups.first[object]).collect();
            let states = space.border.defer(graph.states().clone());
            let evaluation: Evaluation = Box::new(move |py| {
                let values = distances(py, &of_states)?;
                values.set_item("states", states(py)?)?;
                values.set_item("n_states", groups.len())?;
                values.set_item("probs", learned.probs.into_pyarray(py))?;
                values.set_item("target", target.probs.into_pyarray(py))?;
                values.set_item("log_rewards", target.log_rewards.into_pyarray(py))?;
                values.set_item("log_z", target.log_z)?;
                values.set_item("mean_len", learned.mean_len)?;
                values.set_item("n_objects", n_objects)?;
                values.set_item("groups", places(py, groups))?;
                values.set_item("of_objects", distances(py, &of_objects)?)?;
                Ok(values)
            });
            Ok(evaluation)
        })
    }
}

/// The target of the objective: R / Z, or, relative to a prior, prior R^beta / Z.
fn target<E: PyEnv + EnumerableEnv>(
    trainer: &Trainer<E>,
    graph: &StateGraph<E>,
    conditions: Option<&Tensor>,
    watch: &Watch,
) -> Result<Target> {
    let ends = graph.ends();
    let mut values = Vec::new();
    in_batches(ends.len(), MAX_BATCH, watch, |range| {
        let conditions = repeat_row(conditions, range.len());
        values.extend(log_rewards(trainer.reward(), &graph.states().select(&ends[range]), conditions.as_ref())?);
        Ok(())
    })?;
    let mut target = graph.target_of(&values)?;
    let Some(prior) = prior(trainer) else { return Ok(target) };
    let beta = trainer.context().objective.reward_exponent();
    let prior = graph.terminating_distribution(trainer.env(), &watch.over(prior.as_ref()), conditions)?;
    let mut logs = Vec::new();
    for (log_reward, prior) in target.log_rewards.iter().zip(&prior.probs) {
        logs.push(beta * log_reward + prior.ln());
    }
    let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    target.log_z = max + logs.iter().map(|log| (log - max).exp()).sum::<f64>().ln();
    target.probs = logs.into_iter().map(|log| (log - target.log_z).exp()).collect();
    Ok(target)
}
