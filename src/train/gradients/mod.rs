//! The scores of a batch, its loss, and the gradients of the parameters.

mod checks;
mod chunked;
mod first_log_z;
mod joined;
mod single;

pub(in crate::train) use checks::{check_batch, check_transitions};
pub(in crate::train) use first_log_z::start_log_z;
pub(in crate::train) use joined::{REPLICAS_MUST_MATCH, sum_gradients};
pub(in crate::train) use single::SingleTransitions;

use std::any::Any;

use tch::Tensor;

use super::companions::Companions;
use super::{Context, TrainEnv};
use crate::env::Env;
use crate::objective::{Scores, Scoring, score_as};
use crate::policy::Policy;
use crate::quantity::{Quantity, Values};
use crate::rollout::Trajectories;
use crate::{Error, Result, runtime};

/// The scores of a batch ([`Trainer::score`](super::Trainer::score)).
pub struct BatchScores {
    /// The scored parts: a single one, unless the batch was scored in parts.
    parts: Vec<ScoredPart>,
    /// The scores of several parts together.
    joined: Option<Scores>,
    /// `true` for scores of single transitions, or of parts of a batch.
    is_partial: bool,
}

/// The scores of trajectories that are scored together.
struct ScoredPart {
    /// The scores of all trajectories, over all replicas. If they were scored in chunks or by several replicas, they are leaf tensors, which
    /// collect the gradient of the loss.
    whole: Scores,
    /// The scores of this replica's share, if there are several replicas.
    replica: Option<Scores>,
    /// The place of this replica's scores among those of all replicas.
    offsets: chunked::QuantityOffsets,
    /// The trajectories in chunks (`Vec<Trajectories<E>>`), if they must be scored again to compute gradients.
    chunks: Option<Box<dyn Any + Send>>,
    /// log Z of `whole` and of `replica` before an update: the scores share memory with the parameter.
    log_z: [Option<Tensor>; 2],
}

impl std::fmt::Debug for BatchScores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchScores").field("whole", self.whole()).finish_non_exhaustive()
    }
}

impl BatchScores {
    /// Joins the scores of several parts of a batch, which may overlap, for a step that scores its batch in parts. The loss of joined scores is the
    /// mean of the parts' losses. Sources don't learn from joined scores.
    ///
    /// # Errors
    /// [`Error::Missing`] for no part.
    pub fn join(all: Vec<Self>) -> Result<Self> {
        let parts: Vec<ScoredPart> = all.into_iter().flat_map(|scores| scores.parts).collect();
        let wholes: Vec<Scores> = parts.iter().map(|part| part.whole.shared()).collect();
        let joined = Scores::joined(&wholes, |_, tensor| tensor)?;
        Ok(Self { parts, joined: Some(joined), is_partial: true })
    }

    /// The scores of the whole batch, with gradients.
    #[must_use]
    pub fn whole(&self) -> &Scores {
        self.joined.as_ref().unwrap_or(&self.parts[0].whole)
    }

    /// Returns the same scores without gradients. They don't change with the parameters.
    #[must_use]
    pub fn detached(&self) -> Scores {
        let log_z = self.parts[0].log_z[0].as_ref().filter(|_| self.joined.is_none());
        self.whole().detached_with(log_z)
    }

    /// Removes the gradients.
    #[must_use]
    pub fn without_gradients(mut self) -> Self {
        for part in &mut self.parts {
            part.whole = part.whole.detached_with(part.log_z[0].as_ref());
        }
        self.joined = self.joined.map(|joined| joined.detached_with(None));
        self
    }

    /// Returns the scores of this replica's trajectories without gradients, if there are several replicas.
    pub(super) fn of_replica(&self) -> Option<Scores> {
        let part = &self.parts[0];
        Some(part.replica.as_ref()?.detached_with(part.log_z[1].as_ref()))
    }

    /// Refuses scores of single transitions or of parts of a batch if a source learns from the losses of whole batches.
    pub(super) fn check_learners(&self, needs_losses: bool) -> Result<()> {
        if !self.is_partial || !needs_losses {
            return Ok(());
        }
        let remedy = "train without it, or from whole trajectories that are scored together";
        Err(Error::missing("a source that learns from losses", "the scores of whole batches", remedy))
    }

    /// Refuses scores of other trajectories. Returns `false` for scores of single transitions or of parts of the batch.
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
        let size = |offsets: &[usize]| vec![offsets.len() as i64 - 1, offsets.last().map_or(0, |&n| n as i64)];
        Err(Error::shape(
            "scores, as trajectories and transitions,",
            size(expected),
            size(got),
            "advance a batch with its own scores, which `score` returned",
        ))
    }
}

