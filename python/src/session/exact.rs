//! The exact distribution of a policy, beside the reward's.

use gfn::env::{EnumerableEnv, Rows, StateGraph, log_rewards};
use gfn::metrics::{Distances, Target};
use gfn::train::Trainer;
use pyo3::prelude::*;
use tch::Tensor;

use super::engine::later;
use super::sampled::{in_batches, one_instance, repeated};
use crate::evaluation::{self, Array, Found, places};
use crate::policy::prior;
use crate::states::Show;
use crate::watch::Watch;

/// Objects whose rewards are asked at once.
const AT_ONCE: usize = 2048;

/// A trainer of an environment whose actions can be listed.
type Listed<E> = Trainer<E>;

/// What an exact evaluation found.
pub(super) type Parts = Found<Exact>;

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

/// Evaluates the policy in every state.
pub(super) fn evaluate<E>(
    trainer: &Listed<E>,
    limit: usize,
    conditions: Option<&Tensor>,
    show: &Show<E::States>,
) -> gfn::Result<Parts>
where
    E: EnumerableEnv + 'static,
    E::States: 'static,
{
    let watch = Watch::new();
    one_instance(trainer.env())?;
    let space = StateGraph::build_watched(trainer.env(), 0, limit, |_| watch.look())?;
    space.check_ways_back(trainer.env())?;
    let target = target(trainer, &space, conditions, &watch)?;
    let learned = space.terminating_distribution(trainer.env(), &watch.over(trainer.policy()), conditions)?;
    let distances = Distances::between(&learned.probs, &target.probs)?;
    let groups = space.objects(trainer.env())?;
    let together = |probs: &[f64]| {
        let mut sums = vec![0.0; groups.first.len()];
        groups.of.iter().zip(probs).for_each(|(&object, prob)| sums[object] += prob);
        sums
    };
    let of_objects = Distances::between(&together(&learned.probs), &together(&target.probs))?;
    let states = space.states().clone();
    let Distances { l1, tv, jsd, kl_target_policy, kl_policy_target } = distances;
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
    Ok(Found { states: later(show, states), figures })
}

/// The distribution that the objective asks for: R / Z, or, relative to a prior, prior R^beta / Z.
fn target<E: EnumerableEnv + 'static>(
    trainer: &Listed<E>,
    space: &StateGraph<E>,
    conditions: Option<&Tensor>,
    watch: &Watch,
) -> gfn::Result<Target> {
    let (ends, mut values) = (space.ends(), Vec::new());
    in_batches(ends.len(), AT_ONCE, watch, |range| {
        let conditions = repeated(conditions, range.len());
        values.extend(log_rewards(trainer.reward(), &space.states().select(&ends[range]), conditions.as_ref())?);
        Ok(())
    })?;
    let mut target = space.target_of(&values)?;
    let Some(prior) = prior(trainer)? else { return Ok(target) };
    let beta = trainer.context().objective.reward_exponent();
    let prior = space.terminating_distribution(trainer.env(), &watch.over(prior), conditions)?;
    let logs = target.log_rewards.iter().zip(&prior.probs);
    let logs: Vec<f64> = logs.map(|(log_reward, prior)| beta * log_reward + prior.ln()).collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    target.log_z = most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln();
    target.probs = logs.into_iter().map(|log| (log - target.log_z).exp()).collect();
    Ok(target)
}
