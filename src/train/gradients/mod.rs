//! The gradients of one batch: scores, loss, and the way back into the parameters.

use std::time::Instant;

mod checks;
pub(in crate::train) mod chunked;
mod first_log_z;
mod joined;

pub(in crate::train) use checks::check_batch;
pub(in crate::train) use first_log_z::start_log_z;
pub(in crate::train) use joined::SAME;

use super::companions::Companions;
use super::{Context, StepStats};
use crate::objective::{Scores, score};
use crate::policy::Policy;
use crate::quantity::{Quantity, Values};
use crate::rollout::{ReplayEnv, Trajectories};
use crate::runtime::backward;
use crate::{Error, Result};

/// What a batch gave: its scores, and the loss itself.
pub(super) struct Graded {
    /// Of the whole batch, over all replicas.
    pub(super) scores: Scores,
    /// Of this replica's share of it, where there are several.
    pub(super) own: Option<Scores>,
    pub(super) loss: f64,
}

/// Adds the gradients of `weight` times the loss of a batch; with several replicas, of what all of them have drawn.
pub(super) fn differentiate<E: ReplayEnv, P: Policy<E>>(
    (context, companions): (&Context<E, P>, &Companions<E, P>),
    trajectories: &Trajectories<E>,
    old: Option<Values>,
    weight: f64,
    stats: &mut StepStats,
) -> Result<Graded> {
    let started = Instant::now();
    let Context { env, policy, config, step, .. } = context;
    let (objective, reward) = (context.objective.as_ref(), context.reward.as_ref());
    let needs = objective.needs();
    // Before anything is recorded: who lends the parameters other values meanwhile would spoil the record.
    let mut supplied = Values::default();
    companions.all().into_iter().try_for_each(|companion| companion.supply(trajectories, context, &mut supplied))?;
    let of_target = [Quantity::TargetLogFlow, Quantity::TargetLogExit];
    if let Some(lacking) = of_target.into_iter().find(|&one| needs.has(one) && supplied.get(one).is_none()) {
        return Err(lacking.missing(objective.name()));
    }
    let chunks = config.chunk.map(|limit| chunked::chunks(trajectories, limit)).transpose()?;
    let scored = match &chunks {
        None => score(env, reward, policy, trajectories, needs),
        Some(chunks) => chunked::leaf_scores(env, reward, policy, chunks, needs),
    };
    let mut scores = scored.map_err(|error| checks::asked_by(objective, error))?;
    for (quantity, tensor) in supplied.into_iter().filter(|(quantity, _)| needs.has(*quantity)) {
        let like = tensor.to_kind(scores.log_pf.kind()).to_device(scores.log_pf.device());
        scores.set(quantity, like)?;
    }
    let (mut own, mut starts) = (None, chunked::Starts::default());
    if let Some(collective) = context.replicas() {
        let (leaves, mine) = joined::joined(collective, &scores)?;
        own = Some(std::mem::replace(&mut scores, leaves));
        starts = mine;
    }
    scores.old = old;
    let loss = objective.loss(&scores, config.regression)?;
    checks::check_loss(objective, &loss)?;
    let value = loss.double_value(&[]);
    if !value.is_finite() {
        let remedy = "lower the learning rate, clip gradients (`max_norm`), or check the reward's scale";
        return Err(Error::non_finite("loss", *step, value, remedy));
    }
    let scored = started.elapsed().as_secs_f64();
    let mut has_gradient = loss.requires_grad();
    if has_gradient {
        backward(&(loss * weight))?;
    }
    match (&chunks, &own) {
        (Some(chunks), _) => has_gradient &= chunked::backward(env, reward, policy, chunks, needs, (&scores, starts))?,
        (None, Some(own)) => has_gradient &= starts.propagate(own, &scores)?,
        (None, None) => {}
    }
    checks::check_gradient(objective, policy.parameters(), has_gradient)?;
    if let (Some(collective), Some(parameters)) = (context.replicas(), policy.parameters()) {
        joined::reduce(collective, parameters)?;
    }
    stats.seconds[1] += scored;
    stats.seconds[2] += started.elapsed().as_secs_f64() - scored;
    Ok(Graded { scores, own, loss: value })
}
