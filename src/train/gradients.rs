//! The scores of a batch, its loss, and the gradients of the parameters.
//!
//! A loss is a function of scores alone. With gradients in chunks (`TrainerConfig::chunk`) a first pass
//! computes the scores chunk by chunk without gradients. Then the loss and its gradient with respect to each
//! score are computed, and a second pass over the chunks propagates this gradient into the parameters. By the
//! chain rule the result is the exact gradient. Scores are computed twice, but only one chunk at a time needs
//! memory for gradients.

use std::any::Any;
use std::collections::BTreeMap;

use tch::{Tensor, no_grad};

use super::companions::supply;
use super::replicas::join_scores;
use super::{Companion, Context, TrainEnv};
use crate::env::Env;
use crate::nn::Parameters;
use crate::objective::{Objective, SCORING, Scores, Scoring, score_as};
use crate::policy::Policy;
use crate::quantity::{Quantities, Quantity, Values};
use crate::rollout::{Container, Trajectories};
use crate::tensor::{log_sum_exp, to_host};
use crate::{Error, Result, Rng, runtime};

/// The scores of a batch, which [`Trainer::score`](super::Trainer::score) returns and
/// [`Trainer::loss`](super::Trainer::loss) takes.
pub struct BatchScores {
    /// The separately scored parts of the batch. Only scores that `join` built have several parts.
    parts: Vec<ScoredPart>,
    /// The scores of all parts, concatenated by `join`; `None` for a single part.
    joined_scores: Option<Scores>,
    /// `true` for scores of single transitions and for joined parts. Sources can't learn from such scores.
    is_partial: bool,
}

/// The scores of the trajectories that one call of `score` scored.
struct ScoredPart {
    /// The scores of this part's trajectories, joined over all replicas. Scores of chunks or of several
    /// replicas are leaf tensors, in which autograd accumulates the gradient of the loss.
    whole: Scores,
    /// The scores of this replica's trajectories; `None` if it trains alone.
    replica: Option<Scores>,
    /// The position, per quantity, of this replica's scores in `whole`.
    offsets: QuantityOffsets,
    /// The trajectories in chunks (`Vec<Trajectories<E>>`), which the backward pass scores again; `None`
    /// without chunks.
    chunks: Option<Box<dyn Any + Send>>,
}

impl std::fmt::Debug for BatchScores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchScores").field("whole", self.whole()).finish_non_exhaustive()
    }
}

impl BatchScores {
    /// Joins the scores of several parts of a batch, for a step that scores its batch in parts. Parts may
    /// overlap. The loss of joined scores is the mean of the parts' losses. Sources don't learn from joined
    /// scores.
    ///
    /// # Errors
    /// [`Error::Missing`] if `all` is empty.
    pub fn join(all: Vec<Self>) -> Result<Self> {
        let parts: Vec<ScoredPart> = all.into_iter().flat_map(|scores| scores.parts).collect();
        let wholes: Vec<Scores> = parts.iter().map(|part| part.whole.shallow_clone()).collect();
        let joined = Scores::concatenate(&wholes, |_, tensor| tensor)?;
        Ok(Self { parts, joined_scores: Some(joined), is_partial: true })
    }

    /// Returns the scores of the whole batch, with gradients.
    #[must_use]
    pub fn whole(&self) -> &Scores {
        self.joined_scores.as_ref().unwrap_or(&self.parts[0].whole)
    }

    /// Returns copies of the scores without gradients. Later updates of the parameters don't change the
    /// copies.
    #[must_use]
    pub fn detached(&self) -> Scores {
        self.whole().detached()
    }

    /// Returns these scores without gradients.
    #[must_use]
    pub fn without_gradients(mut self) -> Self {
        for part in &mut self.parts {
            part.whole = part.whole.detached();
        }
        self.joined_scores = self.joined_scores.as_ref().map(Scores::detached);
        self
    }

    /// Returns the scores of this replica's trajectories without gradients, on the host; `None` if the
    /// replica trains alone.
    pub(super) fn replica_scores(&self) -> Option<Scores> {
        self.parts[0].replica.as_ref().map(Scores::on_host)
    }

