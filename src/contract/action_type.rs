//! The laws of action types.

use crate::env::Direction;
use crate::graph::{GraphActionType, GraphState, Head, Move, Semantics, canonical_key, reverse_move};
use crate::{Error, Result};

/// Checks the laws of an action type on graphs of your choice: the graphs that it will meet.
///
/// For every graph and every move that the type's mask allows: slots and moves translate into each other; the
/// move changes the graph; its reverse is among the backward moves of the child and restores the graph; and
/// the reverse of the reverse is the move itself (up to isomorphism: it leads to an isomorphic child).
/// `removed_nodes` lists the removed nodes in the order in which they come back.
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
/// [`Error::Contract`] naming the law, the move and the graph.
pub fn check_action_type(action_type: &dyn GraphActionType, semantics: Semantics, graphs: &[GraphState]) -> Result<()> {
    if action_type.is_exit() {
        return Ok(());
    }
    let (Some(forward), Some(backward)) = (action_type.head(Direction::Forward), action_type.head(Direction::Backward))
    else {
        let name = action_type.name().to_owned();
        return Err(Error::contract("a type other than the exit has a block in both directions", name));
    };
    for graph in graphs {
        let mask = mask_of(action_type, Direction::Forward, semantics, graph, forward);
        for slot in (0..mask.len()).filter(|&slot| mask[slot]) {
            let action = forward.decode(graph, slot);
            let check = Check { action_type, semantics, graph, action, forward, backward };
            if forward.encode(graph, action) != slot {
                return Err(check.broken("a legal slot's move has that slot (undirected pairs: only rows with a < b)"));
            }
            check.forward_and_back()?;
        }
    }
    Ok(())
}

fn mask_of(
    action_type: &dyn GraphActionType,
    direction: Direction,
    semantics: Semantics,
    graph: &GraphState,
    head: Head,
) -> Vec<bool> {
    let mut mask = vec![false; head.anchor.rows(graph) * head.width];
    action_type.mask(direction, semantics, graph.into(), &mut mask);
    mask
}

/// One move of one graph.
struct Check<'a> {
    action_type: &'a dyn GraphActionType,
    semantics: Semantics,
    graph: &'a GraphState,
    action: Move,
    forward: Head,
    backward: Head,
}

impl Check<'_> {
    fn broken(&self, law: &'static str) -> Error {
        let Move { a, b, class } = self.action;
        let name = self.action_type.name();
        Error::contract(law, format!("{name} (node {a}, node {b}, column {class}) of {}", self.graph))
    }

    fn same(&self, one: &GraphState, other: &GraphState) -> bool {
        match self.semantics {
            Semantics::Labelled => one == other,
            Semantics::UpToIsomorphism => canonical_key(one) == canonical_key(other),
        }
    }

    fn apply(&self, direction: Direction, graph: &GraphState, action: Move) -> Result<GraphState> {
        let mut after = graph.clone();
        let applied = self.action_type.apply(direction, &mut after, action);
        applied.map_err(|_| self.broken("a legal move, its reverse and the reverse of that can be applied"))?;
        Ok(after)
    }

    /// Checks what is said of the nodes that `action` takes from the graph before it and `undo` from the one
    /// after it; the third graph is that after both.
    fn check_removed(&self, direction: Direction, graphs: [&GraphState; 3], action: Move, undo: Move) -> Result<()> {
        let [before, after, back] = graphs;
        let removed = self.action_type.removed_nodes(direction, before, action);
        let added = self.action_type.removed_nodes(direction.opposite(), after, undo);
        let mut order: Vec<u32> = (0..before.n_nodes() as u32).filter(|a| !removed.contains(a)).collect();
        order.extend(&removed);
        let all = order.len() == before.n_nodes() && removed.iter().all(|&a| (a as usize) < before.n_nodes());
        if !all || before.n_nodes() + added.len() != after.n_nodes() + removed.len() {
            return Err(self.broken("`removed_nodes` names the nodes that a move removes, each once, and no other"));
        }
        let moved = before.induced(&order);
        if !removed.is_empty() && (!moved.nodes().eq(back.nodes()) || moved.adjacency() != back.adjacency()) {
            return Err(self.broken(
                "`removed_nodes` names nodes in the order in which the reverse adds them; later nodes shift down, new ones come last",
            ));
        }
        Ok(())
    }

    fn forward_and_back(&self) -> Result<()> {
        let (graph, action) = (self.graph, self.action);
        let child = self.apply(Direction::Forward, graph, action)?;
        if self.same(&child, graph) {
            return Err(self.broken("a move changes the graph"));
        }
        let undo = reverse_move(self.action_type, Direction::Forward, graph, action);
        let legal = mask_of(self.action_type, Direction::Backward, self.semantics, &child, self.backward);
        if legal.get(self.backward.encode(&child, undo)) != Some(&true) {
            return Err(self.broken("the reverse of a move is among the backward moves of the child"));
        }
        let redo = reverse_move(self.action_type, Direction::Backward, &child, undo);
        let back = self.apply(Direction::Backward, &child, undo)?;
        if !self.same(&back, graph) {
            return Err(self.broken("the reverse of a move restores the graph"));
        }
        self.check_removed(Direction::Forward, [graph, &child, &back], action, undo)?;
        if self.semantics == Semantics::Labelled && redo != action {
            return Err(self.broken("where nodes are labelled, the reverse of the reverse is the move"));
        }
        let legal = mask_of(self.action_type, Direction::Forward, self.semantics, &back, self.forward);
        if legal.get(self.forward.encode(&back, redo)) != Some(&true) {
            return Err(self.broken("the reverse of the reverse is a legal move"));
        }
        let again = self.apply(Direction::Forward, &back, redo)?;
        if !self.same(&again, &child) {
            return Err(self.broken("redoing an undone move leads to the child"));
        }
        self.check_removed(Direction::Backward, [&child, &back, &again], undo, redo)
    }
}
