//! Relabelled graphs: graphs under random labels, and graphs of backward trajectories that are replayed
//! forward.
//!
//! A backward trajectory removes nodes in an order that doesn't depend on their labels, and the labels of
//! later nodes shift down. The trajectory is stored as forward moves, each with the labels of its parent. If
//! the moves are replayed from the initial graph, nodes get labels in the order in which they are added
//! instead, so the moves must be renamed.

use smallvec::SmallVec;

use crate::env::{Classes, Direction, Grouping, Rows, Slots};
use crate::graph::{GraphEnv, GraphState, GraphStates, Move};
use crate::{Error, Result, Rng};

/// Returns the graphs, followed by a copy of each graph under random labels, and the isomorphism classes, in
/// which each graph is grouped with its copy. Nodes of the initial graph keep their labels or, if symmetries
/// make them interchangeable, are permuted by a random symmetry.
pub(super) fn append_relabelled(
    env: &GraphEnv,
    states: &GraphStates,
    rng: &mut Rng,
) -> (GraphStates, Classes) {
    let n = states.len();
    let mut graphs = states.graphs().to_vec();
    let mut orders: Vec<SmallVec<[u32; 16]>> = Vec::with_capacity(2 * n);
    for graph in states.graphs() {
        let mut order = env.scaffold_order(graph, rng);
        let fixed = order.len();
        order.extend(fixed as u32..graph.n_nodes() as u32);
        for last in (fixed + 1..order.len()).rev() {
            order.swap(last, fixed + rng.below(last + 1 - fixed));
        }
        graphs.push(graph.induced(&order));
        orders.push(SmallVec::from_vec(order));
    }
    orders.extend(states.graphs().iter().map(|graph| (0..graph.n_nodes() as u32).collect::<SmallVec<_>>()));
    let grouping = Grouping { first: (0..n).collect(), group_of: (0..n).chain(0..n).collect() };
    (graphs.into(), Classes { grouping, orders })
}

/// Replays backward trajectories forwards from the initial graph, where nodes get labels in the order in
/// which they are added. Returns the actions under these labels, and the graphs that the replayed
/// trajectories end in. Each replayed graph is isomorphic to the graph of its trajectory.
pub(crate) fn to_insertion_order(
    env: &GraphEnv,
    states: &GraphStates,
    actions: &Slots,
    reverse: &Slots,
    offsets: &[usize],
) -> Result<(Slots, GraphStates)> {
    let set = env.actions();
    let mut out = Vec::with_capacity(actions.len());
    let mut terminal = Vec::with_capacity(offsets.len());
    for walk in offsets.windows(2) {
        let first = states.graphs().get(walk[0]).filter(|_| walk[0] < walk[1]);
        let mut replayed = first.map_or(&env.initial_graphs()[0], |first| env.initial_of(first)).clone();
        // Node `a` of the trajectory's current state is node `names[a]` of the replayed state.
        let mut names: Vec<u32> = (0..replayed.n_nodes() as u32).collect();
        for row in walk[0]..walk[1] {
            let before = &states.graphs()[row];
            let (kind, action_type, action) = set.decode(Direction::Forward, before, actions.0[row])?;
            if action_type.is_exit() {
                out.push(Slots::slot(set.n_slots(Direction::Forward, &replayed) - 1)?);
                continue;
            }
            let renamed = action_type.rename(Direction::Forward, action, &names, before, &replayed);
            out.push(set.encode(Direction::Forward, &replayed, kind, renamed)?);
            action_type.apply(Direction::Forward, &mut replayed, renamed)?;
            let removed = action_type.removed_nodes(Direction::Forward, before, action);
            if !removed.is_empty() {
                names = remove_names(&names, &removed);
            }
            if replayed.n_nodes() == names.len() {
                continue;
            }
            // The labels that the added nodes have in the child are the labels of the nodes that the reverse
            // of this move removes from the child.
            let child = states.graphs().get(row + 1).filter(|_| row + 1 < walk[1]);
            let undo =
                child.map(|child| set.decode(Direction::Backward, child, reverse.0[row])).transpose()?;
            let added = match (child, undo) {
                (Some(child), Some((_, _, undo))) => {
                    action_type.removed_nodes(Direction::Backward, child, undo)
                }
                // The trajectory ends with this move, without an exit, so no later move names the new nodes.
                _ => (names.len() as u32..replayed.n_nodes() as u32).collect(),
            };
            names = insert_names(&names, &added, replayed.n_nodes())
                .ok_or_else(|| unnamed_nodes_error(action_type.name(), action, before))?;
        }
        terminal.push(replayed);
    }
    Ok((Slots(out), terminal.into()))
}

/// Returns `names`, the map from labels in a trajectory's state to labels in the replayed state, after the
/// nodes `removed` are removed. In both states the labels of later nodes shift down.
fn remove_names(names: &[u32], removed: &[u32]) -> Vec<u32> {
    let removed_names: Vec<u32> = removed.iter().filter_map(|&a| names.get(a as usize).copied()).collect();
    let remaining = names.iter().enumerate().filter(|(a, _)| !removed.contains(&(*a as u32)));
    let shift = |name: u32| name - removed_names.iter().filter(|&&other| other < name).count() as u32;
    remaining.map(|(_, &name)| shift(name)).collect()
}

/// Returns `names`, the map from labels in a trajectory's state to labels in the replayed state, after nodes
/// are added. The new nodes have the labels `added` in the trajectory's state, and the last of the `n` labels
/// in the replayed state, in this order. Returns `None` if the result doesn't have `n` entries.
fn insert_names(names: &[u32], added: &[u32], n: usize) -> Option<Vec<u32>> {
    let mut old = names.iter().copied();
    let inserted = (0..n as u32).map(|a| match added.iter().position(|&new| new == a) {
        Some(k) => Some((names.len() + k) as u32),
        None => old.next(),
    });
    let inserted: Vec<u32> = inserted.collect::<Option<_>>()?;
    (old.next().is_none() && names.len() + added.len() == n).then_some(inserted)
}

fn unnamed_nodes_error(name: &str, action: Move, before: &GraphState) -> Error {
    Error::contract(
        "`removed_nodes` names each node that undoing a move removes, in the order in which the move adds \
         them",
        format!(
            "this fails when `{name}` {action:?} of {before} is undone; `contract::check_action_type` gives \
             details"
        ),
    )
}
