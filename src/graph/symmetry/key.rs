//! The key of a graph: an exact encoding in a few 64-bit words, which is used to group, count and look up
//! states.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::graph::{GraphState, MAX_ATTRIBUTES, Weight};

/// An exact encoding of a labelled graph and its instance. Two keys are equal if and only if the graphs and
/// their instances are equal.
///
/// A key can't collide, because it isn't a hash. The keys of graphs in canonical order
/// ([`canonical_key`](crate::graph::canonical_key)) are equal if and only if the graphs are isomorphic: they
/// have the same kind (directed or undirected), and a relabelling keeps classes, attributes and edges. The
/// order of keys has no meaning, but it is the same on every machine, so that isomorphism classes can be
/// listed reproducibly.
///
/// The encoding consists of a header word (number of nodes, kind, bits per class and attribute), the instance
/// if it isn't 0, the classes and attributes of nodes, the adjacency (`n (n - 1) / 2` bits, or twice as many
/// in directed graphs), and the classes and attributes of edges. Classes and attributes are left out if all
/// of them are 0. The key of an undirected graph of up to 23 nodes needs no heap allocation, if it has at
/// most four node classes, no edge classes, no attributes and instance 0.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct CanonicalKey(SmallVec<[u64; 6]>);

impl CanonicalKey {
    /// Returns the encoding as 64-bit words.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// Encodes `graph.induced(order)`, where `order` is a permutation of the nodes of `graph`, without
    /// building that graph.
    pub(in crate::graph) fn encode(graph: &GraphState, order: impl Fn(usize) -> u32) -> Self {
        let n = graph.n_nodes();
        let directed = graph.is_directed();
        let has_weights = graph.has_edge_weights();
        let nodes = BitWidths::new(graph.nodes());
        let edges = if has_weights {
            BitWidths::new(graph.stored_edges().map(|(_, _, weight)| weight))
        } else {
            BitWidths::default()
        };
        let mut out = BitWriter { words: SmallVec::new(), free: 0 };
        // The header has 32 bits for the number of nodes, 1 for the kind, 12 for the `BitWidths` of nodes, 12
        // for those of edges, and 1 that shows if the instance follows. The header determines the meaning of
        // all later words, so no two graphs have the same encoding.
        let header = n as u64 | u64::from(directed) << 32 | u64::from(graph.instance() > 0) << 57;
        out.push(header | nodes.pack() << 33 | edges.pack() << 45, 64);
        if graph.instance() > 0 {
            out.push(graph.instance().into(), 32);
        }
        if !nodes.is_zero() {
            for k in 0..n {
                nodes.write(graph.node(order(k)).unwrap_or_default(), &mut out);
            }
        }
        for i in 0..n {
            let a = order(i) as usize;
            let row = graph.adjacency().bits(a);
            let joined = |b: usize| {
                row.map_or_else(|| graph.adjacency().get(a, b), |row| row[b / 64] >> (b % 64) & 1 == 1)
            };
            let first = if directed { 0 } else { i + 1 };
            let mut bits = 0;
            let mut count = 0;
            for j in (first..n).filter(|&j| j != i) {
                bits = bits << 1 | u64::from(joined(order(j) as usize));
                count += 1;
                if count == 64 {
                    out.push(bits, 64);
                    bits = 0;
                    count = 0;
                }
            }
            out.push(bits, count);
        }
        if has_weights {
            for i in 0..n {
                let first = if directed { 0 } else { i + 1 };
                for j in first..n {
                    if let Some(weight) = graph.edge(order(i), order(j)) {
                        edges.write(weight, &mut out);
                    }
                }
            }
        }
        Self(out.words)
    }
}

/// Returns the key of the labelled graph. Equal states have equal keys, and different states have different
/// keys, even if they are isomorphic.
///
/// The encoding is the same as that of [`canonical_key`](crate::graph::canonical_key), but no search for the
/// canonical order is needed. Use this key in environments whose nodes are distinguishable.
///
/// ```
/// use gfn::graph::{canonical_key, labelled_key, Edge, GraphKind, GraphState, Node};
/// let nodes = [Node::default(); 3];
/// let end = GraphState::from_parts(GraphKind::Undirected, &nodes, &[(0, 1, Edge::default())])?;
/// let other_end = GraphState::from_parts(GraphKind::Undirected, &nodes, &[(1, 2, Edge::default())])?;
/// assert_ne!(labelled_key(&end), labelled_key(&other_end));
/// assert_eq!(canonical_key(&end), canonical_key(&other_end));
/// # Ok::<(), gfn::Error>(())
/// ```
#[must_use]
pub fn labelled_key(graph: &GraphState) -> CanonicalKey {
    CanonicalKey::encode(graph, |k| k as u32)
}

/// The numbers of bits that encode the class and the attributes of a graph's nodes, or of its edges.
#[derive(Default)]
struct BitWidths {
    /// The number of bits of a class, at most 16.
    class: u32,
    /// The number of attributes up to the last one that any node (or edge) sets, at most 7. Later attributes
    /// aren't encoded.
    n_attributes: usize,
    /// The number of bits of each attribute, at most 8.
    attribute: u32,
}

