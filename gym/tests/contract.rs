//! Tests that every environment keeps the contract of environments, and has the expected numbers of states
//! and moves and the expected Z.

use crate::enumeration::enumerate;
use gfn::Rng;
use gfn::contract::{Budget, check_env, check_graph_env};
use gfn::env::StateGraph;
use gfn::graph::{Edge, GraphKind, GraphState, PerGraph, Semantics};
use gfn::policy::UniformPolicy;
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs};
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig, Growth};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward, RewardKind};
use gfn_gym::ring::{Ring, RingReward};
use gfn_gym::triangle::{Triangle, TriangleReward};

#[test]
fn rings() {
    for (n, kind) in [
        (3, GraphKind::Directed),
        (4, GraphKind::Directed),
        (4, GraphKind::Undirected),
        (5, GraphKind::Undirected),
    ] {
        let ring = Ring::new(n, kind).unwrap();
        let env = ring.env().clone();
        check_graph_env(&env, Budget::thorough().with_walks(30), &mut Rng::seeded(1)).unwrap();
        let reward = RingReward::default();
        let (states, _, log_z) = enumerate(&env, &reward).unwrap();
        assert_eq!(states as f64, ring.n_states());
        assert!((log_z - reward.log_z(&ring)).abs() < 1e-9, "{n} {kind:?}: {log_z}");
    }
}

#[test]
fn triangles() {
    for kind in [GraphKind::Directed, GraphKind::Undirected] {
        for classes in [1, 2, 5] {
            let triangles = Triangle::new(kind, classes).unwrap();
            let env = triangles.env().clone();
            check_graph_env(&env, Budget::thorough().with_walks(30), &mut Rng::seeded(2)).unwrap();
            let reward = TriangleReward::default();
            let (states, _, log_z) = enumerate(&env, &reward).unwrap();
            assert_eq!(states as f64, triangles.n_states());
            assert!((log_z - reward.log_z(&triangles)).abs() < 1e-9, "{classes} {kind:?}: {log_z}");
        }
    }
}

/// Compares the number of states, and the number of moves without exits, with numbers derived by hand, and by
/// an independent script that uses Burnside's lemma and breadth-first search. Isomorphic moves count
/// separately.
#[test]
fn colored_graphs() {
    for (max_nodes, states, moves) in [(1, 3, 2), (2, 6, 6), (3, 16, 24), (4, 66, 183), (5, 420, 2015)] {
        let colored = ColoredGraphs::new(max_nodes).unwrap();
        let env = colored.env().clone();
        check_graph_env(&env, Budget::thorough().with_walks(20), &mut Rng::seeded(3)).unwrap();
        for reward in [ColoredGraphReward::Count, ColoredGraphReward::Even, ColoredGraphReward::Clique] {
            let (n_states, n_moves, _) = enumerate(&env, &reward).unwrap();
            let graph = StateGraph::build(&env, 1000).unwrap();
            // Exits count as moves. Every state except the empty graph has an exit.
            let exits = graph.ends().len();
            assert_eq!((n_states, n_moves - exits, exits), (states, moves, states - 1), "N = {max_nodes}");
            assert_eq!(colored.n_states(), Some(n_states as u64));
        }
    }
    let with_exit = ColoredGraphs::with_empty(3).unwrap().into_env();
    check_graph_env(&with_exit, Budget::thorough().with_walks(20), &mut Rng::seeded(3)).unwrap();
}

