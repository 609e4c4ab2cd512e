use super::Semantics;
use crate::env::Direction;
use crate::graph::{Anchor, Attributes, GraphActionType, GraphState, GraphView, Head, MAX_ATTRIBUTES, Move};
use crate::{Error, Result};

/// Which column sets which attribute to which value.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Values {
    /// How many values attribute `k` can be set to; they are `1..=values[k]`.
    values: Vec<u8>,
}

impl Values {
    fn new(values: &[u8]) -> Result<Self> {
        if values.is_empty() || values.len() > MAX_ATTRIBUTES || values.contains(&0) {
            return Err(Error::config(
                "attribute values",
                format!("{values:?}"),
                "one to seven attributes, each with at least one value to be set to",
            ));
        }
        Ok(Self { values: values.to_vec() })
    }

    fn width(&self) -> usize {
        self.values.iter().map(|&v| usize::from(v)).sum()
    }

    fn head(&self, anchor: Anchor, direction: Direction) -> Head {
        let width = match direction {
            Direction::Forward => self.width(),
            Direction::Backward => self.values.len(),
        };
        Head { anchor, width }
    }

    /// Marks one row: forward every value of the attributes that aren't set, backward the attributes that are, to a value of these.
    fn mask(&self, direction: Direction, attributes: Attributes, row: &mut [bool]) {
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

    fn apply(&self, direction: Direction, mut attributes: Attributes, class: u32) -> Attributes {
        match direction {
            Direction::Forward => {
                let (k, value) = self.decode(class);
                attributes.set(k, value);
            }
            Direction::Backward => attributes.set(class as usize, 0),
        }
        attributes
    }

    fn reverse(&self, direction: Direction, before: Attributes, class: u32) -> u32 {
        match direction {
            Direction::Forward => self.decode(class).0 as u32,
            Direction::Backward => {
                let k = class as usize;
                let first: u32 = self.values[..k].iter().map(|&v| u32::from(v)).sum();
                first + u32::from(before.get(k)).saturating_sub(1)
            }
        }
    }

    fn decode(&self, class: u32) -> (usize, u8) {
        let mut rest = class;
        for (k, &values) in self.values.iter().enumerate() {
            if rest < u32::from(values) {
                return (k, rest as u8 + 1);
            }
            rest -= u32::from(values);
        }
        debug_assert!(false, "column {class} of {} attribute values", self.width());
        (0, 0)
    }
}

/// Sets an attribute of a node that isn't set yet; the way back (`RemoveNodeAttr`) unsets it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetNodeAttr(Values);

impl SetNodeAttr {
    /// Attribute `k` can be set to `1..=values[k]`.
    ///
    /// # Errors
    /// [`Error::Config`] for no attribute, more than seven, or one without values.
    pub fn new(values: &[u8]) -> Result<Self> {
        Values::new(values).map(Self)
    }
}

impl GraphActionType for SetNodeAttr {
    fn name(&self) -> &str {
        "set_node_attr"
    }
    fn head(&self, direction: Direction) -> Option<Head> {
        Some(self.0.head(Anchor::Node, direction))
    }
    fn mask(&self, direction: Direction, _: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        let width = self.0.head(Anchor::Node, direction).width;
        for (row, node) in mask.chunks_exact_mut(width).zip(graph.nodes()) {
            self.0.mask(direction, node.attributes, row);
        }
    }
    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        let mut node = graph.node(action.a).unwrap_or_default();
        node.attributes = self.0.apply(direction, node.attributes, action.class);
        graph.set_node(action.a, node)
    }
    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        let attributes = before.node(action.a).unwrap_or_default().attributes;
        Move { class: self.0.reverse(direction, attributes, action.class), ..action }
    }
}

/// Sets an attribute of an edge that isn't set yet; the way back (`RemoveEdgeAttr`) unsets it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetEdgeAttr(Values);

impl SetEdgeAttr {
    /// Attribute `k` can be set to `1..=values[k]`.
    ///
    /// # Errors
    /// [`Error::Config`] for no attribute, more than seven, or one without values.
    pub fn new(values: &[u8]) -> Result<Self> {
        Values::new(values).map(Self)
    }
}

impl GraphActionType for SetEdgeAttr {
    fn name(&self) -> &str {
        "set_edge_attr"
    }
    fn head(&self, direction: Direction) -> Option<Head> {
        Some(self.0.head(Anchor::Edge, direction))
    }
    fn mask(&self, direction: Direction, _: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        let width = self.0.head(Anchor::Edge, direction).width;
        for (row, (_, _, edge)) in mask.chunks_exact_mut(width).zip(graph.weighted_edges()) {
            self.0.mask(direction, edge.attributes, row);
        }
    }
    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        let mut edge = graph.edge(action.a, action.b).unwrap_or_default();
        edge.attributes = self.0.apply(direction, edge.attributes, action.class);
        graph.set_edge(action.a, action.b, edge)
    }
    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        let attributes = before.edge(action.a, action.b).unwrap_or_default().attributes;
        Move { class: self.0.reverse(direction, attributes, action.class), ..action }
    }
}