impl BitWidths {
    fn new(weights: impl Iterator<Item = Weight>) -> Self {
        let mut class = 0;
        let mut values = [0; MAX_ATTRIBUTES];
        for weight in weights {
            class |= weight.class;
            for (all, value) in values.iter_mut().zip(weight.attributes.values()) {
                *all |= value;
            }
        }
        let any = values.iter().fold(0, |all, value| all | value);
        Self {
            class: u16::BITS - class.leading_zeros(),
            n_attributes: values.iter().rposition(|&v| v != 0).map_or(0, |k| k + 1),
            attribute: u8::BITS - any.leading_zeros(),
        }
    }

    fn is_zero(&self) -> bool {
        self.class == 0 && self.n_attributes == 0
    }

    /// Packs the number of bits per class, the number of attributes and the number of bits per attribute into
    /// 12 bits.
    fn pack(&self) -> u64 {
        u64::from(self.class) | (self.n_attributes as u64) << 5 | u64::from(self.attribute) << 8
    }

    fn write(&self, weight: Weight, out: &mut BitWriter) {
        out.push(u64::from(weight.class), self.class);
        for &value in &weight.attributes.values()[..self.n_attributes] {
            out.push(u64::from(value), self.attribute);
        }
    }
}

/// A writer that appends numbers of up to 64 bits to a list of 64-bit words, without gaps between them.
struct BitWriter {
    words: SmallVec<[u64; 6]>,
    /// The number of unused low bits of the last word.
    free: u32,
}

impl BitWriter {
    /// Appends the lowest `width` bits of `value`; `width` is at most 64. The higher bits of `value` must be
    /// zero.
    fn push(&mut self, value: u64, width: u32) {
        debug_assert!(width == 64 || value >> width == 0, "{value} in {width} bits");
        if width <= self.free {
            self.free -= width;
            if let Some(last) = self.words.last_mut() {
                *last |= value.checked_shl(self.free).unwrap_or(0);
            }
            return;
        }
        let rest = width - self.free;
        if let (Some(last), true) = (self.words.last_mut(), self.free > 0) {
            *last |= value >> rest;
        }
        self.free = 64 - rest;
        self.words.push(value << self.free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Edge, GraphKind, Node};

    /// Returns the bits of all words, with the most significant bit of each word first.
    fn bits(words: &[u64]) -> Vec<u64> {
        let bits_of = |word: &u64| (0..64).rev().map(move |k| word >> k & 1).collect::<Vec<_>>();
        words.iter().flat_map(bits_of).collect()
    }

    #[test]
    fn numbers_are_written_one_after_the_other() {
        let numbers = [(5, 3), (0, 0), (u64::MAX, 64), (1, 1), (0, 7), (77, 60), (3, 2), (9, 64)];
        let mut writer = BitWriter { words: SmallVec::new(), free: 0 };
        let mut expected = Vec::new();
        for (value, width) in numbers {
            writer.push(value, width);
            expected.extend((0..width).rev().map(|k| value >> k & 1));
        }
        let found = bits(&writer.words);
        assert_eq!(found[..expected.len()], expected);
        assert!(found.len() - expected.len() < 64 && found[expected.len()..].iter().all(|&b| b == 0));
    }

    #[test]
    fn each_part_of_a_state_changes_its_key() {
        let nodes = [Node::from_class(1); 3];
        let edges = [(0, 1, Edge::default()), (1, 2, Edge::default())];
        let kind = GraphKind::Undirected;
        let plain = GraphState::from_parts(kind, &nodes, &edges).unwrap();
        let mut variants = vec![
            plain.clone(),
            GraphState::new(kind),
            GraphState::with_nodes(kind, 3),
            GraphState::from_parts(GraphKind::Directed, &nodes, &edges).unwrap(),
            GraphState::from_parts(kind, &nodes, &edges[..1]).unwrap(),
            GraphState::from_parts(kind, &nodes, &edges[1..]).unwrap(),
        ];
        for k in [0, 3, 6] {
            let mut node = nodes[0];
            node.attributes.set(k, 1);
            let mut edge = Edge::default();
            edge.attributes.set(k, 1);
            for a in 0..2 {
                let mut variant = plain.clone();
                variant.set_node(a, node).unwrap();
                variants.push(variant);
                let mut variant = plain.clone();
                variant.set_edge(a, a + 1, edge).unwrap();
                variants.push(variant);
            }
        }
        for class in [2, 3, u16::MAX] {
            let mut variant = plain.clone();
            variant.set_node(1, Node::from_class(class)).unwrap();
            variants.push(variant);
            let mut variant = plain.clone();
            variant.set_edge(0, 1, Edge::from_class(class)).unwrap();
            variants.push(variant);
        }
        for (i, one) in variants.iter().enumerate() {
            for (j, other) in variants.iter().enumerate() {
                assert_eq!(labelled_key(one) == labelled_key(other), i == j, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn adjacency_beyond_a_word_is_kept() {
        // The adjacency of a node in a graph of 100 nodes takes two words, in the graph and in the key.
        let graph = GraphState::with_nodes(GraphKind::Directed, 100);
        let mut keys = std::collections::HashSet::from([labelled_key(&graph)]);
        for (a, b) in [(0, 63), (0, 64), (0, 65), (99, 0), (64, 63), (63, 99), (98, 99)] {
            let mut graph = graph.clone();
            graph.add_edge(a, b, Edge::default()).unwrap();
            assert!(keys.insert(labelled_key(&graph)), "edge ({a}, {b})");
        }
    }
}