/// Scores a batch; several replicas join their scores.
pub(super) fn score<E: TrainEnv>(
    context: &Context<E>,
    companions: &Companions<E>,
    trajectories: &Trajectories<E>,
    single: Option<SingleTransitions<E>>,
    old: Option<Values>,
) -> Result<BatchScores> {
    let Context { env, policy, config, .. } = context;
    let objective = context.objective.as_ref();
    let reward = context.reward.as_ref();
    let is_partial = single.is_some();
    let (trajectories, scoring) = match &single {
        None => (trajectories, context.scoring()),
        Some(single) => (&single.pieces, Scoring { ahead: Some(&single.ahead), ..context.scoring() }),
    };
    let supplied = supply(context, companions, trajectories)?;
    let chunks = config.chunk.map(|limit| chunked::split(trajectories, limit)).transpose()?;
    let scored = match &chunks {
        None => score_as(env, reward, policy, trajectories, &scoring),
        Some(chunks) => chunked::leaf_scores(env, reward, policy, chunks, &scoring),
    };
    let mut whole = scored.map_err(|error| checks::name_objective(objective, error))?;
    for (quantity, tensor) in supplied {
        if objective.needs().has(quantity) {
            let tensor = tensor.to_kind(whole.log_pf.kind()).to_device(whole.log_pf.device());
            whole.set(quantity, tensor)?;
        }
    }
    let mut replica = None;
    let mut offsets = chunked::QuantityOffsets::default();
    if let Some(group) = context.replicas() {
        let (leaves, place) = joined::join_scores(group, &whole)?;
        replica = Some(std::mem::replace(&mut whole, leaves));
        offsets = place;
    }
    whole.old = old;
    let log_z = |scores: &Scores| scores.get(Quantity::LogZ).map(|log_z| log_z.detach().copy());
    let log_z = [log_z(&whole), replica.as_ref().and_then(log_z)];
    let chunks = chunks.map(|chunks| -> Box<dyn Any + Send> { Box::new(chunks) });
    Ok(BatchScores { parts: vec![ScoredPart { whole, replica, offsets, chunks, log_z }], joined: None, is_partial })
}

/// Returns the quantities that companions supply. This must happen before the forward pass: a target network swaps parameters temporarily,
/// which would corrupt autograd.
fn supply<E: TrainEnv>(
    context: &Context<E>,
    companions: &Companions<E>,
    trajectories: &Trajectories<E>,
) -> Result<Values> {
    let mut supplied = Values::default();
    for companion in companions.iter() {
        companion.supply(trajectories, context, &mut supplied)?;
    }
    let objective = context.objective.as_ref();
    for quantity in [Quantity::TargetLogFlow, Quantity::TargetLogExit] {
        if objective.needs().has(quantity) && supplied.get(quantity).is_none() {
            return Err(quantity.missing(objective.name()));
        }
    }
    Ok(supplied)
}

/// Returns the loss of scores and its value, one finite number: the mean over the parts that were scored.
pub(super) fn loss<E: Env>(context: &Context<E>, scores: &BatchScores) -> Result<(Tensor, f64)> {
    let objective = context.objective.as_ref();
    let mut sum: Option<Tensor> = None;
    for part in &scores.parts {
        let loss = objective.loss(&part.whole, context.config.regression)?;
        checks::check_loss(objective, &loss)?;
        sum = Some(match sum {
            None => loss,
            Some(sum) => sum + loss,
        });
    }
    let sum = sum.ok_or_else(|| Error::missing(objective.name(), "scores", "score at least one part of a batch"))?;
    let loss = if scores.parts.len() > 1 { sum / scores.parts.len() as f64 } else { sum };
    let value = loss.double_value(&[]);
    if value.is_finite() {
        return Ok((loss, value));
    }
    let remedy = "lower the learning rate, clip gradients (`max_norm`), or check the reward's scale";
    Err(Error::non_finite("loss", context.step, value, remedy))
}

/// Adds the gradients of a loss of these scores to the parameters. Of several replicas each adds the part of its own trajectories.
pub(super) fn backward<E: TrainEnv>(context: &Context<E>, loss: &Tensor, scores: &BatchScores) -> Result<()> {
    // Leaves collect gradients; those of an earlier call must not count twice.
    for part in scores.parts.iter().filter(|part| part.chunks.is_some() || part.replica.is_some()) {
        for (_, leaf) in part.whole.all() {
            let mut gradient = leaf.grad();
            if gradient.defined() {
                let _ = gradient.zero_();
            }
        }
    }
    let mut has_gradient = loss.requires_grad();
    if has_gradient {
        runtime::backward(loss)?;
    }
    let mut reaches_parameters = false;
    for part in &scores.parts {
        let mut offsets = part.offsets.clone();
        reaches_parameters |= match (&part.chunks, &part.replica) {
            (Some(chunks), _) => {
                let other = || Error::contract("scores are of this trainer's environment", "they are of another one");
                let chunks = chunks.downcast_ref::<Vec<Trajectories<E>>>().ok_or_else(other)?;
                chunked::backward(context, chunks, &part.whole, &mut offsets)?
            }
            (None, Some(replica)) => offsets.propagate(replica, &part.whole)?,
            (None, None) => true,
        };
    }
    has_gradient &= reaches_parameters;
    checks::check_gradient(context.objective.as_ref(), context.policy.parameters(), has_gradient)
}
