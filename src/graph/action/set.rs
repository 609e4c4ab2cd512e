use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Exit;
use crate::env::{Direction, Slots};
use crate::graph::{GraphActionType, GraphKind, GraphState, Head, Move};
use crate::{Error, Result};

/// The condition under which two graphs are the same object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Semantics {
    /// Two graphs are the same object if they are equal, including the labels of nodes. Nodes are
    /// distinguishable, such as variables of a Bayesian network.
    Labelled,
    /// Two graphs are the same object if they are isomorphic. The labels of nodes have no meaning, as in
    /// molecules.
    UpToIsomorphism,
}

/// The index of an action type in its [`ActionSet`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ActionKind(pub usize);

/// The action types of an environment, in the order of their blocks of logits. The exit is always the last
/// type. Clones share the types.
///
/// ```
/// use gfn::graph::{ActionSet, AddEdge, AddNode, Semantics};
/// let set = ActionSet::new(Semantics::UpToIsomorphism)
///     .with(AddNode::first(2))
///     .with(AddNode::attached(2, 1, 7))
///     .with(AddEdge::new(1).keeping_connected());
/// assert_eq!(set.types().count(), 4);
/// ```
#[derive(Clone, Debug)]
pub struct ActionSet {
    semantics: Semantics,
    types: Vec<Arc<dyn GraphActionType>>,
}

impl ActionSet {
    /// Creates a set that has only the exit action.
    #[must_use]
    pub fn new(semantics: Semantics) -> Self {
        Self { semantics, types: vec![Arc::new(Exit)] }
    }

    /// Adds a type to the set, before the exit action.
    #[must_use]
    pub fn with(mut self, action_type: impl GraphActionType + 'static) -> Self {
        self.types.insert(self.types.len() - 1, Arc::new(action_type));
        self
    }

    /// The condition under which two graphs are the same object.
    #[must_use]
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// Returns all types of the set in order, with the exit action last.
    pub fn types(&self) -> impl ExactSizeIterator<Item = (ActionKind, &dyn GraphActionType)> {
        let types = self.types.iter().enumerate();
        types.map(|(k, action_type)| (ActionKind(k), action_type.as_ref()))
    }

    /// Returns the blocks of logits of all types in a direction, in order. Types without a block in that
    /// direction are left out.
    pub fn heads(
        &self,
        direction: Direction,
    ) -> impl Iterator<Item = (ActionKind, &dyn GraphActionType, Head)> {
        self.types().filter_map(move |(kind, action_type)| {
            action_type.head(direction).map(|head| (kind, action_type, head))
        })
    }

    /// Returns the number of slots of a graph in a direction, including the slots of illegal actions.
    #[must_use]
    pub fn n_slots(&self, direction: Direction, graph: &GraphState) -> usize {
        self.heads(direction).map(|(_, _, head)| head.anchor.rows(graph) * head.width).sum()
    }

    /// Checks that each block of logits has at least one column. An action type whose block has no column
    /// would have no moves.
    pub(crate) fn check(&self) -> Result<()> {
        for direction in [Direction::Forward, Direction::Backward] {
            if let Some((_, action_type, _)) = self.heads(direction).find(|(_, _, head)| head.width == 0) {
                return Err(Error::config(
                    "the classes of an action type",
                    format!("0 of `{}`", action_type.name()),
                    "at least one class of nodes and of edges (`AddEdge::new(1)` if all edges are the same)",
                ));
            }
        }
        Ok(())
    }

    /// Returns an upper bound of the number of slots of graphs with up to `max_nodes` nodes. A larger bound
    /// than `usize::MAX` is cut to `usize::MAX`.
    pub(crate) fn most_slots(&self, direction: Direction, kind: GraphKind, max_nodes: usize) -> usize {
        let max_slots = |head: Head| head.anchor.max_rows(kind, max_nodes).saturating_mul(head.width);
        self.heads(direction).fold(0, |sum: usize, (_, _, head)| sum.saturating_add(max_slots(head)))
    }

    /// Returns the action type and the move that a slot of a graph represents.
    ///
    /// # Errors
    /// [`Error::IllegalAction`] if the graph doesn't have this slot.
    pub fn decode(
        &self,
        direction: Direction,
        graph: &GraphState,
        slot: u32,
    ) -> Result<(ActionKind, &dyn GraphActionType, Move)> {
        let mut rest = slot as usize;
        for (kind, action_type, head) in self.heads(direction).filter(|_| slot != Slots::NONE) {
            let slots = head.anchor.rows(graph) * head.width;
            if rest < slots {
                return Ok((kind, action_type, head.decode(graph, rest)));
            }
            rest -= slots;
        }
        Err(Error::IllegalAction {
            row: 0,
            direction,
            slot: slot as usize,
            n_slots: self.n_slots(direction, graph),
            n_legal: 0,
            detail: "there is no such slot".into(),
        })
    }

    /// Returns the slot of a move; 0 if the type has no block of logits in that direction.
    ///
    /// # Errors
    /// [`Error::Contract`] if the block doesn't have the move's column; [`Error::Config`] if the slot doesn't
    /// fit into 32 bits.
    pub fn encode(
        &self,
        direction: Direction,
        graph: &GraphState,
        kind: ActionKind,
        action: Move,
    ) -> Result<u32> {
        let mut first = 0;
        for (head_kind, action_type, head) in self.heads(direction) {
            if head_kind == kind {
                if action.class as usize >= head.width {
                    return Err(Error::contract(
                        "a move and its reverse have a column (`class`) of their type's block",
                        format!(
                            "`{}` returned column {}, but its block has {} columns",
                            action_type.name(),
                            action.class,
                            head.width
                        ),
                    ));
                }
                return Slots::slot(first + head.encode(graph, action));
            }
            first += head.anchor.rows(graph) * head.width;
        }
        Ok(0)
    }
}
