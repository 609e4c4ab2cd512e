use super::Semantics;
use crate::Result;
use crate::env::Direction;
use crate::graph::{Anchor, GraphActionType, GraphState, GraphView, Head, Move};

/// The action type that ends the trajectory. The current graph becomes the finished object.
///
/// The exit is the last type of every [`ActionSet`](super::ActionSet). The environment decides in which
/// graphs the exit is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit;

impl GraphActionType for Exit {
    fn name(&self) -> &str {
        "exit"
    }
    fn head(&self, direction: Direction) -> Option<Head> {
        (direction == Direction::Forward).then_some(Head { anchor: Anchor::Graph, width: 1 })
    }
    fn mask(&self, _: Direction, _: Semantics, _: GraphView<'_>, mask: &mut [bool]) {
        mask.fill(true);
    }
    fn apply(&self, _: Direction, _: &mut GraphState, _: Move) -> Result<()> {
        Ok(())
    }
    fn reverse(&self, _: Direction, _: &GraphState, _: Move) -> Move {
        Move::default()
    }
    fn is_exit(&self) -> bool {
        true
    }
}
