//! Gradients in chunks: memory for gradients is that of one chunk, at the cost of another pass without gradients.
//!
//! A loss is a function of scores alone. So the scores are first computed chunk by chunk without gradients, then the
//! loss and its gradient with respect to each score, and a second pass over the chunks propagates that gradient into
//! the parameters. This is the exact chain rule, with the scores computed twice.

use std::collections::BTreeMap;

use tch::Tensor;

use crate::Result;
use crate::env::Env;
use crate::objective::{Scores, Scoring, score_as};
use crate::quantity::Quantity;
use crate::rollout::{Container, Trajectories};
use crate::runtime;
use crate::train::Context;

/// Splits trajectories into chunks of at most `limit` transitions, or of one trajectory that has more.
pub(super) fn split<E: Env>(trajectories: &Trajectories<E>, limit: usize) -> Result<Vec<Trajectories<E>>> {
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

/// Scores all chunks and joins the scores to leaves.
pub(super) fn leaf_scores<E: Env>(
    context: &Context<E>,
    chunks: &[Trajectories<E>],
    scoring: &Scoring<'_>,
) -> Result<Scores> {
    let (env, reward) = (&context.env, context.reward.as_ref());
    let scores = chunks.iter().map(|chunk| score_as(env, reward, context.policy(), chunk, scoring));
    let parts: Vec<Scores> = tch::no_grad(|| scores.collect::<Result<_>>())?;
    join_leaves(&parts)
}

/// Joins the scores of parts of a batch, detached from the parameters. They are leaf tensors, which collect the gradient of the loss.
pub(super) fn join_leaves(parts: &[Scores]) -> Result<Scores> {
    let leaf = |quantity: Quantity, tensor: Tensor| match quantity.is_differentiated() {
        true => tensor.detach().set_requires_grad(true),
        false => tensor,
    };
    Scores::joined(parts, leaf)
}

/// The index, for each quantity, of the next part's first number among the numbers of the whole batch.
#[derive(Clone, Debug, Default)]
pub(super) struct QuantityOffsets(BTreeMap<Quantity, i64>);

impl QuantityOffsets {
    /// Moves past a part.
    pub(super) fn skip(&mut self, part: &Scores) {
        for (quantity, values) in part.all() {
            *self.0.entry(quantity).or_default() += values.numel() as i64;
        }
    }

    /// Propagates the gradients of the leaves from this part's scores into the parameters, and moves past the part. Returns whether any of
    /// its scores depends on the parameters.
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

/// Propagates the gradients of the leaves into the parameters, chunk by chunk. Returns whether any score depends on the parameters.
pub(super) fn backward<E: Env>(
    context: &Context<E>,
    chunks: &[Trajectories<E>],
    leaves: &Scores,
    offsets: &mut QuantityOffsets,
) -> Result<bool> {
    let mut has_gradient = false;
    for chunk in chunks {
        let part = score_as(&context.env, context.reward.as_ref(), context.policy(), chunk, &context.scoring())?;
        has_gradient |= offsets.propagate(&part, leaves)?;
    }
    Ok(has_gradient)
}
