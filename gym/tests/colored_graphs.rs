//! Tests of graphs of two colours: rewards are compared with numbers computed by hand, and maximal cliques
//! with a search over all subsets.

use cliques::{bits, maximal_cliques, neighbours};
use gfn::env::{Direction, DiscreteEnv, Env, Reward};
use gfn::graph::{Edge, GraphEnv, GraphKind, GraphState, Node};
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs};
use proptest::prelude::*;

// This module is private in gfn-gym, so the test program compiles its file itself.
#[path = "../src/colored_graphs/cliques.rs"]
mod cliques;

#[test]
fn the_empty_graph_exits_only_if_allowed() {
    let env = ColoredGraphs::new(3).unwrap().into_env();
    let start = env.initial(&[0]);
    let exits = |env: &GraphEnv| env.masks(Direction::Forward, &start).legal_slots(0).count();
    assert_eq!(exits(&env), 2);
    assert_eq!(exits(&ColoredGraphs::with_empty(3).unwrap().into_env()), 3);
}

#[test]
fn sizes_out_of_range_are_refused() {
    for n in [0, 65] {
        let message = ColoredGraphs::new(n).unwrap_err().to_string();
        assert!(message.contains(&format!("max_nodes is {n}")), "{message}");
    }
    assert_eq!(ColoredGraphs::new(10).unwrap().n_states(), None);
}

#[test]
fn the_correction_can_be_switched_off() {
    let env = ColoredGraphs::new(3).unwrap().into_env();
    assert!(env.symmetry().log_symmetry(&env.initial(&[0])).unwrap().is_some());
    let env = env.with_symmetry_correction(false);
    assert!(env.symmetry().log_symmetry(&env.initial(&[0])).unwrap().is_none());
}

fn graph(colours: &[u16], edges: &[(u32, u32)]) -> GraphState {
    let nodes: Vec<Node> = colours.iter().map(|&c| Node::from_class(c)).collect();
    let edges: Vec<_> = edges.iter().map(|&(a, b)| (a, b, Edge::default())).collect();
    GraphState::from_parts(GraphKind::Undirected, &nodes, &edges).unwrap()
}

fn close(reward: ColoredGraphReward, graph: &GraphState, expected: f64) {
    let got = reward.evaluate(graph).unwrap();
    assert!((got - expected).abs() < 1e-12, "{reward:?}: {got}, not {expected}");
}

const COMPLETE: [(u32, u32); 6] = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];

#[test]
fn count_by_hand() {
    close(ColoredGraphReward::Count, &graph(&[0, 0, 1, 1], &[(0, 1), (1, 2), (2, 3)]), 0.0);
    close(ColoredGraphReward::Count, &graph(&[0], &[]), -5.0);
    close(ColoredGraphReward::Count, &graph(&[1], &[]), -6.25);
    close(ColoredGraphReward::Count, &graph(&[0; 7], &[]), -10.0);
}

#[test]
fn even_by_hand() {
    close(ColoredGraphReward::Even, &graph(&[0, 1, 0], &[(0, 1), (1, 2)]), -50.0 / 7.0);
    // In a square with alternating colours each node has two neighbours of the other colour, an even number.
    let square = [(0, 1), (1, 2), (2, 3), (0, 3)];
    close(ColoredGraphReward::Even, &graph(&[0, 1, 0, 1], &square), 0.0);
    // In a square with one colour no node has a neighbour of another colour, and 0 doesn't count as even.
    close(ColoredGraphReward::Even, &graph(&[0; 4], &square), -40.0 / 7.0);
    // In a path with the colours 0-1-0-0 the nodes have 1, 2, 1 and 0 neighbours of the other colour, so one
    // number is even.
    close(ColoredGraphReward::Even, &graph(&[0, 1, 0, 0], &[(0, 1), (1, 2), (2, 3)]), -30.0 / 7.0);
}

