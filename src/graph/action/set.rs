use std::sync::Arc;

use super::Exit;
use crate::env::{Direction, Slots};
use crate::graph::{GraphActionType, GraphKind, GraphState, Head, Move};
use crate::{Error, Result};

/// When two graphs are the same object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Semantics {
    /// When they are equal, label by label: nodes are distinguishable (variables of a Bayesian network).
    Labelled,
    /// When they are isomorphic: labels mean nothing (molecules).
    UpToIsomorphism,
}

/// The place of an action type in its [`ActionSet`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ActionKind(pub usize);

/// The action types of an environment, in the order of their blocks of logits; the exit is always the last. Copies share them.
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
    /// A set with nothing but the exit action.
    #[must_use]
    pub fn new(semantics: Semantics) -> Self {
        Self { semantics, types: vec![Arc::new(Exit)] }
    }

    /// Adds a type, before the exit action.
    #[must_use]
    pub fn with(mut self, action_type: impl GraphActionType + 'static) -> Self {
        self.types.insert(self.types.len() - 1, Arc::new(action_type));
        self
    }

    /// When two graphs are the same object.
    #[must_use]
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// All types, in order, the exit action last.
    pub fn types(&self) -> impl ExactSizeIterator<Item = (ActionKind, &dyn GraphActionType)> {
        let types = self.types.iter().enumerate();
        types.map(|(k, t)| (ActionKind(k), t.as_ref()))
    }

    /// The blocks of logits of a direction, in order.
    pub fn heads(&self, direction: Direction) -> impl Iterator<Item = (ActionKind, &dyn GraphActionType, Head)> {
        self.types().filter_map(move |(kind, t)| t.head(direction).map(|head| (kind, t, head)))
    }

    /// The number of slots that a graph has.
    #[must_use]
    pub fn n_slots(&self, direction: Direction, graph: &GraphState) -> usize {
        self.heads(direction).map(|(_, _, head)| head.anchor.rows(graph) * head.width).sum()
    }

    /// Refuses a type whose block has no column: it could never do or undo anything.
    pub(crate) fn check(&self) -> Result<()> {
        let both = [Direction::Forward, Direction::Backward];
        match both.into_iter().flat_map(|direction| self.heads(direction)).find(|(_, _, head)| head.width == 0) {
            Some((_, action_type, _)) => Err(Error::config(
                "the classes of an action type",
                format!("0 of `{}`", action_type.name()),
                "at least one class, of nodes and of edges (`AddEdge::new(1)` where all edges are alike)",
            )),
            None => Ok(()),
        }
    }

    /// The most slots that a graph of up to `max_nodes` nodes can have; at most `usize::MAX`.
    pub(crate) fn most_slots(&self, direction: Direction, kind: GraphKind, max_nodes: usize) -> usize {
        let of_head = |head: Head| head.anchor.most_rows(kind, max_nodes).saturating_mul(head.width);
        self.heads(direction).fold(0, |sum: usize, (_, _, head)| sum.saturating_add(of_head(head)))
    }

    /// The move that a slot of a graph stands for, and its action type.
    ///
    /// # Errors
    /// [`Error::IllegalAction`] if the graph doesn't have so many slots.
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

    /// The slot of a move; 0 for a type without a block in that direction.
    ///
    /// # Errors
    /// [`Error::Contract`] for a column that the block doesn't have, [`Error::Config`] for a slot that 32 bits can't hold.
    pub fn encode(&self, direction: Direction, graph: &GraphState, kind: ActionKind, action: Move) -> Result<u32> {
        let mut first = 0;
        for (other, action_type, head) in self.heads(direction) {
            if other == kind {
                if action.class as usize >= head.width {
                    return Err(Error::contract(
                        "a move and its reverse name a column of their type's block",
                        format!("{} gives column {} of {}", action_type.name(), action.class, head.width),
                    ));
                }
                return Slots::slot(first + head.encode(graph, action));
            }
            first += head.anchor.rows(graph) * head.width;
        }
        Ok(0)
    }
}