    /// Returns an error for scores of single transitions or of joined parts if `needs_losses`, that is, if a
    /// source learns from the losses of whole batches.
    pub(super) fn check_learners(&self, needs_losses: bool) -> Result<()> {
        if !self.is_partial || !needs_losses {
            return Ok(());
        }
        let remedy = "train without this source, or score whole batches of trajectories (no `chunk` and no \
            `transitions`)";
        Err(Error::missing("a source that learns from losses", "the scores of whole batches", remedy))
    }

    /// Returns an error for an empty batch. Returns `false` for scores of single transitions or of parts of
    /// the batch, from which sources can't learn. Otherwise returns `true`, or an error if the scores are
    /// those of other trajectories than `trajectories`.
    pub(super) fn check_batch<E: Env>(&self, trajectories: &Trajectories<E>) -> Result<bool> {
        if trajectories.is_empty() {
            return Err(Error::config("batch", "no trajectory", "at least one trajectory"));
        }
        let part = &self.parts[0];
        let got = part.replica.as_ref().unwrap_or(&part.whole).offsets.as_slice();
        let expected = trajectories.offsets();
        if self.is_partial || got == expected {
            return Ok(!self.is_partial);
        }
        let size =
            |offsets: &[usize]| vec![offsets.len() as i64 - 1, offsets.last().map_or(0, |&n| n as i64)];
        Err(Error::shape(
            "the list of scores (trajectories, transitions)",
            size(expected),
            size(got),
            "advance a batch with its own scores, which `score` returned",
        ))
    }
}

/// Scores a batch, and joins the scores of several replicas. With
/// [`TrainerConfig::transitions`](super::TrainerConfig::transitions) the function scores single transitions
/// of the batch instead, which it draws with `rng`.
pub(super) fn score<E: TrainEnv>(
    context: &Context<E>,
    companions: &[Box<dyn Companion<E>>],
    batch: &Trajectories<E>,
    old: Option<Values>,
    rng: &mut Rng,
) -> Result<BatchScores> {
    let objective = context.objective.as_ref();
    let mut scoring = context.scoring();
    let (pieces, ahead);
    let mut trajectories = batch;
    if let Some(settings) = context.config.transitions {
        let all = batch.transitions();
        let drawn = if settings.size < all.len() { all.sample(settings.size, rng)? } else { all };
        (pieces, ahead) = drawn.cut_out(context.reward.as_ref())?;
        trajectories = &pieces;
        scoring.ahead = Some(&ahead);
    }
    let supplied = supply(companions, trajectories, context)?;
    let chunks = context.config.chunk.map(|limit| split_to_chunks(trajectories, limit)).transpose()?;
    let scored = match &chunks {
        None => score_as(&context.env, context.reward.as_ref(), context.policy(), trajectories, &scoring),
        Some(chunks) => leaf_scores(context, chunks, &scoring),
    };
    let mut whole = scored.map_err(|error| name_objective(objective, error))?;
    for (quantity, tensor) in supplied {
        if objective.needs().has(quantity) {
            let tensor = tensor.to_kind(whole.log_pf.kind()).to_device(whole.log_pf.device());
            whole.set(quantity, tensor)?;
        }
    }
    // The score log Z is copied because it may share memory with the parameter log Z, which the update
    // changes.
    if chunks.is_none()
        && let Some(log_z) = whole.get(Quantity::LogZ).map(Tensor::copy)
    {
        whole.set(Quantity::LogZ, log_z)?;
    }
    let mut replica = None;
    let mut offsets = QuantityOffsets::default();
    if let Some(group) = context.replicas() {
        let (leaves, place) = join_scores(group, &whole)?;
        replica = Some(std::mem::replace(&mut whole, leaves));
        offsets = place;
    }
    whole.old = old;
    let chunks = chunks.map(|chunks| -> Box<dyn Any + Send> { Box::new(chunks) });
    let is_partial = context.config.transitions.is_some();
    Ok(BatchScores {
        parts: vec![ScoredPart { whole, replica, offsets, chunks }],
        joined_scores: None,
        is_partial,
    })
}

/// Returns the loss of scores. The loss of several parts is the mean of the parts' losses.
pub(super) fn loss<E: Env>(context: &Context<E>, scores: &BatchScores) -> Result<Tensor> {
    let objective = context.objective.as_ref();
    let mut losses = Vec::new();
    for part in &scores.parts {
        losses.push(context.loss(&part.whole)?);
    }
    let n = losses.len();
    let sum = losses.into_iter().reduce(|sum, loss| sum + loss);
    let sum =
        sum.ok_or_else(|| Error::missing(objective.name(), "scores", "score at least one part of a batch"))?;
    Ok(if n > 1 { sum / n as f64 } else { sum })
}