/// Compares the probability with which a uniform policy ends in each of the 16 coloured graphs of at most 3
/// nodes with the probability derived by hand.
#[test]
fn a_uniform_policy_on_colored_graphs() {
    let env = ColoredGraphs::with_empty(3).unwrap().into_env();
    let graph = StateGraph::build(&env, 100).unwrap();
    let mut probs = graph.terminating_distribution(&env, &UniformPolicy, None).unwrap().probs;
    probs.sort_by(f64::total_cmp);
    // The probabilities are 1/3 for the empty graph, 1/9 for each single node, 1/15 for each two-coloured
    // triangle, and 2/45 or 1/45 for the other graphs.
    let mut expected = vec![1.0 / 3.0, 1.0 / 9.0, 1.0 / 9.0, 1.0 / 15.0, 1.0 / 15.0];
    expected.extend([2.0 / 45.0; 3]);
    expected.extend([1.0 / 45.0; 8]);
    expected.sort_by(f64::total_cmp);
    assert_eq!(probs.len(), 16);
    assert!(probs.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{probs:?}");
}

#[test]
fn hyper_grids() {
    for (ndim, height) in [(1, 2), (2, 8), (3, 5), (4, 4)] {
        let grid = HyperGrid::new(ndim, height).unwrap();
        let env = grid.env();
        check_env(&env, Budget::thorough().with_walks(50), &mut Rng::seeded(4)).unwrap();
        let reward = OriginalReward::standard(&grid).unwrap();
        let (states, _, log_z) = enumerate(&env, &reward).unwrap();
        assert_eq!(states as u64, grid.n_states());
        assert!((log_z - reward.log_z()).abs() < 1e-12);
    }
    // The other rewards of the grid are covered by tests that select rewards by name.
    let grid = HyperGrid::new(2, 16).unwrap();
    let env = grid.env();
    for kind in RewardKind::ALL {
        let reward = kind.standard(&grid).unwrap();
        let (_, _, log_z) = enumerate(&env, &reward).unwrap();
        assert!((log_z - reward.totals(256).unwrap().log_z).abs() < 1e-12, "{kind}");
    }
}

/// Compares the number of graphs with numbers from the literature. Graphs have at most 3 nodes (4 for
/// `Growth::Attached`), and are unlabelled or labelled.
#[test]
fn graph_building_reaches_every_graph_within_its_limits() {
    let free = |kind, semantics| GraphBuildingConfig { semantics, ..GraphBuildingConfig::new(kind, 3) };
    let attached =
        |kind| GraphBuildingConfig { growth: Growth::Attached, ..GraphBuildingConfig::new(kind, 4) };
    let directed = GraphKind::Directed;
    let undirected = GraphKind::Undirected;
    let cases = [
        (free(undirected, Semantics::Labelled), 1 + 1 + 2 + 8),
        (free(undirected, Semantics::UpToIsomorphism), 1 + 1 + 2 + 4),
        (free(directed, Semantics::Labelled), 1 + 1 + 4 + 64),
        (free(directed, Semantics::UpToIsomorphism), 1 + 1 + 3 + 16),
        (attached(undirected), 1 + 1 + 1 + 2 + 6),
        // The labelled graphs grow in this way: node 1 is attached to node 0. Then node 2 is attached to one
        // of these nodes, or joined to both.
        (
            GraphBuildingConfig { max_nodes: 3, semantics: Semantics::Labelled, ..attached(undirected) },
            1 + 1 + 1 + 3,
        ),
        // With at most two edges, all graphs except the triangle are reached.
        (
            GraphBuildingConfig { max_edges: Some(2), ..free(undirected, Semantics::UpToIsomorphism) },
            1 + 1 + 2 + 3,
        ),
        (
            GraphBuildingConfig { node_classes: 2, max_nodes: 2, ..free(undirected, Semantics::Labelled) },
            1 + 2 + 4 * 2,
        ),
        (
            GraphBuildingConfig { edge_classes: 2, max_nodes: 2, ..free(undirected, Semantics::Labelled) },
            1 + 1 + 3,
        ),
        (
            GraphBuildingConfig {
                node_attributes: vec![1, 2],
                edge_attributes: vec![2],
                max_nodes: 2,
                ..free(undirected, Semantics::Labelled)
            },
            // The two attributes of a node have 6 combinations of values. A pair of nodes has no edge, or an
            // edge with one of 3 values.
            1 + 6 + 36 * (1 + 3),
        ),
    ];
    let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64 - graph.n_nodes() as f64);
    for (config, states) in cases {
        let growth = GraphBuilding::new(config).unwrap();
        let env = growth.env().clone();
        check_graph_env(&env, Budget::thorough().with_walks(30), &mut Rng::seeded(5)).unwrap();
        assert_eq!(enumerate(&env, &reward).unwrap().0, states, "{:?}", growth.config());
    }
}

#[test]
fn graph_building_keeps_its_contract_from_any_start() {
    let reward = PerGraph(|graph: &GraphState| 0.5 * graph.n_edges() as f64);
    for kind in [GraphKind::Directed, GraphKind::Undirected] {
        let mut start = GraphState::with_nodes(kind, 3);
        start.add_edge(0, 1, Edge::default()).unwrap();
        for growth in [Growth::Free, Growth::Attached] {
            for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
                let max_edges = Some(if kind == GraphKind::Directed { 3 } else { 6 });
                let initial = Some(start.clone());
                let base = GraphBuildingConfig::new(kind, 4);
                let config = GraphBuildingConfig { growth, semantics, max_edges, initial, ..base.clone() };
                let env = GraphBuilding::new(config).unwrap().into_env();
                check_graph_env(&env, Budget::thorough().with_walks(20), &mut Rng::seeded(6)).unwrap();
                enumerate(&env, &reward).unwrap();
                let config = GraphBuildingConfig { max_nodes: 3, growth, semantics, node_classes: 2, ..base };
                let env = GraphBuilding::new(config).unwrap().into_env();
                check_graph_env(&env, Budget::thorough().with_walks(20), &mut Rng::seeded(7)).unwrap();
                enumerate(&env, &reward).unwrap();
            }
        }
    }
}
