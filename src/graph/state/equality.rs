//! The equality and the hashing of states. Two states are equal if they are the same labelled graph of the
//! same instance.
//!
//! Each node and each edge has a digest (hash) of 64 bits, and a state stores the sums of the digests. An
//! edit updates a sum in constant time, so hashing a state doesn't need to read its nodes and edges.

use std::hash::{Hash, Hasher};

use super::{GraphState, Weight};

/// Scrambles the bits of a number. A change of one bit of `number` changes about half of the bits of the
/// result.
pub(in crate::graph) fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 32).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Returns the digest of a node or an edge. The number `place` identifies the node or the edge in its graph.
/// If the class and the attributes are 0, the digest depends only on `place`.
pub(super) fn digest(place: u64, weight: Weight) -> u64 {
    if weight.is_plain() {
        return mix(place);
    }
    let [a, b, c, d, e, f, g] = *weight.attributes.values();
    mix(place ^ mix(mix(u64::from_le_bytes([1, a, b, c, d, e, f, g])) ^ u64::from(weight.class)))
}

/// Returns the digest of the node with this label.
pub(super) fn digest_of_node(label: u32, node: Weight) -> u64 {
    digest(u64::from(label), node)
}

impl Hash for GraphState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.instance);
        state.write_u64(self.digest);
        state.write_u64(self.topology.digest);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    use std::sync::Arc;

    use super::*;
    use crate::Rng;
    use crate::graph::{Attributes, Edge, GraphKind, Node};

    fn hash(graph: &GraphState) -> u64 {
        BuildHasherDefault::<DefaultHasher>::default().hash_one(graph)
    }

    /// Checks that an edited graph equals the graph that is built from the same nodes and edges, and that
    /// both have the same hash.
    #[test]
    fn edited_graphs_hash_like_graphs_built_anew() {
        let mut rng = Rng::seeded(0);
        for kind in [GraphKind::Directed, GraphKind::Undirected] {
            let mut graph = GraphState::new(kind);
            let mut n_same = 0;
            let mut n_changed = 0;
            for round in 0..4_000 {
                let n = graph.n_nodes() as u32;
                let text = graph.to_string();
                let hash_before = hash(&graph);
                // A clone shares the graph's edges in every second round. Editing the graph must not change
                // the clone.
                let before = (round % 2 == 0).then(|| graph.clone());
                // Graphs are small in the first 3,000 rounds. Later graphs grow beyond 64 nodes, the number
                // of bits of a word.
                let max_nodes = if round < 3_000 { 6 } else { 70 };
                let any = |rng: &mut Rng| rng.below(n.max(1) as usize) as u32;
                let a = any(&mut rng);
                let b = any(&mut rng);
                let attributes = Attributes::new(&[0, rng.below(2) as u8]).unwrap();
                let class = rng.below(2) as u16;
                // An edit that fails must not change the graph, so its error is ignored.
                let _ = match rng.below(if n < max_nodes { 10 } else { 9 }) {
                    // Nodes are rarely removed in later rounds, so that graphs grow large.
                    0 if max_nodes == 6 || rng.below(4) == 0 => graph.remove_node(a).map(drop),
                    1 | 2 => graph.set_node(a, Node { class, attributes }),
                    3 | 4 => graph.set_edge(a, b, Edge { class, attributes }),
                    5 => graph.remove_edge(a, b).map(drop),
                    6..9 => graph.add_edge(a, b, Edge { class, attributes }),
                    _ => {
                        graph.add_node(Node { class, attributes });
                        Ok(())
                    }
                };
                let nodes: Vec<_> = graph.nodes().collect();
                let edges: Vec<_> = graph.edges().map(|(a, b)| (a, b, graph.edge(a, b).unwrap())).collect();
                let built = GraphState::from_parts(kind, &nodes, &edges).unwrap();
                assert_eq!(graph, built);
                assert_eq!(hash(&graph), hash(&built), "{graph}");
                // The text of a graph names only the first 64 edges, so texts are compared only for graphs of
                // at most 64 edges.
                if graph.n_edges() <= 64 {
                    let is_same = graph.to_string() == text;
                    assert!(before.is_none_or(|before| (graph == before) == is_same), "{graph} and {text}");
                    assert_eq!(hash(&graph) == hash_before, is_same, "{graph} and {text}");
                    *(if is_same { &mut n_same } else { &mut n_changed }) += 1;
                }
                assert_ne!(graph, graph.clone().with_instance(1));
            }
            assert!(
                n_same > 100 && n_changed > 1_000,
                "{n_same} edits that changed nothing, {n_changed} others"
            );
            assert!(graph.n_nodes() > 64, "{} nodes", graph.n_nodes());
        }
    }

    #[test]
    fn copies_share_their_edges_until_one_changes_them() {
        let mut graph = GraphState::with_nodes(GraphKind::Undirected, 3);
        graph.add_edge(0, 1, Edge::default()).unwrap();
        let mut copy = graph.clone();
        copy.set_node(2, Node::from_class(1)).unwrap();
        assert!(copy.add_edge(0, 1, Edge::default()).is_err() && copy.remove_edge(1, 2).is_err());
        assert!(Arc::ptr_eq(&graph.topology, &copy.topology));
        copy.remove_edge(0, 1).unwrap();
        assert!(!Arc::ptr_eq(&graph.topology, &copy.topology));
        assert!(graph.has_edge(0, 1) && !copy.has_edge(0, 1));
    }
}