/// Adds the gradients of a loss of these scores to the parameters. With several replicas each replica adds
/// only the contribution of its own trajectories.
pub(super) fn backward<E: TrainEnv>(context: &Context<E>, loss: &Tensor, scores: &BatchScores) -> Result<()> {
    // Leaf tensors accumulate gradients, so the gradients of an earlier call are cleared first.
    for part in scores.parts.iter().filter(|part| part.chunks.is_some() || part.replica.is_some()) {
        for (_, leaf) in part.whole.all() {
            let mut gradient = leaf.grad();
            if gradient.defined() {
                let _ = gradient.zero_();
            }
        }
    }
    let has_gradient = loss.requires_grad();
    if has_gradient {
        runtime::backward(loss)?;
    }
    let mut reaches_parameters = false;
    for part in &scores.parts {
        let mut offsets = part.offsets.clone();
        reaches_parameters |= match (&part.chunks, &part.replica) {
            (Some(chunks), _) => {
                let other = || {
                    Error::contract(
                        "scores must come from this trainer, because they belong to its environment",
                        "these scores belong to another environment",
                    )
                };
                let chunks = chunks.downcast_ref::<Vec<Trajectories<E>>>().ok_or_else(other)?;
                backward_chunks(context, chunks, &part.whole, &mut offsets)?
            }
            (None, Some(replica)) => offsets.propagate(replica, &part.whole)?,
            (None, None) => true,
        };
    }
    let mut parameters = context.policy.parameters().into_iter().flat_map(Parameters::iter);
    let is_trained = parameters.any(|parameter| parameter.tensor.requires_grad());
    if is_trained && !(has_gradient && reaches_parameters) {
        return Err(Error::missing(
            context.objective.name(),
            "a loss with a gradient",
            "train outside of `tch::no_grad`, and let neither the policy nor the objective detach or copy \
             the tensors that they compute",
        ));
    }
    Ok(())
}

/// Replaces the name in an error about a missing quantity by the objective's name, because the objective
/// needs the quantity. Returns any other error unchanged.
fn name_objective(objective: &dyn Objective, error: Error) -> Error {
    match error {
        Error::Missing { needed_by: SCORING, missing, remedy } => {
            Error::missing(objective.name(), missing, remedy)
        }
        other => other,
    }
}

/// Sets log Z to the importance estimate from the first batch (the log of the mean importance weight), unless
/// the user chose an initial value. If log Z started hundreds too low, it would need thousands of steps to
/// rise, and the policy would meanwhile learn to compensate for the gap. Returns the parameter log Z if the
/// function set it.
///
/// The estimate uses the first `fresh` trajectories, because the policy didn't sample the others. If `fresh`
/// is 0, the estimate uses the whole batch. The estimate is biased if the trajectories explore or don't come
/// from the policy, but it is only a starting value. Replicas use the mean weight over all replicas.
pub(super) fn start_log_z<E: TrainEnv>(
    context: &Context<E>,
    trajectories: &Trajectories<E>,
    fresh: usize,
) -> Result<Option<Tensor>> {
    let objective = context.objective.as_ref();
    // The step is compared first, because reading log Z waits for a device.
    let has_begun = context.step > 0 || !objective.needs().has(Quantity::LogZ);
    let parameters = context.policy.parameters().filter(|_| !has_begun);
    let Some(mut log_z) = parameters.and_then(Parameters::unset_log_z) else {
        return Ok(None);
    };
    let n = if fresh > 0 { fresh } else { trajectories.len() };
    let chunks = split_to_chunks(&trajectories.select(0..n)?, context.config.chunk.unwrap_or(usize::MAX))?;
    let has_prior = objective.needs().has(Quantity::LogPrior);
    let needs = if has_prior { Quantity::LogPrior.into() } else { Quantities::NONE };
    let scores = leaf_scores(context, &chunks, &Scoring { needs, ..context.scoring() });
    let mine =
        scores.map_err(|error| name_objective(objective, error))?.log_weights(objective.reward_exponent());
    let all: Vec<f64> = context.group.join(&Tensor::from_slice(&mine))?.iter().flat_map(to_host).collect();
    // The log Z of each stacked policy is estimated from its share of the trajectories.
    let estimate = |share: &[f64]| log_sum_exp(share.iter().copied()) - (share.len() as f64).ln();
    let estimates: Vec<f64> = all.chunks((all.len() / log_z.numel()).max(1)).map(estimate).collect();
    // Values that aren't finite aren't set here. `score` reports them later by an error that names the cause.
    let is_valid = |value: &f64| value.abs() <= f64::from(f32::MAX);
    if estimates.len() != log_z.numel() || !estimates.iter().all(is_valid) {
        return Ok(None);
    }
    no_grad(|| log_z.copy_(&Tensor::from_slice(&estimates).view_as(&log_z)));
    Ok(Some(log_z))
}

