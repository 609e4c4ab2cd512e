//! Tests that compare searches of reduced graphs with searches of whole graphs, and tests of the remaining
//! graphs.

use super::*;
use crate::Rng;
use crate::graph::symmetry::canonizer::FixedNodes;
use crate::graph::symmetry::search::Budget;
use crate::graph::{CanonicalKey, Canonizer, GraphKind};

const KINDS: [GraphKind; 2] = [GraphKind::Undirected, GraphKind::Directed];

/// Returns the canonical order of a graph and its |Aut|, found with or without a reduction.
fn search(
    canonizer: &mut Canonizer,
    graph: &GraphState,
    fixed: usize,
    is_reduced: bool,
) -> (Vec<u32>, GroupOrder) {
    let mut budget = Budget::UNLIMITED;
    canonizer.sort_nodes(graph, FixedNodes::InPlace(fixed));
    let cells = canonizer.number_cells(fixed);
    let (order, count) = if is_reduced {
        canonizer.search_reduced(graph, cells, fixed, &mut budget)
    } else {
        canonizer.search_whole(graph, fixed, &mut budget)
    };
    (order.to_vec(), count)
}

fn shuffle(graph: &GraphState, fixed: usize, rng: &mut Rng) -> GraphState {
    let mut order: Vec<u32> = (0..graph.n_nodes() as u32).collect();
    for k in (fixed + 1..order.len()).rev() {
        order.swap(k, fixed + rng.below(k + 1 - fixed));
    }
    graph.induced(&order)
}

/// Adds an edge between two nodes, in one direction or in both, unless there is an edge already.
fn join(graph: &mut GraphState, a: u32, b: u32, rng: &mut Rng) {
    let both = graph.is_directed() && rng.below(2) == 0;
    let edge = Edge::from_class(rng.below(4) as u16 / 2);
    let _ = graph.add_edge(a, b, edge);
    if both {
        let _ = graph.add_edge(b, a, if rng.below(2) == 0 { edge } else { Edge::default() });
    }
}

/// Adds a copy of node `a` with the same edges, and returns the label of the copy.
fn double(graph: &mut GraphState, a: u32) -> u32 {
    let twin = graph.add_node(graph.node(a).unwrap());
    for b in 0..twin {
        if let Some(edge) = graph.edge(a, b) {
            graph.add_edge(twin, b, edge).unwrap();
        }
        if let Some(edge) = graph.edge(b, a).filter(|_| graph.is_directed()) {
            graph.add_edge(b, twin, edge).unwrap();
        }
    }
    twin
}

/// Builds a random graph of up to 12 nodes. The graph grows by leaves, twins with or without an edge between
/// them, copies of the whole graph, isolated nodes and single edges.
fn random_graph(rng: &mut Rng) -> GraphState {
    let mut graph = GraphState::with_nodes(KINDS[rng.below(2)], 1);
    let most = 1 + rng.below(12);
    while graph.n_nodes() < most {
        let n = graph.n_nodes() as u32;
        let a = rng.below(n as usize) as u32;
        match rng.below(6) {
            0 => {
                let leaf = graph.add_node(Node::from_class(rng.below(4) as u16 / 3));
                join(&mut graph, a, leaf, rng);
            }
            1 => {
                double(&mut graph, a);
            }
            2 => {
                let twin = double(&mut graph, a);
                let edge = Edge::from_class(rng.below(3) as u16 / 2);
                graph.add_edge(a, twin, edge).unwrap();
                if graph.is_directed() {
                    graph.add_edge(twin, a, edge).unwrap();
                }
            }
            3 if 2 * n as usize <= most => {
                let copied = graph.clone();
                for a in 0..n {
                    graph.add_node(copied.node(a).unwrap());
                }
                for (a, b) in copied.edges() {
                    graph.add_edge(n + a, n + b, copied.edge(a, b).unwrap()).unwrap();
                }
            }
            4 => {
                graph.add_node(Node::default());
            }
            _ => join(&mut graph, a, rng.below(n as usize) as u32, rng),
        }
    }
    graph
}

#[test]
fn a_reduced_graph_has_the_symmetry_and_the_key_of_the_whole_one() {
    let mut rng = Rng::seeded(1);
    let mut plain = Canonizer::default();
    let mut canonizer = Canonizer::default();
    let mut n_same = 0;
    let mut n_symmetric = 0;
    for _ in 0..6000 {
        let graph = random_graph(&mut rng);
        let n = graph.n_nodes();
        let fixed = if rng.below(3) == 0 { rng.below(n + 2) } else { 0 };
        let (order, count) = search(&mut canonizer, &graph, fixed, true);
        let (whole_order, whole_count) = search(&mut plain, &graph, fixed, false);
        assert_eq!(count.exact, whole_count.exact, "{fixed} fixed: {graph:?}");
        assert_eq!(count.log(), whole_count.log());
        assert!(order.iter().zip(0..).take(fixed).all(|(&a, k)| a == k), "{fixed} fixed: {order:?}");
        n_symmetric += usize::from(count.exact != Some(1));

        let mut other = shuffle(&graph, fixed.min(n), &mut rng);
        if rng.below(2) == 0 {
            let a = rng.below(n) as u32;
            let b = rng.below(n) as u32;
            if other.remove_edge(a, b).is_err() {
                join(&mut other, a, b, &mut rng);
            }
        }
        let key = |graph: &GraphState, order: &[u32]| CanonicalKey::encode(graph, |k| order[k]);
        let same = key(&graph, &order) == key(&other, &search(&mut canonizer, &other, fixed, true).0);
        let expected = key(&graph, &whole_order) == key(&other, &search(&mut plain, &other, fixed, false).0);
        assert_eq!(same, expected, "{fixed} fixed: {graph:?} {other:?}");
        n_same += usize::from(same);
    }
    assert!(
        n_same > 2000 && n_same < 5000 && n_symmetric > 3000,
        "{n_same} pairs, {n_symmetric} symmetric graphs"
    );
}

