//! Graphs under other labels: at random, and as walks that were taken backwards are replayed forwards.
//!
//! Going back, nodes leave in an order that has nothing to do with their labels, and later labels shift down. A walk is stored
//! as forward moves, each named in its own parent; replayed from the initial graph, nodes get labels in their order of
//! insertion instead.

use smallvec::SmallVec;

use crate::env::{Classes, Direction, Grouping, Rows, Slots};
use crate::graph::{GraphEnv, GraphState, GraphStates, Move};
use crate::{Error, Result, Rng};

/// Graphs, and behind them each under other labels: nodes of the initial graph stay where they are, or go where a symmetry of it takes
/// them if they are alike.
pub(super) fn relabelled(env: &GraphEnv, states: &GraphStates, rng: &mut Rng) -> (GraphStates, Classes) {
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
    let grouping = Grouping { first: (0..n).collect(), of: (0..n).chain(0..n).collect() };
    (graphs.into(), Classes { grouping, orders })
}

/// The forward actions of backward walks, renamed to insertion order; the replayed graphs are isomorphic to the walked ones.
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
        // label in the walked state -> label in the replayed one
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
                names = without(&names, &removed);
            }
            if replayed.n_nodes() == names.len() {
                continue;
            }
            // The labels of new nodes in the walked child are those that the backward move removed.
            let child = states.graphs().get(row + 1).filter(|_| row + 1 < walk[1]);
            let undo = child.map(|child| set.decode(Direction::Backward, child, reverse.0[row])).transpose()?;
            let added = match (child, undo) {
                (Some(child), Some((_, _, undo))) => action_type.removed_nodes(Direction::Backward, child, undo),
                // The walk ends with this move, without an exit: nothing was taken back that would name the new nodes.
                _ => (names.len() as u32..replayed.n_nodes() as u32).collect(),
            };
            names =
                with(&names, &added, replayed.n_nodes()).ok_or_else(|| unnamed(action_type.name(), action, before))?;
        }
        terminal.push(replayed);
    }
    Ok((Slots(out), terminal.into()))
}

/// The names that are left when the nodes `gone` are: names and labels behind them shift down.
fn without(names: &[u32], gone: &[u32]) -> Vec<u32> {
    let old: Vec<u32> = gone.iter().filter_map(|&a| names.get(a as usize).copied()).collect();
    let left = names.iter().enumerate().filter(|(a, _)| !gone.contains(&(*a as u32)));
    left.map(|(_, &name)| name - old.iter().filter(|&&other| other < name).count() as u32).collect()
}

/// The names when nodes come in at the labels `added`, in this order by the last of `n` names; `None` unless that gives `n` names.
fn with(names: &[u32], added: &[u32], n: usize) -> Option<Vec<u32>> {
    let mut old = names.iter().copied();
    let named = (0..n as u32).map(|a| match added.iter().position(|&new| new == a) {
        Some(k) => Some((names.len() + k) as u32),
        None => old.next(),
    });
    let named: Vec<u32> = named.collect::<Option<_>>()?;
    (old.next().is_none() && names.len() + added.len() == n).then_some(named)
}

fn unnamed(name: &str, action: Move, before: &GraphState) -> Error {
    Error::contract(
        "`removed_nodes` names each node that undoing a move removes, in the order in which the move adds them",
        format!("undoing {name} {action:?} of {before}; `contract::check_action_type` says more"),
    )
}
