//! Renaming the moves of a walk that was taken backwards, so that it can be replayed forwards.
//!
//! Going back, nodes leave in an order that has nothing to do with their labels, and later labels shift down. A walk is stored
//! as forward moves, each named in its own parent; replayed from the initial graph, nodes get labels in their order of
//! insertion instead.

use super::{GraphEnv, GraphState, GraphStates};
use crate::env::{Direction, InsertionOrder, Rows, Slots};
use crate::{Error, Result};

/// The forward actions of backward walks, renamed to insertion order; the replayed graphs are isomorphic to the walked ones.
pub(crate) fn to_insertion_order<G: GraphEnv>(
    env: &G,
    states: &GraphStates,
    actions: &Slots,
    reverse: &Slots,
    offsets: &[usize],
) -> Result<InsertionOrder<Slots, GraphStates>> {
    let set = env.actions();
    let mut out = Vec::with_capacity(actions.len());
    let mut terminal = Vec::with_capacity(offsets.len());
    let mut labels = Vec::new();
    for walk in offsets.windows(2) {
        // label in the walked state -> label in the replayed one
        let mut names: Vec<u32> = (0..env.initial_graph().n_nodes() as u32).collect();
        let mut replayed = env.initial_graph().clone();
        for row in walk[0]..walk[1] {
            let before = &states.graphs()[row];
            let (kind, action_type, action) = set.decode(Direction::Forward, before, actions.0[row])?;
            if action_type.is_exit() {
                out.push((set.n_slots(Direction::Forward, &replayed) - 1) as u32);
                continue;
            }
            let renamed = action_type.rename(Direction::Forward, action, &names, before, &replayed);
            out.push(set.encode(Direction::Forward, &replayed, kind, renamed));
            let n_before = replayed.n_nodes();
            action_type.apply(Direction::Forward, &mut replayed, renamed)?;
            if replayed.n_nodes() > n_before {
                // The new node's label in the walked child is the one that the backward move removed.
                let undo = match states.graphs().get(row + 1) {
                    Some(child) if row + 1 < walk[1] => set.decode(Direction::Backward, child, reverse.0[row])?.2,
                    _ => action_type.reverse(Direction::Forward, before, action),
                };
                let place = action_type.removed_node(Direction::Backward, undo);
                names.insert(place.map_or(names.len(), |a| a as usize), n_before as u32);
            } else if let Some(gone) = action_type.removed_node(Direction::Forward, action) {
                let old = names.remove(gone as usize);
                names.iter_mut().filter(|name| **name > old).for_each(|name| *name -= 1);
            }
        }
        terminal.push(replayed);
        labels.append(&mut names);
    }
    Ok(InsertionOrder { actions: Slots(out), terminal: terminal.into(), labels })
}

/// The graphs whose nodes the replay renamed: node `a` was called the place of `a` among its graph's labels.
pub(crate) fn with_labels(replayed: &[GraphState], mut labels: &[u32]) -> Result<GraphStates> {
    let wrong = |detail: String| Error::Contract { check: "labels name each node of each graph once", detail };
    let mut out = Vec::with_capacity(replayed.len());
    for (row, graph) in replayed.iter().enumerate() {
        let own = labels.split_off(..graph.n_nodes()).ok_or_else(|| wrong(format!("none is left for graph {row}")))?;
        let mut sorted = own.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..own.len() as u32) {
            return Err(wrong(format!("graph {row} has {own:?}")));
        }
        out.push(graph.induced(own));
    }
    if !labels.is_empty() {
        return Err(wrong(format!("{} are left over", labels.len())));
    }
    Ok(out.into())
}
