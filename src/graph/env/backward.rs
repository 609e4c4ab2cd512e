//! The legal moves of one graph, computed for one action type (one block of logits) at a time, and the
//! derivation of legal backward moves.

use serde::{Deserialize, Serialize};

use super::{GraphEnv, MoveMask};
use crate::env::Direction;
use crate::graph::{ActionKind, GraphActionType, GraphState, GraphView, Head, Move, Weight, reverse_move};

/// The method by which the legal backward actions of an environment are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BackwardRule {
    /// Each backward move that an action type allows is tried on a copy of the graph. The move is legal if
    /// the parent is reachable, still contains the initial graph, and allows the forward move. This method is
    /// correct for any environment, but slow.
    Derived,
    /// The backward masks of the action types are used, without the moves that
    /// [`GraphRules::restrict_backward`](crate::graph::GraphRules::restrict_backward) forbids. This method is
    /// fast, but correct only if the masks are exact, which
    /// [`contract::check_graph_env`](crate::contract::check_graph_env) tests.
    ByType,
}

/// An action type with its index and its block of logits in a direction, as
/// [`heads`](crate::graph::ActionSet::heads) returns them.
pub(super) type TypeHead<'a> = (ActionKind, &'a dyn GraphActionType, Head);

/// Fills the mask of one action type for one graph: the moves that the environment permits are set to `true`.
pub(super) fn fill_mask(
    env: &GraphEnv,
    direction: Direction,
    graph: GraphView<'_>,
    type_head: TypeHead<'_>,
    mask: &mut [bool],
) {
    let (kind, action_type, head) = type_head;
    if direction == Direction::Forward && action_type.is_exit() {
        mask.fill(env.rules.can_exit(&graph));
        return;
    }
    action_type.mask(direction, env.actions.semantics(), graph, mask);
    match (direction, env.backward) {
        (Direction::Forward, _) => env.rules.restrict(&graph, &mut MoveMask::new(graph, type_head, mask)),
        (Direction::Backward, BackwardRule::ByType) => {
            env.rules.restrict_backward(&graph, &mut MoveMask::new(graph, type_head, mask));
        }
        (Direction::Backward, BackwardRule::Derived) => {
            let mut forward_mask = Vec::new();
            for (slot, legal) in mask.iter_mut().enumerate().filter(|(_, legal)| **legal) {
                let undo = head.decode(&graph, slot);
                *legal = parent_permits(env, &graph, kind, action_type, undo, &mut forward_mask);
            }
        }
    }
}

/// Returns `true` if the backward move `undo` leads to a reachable parent that still contains the initial
/// graph, and in which the forward move to `graph` is legal. `forward_mask` is memory for a mask, which all
/// calls share.
fn parent_permits(
    env: &GraphEnv,
    graph: &GraphState,
    kind: ActionKind,
    action_type: &dyn GraphActionType,
    undo: Move,
    forward_mask: &mut Vec<bool>,
) -> bool {
    let initial = env.initial_of(graph);
    let removed = action_type.removed_nodes(Direction::Backward, graph, undo);
    if removed.iter().any(|&a| (a as usize) < initial.n_nodes()) {
        return false;
    }
    let redo = reverse_move(action_type, Direction::Backward, graph, undo);
    let mut parent = graph.clone();
    let undone = action_type.apply(Direction::Backward, &mut parent, undo);
    if undone.is_err() || !env.rules.is_reachable(&parent) {
        return false;
    }
    // If a graph contains the initial graph, its parents must contain it, too. Graphs that don't contain the
    // initial graph occur in environments whose forward moves remove parts of the initial graph.
    if !contains(&parent, initial) && contains(graph, initial) {
        return false;
    }
    // The slot of a move is computed from its row and its column in the block of logits: row times width,
    // plus column. A column that isn't less than the width would give the slot of another move, so it is
    // refused.
    let Some(head) = action_type.head(Direction::Forward).filter(|head| (redo.class as usize) < head.width)
    else {
        return false;
    };
    forward_mask.clear();
    forward_mask.resize(head.anchor.rows(&parent) * head.width, false);
    fill_mask(env, Direction::Forward, (&parent).into(), (kind, action_type, head), forward_mask);
    forward_mask.get(head.encode(&parent, redo)).copied() == Some(true)
}

/// Returns `true` if `graph` still has all nodes, edges, classes and set attributes of `initial`.
pub(crate) fn contains(graph: &GraphState, initial: &GraphState) -> bool {
    let keeps = |then: Weight, now: Weight| {
        let mut values = then.attributes.values().iter().zip(now.attributes.values());
        then.class == now.class && values.all(|(then, now)| *then == 0 || then == now)
    };
    graph.n_nodes() >= initial.n_nodes()
        && initial.nodes().zip(graph.nodes()).all(|(then, now)| keeps(then, now))
        && initial.edges().all(|(a, b)| {
            let both = initial.edge(a, b).zip(graph.edge(a, b));
            both.is_some_and(|(then, now)| keeps(then, now))
        })
}
