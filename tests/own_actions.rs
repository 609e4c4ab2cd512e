//! Tests of errors for authors of action types: an action removes a part of the initial graph, or adds
//! interchangeable nodes at once. A further test is about rules for some of several action types.

use std::collections::HashSet;

use gfn::graph::canonical_key;
use gfn::prelude::*;
use gfn::train::TrainEnv;
use gfn::{Error, Result};

const KIND: GraphKind = GraphKind::Undirected;

fn triangle() -> GraphState {
    let edges = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| (a, b, Edge::default()));
    GraphState::from_parts(KIND, &[Node::default(); 3], &edges).unwrap()
}

fn env(actions: ActionSet, max_nodes: usize, initial: GraphState) -> GraphEnv {
    GraphEnv::new(Free, actions, initial)
        .and_then(|env| env.with_schema(GraphSchema::plain(KIND, max_nodes)))
        .unwrap()
}

fn set() -> ActionSet {
    ActionSet::new(Semantics::UpToIsomorphism)
}

#[track_caller]
fn check_refused<T: std::fmt::Debug>(result: Result<T>, words: &[&str]) {
    let error = result.unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, Error::Contract { .. }), "{message}");
    for words in words {
        assert!(message.contains(words), "{words}: {message}");
    }
}

/// An action type that replaces an edge by a new node with two edges.
#[derive(Clone, Copy, Debug)]
struct Subdivide;

fn neighbours(graph: &GraphState, a: u32) -> Vec<u32> {
    (0..graph.n_nodes() as u32).filter(|&b| graph.has_edge(a, b)).collect()
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
        if direction == Direction::Forward {
            return mask.fill(graph.n_nodes() < 5);
        }
        for (a, legal) in mask.iter_mut().enumerate() {
            let ends = neighbours(&graph, a as u32);
            *legal = ends.len() == 2 && !graph.has_edge(ends[0], ends[1]);
        }
    }
    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        if direction == Direction::Forward {
            graph.remove_edge(action.a, action.b)?;
            let new = graph.add_node(Node::default());
            graph.add_edge(action.a, new, Edge::default())?;
            return graph.add_edge(action.b, new, Edge::default());
        }
        let ends = neighbours(graph, action.a);
        graph.add_edge(ends[0], ends[1], Edge::default())?;
        graph.remove_node(action.a).map(|_| ())
    }
    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        if direction == Direction::Forward {
            return Move { a: before.n_nodes() as u32, ..Move::default() };
        }
        let ends = neighbours(before, action.a);
        Move { a: ends[0], b: ends[1], class: 0 }
    }
    fn removed_nodes(&self, direction: Direction, _: &GraphState, action: Move) -> Vec<u32> {
        if direction == Direction::Backward { vec![action.a] } else { Vec::new() }
    }
}

#[test]
fn taking_a_part_of_the_initial_graph_away_is_named() {
    let env = env(set().with(Subdivide).with(AddEdge::new(1)), 5, triangle());
    let words = [
        "is never added again",
        "forward slot",
        "which contains the initial graph",
        "start from a smaller graph",
    ];
    check_refused(check_graph_env(&env, Budget::thorough().with_walks(50), &mut Rng::seeded(0)), &words);
    check_refused(env.check_laws(), &words);
}

/// An action type that adds a triangle to the empty graph. In the backward direction it has a number of slots
/// (`columns`), each of which removes the triangle.
#[derive(Clone, Copy, Debug)]
struct AddTriangle {
    columns: usize,
}

impl GraphActionType for AddTriangle {
    fn name(&self) -> &str {
        "add_triangle"
    }
    fn head(&self, direction: Direction) -> Option<Head> {
        let width = if direction == Direction::Forward { 1 } else { self.columns };
        Some(Head { anchor: Anchor::Graph, width })
    }
    fn mask(&self, direction: Direction, _: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        let (nodes, edges) = if direction == Direction::Forward { (0, 0) } else { (3, 3) };
        mask.fill(graph.n_nodes() == nodes && graph.n_edges() == edges);
    }
    fn apply(&self, direction: Direction, graph: &mut GraphState, _: Move) -> Result<()> {
        *graph = if direction == Direction::Forward { triangle() } else { GraphState::new(KIND) };
        Ok(())
    }
    fn reverse(&self, _: Direction, _: &GraphState, _: Move) -> Move {
        Move::default()
    }
    fn removed_nodes(&self, direction: Direction, _: &GraphState, _: Move) -> Vec<u32> {
        if direction == Direction::Backward { vec![0, 1, 2] } else { Vec::new() }
    }
}

