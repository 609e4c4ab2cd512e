//! A collection of environments for general checks.

use gfn::Result;
use gfn::env::{Reward, VectorEnv, VectorStates, log_rewards};
use gfn::graph::{
    ActionSet, AddEdge, BackwardRule, Edge, GraphEnv, GraphKind, GraphRules, GraphState, GraphStates, Node,
    Semantics,
};
use gfn_gym::colored_graphs::ColoredGraphs;
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig, Growth};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use gfn_gym::ring::Ring;
use gfn_gym::triangle::Triangle;
use tch::Tensor;

/// A check that every graph environment must pass.
pub(crate) trait Check {
    fn check(&self, name: &str, env: &GraphEnv);
}

const KINDS: [GraphKind; 2] = [GraphKind::Directed, GraphKind::Undirected];

pub(crate) fn each_graph_env(check: &impl Check) {
    for (n, kind) in [2, 3, 4].map(|n| (n, KINDS[0])).into_iter().chain([3, 4].map(|n| (n, KINDS[1]))) {
        check.check(&format!("ring of {n}, {kind:?}"), &Ring::new(n, kind).unwrap().into_env());
    }
    for kind in KINDS {
        check.check(&format!("triangle, {kind:?}"), &Triangle::new(kind, 2).unwrap().into_env());
    }
    for n in [1, 3, 4] {
        check.check(&format!("coloured graphs of {n}"), &ColoredGraphs::new(n).unwrap().into_env());
        let uncorrected = ColoredGraphs::with_empty(n).unwrap().into_env();
        check.check(&format!("coloured graphs of {n}, with the empty one"), &uncorrected);
    }
    for config in buildings() {
        let name = format!("{config:?}");
        check.check(&name, &GraphBuilding::new(config).unwrap().into_env());
    }
    for kind in KINDS {
        for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
            for rule in [BackwardRule::ByType, BackwardRule::Derived] {
                let env = Pruning::env(kind, semantics, rule);
                check.check(&format!("removing edges, {kind:?}, {semantics:?}, {rule:?}"), &env);
            }
        }
    }
}

/// Returns configurations in which new nodes have no edges (`Growth::Free`) or an edge to an old node
/// (`Growth::Attached`). Both kinds occur labelled and up to isomorphism, directed and undirected. Some have
/// classes and attributes, some start from an initial graph, and some have neither.
fn buildings() -> Vec<GraphBuildingConfig> {
    let mut out = Vec::new();
    for growth in [Growth::Free, Growth::Attached] {
        for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
            for kind in KINDS {
                let plain = GraphBuildingConfig { growth, semantics, ..GraphBuildingConfig::new(kind, 3) };
                out.push(GraphBuildingConfig {
                    max_nodes: 2,
                    node_classes: 2,
                    edge_classes: 2,
                    node_attributes: vec![2],
                    edge_attributes: vec![1],
                    ..plain.clone()
                });
                out.push(GraphBuildingConfig {
                    max_edges: Some(2),
                    edge_classes: 2,
                    initial: Some(scaffold(kind)),
                    node_classes: 2,
                    node_attributes: vec![1],
                    ..plain.clone()
                });
                out.push(GraphBuildingConfig { min_nodes: 2, ..plain });
            }
        }
    }
    out
}

/// Builds an initial graph (scaffold) of two different nodes and an edge. One node has an attribute that is
/// set.
fn scaffold(kind: GraphKind) -> GraphState {
    let mut marked = Node::from_class(1);
    marked.attributes.set(0, 1);
    GraphState::from_parts(kind, &[Node::default(), marked], &[(0, 1, Edge::from_class(1))]).unwrap()
}

/// Rules of an environment whose actions remove edges one by one from the complete graph on three nodes.
#[derive(Debug)]
pub(crate) struct Pruning;

impl Pruning {
    fn env(kind: GraphKind, semantics: Semantics, rule: BackwardRule) -> GraphEnv {
        let mut initial = GraphState::with_nodes(kind, 3);
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            initial.add_edge(a, b, Edge::default()).unwrap();
            if kind == GraphKind::Directed {
                initial.add_edge(b, a, Edge::default()).unwrap();
            }
        }
        let remove = gfn::graph::Reverse(AddEdge::new(1));
        let actions = ActionSet::new(semantics).with(remove);
        GraphEnv::new(Self, actions, initial).unwrap().with_backward(rule)
    }
}

impl GraphRules for Pruning {}

/// Returns log-rewards that differ between graphs, but are equal for isomorphic graphs.
pub(crate) fn log_r(states: &GraphStates) -> Vec<f64> {
    let of_graph = |graph: &GraphState| {
        let nodes = graph.nodes().enumerate().map(|(a, node)| {
            let attribute = f64::from(node.attributes.get(0));
            0.7 * f64::from(node.class) - 0.4 * attribute + 0.2 * (graph.degree(a as u32) as f64).powi(2)
        });
        let edges = graph.edges().map(|(a, b)| {
            let edge = graph.edge(a, b).unwrap_or_default();
            0.5 * f64::from(edge.class) + 0.3 * f64::from(edge.attributes.get(0)) - 0.9
        });
        nodes.sum::<f64>() + edges.sum::<f64>()
    };
    states.graphs().iter().map(of_graph).collect()
}

type Grid = VectorEnv;

/// Builds the environment of a grid and its reward.
pub(crate) fn grid(
    ndim: usize,
    height: usize,
) -> (Grid, impl Fn(&VectorStates, Option<&Tensor>) -> Result<Vec<f64>>) {
    let grid = HyperGrid::new(ndim, height).unwrap();
    let env = grid.env();
    let reward = OriginalReward::standard(&grid).unwrap();
    (env, move |states: &VectorStates, conditions: Option<&Tensor>| {
        log_rewards(&reward as &dyn Reward<VectorStates>, states, conditions)
    })
}
