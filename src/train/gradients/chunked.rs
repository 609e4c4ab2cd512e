//! Gradients in chunks: memory for gradients is that of one chunk, at the cost of another pass without gradients.
//!
//! A loss is a function of scores alone. So the scores are first computed chunk by chunk without gradients, then the
//! loss and its gradient with respect to each score, and a second pass over the chunks propagates that gradient into
//! the parameters. This is the exact chain rule, with the scores computed twice.

use std::collections::BTreeMap;

use tch::Tensor;

use crate::Result;
use crate::env::{Env, Reward};
use crate::objective::{Scores, Scoring, score_as};
use crate::policy::Policy;
use crate::quantity::Quantity;
use crate::rollout::{Container, Trajectories};
use crate::runtime;

/// Splits trajectories into chunks of at most `limit` transitions, or of one trajectory that has more.
pub(in crate::train) fn chunks<E: Env>(trajectories: &Trajectories<E>, limit: usize) -> Result<Vec<Trajectories<E>>> {
    let offsets = trajectories.offsets();
    let (mut out, mut start) = (Vec::new(), 0);
    for end in 1..=trajectories.len() {
        if end == trajectories.len() || offsets[end + 1] - offsets[start] > limit {
            out.push(trajectories.select(start..end)?);
            start = end;
        }
    }
    Ok(out)
}

/// The scores of all chunks together, detached from the parameters. They are leaf tensors, which collect the loss's
/// gradient.
pub(in crate::train) fn leaf_scores<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    policy: &dyn Policy<E>,
    chunks: &[Trajectories<E>],
    scoring: &Scoring<'_>,
) -> Result<Scores> {
    let scores = chunks.iter().map(|chunk| score_as(env, reward, policy, chunk, scoring));
    let parts: Vec<Scores> = tch::no_grad(|| scores.collect::<Result<_>>())?;
    Scores::joined(
        &parts,
        |quantity, tensor| if quantity.is_differentiated() { tensor.detach().set_requires_grad(true) } else { tensor },
    )
}

/// Where the next part's numbers start among those of the whole batch, for each quantity.
#[derive(Debug, Default)]
pub(in crate::train) struct Starts(BTreeMap<Quantity, i64>);

impl Starts {
    /// Goes past a part.
    pub(super) fn skip(&mut self, part: &Scores) {
        for (quantity, values) in part.all() {
            *self.0.entry(quantity).or_default() += values.numel() as i64;
        }
    }

    /// Propagates the gradients of the leaves that are this part's into the parameters, and goes past it; returns whether any of its
    /// scores depends on them.
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
        sum.as_ref().map_or(Ok(()), runtime::backward)?;
        Ok(sum.is_some())
    }
}

/// Propagates the gradients of the leaves into the parameters, chunk by chunk; returns whether any score depends on
/// them.
pub(in crate::train) fn backward<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    policy: &dyn Policy<E>,
    chunks: &[Trajectories<E>],
    scoring: &Scoring<'_>,
    leaves: &Scores,
    mut starts: Starts,
) -> Result<bool> {
    let mut arrived = false;
    for chunk in chunks {
        arrived |= starts.propagate(&score_as(env, reward, policy, chunk, scoring)?, leaves)?;
    }
    Ok(arrived)
}
