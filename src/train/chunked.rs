//! Gradients in chunks: memory for gradients is that of one chunk, at the cost of another pass without gradients.
//!
//! A loss is a function of scores alone. So the scores are first computed chunk by chunk without gradients, then the
//! loss and its gradient with respect to each score, and a second pass over the chunks propagates that gradient into
//! the parameters. This is the exact chain rule, with the scores computed twice.

use tch::Tensor;

use crate::env::{Env, Reward};
use crate::objective::{Needs, Scores, score};
use crate::policy::Policy;
use crate::rollout::{Container, Trajectories};
use crate::runtime::flushing_denormals;
use crate::{Error, Result};

/// Splits trajectories into chunks of at most `limit` transitions, or of one trajectory that has more.
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

/// The scores of all chunks together, detached from the parameters. They are leaf tensors, which collect the loss's
/// gradient.
pub(super) fn leaf_scores<E: Env, P: Policy<E>, R: Reward<E::States> + ?Sized>(
    env: &E,
    reward: &R,
    policy: &P,
    chunks: &[Trajectories<E>],
    needs: Needs,
) -> Result<Scores> {
    if needs.edge_flows || needs.log_paths {
        return Err(Error::Missing {
            objective: "scoring in chunks",
            needs: "an objective of trajectories' probabilities and state flows",
            remedy: "train by another objective than flow matching and maximum-entropy backward policies, or without `chunk`",
        });
    }
    let parts: Vec<Scores> =
        tch::no_grad(|| chunks.iter().map(|chunk| score(env, reward, policy, chunk, needs)).collect::<Result<_>>())?;
    let mut offsets = vec![0];
    for part in &parts {
        let shift = offsets[offsets.len() - 1];
        offsets.extend(part.offsets[1..].iter().map(|offset| offset + shift));
    }
    let all = |of: &dyn Fn(&Scores) -> Option<&Tensor>| {
        let parts: Option<Vec<&Tensor>> = parts.iter().map(of).collect();
        parts.map(|parts| Tensor::cat(&parts, 0))
    };
    let leaf = |of: &dyn Fn(&Scores) -> Option<&Tensor>| all(of).map(|tensor| tensor.detach().set_requires_grad(true));
    let needed = |tensor: Option<Tensor>| {
        tensor.ok_or(Error::Missing { objective: "scoring in chunks", needs: "a trajectory", remedy: "give a batch" })
    };
    let mut scores = Scores::new(
        offsets,
        needed(leaf(&|s| Some(&s.log_pf)))?,
        needed(leaf(&|s| Some(&s.log_pb)))?,
        needed(all(&|s| Some(&s.log_reward)))?,
    );
    scores.raw_log_reward = needed(all(&|s| Some(&s.raw_log_reward)))?;
    scores.conditions = all(&|s| s.conditions.as_ref());
    scores.log_flow = leaf(&|s| s.log_flow.as_ref());
    scores.log_z = leaf(&|s| s.log_z.as_ref());
    scores.log_p_exit = leaf(&|s| s.log_p_exit.as_ref());
    scores.state_log_reward = all(&|s| s.state_log_reward.as_ref());
    scores.log_reward_change = all(&|s| s.log_reward_change.as_ref());
    scores.log_prior = all(&|s| s.log_prior.as_ref());
    scores.distinct = parts.iter().fold((0, 0), |sum, s| (sum.0 + s.distinct.0, sum.1 + s.distinct.1));
    Ok(scores)
}

/// Propagates the gradients of the leaves into the parameters, chunk by chunk; returns whether any score depends on
/// them.
pub(super) fn backward<E: Env, P: Policy<E>, R: Reward<E::States> + ?Sized>(
    env: &E,
    reward: &R,
    policy: &P,
    chunks: &[Trajectories<E>],
    needs: Needs,
    leaves: &Scores,
) -> Result<bool> {
    let (mut row, mut trajectory, mut arrived) = (0, 0, false);
    for chunk in chunks {
        let scores = score(env, reward, policy, chunk, needs)?;
        let (rows, n) = (chunk.n_transitions() as i64, chunk.len() as i64);
        let by_row = [
            (Some(&scores.log_pf), Some(&leaves.log_pf)),
            (Some(&scores.log_pb), Some(&leaves.log_pb)),
            (scores.log_flow.as_ref(), leaves.log_flow.as_ref()),
            (scores.log_p_exit.as_ref(), leaves.log_p_exit.as_ref()),
        ];
        let mut terms = Vec::new();
        let mut term = |values: Option<&Tensor>, leaf: Option<&Tensor>, start: i64, len: i64| {
            let (Some(values), Some(leaf)) = (values, leaf) else { return };
            let gradient = leaf.grad();
            if values.requires_grad() && gradient.defined() {
                terms.push((values * gradient.narrow(0, start, len)).sum(values.kind()));
            }
        };
        by_row.into_iter().for_each(|(values, leaf)| term(values, leaf, row, rows));
        term(scores.log_z.as_ref(), leaves.log_z.as_ref(), trajectory, n);
        if let Some(sum) = terms.into_iter().reduce(|sum, term| sum + term) {
            flushing_denormals(|| sum.backward());
            arrived = true;
        }
        row += rows;
        trajectory += n;
    }
    Ok(arrived)
}
