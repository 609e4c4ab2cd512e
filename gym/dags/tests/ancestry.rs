//! Tests that `Ancestry` finds the same ancestors as a search through the graph.

use gfn::graph::{Edge, GraphKind, GraphState};
use gfn_dags::{Ancestry, NodeSet};
use proptest::prelude::*;

/// Returns the ancestors of a node and the node itself, by a search that follows edges upwards.
fn by_search(parents: &[NodeSet], node: usize) -> NodeSet {
    let mut out = NodeSet::EMPTY;
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if !out.contains(node) {
            out.insert(node);
            open.extend(parents[node].iter());
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Compares `Ancestry` with a search in random graphs of up to 200 nodes. For a graph with a cycle,
    /// `Ancestry` must return an error.
    #[test]
    fn ancestors_are_those_that_a_search_finds(n in 1usize..=200,
        edges in proptest::collection::vec((any::<u32>(), any::<u32>()), 0..300), rising: bool) {
        let mut graph = GraphState::with_nodes(GraphKind::Directed, n);
        let mut parents = vec![NodeSet::EMPTY; n];
        for (a, b) in edges.iter().map(|&(a, b)| (a % n as u32, b % n as u32)).filter(|(a, b)| a != b) {
            let (source, target) = if rising { (a.min(b), a.max(b)) } else { (a, b) };
            if !graph.has_edge(source, target) {
                graph.add_edge(source, target, Edge::default()).unwrap();
                parents[target as usize].insert(source as usize);
            }
        }
        let searched: Vec<NodeSet> = (0..n).map(|node| by_search(&parents, node)).collect();
        let cyclic = (0..n).any(|node| parents[node].iter().any(|parent| searched[parent].contains(node)));
        prop_assert!(!(rising && cyclic));
        match Ancestry::from_graph(&graph) {
            Err(_) => prop_assert!(cyclic),
            Ok(ancestry) => {
                prop_assert!(!cyclic);
                for (node, ancestors) in searched.iter().enumerate() {
                    let found = (0..n).filter(|&source| source == node || ancestry.has_path(source, node));
                    prop_assert_eq!(found.fold(NodeSet::EMPTY, NodeSet::with), *ancestors);
                    prop_assert_eq!(ancestry.parents(node), parents[node]);
                }
            }
        }
    }
}