#[test]
fn copies_of_searched_parts_are_interchangeable() {
    let mut rng = Rng::seeded(2);
    let mut canonizer = Canonizer::default();
    for (kind, n) in [(KINDS[0], 20), (KINDS[0], 40), (KINDS[1], 20), (KINDS[1], 40)] {
        let mut part = GraphState::with_nodes(kind, n);
        for _ in 0..2 * n {
            join(&mut part, rng.below(n) as u32, rng.below(n) as u32, &mut rng);
        }
        for _ in 0..4 {
            double(&mut part, rng.below(n) as u32);
        }
        // The hub has edges to all other nodes, so that the graph `part` is connected.
        let hub = part.add_node(Node::from_class(1));
        for a in 0..hub {
            part.add_edge(hub, a, Edge::default()).unwrap();
        }
        let (_, alone) = search(&mut canonizer, &part, 0, false);

        let n_part = part.n_nodes() as u32;
        let nodes: Vec<Node> = (0..3).flat_map(|_| part.nodes()).collect();
        let mut graph = GraphState::from_parts(kind, &nodes, &[]).unwrap();
        for (copy, (a, b)) in (0..3).flat_map(|copy| part.edges().map(move |edge| (copy * n_part, edge))) {
            graph.add_edge(copy + a, copy + b, part.edge(a, b).unwrap()).unwrap();
        }
        let expected = alone.times(alone).times(alone).times_factorial(3);
        let (order, count) = search(&mut canonizer, &graph, 0, true);
        assert!((count.log() - expected.log()).abs() < 1e-9, "{} {}", count.log(), expected.log());
        let again = shuffle(&graph, 0, &mut rng);
        let (order_again, _) = search(&mut canonizer, &again, 0, true);
        assert!(graph.induced(&order) == again.induced(&order_again));
    }
}

#[test]
fn trees_and_twins_leave_nothing_to_search() {
    let edges = |n: usize, joined: &dyn Fn(usize, usize) -> bool| {
        let mut graph = GraphState::with_nodes(GraphKind::Undirected, n);
        for (a, b) in (0..n).flat_map(|b| (0..b).map(move |a| (a, b))).filter(|&(a, b)| joined(a, b)) {
            graph.add_edge(a as u32, b as u32, Edge::default()).unwrap();
        }
        graph
    };
    let graphs = [
        ("isolated nodes", edges(30, &|_, _| false), GroupOrder::ONE.times_factorial(30)),
        ("a star", edges(30, &|a, _| a == 0), GroupOrder::ONE.times_factorial(29)),
        ("a complete graph", edges(30, &|_, _| true), GroupOrder::ONE.times_factorial(30)),
        (
            "parts of three",
            edges(30, &|a, b| a / 3 != b / 3),
            (0..10).fold(GroupOrder::ONE.times_factorial(10), |o, _| o.times_factorial(3)),
        ),
        (
            "single edges",
            edges(30, &|a, b| a / 2 == b / 2),
            (0..15).fold(GroupOrder::ONE.times_factorial(15), |o, _| o.times_factorial(2)),
        ),
        ("a path", edges(30, &|a, b| a + 1 == b), GroupOrder::ONE.times_factorial(2)),
        (
            "a binary tree",
            edges(15, &|a, b| a == (b - 1) / 2),
            (0..7).fold(GroupOrder::ONE, |o, _| o.times_factorial(2)),
        ),
    ];
    for (name, graph, expected) in graphs {
        let reduction = Reduction::new(&graph, vec![0; graph.n_nodes()], &[]);
        let cores = reduction.list_cores(&graph, &[]);
        assert!(cores.len() == 1 && cores[0].1.len() == 1, "{name}");
        assert_eq!(reduction.group_order.exact, expected.exact, "{name}");
        assert!((reduction.group_order.log() - expected.log()).abs() < 1e-9, "{name}");
    }
}

#[test]
fn colours_beyond_a_class_are_told_apart() {
    let weights = [0, 1, 0xffff, 0x1_0000, 0x1_0001, 0x100_0000].map(weight_from_number);
    assert!((0..6).all(|i| (0..i).all(|j| weights[i] != weights[j])));
}
