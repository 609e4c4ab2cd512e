//! The gradients of one batch: scores, loss, and the way back into the parameters.

mod checks;
pub(in crate::train) mod chunked;
mod first_log_z;
mod joined;
mod single;

pub(in crate::train) use checks::{check_batch, check_transitions};
pub(in crate::train) use first_log_z::start_log_z;
pub(in crate::train) use joined::SAME;
pub(in crate::train) use single::SingleTransitions;

use tch::Tensor;

use super::Context;
use super::companions::Companions;
use crate::env::Env;
use crate::objective::{Scores, Scoring, score_as};
use crate::policy::Policy;
use crate::quantity::{Quantity, Values};
use crate::rollout::Trajectories;
use crate::runtime::backward;
use crate::train::TrainEnv;
use crate::{Error, Result};

/// Puts the sum over all replicas into each gradient.
pub(super) fn sum<E: TrainEnv>(context: &Context<E>) -> Result<()> {
    let parts = context.replicas().zip(context.policy.parameters());
    parts.map_or(Ok(()), |(group, parameters)| joined::sum(group, parameters))
}

/// The loss of scores, one finite number.
pub(super) fn loss_of<E: Env>(context: &Context<E>, scores: &Scores) -> Result<Tensor> {
    let objective = context.objective.as_ref();
    let loss = objective.loss(scores, context.config.regression)?;
    checks::check_loss(objective, &loss)?;
    let value = loss.double_value(&[]);
    if value.is_finite() {
        return Ok(loss);
    }
    let remedy = "lower the learning rate, clip gradients (`max_norm`), or check the reward's scale";
    Err(Error::non_finite("loss", context.step, value, remedy))
}

/// The scores of a batch, and the way back from them.
pub(super) struct Scored<E: Env> {
    /// Of the whole batch, over all replicas. Where they were scored in chunks or by several replicas they are leaves, which collect the
    /// gradient of the loss.
    pub(super) scores: Scores,
    /// Of this replica's share of it, where there are several.
    own: Option<Scores>,
    starts: chunked::Starts,
    chunks: Option<Vec<Trajectories<E>>>,
}

impl<E: TrainEnv> Scored<E> {
    /// Scores a batch; with several replicas, they all join their scores.
    pub(super) fn new(
        context: &Context<E>,
        companions: &Companions<E>,
        trajectories: &Trajectories<E>,
        scoring: Scoring<'_>,
        old: Option<Values>,
    ) -> Result<Self> {
        let Context { env, policy, config, .. } = context;
        let (objective, reward) = (context.objective.as_ref(), context.reward.as_ref());
        let needs = objective.needs();
        // Before anything is recorded: who lends the parameters other values meanwhile would spoil the record.
        let mut supplied = Values::default();
        companions
            .all()
            .into_iter()
            .try_for_each(|companion| companion.supply(trajectories, context, &mut supplied))?;
        let of_target = [Quantity::TargetLogFlow, Quantity::TargetLogExit];
        if let Some(lacking) = of_target.into_iter().find(|&one| needs.has(one) && supplied.get(one).is_none()) {
            return Err(lacking.missing(objective.name()));
        }
        let chunks = config.chunk.map(|limit| chunked::chunks(trajectories, limit)).transpose()?;
        let scored = match &chunks {
            None => score_as(env, reward, policy, trajectories, &scoring),
            Some(chunks) => chunked::leaf_scores(env, reward, policy, chunks, &scoring),
        };
        let mut scores = scored.map_err(|error| checks::asked_by(objective, error))?;
        for (quantity, tensor) in supplied.into_iter().filter(|(quantity, _)| needs.has(*quantity)) {
            let like = tensor.to_kind(scores.log_pf.kind()).to_device(scores.log_pf.device());
            scores.set(quantity, like)?;
        }
        let (mut own, mut starts) = (None, chunked::Starts::default());
        if let Some(group) = context.replicas() {
            let (leaves, mine) = joined::joined(group, &scores)?;
            own = Some(std::mem::replace(&mut scores, leaves));
            starts = mine;
        }
        scores.old = old;
        Ok(Self { scores, own, starts, chunks })
    }

    /// The loss, one finite number.
    pub(super) fn loss(&self, context: &Context<E>) -> Result<Tensor> {
        loss_of(context, &self.scores)
    }

    /// Adds the gradients of a loss of the scores to the parameters, as far as these scores are this replica's own.
    pub(super) fn backward(&mut self, context: &Context<E>, loss: &Tensor) -> Result<()> {
        let Context { env, policy, .. } = context;
        let (objective, reward) = (context.objective.as_ref(), context.reward.as_ref());
        let mut has_gradient = loss.requires_grad();
        if has_gradient {
            backward(loss)?;
        }
        let mut starts = std::mem::take(&mut self.starts);
        match (&self.chunks, &self.own) {
            (Some(chunks), _) => {
                has_gradient &=
                    chunked::backward(env, reward, policy, chunks, &context.scoring(), &self.scores, starts)?;
            }
            (None, Some(own)) => has_gradient &= starts.propagate(own, &self.scores)?,
            (None, None) => {}
        }
        checks::check_gradient(objective, policy.parameters(), has_gradient)?;
        // A scalar log Z is a view of its parameter, which is about to change under all who read the scores later.
        for scores in self.own.iter_mut().chain([&mut self.scores]) {
            if let Some(log_z) = scores.remove(Quantity::LogZ) {
                scores.set(Quantity::LogZ, log_z.detach().copy())?;
            }
        }
        Ok(())
    }

    /// The scores of the trajectories that this replica drew.
    pub(super) fn own(&self) -> &Scores {
        self.own.as_ref().unwrap_or(&self.scores)
    }

    /// What a second update on the batch compares with.
    pub(super) fn into_old(mut self) -> Values {
        self.scores.old.take().unwrap_or_else(|| self.scores.to_old())
    }
}
