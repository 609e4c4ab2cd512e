//! The law of rewards: if labels have no meaning, the reward of an object doesn't depend on its labels.

use std::collections::HashSet;

use super::Budget;
use crate::env::{Reward, Rows};
use crate::rollout::{ReplayEnv, Trajectories};
use crate::tensor::index_tensor;
use crate::{Error, Result, Rng};

/// The smallest number of relabellings that are tried. Many relabellings are needed, because a relabelling
/// may leave the object unchanged, which tests nothing.
const MIN_LABELLINGS: usize = 128;
/// The largest difference of two log-rewards that counts as rounding. The difference is relative to the
/// log-reward's absolute value if this value is above 1. Under other labels a network in single precision may
/// sum in another order.
const TOLERANCE: f64 = 1e-4;

/// Checks that a reward doesn't depend on labels, if states that differ only in labels are one object in the
/// environment.
///
/// The check takes some objects of the batch's first `n` trajectories, evaluates their rewards under other
/// labels, and compares these with the recorded log-rewards. A batch without recorded log-rewards passes. A
/// reward that changes from call to call for the same labels also passes, because the difference isn't due to
/// labels.
///
/// ```
/// use gfn::contract::{Budget, check_reward};
/// use gfn::graph::{ActionSet, AddEdge, AddNode, GraphEnv, GraphState, PerGraph, Semantics};
/// use gfn::{Rng, policy::UniformPolicy, rollout::Sampler};
/// let actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 4)).with(AddEdge::new(1));
/// let env = GraphEnv::free(actions, GraphState::undirected(0))?;
/// let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
/// let batch = Sampler::new(&env, &UniformPolicy).forward(64, &mut Rng::seeded(0))?;
/// let log_rewards = batch.log_rewards(&reward)?;
/// let batch = batch.with_log_rewards(log_rewards)?;
/// check_reward(&env, &reward, &batch, 64, Budget::thorough())?;
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`] for a reward that depends on labels; errors of the reward.
pub fn check_reward<E: ReplayEnv>(
    env: &E,
    reward: &dyn Reward<E::States>,
    batch: &Trajectories<E>,
    n: usize,
    budget: Budget<'_>,
) -> Result<()> {
    let Some(known) = batch.recorded_log_rewards() else { return Ok(()) };
    let objects = batch.terminal_states();
    let n_objects = (budget.states / 3).max(1);
    // A random relabelling may leave the object unchanged. Such a relabelling tests nothing, so each object
    // is relabelled several times. The list `tried` has all objects once before it repeats any.
    let distinct = objects.group().first.into_iter().filter(|&row| row < n);
    let distinct: Vec<usize> = distinct.take(2 * n_objects).collect();
    let n_tried = MIN_LABELLINGS.max(4 * distinct.len());
    let tried: Vec<usize> = distinct.into_iter().cycle().take(n_tried).collect();
    let Some((both, _)) = env.symmetry().relabelled(&objects.select(&tried), &mut Rng::seeded(0)) else {
        return Ok(());
    };
    let group = both.group().group_of;
    let mut new = HashSet::new();
    let is_new = |&k: &usize| group[k] != group[tried.len() + k] && new.insert(group[tried.len() + k]);
    let changed: Vec<usize> = (0..tried.len()).filter(is_new).take(n_objects).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let rows: Vec<usize> = changed.iter().map(|&k| tried[k]).collect();
    let conditions = batch.conditions().map(|c| c.index_select(0, &index_tensor(&rows, c.device())));
    let first_differing = |states: &E::States| -> Result<Option<(usize, f64)>> {
        let values = reward.log_reward(states, conditions.as_ref())?;
        let differs = |(k, value): &(usize, f64)| {
            let expected = known[rows[*k]];
            // The difference of two equal infinities is NaN, which doesn't count as a difference. The
            // difference of an infinity and a finite number is infinite, which counts.
            let size = if expected.is_finite() { expected.abs().max(1.0) } else { 1.0 };
            (expected - value).abs() > TOLERANCE * size
        };
        Ok(values.into_iter().enumerate().take(rows.len()).find(differs))
    };
    let twins = both.select(&changed.iter().map(|&k| tried.len() + k).collect::<Vec<_>>());
    let Some((k, value)) = first_differing(&twins)? else { return Ok(()) };
    let originals = objects.select(&rows);
    if first_differing(&originals)?.is_some() {
        return Ok(());
    }
    let words = |states: &E::States| env.describe_state(states, k).unwrap_or_default();
    Err(Error::contract(
        "up to isomorphism a reward doesn't depend on labels (the reward must not use the numbers or the \
         order of nodes)",
        format!(
            "log R of {} is {}, but log R of the same object under other labels, {}, is {value}",
            words(&originals),
            known[rows[k]],
            words(&twins)
        ),
    ))
}