#[test]
fn cliques_by_hand() {
    // The reward is log R = m - s + n - 1. Here m counts maximal cliques of 4 nodes, s is the sum of the
    // sizes of all maximal cliques, and n is the number of nodes. With 4 nodes a complete graph gives 1 - 4 +
    // 4 - 1. If two of the nodes have each colour, this clique adds only 1/2 to m.
    close(ColoredGraphReward::Clique, &graph(&[0, 0, 0, 0], &COMPLETE), 0.0);
    close(ColoredGraphReward::Clique, &graph(&[0, 1, 1, 1], &COMPLETE), 0.0);
    close(ColoredGraphReward::Clique, &graph(&[0, 0, 1, 1], &COMPLETE), -0.5);
    // Without a clique of 4 nodes m is 0. With s the sum of the sizes of the maximal cliques and n the number
    // of nodes, log R = m - s + n - 1 is 0 - 1 + 1 - 1 for a single node, 0 - 2 + 2 - 1 for an edge, and 0 -
    // 4 + 3 - 1 for a path of three nodes.
    close(ColoredGraphReward::Clique, &graph(&[0], &[]), -1.0);
    close(ColoredGraphReward::Clique, &graph(&[0, 1], &[(0, 1)]), -1.0);
    close(ColoredGraphReward::Clique, &graph(&[0, 1, 0], &[(0, 1), (1, 2)]), -2.0);
    // In a clique of 5 nodes the subsets of 4 nodes aren't maximal cliques (m = 0). The only maximal clique
    // has s = 5 nodes, and the graph has n = 5, so log R = m - s + n - 1 is 0 - 5 + 5 - 1.
    let five: Vec<(u32, u32)> = (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b))).collect();
    close(ColoredGraphReward::Clique, &graph(&[0; 5], &five), -1.0);
    // This graph of n = 6 nodes is m = 2 maximal cliques of 4 nodes that share an edge. The sizes of the
    // cliques add up to s = 8, so log R = m - s + n - 1 is 2 - 8 + 6 - 1.
    let mut two = COMPLETE.to_vec();
    two.extend([(2, 4), (2, 5), (3, 4), (3, 5), (4, 5)]);
    close(ColoredGraphReward::Clique, &graph(&[0; 6], &two), -1.0);
    // A star of 12 leaves has n = 13 nodes, no clique of 4 nodes (m = 0), and 12 maximal cliques of two nodes
    // (s = 24). The formula m - s + n - 1 gives -12, so log R is the smallest permitted value, -10.
    let star: Vec<(u32, u32)> = (1..13).map(|b| (0, b)).collect();
    close(ColoredGraphReward::Clique, &graph(&[0; 13], &star), -10.0);
}

#[test]
fn graphs_out_of_range_are_refused() {
    let large = GraphState::with_nodes(GraphKind::Undirected, 65);
    let directed = GraphState::with_nodes(GraphKind::Directed, 3);
    for reward in [ColoredGraphReward::Count, ColoredGraphReward::Even, ColoredGraphReward::Clique] {
        assert!(reward.evaluate(&GraphState::with_nodes(GraphKind::Undirected, 64)).is_ok());
        assert!(reward.evaluate(&large).unwrap_err().to_string().contains("65 nodes"));
        assert!(reward.log_reward(&vec![directed.clone()].into(), None).is_err());
    }
}

/// Lists maximal cliques by trying every subset.
fn brute_force(graph: &GraphState) -> Vec<u64> {
    let n = graph.n_nodes();
    let is_clique = |set: u64| bits(set).all(|a| set & !(neighbours(graph, a) | 1 << a) == 0);
    let grows = |set: u64| (0..n).any(|a| set >> a & 1 == 0 && is_clique(set | 1 << a));
    (1..1u64 << n).filter(|&set| is_clique(set) && !grows(set)).collect()
}

fn any_graph() -> impl Strategy<Value = (GraphState, Vec<u32>)> {
    (1usize..8).prop_flat_map(|n| {
        let order = Just((0..n as u32).collect::<Vec<_>>()).prop_shuffle();
        let colours = proptest::collection::vec(0u16..2, n);
        let edges = proptest::collection::vec(any::<bool>(), n * (n - 1) / 2);
        (colours, edges, order).prop_map(move |(colours, present, order)| {
            let pairs = (0..n as u32).flat_map(|a| (a + 1..n as u32).map(move |b| (a, b)));
            let edges: Vec<_> = pairs.zip(present).filter(|(_, p)| *p).map(|(pair, _)| pair).collect();
            (graph(&colours, &edges), order)
        })
    })
}

proptest! {
    #[test]
    fn relabelling_changes_no_reward((graph, order) in any_graph()) {
        let relabelled = graph.induced(&order);
        for reward in [ColoredGraphReward::Count, ColoredGraphReward::Even, ColoredGraphReward::Clique] {
            prop_assert_eq!(reward.evaluate(&graph).unwrap(), reward.evaluate(&relabelled).unwrap());
        }
    }

    #[test]
    fn maximal_cliques_equal_brute_force((graph, _) in any_graph()) {
        let mut found = Vec::new();
        maximal_cliques(&graph, 0, (1 << graph.n_nodes()) - 1, 0, &mut |clique| found.push(clique));
        found.sort_unstable();
        prop_assert_eq!(found, brute_force(&graph));
    }
}
