//! An environment with a user-defined action type, which inserts a node into an edge.

use gfn::env::Direction;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, Anchor, Edge, GraphActionType, GraphEnv, GraphKind, GraphRules, GraphSchema,
    GraphState, GraphView, Head, Move, Node, Semantics,
};
use gfn::{Error, Result};

/// An action type that replaces an edge `a - b` by `a - c - b` with a new node `c`. The backward action
/// replaces a node with two neighbours by an edge between them, if they aren't joined already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subdivide {
    pub(crate) max_nodes: usize,
}

/// Returns the two neighbours of a node that may have been inserted into an edge: a node with exactly two
/// neighbours, which aren't joined. Returns `None` for any other node.
fn ends(graph: &GraphState, c: u32) -> Option<(u32, u32)> {
    let mut near = graph.adjacency().neighbours(c as usize).map(|a| a as u32);
    match (near.next(), near.next(), near.next()) {
        (Some(a), Some(b), None) if !graph.has_edge(a, b) => Some((a, b)),
        _ => None,
    }
}

impl GraphActionType for Subdivide {
    fn name(&self) -> &str {
        "subdivide"
    }

    fn head(&self, direction: Direction) -> Option<Head> {
        let anchor = if direction == Direction::Forward { Anchor::Edge } else { Anchor::Node };
        Some(Head { anchor, width: 1 })
    }

    fn mask(&self, direction: Direction, _: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        match direction {
            Direction::Forward => mask.fill(graph.n_nodes() < self.max_nodes),
            Direction::Backward => {
                for (c, legal) in mask.iter_mut().enumerate() {
                    *legal = ends(&graph, c as u32).is_some();
                }
            }
        }
    }

    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        match direction {
            Direction::Forward => {
                let edge = graph.remove_edge(action.a, action.b)?;
                let new = graph.add_node(Node::default());
                graph.add_edge(action.a, new, edge)?;
                graph.add_edge(action.b, new, edge)
            }
            Direction::Backward => {
                let (a, b) = ends(graph, action.a).ok_or_else(|| Error::Contract {
                    check: "only a node between two that aren't joined can be contracted",
                    detail: format!("node {} of {graph:?}", action.a),
                })?;
                graph.add_edge(a, b, Edge::default())?;
                graph.remove_node(action.a).map(|_| ())
            }
        }
    }

    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        match direction {
            Direction::Forward => Move { a: before.n_nodes() as u32, ..Move::default() },
            Direction::Backward => {
                let (a, b) = ends(before, action.a).unwrap_or_default();
                Move { a, b, class: 0 }
            }
        }
    }

    fn removed_nodes(&self, direction: Direction, _: &GraphState, action: Move) -> Vec<u32> {
        if direction == Direction::Backward { vec![action.a] } else { Vec::new() }
    }
}

/// The rules of connected graphs that grow by leaves, edges, and nodes inserted into edges.
pub(crate) struct Subdivisions;

impl Subdivisions {
    pub(crate) fn env(max_nodes: usize) -> Result<GraphEnv> {
        let actions = ActionSet::new(Semantics::UpToIsomorphism)
            .with(AddNode::first(1))
            .with(AddNode::attached(1, 1, max_nodes))
            .with(AddEdge::new(1))
            .with(Subdivide { max_nodes });
        let schema = GraphSchema::plain(GraphKind::Undirected, max_nodes);
        GraphEnv::new(Self, actions, GraphState::new(GraphKind::Undirected))
            .and_then(|env| env.with_schema(schema))
    }
}

impl GraphRules for Subdivisions {
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_nodes() > 0
    }
    // The library derives backward masks from this function: an edge whose removal disconnects the graph
    // can't be removed.
    fn is_reachable(&self, graph: &GraphState) -> bool {
        graph.as_undirected().is_some_and(|g| petgraph::algo::connected_components(g) <= 1)
    }
}

/// Returns log R, which is the number of nodes with two neighbours, so that cycles have the highest reward.
pub(crate) fn log_reward(graph: &GraphState) -> f64 {
    (0..graph.n_nodes() as u32).filter(|&a| graph.degree(a) == 2).count() as f64
}
