use serde_json::{Value, json};

use super::{AddEdge, AddNode, Semantics, SetEdgeAttr, SetNodeAttr};
use crate::Result;
use crate::env::Direction;
use crate::graph::{GraphActionType, GraphSchema, GraphState, GraphView, Head, Move};

/// An action type whose two directions are exchanged: the backward moves of the original type become forward
/// moves.
///
/// An example is `Reverse(AddEdge::new(1))`, whose forward action is *remove an edge*. The type is meant for
/// environments that start from a full graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reverse<T>(pub T);

impl<T: GraphActionType> GraphActionType for Reverse<T> {
    fn name(&self) -> &str {
        match self.0.name() {
            AddNode::FREE => "remove_node",
            AddNode::FIRST => "remove_first_node",
            AddNode::ATTACHED => "remove_attached_node",
            AddEdge::NAME => "remove_edge",
            SetNodeAttr::NAME => "remove_node_attr",
            SetEdgeAttr::NAME => "remove_edge_attr",
            other => other,
        }
    }
    fn settings(&self) -> Value {
        match self.0.settings() {
            Value::Null => Value::Null,
            original => json!({ "Reverse": original }),
        }
    }
    fn widen(&self, schema: &mut GraphSchema) {
        self.0.widen(schema);
    }
    fn head(&self, direction: Direction) -> Option<Head> {
        self.0.head(direction.opposite())
    }
    fn mask(&self, direction: Direction, semantics: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        self.0.mask(direction.opposite(), semantics, graph, mask);
    }
    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        self.0.apply(direction.opposite(), graph, action)
    }
    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        self.0.reverse(direction.opposite(), before, action)
    }
    fn rename(
        &self,
        direction: Direction,
        action: Move,
        names: &[u32],
        from: &GraphState,
        to: &GraphState,
    ) -> Move {
        self.0.rename(direction.opposite(), action, names, from, to)
    }
    fn removed_nodes(&self, direction: Direction, before: &GraphState, action: Move) -> Vec<u32> {
        self.0.removed_nodes(direction.opposite(), before, action)
    }
}
