//! Sums of the edge flows at visited states, for flow matching.

use tch::Tensor;

use super::visited_states::VisitedStates;
use crate::distribution::Distribution;
use crate::env::{Direction, Env, Grouping, Rows};
use crate::policy::Policy;
use crate::quantity::{Quantities, Quantity, Values};
use crate::rollout::Trajectories;
use crate::tensor::{segment_ids, segment_logsumexp, segment_max, select_rows};
use crate::{Error, Result};

/// The quantities that [`edge_flows`] computes. One call always computes all of them.
pub(in crate::objective) const EDGE_FLOWS: [Quantity; 4] =
    [Quantity::LogInflow, Quantity::LogOutflow, Quantity::LogInitialFlow, Quantity::LogTerminalFlow];

/// Computes the quantities in [`EDGE_FLOWS`]. A balanced state is a state that a transition leads to and from
/// which the trajectory continues. The results are the log inflow and the log outflow of each balanced state,
/// the log outflow of each initial state, and the log flow of each terminal state. The inflow of a state is a
/// sum over its parents. Without conditions, the policy evaluates only the parents that aren't visited states
/// themselves.
pub(in crate::objective) fn edge_flows<E: Env>(
    env: &E,
    policy: &dyn Policy<E>,
    visited: &VisitedStates<'_, E>,
    pf: &E::Dist,
    pb: &E::Dist,
    trajectories: &Trajectories<E>,
) -> Result<Values> {
    let (_, after) = visited.inner();
    // Flows must balance in each state that a transition leads to, that is, in all visited states except the
    // initial state.
    let mut children = visited.group_of(after);
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

    let position = |group: usize| {
        let law = "at least one transition leads to each terminal state";
        let missing = || Error::contract(law, "a trajectory ends in its initial state without an exit");
        children.binary_search(&group).map_err(|_| missing())
    };
    let balanced: Vec<usize> = after.iter().copied().filter(|&row| row < visited.n_rows).collect();
    let groups = visited.group_of(&balanced);
    let positions: Vec<usize> = groups.iter().map(|&group| position(group)).collect::<Result<_>>()?;
    let log_inflow = select_rows(&inflow, &positions);
    let outflow = pf.log_total()?;
    let log_outflow = select_rows(&outflow, &groups);
    let starts = visited.group_of(&trajectories.offsets()[..trajectories.len()]);
    let log_initial = select_rows(&outflow, &starts);

    // The flow of a terminal state is the flow along its exit action, or, without an exit action, the flow
    // into the state. The flows along exits (`out`) and the flows into the states `children` (`inflow`) are
    // concatenated. `sources` holds, for each terminal state, the index of its flow in the concatenated list.
    let last: Vec<usize> = trajectories.offsets()[1..].iter().map(|end| end - 1).collect();
    let exits: Vec<usize> = last.iter().copied().filter(|&row| trajectories.is_exit()[row]).collect();
    let taken = visited.rename(Direction::Forward, &exits, trajectories.actions().select(&exits))?;
    let out = pf.log_weights(&visited.group_of(&exits), &taken)?;
    let mut n_exits = 0;
    let mut sources = Vec::with_capacity(last.len());
    for (&row, &terminal) in last.iter().zip(&visited.terminal) {
        if trajectories.is_exit()[row] {
            sources.push(n_exits);
            n_exits += 1;
        } else {
            sources.push(exits.len() + position(visited.groups.grouping.group_of[terminal])?);
        }
    }
    let log_terminal = select_rows(&Tensor::cat(&[out, inflow], 0), &sources);
    Ok(EDGE_FLOWS.into_iter().zip([log_inflow, log_outflow, log_initial, log_terminal]).collect())
}

/// Returns the log flow of the forward action from each parent to its child, `[parents]`. `children` holds,
/// for each parent, the index of its child among the distinct states.
fn parent_weights<E: Env>(
    env: &E,
    policy: &dyn Policy<E>,
    visited: &VisitedStates<'_, E>,
    pf: &E::Dist,
    parents: &E::States,
    children: &[usize],
    forward: &E::Actions,
) -> Result<Tensor> {
    let mut states = visited.distinct().clone();
    let n_distinct = states.len();
    states.append(parents.clone());
    // If there are conditions, every parent is evaluated, because equal states under different conditions
    // have different flows.
    let grouping = match &visited.conditions {
        Some(_) => Grouping::identity(states.len()),
        None => states.group(),
    };
    // `first_rows` holds, for each parent, the row in `states` of the first equal state. `unvisited` holds
    // the rows of the distinct parents that the policy hasn't evaluated yet, in ascending order.
    let first_rows: Vec<usize> =
        grouping.group_of[n_distinct..].iter().map(|&group| grouping.first[group]).collect();
    let unvisited: Vec<usize> = grouping.first.iter().copied().filter(|&row| row >= n_distinct).collect();
    let conditions = visited.conditions.as_ref().map(|c| {
        let rows: Vec<usize> =
            unvisited.iter().map(|&row| visited.groups.grouping.first[children[row - n_distinct]]).collect();
        select_rows(c, &rows)
    });
    let (known, new): (Vec<usize>, Vec<usize>) =
        (0..first_rows.len()).partition(|&k| first_rows[k] < n_distinct);
    let rows: Vec<usize> = known.iter().map(|&k| first_rows[k]).collect();
    let known_weights = pf.log_weights(&rows, &forward.select(&known))?;
    if new.is_empty() {
        return Ok(known_weights);
    }
    let evaluated = policy.evaluate(env, &states.select(&unvisited), conditions.as_ref(), Quantities::PF)?.pf;
    let rows: Vec<usize> =
        new.iter().map(|&k| unvisited.partition_point(|&row| row < first_rows[k])).collect();
    let new_weights = evaluated.ok_or_else(super::no_pf)?.log_weights(&rows, &forward.select(&new))?;
    let mut position = vec![0; first_rows.len()];
    known.iter().chain(&new).enumerate().for_each(|(at, &k)| position[k] = at);
    Ok(select_rows(&Tensor::cat(&[&known_weights, &new_weights], 0), &position))
}

/// Returns the log of the sum of exponentials of each segment of `values`, `[segments]`. Segment `i` is
/// `offsets[i]..offsets[i + 1]`. No segment may be empty.
fn logsumexp(values: &Tensor, offsets: &[usize]) -> Tensor {
    let ids = segment_ids(offsets, values.device());
    let max = segment_max(values, offsets);
    segment_logsumexp(values, &ids, &max, &max.zeros_like())
}
