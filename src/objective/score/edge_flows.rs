//! The flows along all edges of visited states, for flow matching.

use tch::Tensor;

use super::visited::Visited;
use crate::distribution::Distribution;
use crate::env::{Direction, Env, Rows};
use crate::policy::Policy;
use crate::quantity::{Quantities, Quantity, Values};
use crate::rollout::Trajectories;
use crate::tensor::{index_tensor, segment_ids, segment_logsumexp, segment_max};
use crate::{Error, Result};

/// What is found together, whichever of it is asked for.
pub(in crate::objective) const EDGE_FLOWS: [Quantity; 4] =
    [Quantity::LogInflow, Quantity::LogOutflow, Quantity::LogInitialFlow, Quantity::LogTerminalFlow];

/// The edge flows around each visited state. Parents that were visited themselves aren't evaluated again.
pub(in crate::objective) fn edge_flows<E: Env>(
    env: &E,
    policy: &dyn Policy<E>,
    visited: &Visited<'_, E>,
    pf: &E::Dist,
    pb: &E::Dist,
    trajectories: &Trajectories<E>,
) -> Result<Values> {
    let (inner, after) = visited.inner();
    // The states to balance are those after a transition: all visited ones except the initial one.
    let mut children = visited.groups(after);
    children.sort_unstable();
    children.dedup();
    let (offsets, undo) = pb.support(&children)?;
    let repeated: Vec<usize> = offsets
        .windows(2)
        .zip(&children)
        .flat_map(|(ends, &child)| std::iter::repeat_n(child, ends[1] - ends[0]))
        .collect();
    let mut parents = visited.distinct().select(&repeated);
    let forward = env.step(Direction::Backward, &mut parents, &undo)?.reverse;
    let weights = parent_weights(env, policy, visited, pf, &parents, &repeated, &forward)?;
    let inflow = logsumexp(&weights, &offsets);

    let device = inflow.device();
    let place = |group: usize| {
        let place = children.binary_search(&group);
        place.map_err(|_| {
            Error::contract(
                "a terminal state is reached by a transition",
                "a trajectory ends in its initial state without an exit",
            )
        })
    };
    let balanced: Vec<usize> =
        inner.iter().zip(after).map(|(_, &row)| row).filter(|&row| row < visited.n_rows).collect();
    let groups = visited.groups(&balanced);
    let places: Vec<usize> = groups.iter().map(|&group| place(group)).collect::<Result<_>>()?;
    let log_inflow = inflow.index_select(0, &index_tensor(&places, device));
    let outflow = pf.log_total()?;
    let log_outflow = outflow.index_select(0, &index_tensor(&groups, device));
    let starts = visited.groups(&trajectories.offsets()[..trajectories.len()]);
    let log_initial = outflow.index_select(0, &index_tensor(&starts, device));

    // The outgoing flows along exits, followed by the incoming flows of terminal states without one.
    let last: Vec<usize> = trajectories.offsets()[1..].iter().map(|end| end - 1).collect();
    let exits: Vec<usize> = last.iter().copied().filter(|&row| trajectories.is_exit()[row]).collect();
    let taken = visited.named(Direction::Forward, &exits, trajectories.actions().select(&exits))?;
    let out = pf.log_weights(&visited.groups(&exits), &taken)?;
    let mut n_exits = 0;
    let mut sources = Vec::with_capacity(last.len());
    for (&row, &terminal) in last.iter().zip(&visited.terminal) {
        if trajectories.is_exit()[row] {
            sources.push(n_exits);
            n_exits += 1;
        } else {
            sources.push(exits.len() + place(visited.alike.grouping.of[terminal])?);
        }
    }
    let log_terminal = Tensor::cat(&[out, inflow], 0).index_select(0, &index_tensor(&sources, device));
    Ok(EDGE_FLOWS.into_iter().zip([log_inflow, log_outflow, log_initial, log_terminal]).collect())
}

/// The log flow of each parent's forward action, `[parents]`.
fn parent_weights<E: Env>(
    env: &E,
    policy: &dyn Policy<E>,
    visited: &Visited<'_, E>,
    pf: &E::Dist,
    parents: &E::States,
    children: &[usize],
    forward: &E::Actions,
) -> Result<Tensor> {
    let mut states = visited.distinct().clone();
    let known = states.len();
    states.append(parents.clone());
    // Equal states under different conditions differ, so every parent is evaluated.
    let (of, unvisited) = match &visited.conditions {
        Some(_) => ((known..states.len()).collect::<Vec<_>>(), (known..states.len()).collect::<Vec<_>>()),
        None => {
            let grouping = states.group();
            let unvisited: Vec<usize> = grouping.first.iter().copied().filter(|&row| row >= known).collect();
            (grouping.of[known..].iter().map(|&group| grouping.first[group]).collect(), unvisited)
        }
    };
    let conditions = visited.conditions.as_ref().map(|c| {
        let rows: Vec<usize> =
            unvisited.iter().map(|&row| visited.alike.grouping.first[children[row - known]]).collect();
        c.index_select(0, &index_tensor(&rows, c.device()))
    });
    let (mut at_known, mut at_unvisited) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    let mut order = Vec::with_capacity(of.len());
    for (k, &row) in of.iter().enumerate() {
        let side = if row < known { &mut at_known } else { &mut at_unvisited };
        order.push((row >= known, side.0.len()));
        side.0.push(k);
        // `unvisited` ascends.
        side.1.push(if row < known { row } else { unvisited.partition_point(|&f| f < row) });
    }
    let weights = pf.log_weights(&at_known.1, &forward.select(&at_known.0))?;
    if unvisited.is_empty() {
        return Ok(weights);
    }
    let new = policy.evaluate(env, &states.select(&unvisited), conditions.as_ref(), Quantities::PF)?.pf;
    let new = new.ok_or_else(super::no_pf)?;
    let unvisited_weights = new.log_weights(&at_unvisited.1, &forward.select(&at_unvisited.0))?;
    let order: Vec<usize> =
        order.iter().map(|&(unvisited, k)| if unvisited { at_known.0.len() + k } else { k }).collect();
    Ok(Tensor::cat(&[&weights, &unvisited_weights], 0).index_select(0, &index_tensor(&order, weights.device())))
}

/// The log-sum-exp of each segment, `[segments]`; no segment may be empty.
fn logsumexp(values: &Tensor, offsets: &[usize]) -> Tensor {
    let ids = segment_ids(offsets, values.device());
    let max = segment_max(values, offsets);
    segment_logsumexp(values, &ids, &max, &max.zeros_like())
}