/// Splits trajectories into chunks of at most `limit` transitions. A trajectory with more transitions than
/// `limit` becomes a separate chunk.
fn split_to_chunks<E: Env>(trajectories: &Trajectories<E>, limit: usize) -> Result<Vec<Trajectories<E>>> {
    let offsets = trajectories.offsets();
    let mut chunks = Vec::new();
    let mut start = 0;
    for end in 1..=trajectories.len() {
        if end == trajectories.len() || offsets[end + 1] - offsets[start] > limit {
            chunks.push(trajectories.select(start..end)?);
            start = end;
        }
    }
    Ok(chunks)
}

/// Scores all chunks without gradients, and concatenates their scores as leaf tensors.
fn leaf_scores<E: Env>(
    context: &Context<E>,
    chunks: &[Trajectories<E>],
    scoring: &Scoring<'_>,
) -> Result<Scores> {
    let env = &context.env;
    let reward = context.reward.as_ref();
    let scores = chunks.iter().map(|chunk| score_as(env, reward, context.policy(), chunk, scoring));
    let parts: Vec<Scores> = tch::no_grad(|| scores.collect::<Result<_>>())?;
    join_leaves(&parts)
}

/// Concatenates the scores of parts of a batch, detached from the parameters. The results are leaf tensors,
/// in which autograd accumulates the gradient of the loss.
pub(super) fn join_leaves(parts: &[Scores]) -> Result<Scores> {
    let leaf = |quantity: Quantity, tensor: Tensor| {
        if quantity.is_differentiated() { tensor.detach().set_requires_grad(true) } else { tensor }
    };
    Scores::concatenate(parts, leaf)
}

/// The index, for each quantity, of the next part's first value among the values of the whole batch.
#[derive(Clone, Debug, Default)]
pub(super) struct QuantityOffsets(BTreeMap<Quantity, i64>);

impl QuantityOffsets {
    /// Advances each quantity's index by the number of its values in `part`.
    pub(super) fn skip(&mut self, part: &Scores) {
        for (quantity, values) in part.all() {
            *self.0.entry(quantity).or_default() += values.numel() as i64;
        }
    }

    /// Propagates the gradients of `leaves` through the scores of `part` into the parameters, and moves each
    /// index past the part. Returns `true` if any of the part's scores depends on the parameters.
    pub(super) fn propagate(&mut self, part: &Scores, leaves: &Scores) -> Result<bool> {
        let mut terms = Vec::new();
        for (quantity, values) in part.all() {
            let start = self.0.get(&quantity).copied().unwrap_or(0);
            let gradient = leaves.get(quantity).filter(|_| values.requires_grad()).map(Tensor::grad);
            if let Some(gradient) = gradient.filter(Tensor::defined) {
                let gradient = gradient.narrow(0, start, values.numel() as i64).to_kind(values.kind());
                terms.push((values * gradient).sum(values.kind()));
            }
        }
        self.skip(part);
        let sum = terms.into_iter().reduce(|sum, term| sum + term);
        sum.as_ref().map(runtime::backward).transpose()?;
        Ok(sum.is_some())
    }
}

/// Scores each chunk again and propagates the gradients of the leaf tensors into the parameters. Returns
/// `true` if any score depends on the parameters.
fn backward_chunks<E: Env>(
    context: &Context<E>,
    chunks: &[Trajectories<E>],
    leaves: &Scores,
    offsets: &mut QuantityOffsets,
) -> Result<bool> {
    let mut has_gradient = false;
    for chunk in chunks {
        let part =
            score_as(&context.env, context.reward.as_ref(), context.policy(), chunk, &context.scoring())?;
        has_gradient |= offsets.propagate(&part, leaves)?;
    }
    Ok(has_gradient)
}
