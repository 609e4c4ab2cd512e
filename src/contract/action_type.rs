//! The laws that action types must obey, and the function that checks them.

use crate::env::Direction;
use crate::graph::{GraphActionType, GraphState, Head, Move, Semantics, canonical_key, reverse_move};
use crate::{Error, Result};

/// Checks the laws of an action type on the given graphs. The graphs should be similar to the graphs of the
/// environments that will use the action type.
///
/// The laws must hold for every graph and every move that the type's mask allows. If a slot is decoded to a
/// move, the move is encoded as the same slot. The move changes the graph. The reverse of the move is among
/// the backward moves of the child, and restores the graph. The reverse of the reverse is the move itself; up
/// to isomorphism it only needs to lead to an isomorphic child. `removed_nodes` lists the removed nodes in
/// the order in which the reverse adds them.
///
/// ```
/// use gfn::graph::{AddEdge, GraphKind, GraphState, Semantics};
/// use gfn::contract::check_action_type;
/// let graphs = [GraphState::with_nodes(GraphKind::Directed, 3)];
/// check_action_type(&AddEdge::new(2), Semantics::Labelled, &graphs)?;
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`] with the name of the law, the move and the graph.
pub fn check_action_type(
    action_type: &dyn GraphActionType,
    semantics: Semantics,
    graphs: &[GraphState],
) -> Result<()> {
    if action_type.is_exit() {
        return Ok(());
    }
    let heads = action_type.head(Direction::Forward).zip(action_type.head(Direction::Backward));
    let Some((forward, backward)) = heads else {
        let law = "a type other than the exit has a block in both directions";
        return Err(Error::contract(law, action_type.name()));
    };
    for graph in graphs {
        let mut mask = vec![false; forward.anchor.rows(graph) * forward.width];
        action_type.mask(Direction::Forward, semantics, graph.into(), &mut mask);
        for slot in (0..mask.len()).filter(|&slot| mask[slot]) {
            let action = forward.decode(graph, slot);
            MoveCheck { action_type, semantics, graph, action, forward, backward }.check(slot)?;
        }
    }
    Ok(())
}

/// A check of the laws for one move of one graph.
struct MoveCheck<'a> {
    action_type: &'a dyn GraphActionType,
    semantics: Semantics,
    graph: &'a GraphState,
    action: Move,
    forward: Head,
    backward: Head,
}

impl MoveCheck<'_> {
    fn require(&self, holds: bool, law: &'static str) -> Result<()> {
        if holds {
            return Ok(());
        }
        let Move { a, b, class } = self.action;
        let name = self.action_type.name();
        Err(Error::contract(law, format!("{name} (node {a}, node {b}, column {class}) of {}", self.graph)))
    }

    fn is_same(&self, graph: &GraphState, other: &GraphState) -> bool {
        match self.semantics {
            Semantics::Labelled => graph == other,
            Semantics::UpToIsomorphism => canonical_key(graph) == canonical_key(other),
        }
    }

    /// Applies a move. Returns the graph after the move, and the reverse move, which undoes it.
    fn apply(&self, direction: Direction, graph: &GraphState, action: Move) -> Result<(GraphState, Move)> {
        let undo = reverse_move(self.action_type, direction, graph, action);
        let mut after = graph.clone();
        let applied = self.action_type.apply(direction, &mut after, action);
        self.require(
            applied.is_ok(),
            "a legal move, the reverse of the move and the reverse of that reverse can be applied",
        )?;
        Ok((after, undo))
    }

    /// Returns `true` if a move is legal in a graph.
    fn is_legal(&self, direction: Direction, graph: &GraphState, action: Move) -> bool {
        let head = if direction == Direction::Forward { self.forward } else { self.backward };
        let mut mask = vec![false; head.anchor.rows(graph) * head.width];
        self.action_type.mask(direction, self.semantics, graph.into(), &mut mask);
        mask.get(head.encode(graph, action)) == Some(&true)
    }

    /// Checks that `removed_nodes` lists the nodes that `action` removes from the graph `before`, in the
    /// order in which `undo` adds them. `after` is the graph after `action`, and `back` the graph after both
    /// moves.
    fn check_removed(
        &self,
        direction: Direction,
        [before, after, back]: [&GraphState; 3],
        action: Move,
        undo: Move,
    ) -> Result<()> {
        let removed = self.action_type.removed_nodes(direction, before, action);
        let added = self.action_type.removed_nodes(direction.opposite(), after, undo);
        let n = before.n_nodes();
        let mut order: Vec<u32> = (0..n as u32).filter(|a| !removed.contains(a)).collect();
        order.extend(&removed);
        let is_whole = order.len() == n && removed.iter().all(|&a| (a as usize) < n);
        let is_counted = n + added.len() == after.n_nodes() + removed.len();
        let law = "`removed_nodes` names the nodes that a move removes, each once, and no other";
        self.require(is_whole && is_counted, law)?;
        let moved = before.induced(&order);
        let is_restored = moved.nodes().eq(back.nodes()) && moved.adjacency() == back.adjacency();
        let law = "`removed_nodes` names nodes in the order in which the reverse adds them; later nodes \
            shift down, new ones come last";
        self.require(removed.is_empty() || is_restored, law)
    }

    fn check(&self, slot: usize) -> Result<()> {
        let graph = self.graph;
        let action = self.action;
        let law = "the move that is decoded from a legal slot encodes to the same slot (undirected pairs: \
            only rows with a < b are legal)";
        self.require(self.forward.encode(graph, action) == slot, law)?;
        let (child, undo) = self.apply(Direction::Forward, graph, action)?;
        self.require(!self.is_same(&child, graph), "a move changes the graph")?;
        let is_legal = self.is_legal(Direction::Backward, &child, undo);
        self.require(is_legal, "the reverse of a move is among the backward moves of the child")?;
        let (back, redo) = self.apply(Direction::Backward, &child, undo)?;
        self.require(self.is_same(&back, graph), "the reverse of a move restores the graph")?;
        self.check_removed(Direction::Forward, [graph, &child, &back], action, undo)?;
        let is_action = self.semantics != Semantics::Labelled || redo == action;
        self.require(
            is_action,
            "if nodes are labelled, the reverse of the reverse of a move is the move itself",
        )?;
        let is_legal = self.is_legal(Direction::Forward, &back, redo);
        self.require(is_legal, "the reverse of the reverse of a move is a legal move")?;
        let (again, _) = self.apply(Direction::Forward, &back, redo)?;
        self.require(
            self.is_same(&again, &child),
            "redoing an undone move leads to the same child as the move itself",
        )?;
        self.check_removed(Direction::Backward, [&child, &back, &again], undo, redo)
    }
}
