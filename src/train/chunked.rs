//! Gradients in chunks: what is kept for them stays that of one chunk, for the time of another pass without gradients.
//!
//! A loss is a function of scores alone. So the scores are computed chunk by chunk without gradients first, the loss and its gradient with
//! respect to each score follow, and a second pass over the chunks carries that gradient on into the parameters. Nothing is
//! approximated: it is the chain rule, with the scores computed twice.

use std::collections::BTreeMap;

use tch::Tensor;

use crate::Result;
use crate::env::{Env, Reward};
use crate::objective::{Scores, score};
use crate::policy::Policy;
use crate::quantity::{Quantities, Quantity};
use crate::rollout::{Container, Trajectories};
use crate::runtime::flushing_denormals;

/// Trajectories in chunks of at most so many transitions, or of one trajectory that has more.
pub(super) fn chunks<E: Env>(trajectories: &Trajectories<E>, limit: usize) -> Result<Vec<Trajectories<E>>> {
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

/// The scores of all chunks together, cut off from the parameters: leaves that gather the loss's gradient.
pub(super) fn leaf_scores<E: Env, P: Policy<E>, R: Reward<E::States> + ?Sized>(
    env: &E,
    reward: &R,
    policy: &P,
    chunks: &[Trajectories<E>],
    needs: Quantities,
) -> Result<Scores> {
    let parts: Vec<Scores> =
        tch::no_grad(|| chunks.iter().map(|chunk| score(env, reward, policy, chunk, needs)).collect::<Result<_>>())?;
    Scores::joined(&parts, |quantity, tensor| match quantity.is_differentiated() {
        true => tensor.detach().set_requires_grad(true),
        false => tensor,
    })
}

/// Carries the gradient that the leaves hold on into the parameters, chunk by chunk; says whether there was any way into them.
pub(super) fn backward<E: Env, P: Policy<E>, R: Reward<E::States> + ?Sized>(
    env: &E,
    reward: &R,
    policy: &P,
    chunks: &[Trajectories<E>],
    needs: Quantities,
    leaves: &Scores,
) -> Result<bool> {
    // Where the chunk's numbers start among all of a quantity.
    let mut starts: BTreeMap<Quantity, i64> = BTreeMap::new();
    let mut arrived = false;
    for chunk in chunks {
        let scores = score(env, reward, policy, chunk, needs)?;
        let mut terms = Vec::new();
        for (quantity, values) in scores.all() {
            let (start, len) = (starts.entry(quantity).or_default(), values.numel() as i64);
            let gradient = leaves.get(quantity).filter(|_| values.requires_grad()).map(Tensor::grad);
            if let Some(gradient) = gradient.filter(Tensor::defined) {
                terms.push((values * gradient.narrow(0, *start, len)).sum(values.kind()));
            }
            *start += len;
        }
        if let Some(sum) = terms.into_iter().reduce(|sum, term| sum + term) {
            flushing_denormals(|| sum.backward());
            arrived = true;
        }
    }
    Ok(arrived)
}
