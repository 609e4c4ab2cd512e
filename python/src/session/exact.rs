//! The exact distribution of a policy, beside the reward's.

use gfn::Result;
use gfn::env::{EnumerableEnv, Rows, StateGraph, log_rewards};
use gfn::metrics::{Distances, Target};
use gfn::train::Trainer;
use pyo3::prelude::*;
use tch::Tensor;

use super::build::prior;
use super::sampled::{check_one_instance, in_batches, repeat_row};
use super::trained::Trained;
use crate::evaluation::{self, Array, WithStates, places};
use crate::kinds::PyEnv;
use crate::watch::Watch;

/// The number of objects whose rewards are computed at once.
const MAX_BATCH: usize = 2048;

#[derive(IntoPyObject)]
pub(super) struct Exact {
    n_states: usize,
    probs: Array<f64>,
    target: Array<f64>,
    log_rewards: Array<f64>,
    log_z: f64,
    mean_len: f64,
    l1: f64,
    tv: f64,
    jsd: f64,
    kl_target_policy: f64,
    kl_policy_target: f64,
    n_objects: usize,
    groups: Array<i64>,
    of_objects: evaluation::Distances,
}

impl<E: PyEnv + EnumerableEnv> Trained<E> {
    /// Evaluates the policy in every state.
    pub(super) fn exact(&mut self, limit: usize, conditions: Option<&Tensor>) -> Result<WithStates<Exact>> {
        self.check_conditions(conditions)?;
        self.without_noise(|trainer, space, _| {
            let (env, watch) = (&space.env, Watch::new());
            check_one_instance(env)?;
            let graph = StateGraph::build_watched(env, 0, limit, |_| watch.look())?;
            graph.check_ways_back(env)?;
            let target = target(trainer, &graph, conditions, &watch)?;
            let learned = graph.terminating_distribution(env, &watch.over(trainer.policy()), conditions)?;
            let Distances { l1, tv, jsd, kl_target_policy, kl_policy_target } =
                Distances::between(&learned.probs, &target.probs)?;
            let groups = graph.objects(env)?;
            let sum_groups = |probs: &[f64]| {
                let mut sums = vec![0.0; groups.first.len()];
                for (&object, prob) in groups.of.iter().zip(probs) {
                    sums[object] += prob;
                }
                sums
            };
            let of_objects = Distances::between(&sum_groups(&learned.probs), &sum_groups(&target.probs))?;
            let states = graph.states().clone();
            let figures = Exact {
                n_states: states.len(),
                probs: Array(learned.probs),
                target: Array(target.probs),
                log_rewards: Array(target.log_rewards),
                log_z: target.log_z,
                mean_len: learned.mean_len,
                l1,
                tv,
                jsd,
                kl_target_policy,
                kl_policy_target,
                n_objects: groups.first.len(),
                groups: places(groups.of.iter().map(|&object| groups.first[object])),
                of_objects: of_objects.into(),
            };
            Ok(WithStates { states: space.border.defer(states), figures })
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
