//! The legal moves of one graph, block by block, and the derivation of legal backward moves.

use super::{BackwardRule, GraphEnv, GraphRules, MoveMask};
use crate::env::Direction;
use crate::graph::{ActionKind, Attributes, GraphActionType, GraphState, GraphView, Head, Move, reverse_move};

/// Fills the mask of one block of one graph with the moves that the environment permits.
pub(super) fn fill_mask(
    env: &GraphEnv,
    direction: Direction,
    graph: GraphView<'_>,
    kind: ActionKind,
    action_type: &dyn GraphActionType,
    head: Head,
    mask: &mut [bool],
) {
    if direction == Direction::Forward && action_type.is_exit() {
        mask.fill(env.rules.can_exit(&graph));
        return;
    }
    action_type.mask(direction, env.actions.semantics(), graph, mask);
    let mut moves = MoveMask::new(graph, kind, action_type, head, mask);
    match direction {
        Direction::Forward => env.rules.restrict(&graph, &mut moves),
        Direction::Backward => match env.backward {
            BackwardRule::ByType => env.rules.restrict_backward(&graph, &mut moves),
            BackwardRule::Derived => derive_backward(env, &graph, kind, action_type, mask),
        },
    }
}

/// Keeps only the moves of `mask` that lead to a reachable parent in which the forward move to `graph` is
/// legal.
fn derive_backward(
    env: &GraphEnv,
    graph: &GraphState,
    kind: ActionKind,
    action_type: &dyn GraphActionType,
    mask: &mut [bool],
) {
    let Some(head) = action_type.head(Direction::Backward) else {
        return;
    };
    let mut forward_mask = Vec::new();
    for (slot, legal) in mask.iter_mut().enumerate().filter(|(_, legal)| **legal) {
        let undo = head.decode(graph, slot);
        *legal = parent_permits(env, graph, kind, action_type, undo, &mut forward_mask);
    }
}

/// `true` if `undo` leads to a reachable parent in which the forward move to `graph` is legal. `forward_mask`
/// is a buffer.
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
    // A graph that contains the initial graph was built from parents that contain it, too. Environments that
    // remove parts of the initial graph have graphs that don't.
    if !contains(&parent, initial) && contains(graph, initial) {
        return false;
    }
    // A column beyond the width would be the slot of another move.
    let Some(head) = action_type.head(Direction::Forward).filter(|head| (redo.class as usize) < head.width) else {
        return false;
    };
    forward_mask.clear();
    forward_mask.resize(head.anchor.rows(&parent) * head.width, false);
    action_type.mask(Direction::Forward, env.actions().semantics(), (&parent).into(), forward_mask);
    env.rules.restrict(&parent, &mut MoveMask::new((&parent).into(), kind, action_type, head, forward_mask));
    forward_mask.get(head.encode(&parent, redo)).copied() == Some(true)
}

/// `true` if `graph` still has all nodes, edges, classes and set attributes of `initial`.
pub(crate) fn contains(graph: &GraphState, initial: &GraphState) -> bool {
    let keeps = |then: Attributes, now: Attributes| {
        then.values().iter().zip(now.values()).all(|(then, now)| *then == 0 || then == now)
    };
    let mut nodes = initial.nodes().zip(graph.nodes());
    graph.n_nodes() >= initial.n_nodes()
        && nodes.all(|(then, now)| then.class == now.class && keeps(then.attributes, now.attributes))
        && initial.edges().all(|(a, b)| {
            let both = initial.edge(a, b).zip(graph.edge(a, b));
            both.is_some_and(|(then, now)| then.class == now.class && keeps(then.attributes, now.attributes))
        })
}
