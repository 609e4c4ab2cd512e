//! The probabilities of a policy, computed without gradients and copied to the host.

use tch::Tensor;

use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, Rows};
use crate::policy::{Policy, evaluate_direction};
use crate::{Error, Result};

/// Returns P_F of these states without gradients. `conditions` is one condition vector `[C]` for all states.
pub(super) fn forward_policy<E: DiscreteEnv>(
    env: &E,
    policy: &dyn Policy<E>,
    states: &E::States,
    conditions: Option<&Tensor>,
) -> Result<GraphActionCategorical> {
    let conditions = repeated(conditions, states.len());
    tch::no_grad(|| {
        evaluate_direction(
            policy,
            env,
            states,
            conditions.as_ref(),
            Direction::Forward,
            "an exact distribution",
        )
    })
}

/// Returns log P_B of one backward action of each of these states, without gradients. Equal states are
/// evaluated once.
pub(super) fn backward_log_probs<E: DiscreteEnv>(
    env: &E,
    policy: &dyn Policy<E>,
    states: &E::States,
    actions: &[u32],
    conditions: Option<&Tensor>,
) -> Result<Vec<f64>> {
    let grouping = states.group();
    let distinct = grouping.merges().then(|| states.select(&grouping.first));
    let states = distinct.as_ref().unwrap_or(states);
    let conditions = repeated(conditions, states.len());
    let pb = tch::no_grad(|| {
        evaluate_direction(policy, env, states, conditions.as_ref(), Direction::Backward, "an exact flow")
    })?;
    let log_probs = pb.host_log_probs()?;
    let offsets = pb.legal_offsets();
    let of_action = grouping.group_of.iter().zip(actions).map(|(&row, &slot)| {
        let range = offsets[row]..offsets[row + 1];
        match pb.legal_slots()[range.clone()].binary_search(&slot) {
            Ok(k) => Ok(log_probs[range.start + k]),
            Err(_) => Err(Error::IllegalAction {
                row,
                direction: Direction::Backward,
                slot: slot as usize,
                n_slots: pb.masks().row(row).len(),
                n_legal: range.len(),
                detail:
                    "this action undoes a legal forward move, so it must be legal; `contract::check_env` \
                     gives details"
                        .into(),
            }),
        }
    });
    of_action.collect()
}

/// Returns a condition vector `[C]` repeated for each of `n` states.
pub(super) fn repeated(conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
    conditions.map(|c| c.reshape([1, -1]).expand([n as i64, -1], false))
}
