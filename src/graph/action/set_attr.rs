use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Semantics;
use crate::env::Direction;
use crate::graph::{
    Anchor, Attributes, GraphActionType, GraphSchema, GraphState, GraphView, Head, MAX_ATTRIBUTES, Move,
    Weight, raise,
};
use crate::{Error, Result};

/// An action type that sets an attribute of a node, if it isn't set yet. Its backward moves, which are the
/// forward moves of `Reverse(SetNodeAttr)`, unset an attribute.
pub type SetNodeAttr = SetAttr<false>;
/// An action type that sets an attribute of an edge, if it isn't set yet. Its backward moves, which are the
/// forward moves of `Reverse(SetEdgeAttr)`, unset an attribute.
pub type SetEdgeAttr = SetAttr<true>;

/// An action type that sets attributes of nodes ([`SetNodeAttr`]) or of edges ([`SetEdgeAttr`]).
///
/// Its block of logits has a row for each node (or edge). In the forward direction the block has a column for
/// each value of each attribute, in the backward direction a column for each attribute.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct SetAttr<const OF_EDGES: bool> {
    /// The largest value of each attribute: attribute `k` can be set to `1..=values[k]`.
    values: Vec<u8>,
}

impl<const OF_EDGES: bool> SetAttr<OF_EDGES> {
    /// The name of this action type.
    pub const NAME: &'static str = if OF_EDGES { "set_edge_attr" } else { "set_node_attr" };

    /// Creates a type that can set attribute `k` to `1..=values[k]`.
    ///
    /// # Errors
    /// [`Error::Config`] for no attribute, more than seven attributes, or an attribute without values.
    pub fn new(values: &[u8]) -> Result<Self> {
        if values.is_empty() || values.len() > MAX_ATTRIBUTES || values.contains(&0) {
            return Err(Error::config(
                "attribute values",
                format!("{values:?}"),
                "one to seven attributes, each with at least one value",
            ));
        }
        Ok(Self { values: values.to_vec() })
    }

    /// Returns the index of the first column of attribute `k` in the block of forward logits.
    fn first_column(&self, k: usize) -> usize {
        self.values[..k].iter().map(|&values| usize::from(values)).sum()
    }

    /// Returns the attribute and the value to which a column of the block of forward logits belongs.
    fn decode_column(&self, class: u32) -> (usize, u8) {
        let mut rest = class;
        for (k, &values) in self.values.iter().enumerate() {
            if rest < u32::from(values) {
                return (k, rest as u8 + 1);
            }
            rest -= u32::from(values);
        }
        debug_assert!(false, "column {class} of {:?} attribute values", self.values);
        (0, 0)
    }

    /// Returns the class and the attributes of the node or edge to which a move belongs.
    fn weight(graph: &GraphState, action: Move) -> Weight {
        let weight = if OF_EDGES { graph.edge(action.a, action.b) } else { graph.node(action.a) };
        weight.unwrap_or_default()
    }

    /// Marks the legal moves in `row`, the part of the mask that belongs to one node or edge. Forward moves
    /// give an unset attribute any of the values that this action type can set. Backward moves unset an
    /// attribute that has one of these values.
    fn mark_row(&self, direction: Direction, attributes: Attributes, row: &mut [bool]) {
        let mut column = 0;
        for (k, &values) in self.values.iter().enumerate() {
            let value = attributes.get(k);
            match direction {
                Direction::Forward => row[column..column + usize::from(values)].fill(value == 0),
                Direction::Backward => row[k] = value != 0 && value <= values,
            }
            column += usize::from(values);
        }
    }
}

impl<const OF_EDGES: bool> TryFrom<Vec<u8>> for SetAttr<OF_EDGES> {
    type Error = Error;
    fn try_from(values: Vec<u8>) -> Result<Self> {
        Self::new(&values)
    }
}

impl<const OF_EDGES: bool> From<SetAttr<OF_EDGES>> for Vec<u8> {
    fn from(action_type: SetAttr<OF_EDGES>) -> Self {
        action_type.values
    }
}

impl<const OF_EDGES: bool> GraphActionType for SetAttr<OF_EDGES> {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn widen(&self, schema: &mut GraphSchema) {
        raise(if OF_EDGES { &mut schema.edge_attributes } else { &mut schema.node_attributes }, &self.values);
    }

    fn settings(&self) -> Value {
        if OF_EDGES { json!({ "SetEdgeAttr": self }) } else { json!({ "SetNodeAttr": self }) }
    }

    fn head(&self, direction: Direction) -> Option<Head> {
        let width = match direction {
            Direction::Forward => self.first_column(self.values.len()),
            Direction::Backward => self.values.len(),
        };
        Some(Head { anchor: if OF_EDGES { Anchor::Edge } else { Anchor::Node }, width })
    }

    fn mask(&self, direction: Direction, _: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        let rows = mask.chunks_exact_mut(self.head(direction).map_or(1, |head| head.width));
        let mark = |(row, weight): (&mut [bool], Weight)| self.mark_row(direction, weight.attributes, row);
        if OF_EDGES {
            rows.zip(graph.weighted_edges().map(|(_, _, edge)| edge)).for_each(mark);
        } else {
            rows.zip(graph.nodes()).for_each(mark);
        }
    }

    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        let (k, value) = match direction {
            Direction::Forward => self.decode_column(action.class),
            Direction::Backward => (action.class as usize, 0),
        };
        let mut weight = Self::weight(graph, action);
        weight.attributes.set(k, value);
        if OF_EDGES { graph.set_edge(action.a, action.b, weight) } else { graph.set_node(action.a, weight) }
    }

    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        let class = match direction {
            Direction::Forward => self.decode_column(action.class).0,
            Direction::Backward => {
                let k = action.class as usize;
                let value = Self::weight(before, action).attributes.get(k);
                self.first_column(k) + usize::from(value.saturating_sub(1))
            }
        };
        Move { class: class as u32, ..action }
    }
}
