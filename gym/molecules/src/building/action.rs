use gfn::Result;
use gfn::env::Direction;
use gfn::graph::{GraphActionType, GraphState, Head, Move, Semantics};

use super::MoleculeCodec;

/// Whether a move back leads to a state of the environment.
pub(super) type Keeps = fn(&MoleculeCodec, &GraphState, Move) -> bool;

/// An action type of which some moves back would lead to what is no molecule within the limits: those are taken away.
#[derive(Debug)]
pub(super) struct Guarded<T> {
    pub(super) inner: T,
    pub(super) codec: MoleculeCodec,
    pub(super) keeps: Keeps,
}

impl<T: GraphActionType> GraphActionType for Guarded<T> {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn head(&self, direction: Direction) -> Option<Head> {
        self.inner.head(direction)
    }
    fn mask(&self, direction: Direction, semantics: Semantics, graph: &GraphState, mask: &mut [bool]) {
        self.inner.mask(direction, semantics, graph, mask);
        let Some(head) = self.head(direction).filter(|_| direction == Direction::Backward) else { return };
        for (slot, legal) in mask.iter_mut().enumerate().filter(|(_, legal)| **legal) {
            *legal = (self.keeps)(&self.codec, graph, head.decode(graph, slot));
        }
    }
    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        self.inner.apply(direction, graph, action)
    }
    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        self.inner.reverse(direction, before, action)
    }
    fn removed_nodes(&self, direction: Direction, before: &GraphState, action: Move) -> Vec<u32> {
        self.inner.removed_nodes(direction, before, action)
    }
}
