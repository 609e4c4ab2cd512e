//! Tests of graphs of any kind that are built node by node and edge by edge.

use gfn::env::{Direction, DiscreteEnv, Env, Rows};
use gfn::graph::{Edge, GraphKind, GraphState, GraphStates, Node, Semantics};
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn::{Error, Rng};
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig, Growth};

fn base() -> GraphBuildingConfig {
    GraphBuildingConfig::new(GraphKind::Undirected, 4)
}

#[test]
fn senseless_settings_name_the_setting() {
    let two = GraphState::with_nodes(GraphKind::Undirected, 2);
    let joined = GraphState::from_parts(
        GraphKind::Undirected,
        &[Node::default(), Node::from_class(1)],
        &[(0, 1, Edge::default())],
    );
    let joined = Some(joined.unwrap());
    let cases = [
        (GraphBuildingConfig { max_nodes: 0, ..base() }, "max_nodes"),
        (GraphBuildingConfig { max_nodes: 1, initial: Some(two.clone()), ..base() }, "max_nodes"),
        (GraphBuildingConfig { max_edges: Some(0), initial: joined.clone(), ..base() }, "max_edges"),
        (GraphBuildingConfig { node_classes: 0, ..base() }, "node_classes"),
        (GraphBuildingConfig { edge_classes: 0, ..base() }, "edge_classes"),
        (GraphBuildingConfig { node_attributes: vec![0], ..base() }, "attribute values"),
        (GraphBuildingConfig { edge_attributes: vec![1; 8], ..base() }, "attribute values"),
        (GraphBuildingConfig { kind: GraphKind::Directed, initial: Some(two), ..base() }, "kind"),
        (GraphBuildingConfig { min_nodes: 5, ..base() }, "min_nodes"),
        (
            GraphBuildingConfig { min_nodes: 2, max_edges: Some(3), growth: Growth::Attached, ..base() },
            "min_nodes",
        ),
        (GraphBuildingConfig { initial: joined, ..base() }, "initial graph"),
    ];
    for (config, setting) in cases {
        let error = GraphBuilding::new(config).unwrap_err();
        let Error::Config { setting: got, .. } = error else { panic!("{error}") };
        assert!(got.contains(setting), "{got}, not {setting}");
    }
}

fn kinds_of_growth() -> Vec<GraphBuildingConfig> {
    let mut out = Vec::new();
    let mut start = GraphState::with_nodes(GraphKind::Undirected, 3);
    start.add_edge(0, 1, Edge::default()).unwrap();
    for growth in [Growth::Free, Growth::Attached] {
        for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
            for kind in [GraphKind::Directed, GraphKind::Undirected] {
                let plain = GraphBuildingConfig { growth, semantics, kind, ..base() };
                out.push(GraphBuildingConfig {
                    node_classes: 2,
                    edge_classes: 2,
                    node_attributes: vec![2],
                    edge_attributes: vec![1],
                    max_edges: Some(4),
                    ..plain.clone()
                });
                out.push(plain);
            }
            out.push(GraphBuildingConfig { growth, semantics, initial: Some(start.clone()), ..base() });
        }
    }
    out
}

/// Checks all backward moves of sampled states: each leads to a state in which the reverse forward move is
/// legal.
#[test]
fn forward_and_backward_agree() {
    for config in kinds_of_growth() {
        let growth = GraphBuilding::new(config).unwrap();
        let env = growth.env().clone();
        let walked = Sampler::new(&env, &UniformPolicy).forward(64, &mut Rng::seeded(3)).unwrap();
        let mut states = walked.states().clone();
        states.append(walked.terminal_states().clone());
        let initial = env.is_initial(&states);
        let masks = env.masks(Direction::Backward, &states);
        for (row, graph) in states.graphs().iter().enumerate() {
            assert_eq!(masks.n_legal(row) == 0, initial[row], "{:?}: {graph:?}", growth.config());
            for slot in masks.legal_slots(row) {
                let mut state = GraphStates::from(vec![graph.clone()]);
                let back = env.step(Direction::Backward, &mut state, &gfn::env::Slots(vec![slot])).unwrap();
                let forth = env.masks(Direction::Forward, &state);
                assert!(
                    forth.row(0)[back.reverse.0[0] as usize],
                    "{:?}: {graph:?} by {slot}",
                    growth.config()
                );
                assert!(env.rules().is_reachable(&state.graphs()[0]));
            }
        }
        // Random backward moves must lead from each finished graph to the initial graph.
        let mut rng = Rng::seeded(4);
        for graph in walked.terminal_states().graphs() {
            let mut state = GraphStates::from(vec![graph.clone()]);
            while !env.is_initial(&state)[0] {
                let masks = env.masks(Direction::Backward, &state);
                let legal: Vec<u32> = masks.legal_slots(0).collect();
                assert!(!legal.is_empty(), "{:?}: from {graph:?} to {state:?}", growth.config());
                let slot = legal[rng.below(legal.len())];
                env.step(Direction::Backward, &mut state, &gfn::env::Slots(vec![slot])).unwrap();
            }
        }
    }
}

#[test]
fn limits_hold() {
    for config in kinds_of_growth() {
        let limit = config.max_edges.unwrap_or(usize::MAX);
        let env = GraphBuilding::new(config).unwrap().into_env();
        let walked = Sampler::new(&env, &UniformPolicy).forward(128, &mut Rng::seeded(5)).unwrap();
        for graph in walked.terminal_states().graphs() {
            assert!(graph.n_nodes() <= 4 && graph.n_edges() <= limit);
            assert!(env.rules().is_reachable(graph));
        }
    }
}

#[test]
fn attached_graphs_are_connected_and_large_enough() {
    let env = GraphBuilding::new(GraphBuildingConfig { growth: Growth::Attached, min_nodes: 3, ..base() })
        .unwrap()
        .into_env();
    let walked = Sampler::new(&env, &UniformPolicy).forward(64, &mut Rng::seeded(6)).unwrap();
    for graph in walked.terminal_states().graphs() {
        assert!(graph.n_nodes() >= 3);
        assert_eq!(petgraph::algo::connected_components(graph.as_undirected().unwrap()), 1);
    }
}

/// Checks that labelled graphs grow in the order of their labels. Node 1 is attached to node 0 first, so
/// their edge can't be removed.
#[test]
fn labelled_growth_keeps_the_order_of_arrival() {
    let config = GraphBuildingConfig { growth: Growth::Attached, semantics: Semantics::Labelled, ..base() };
    let env = GraphBuilding::new(config).unwrap().into_env();
    let edges = [(0, 1, Edge::default()), (0, 2, Edge::default()), (1, 2, Edge::default())];
    let graph = GraphState::from_parts(GraphKind::Undirected, &[Node::default(); 3], &edges).unwrap();
    let masks = env.masks(Direction::Backward, &vec![graph].into());
    // Slots 0 to 2 remove the first node, slots 3 to 5 remove an attached node, and slots 6 to 8 remove the
    // edges (0, 1), (0, 2) and (1, 2).
    assert_eq!(masks.legal_slots(0).collect::<Vec<_>>(), [7, 8]);
}