#[test]
fn alike_nodes_that_come_at_once_need_a_way_back_for_each_symmetry() {
    let words = [
        "6 times as many moves back",
        "as many columns in its backward block",
        "adds several interchangeable nodes at once",
    ];
    let wrong = env(set().with(AddTriangle { columns: 1 }), 4, GraphState::new(KIND));
    check_refused(check_graph_env(&wrong, Budget::thorough().with_walks(5), &mut Rng::seeded(0)), &words);
    check_refused(wrong.check_laws(), &words);
    let right = env(set().with(AddTriangle { columns: 6 }), 4, GraphState::new(KIND));
    right.check_laws().unwrap();
    check_graph_env(&right, Budget::thorough().with_walks(5), &mut Rng::seeded(0)).unwrap();
    assert_eq!(StateGraph::build(&right, 10).unwrap().len(), 2);
}

/// Rules that distinguish action types by their names: no node has more than three neighbours, and a graph
/// has at most one edge more than nodes. The field is the name of `AddEdge` in the rules.
struct Sparse(&'static str);

impl GraphRules for Sparse {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        if moves.type_name() == "add_attached_node" {
            moves.retain(|add| graph.degree(add.a) < 3);
        } else if moves.type_name() == self.0 {
            moves.retain(|add| graph.degree(add.a) < 3 && graph.degree(add.b) < 3);
            if graph.n_edges() > graph.n_nodes() {
                moves.forbid_all();
            }
        }
    }
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_nodes() > 0
    }
}

/// Returns the number of connected graphs of `n` nodes of two classes that the rules [`Sparse`] allow, up to
/// isomorphism, by a search through all labelled graphs.
fn count_sparse(n: u32) -> usize {
    let pairs: Vec<(u32, u32)> = (0..n).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    let mut keys = HashSet::new();
    for chosen in 0..1u32 << pairs.len() {
        let edges = pairs.iter().enumerate().filter(|(k, _)| chosen >> k & 1 == 1);
        let edges: Vec<_> = edges.map(|(_, &(a, b))| (a, b, Edge::default())).collect();
        let nodes = vec![Node::default(); n as usize];
        let mut graph = GraphState::from_parts(GraphKind::Undirected, &nodes, &edges).unwrap();
        let mut reached = vec![0];
        for k in 0.. {
            let Some(&node) = reached.get(k) else { break };
            reached.extend(
                neighbours(&graph, node).into_iter().filter(|a| !reached.contains(a)).collect::<Vec<_>>(),
            );
        }
        let is_sparse = edges.len() <= n as usize + 1 && (0..n).all(|a| graph.degree(a) <= 3);
        if reached.len() < n as usize || !is_sparse {
            continue;
        }
        for classes in 0..1u32 << n {
            for a in 0..n {
                graph.set_node(a, Node::from_class((classes >> a & 1) as u16)).unwrap();
            }
            keys.insert(canonical_key(&graph));
        }
    }
    keys.len()
}

#[test]
fn rules_may_distinguish_action_types_by_name() {
    let env = |name| {
        let actions = ActionSet::new(Semantics::UpToIsomorphism)
            .with(AddNode::first(2))
            .with(AddNode::attached(2, 1, 5))
            .with(AddEdge::new(1).keeping_connected());
        let env = GraphEnv::new(Sparse(name), actions, GraphState::undirected(0)).unwrap();
        env.with_backward(BackwardRule::ByType)
    };
    check_graph_env(&env("add_edge"), Budget::thorough().with_walks(10), &mut Rng::seeded(0)).unwrap();
    let states = StateGraph::build(&env("add_edge"), 10_000).unwrap().len();
    assert_eq!(states, 1 + (1..=5).map(count_sparse).sum::<usize>());
    // A name that no action type has forbids nothing.
    assert!(StateGraph::build(&env("add_edges"), 10_000).unwrap().len() > states);
}
