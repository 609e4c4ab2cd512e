//! Colours: classes of nodes for which message passing computes equal values, as in Weisfeiler-Leman
//! refinement.

use std::ops::Range;

use super::Plan;
use crate::graph::{Edge, GraphArrays, Neighbours};
use crate::nn::graph::features::{closed_walks, degrees, sizes_of_nodes};
use crate::parallel;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A key of a node. Nodes with equal keys get equal values, and so belong to the same class (colour). The key
/// holds the node's features, or its colour before a round and the colours of its neighbours.
type Key = SmallVec<[i64; 24]>;

/// The separator between the parts of a [`Key`]. No colour or class has this value.
const END: i64 = -1;

/// The smallest number of nodes per thread. With fewer nodes, starting a thread costs more than it saves.
const MIN_NODES_PER_THREAD: usize = 2_048;

/// The colour of each key that occurs.
type ColourNumbers = FxHashMap<Key, i64>;

/// A partition of the nodes into colours. Nodes of one colour have equal values.
#[derive(Default)]
pub(super) struct Colours {
    /// The colour of each node, which is the number of its class of nodes with equal values.
    pub(super) colour_of_node: Vec<i64>,
    /// The first node of each colour.
    pub(super) representatives: Vec<usize>,
}

impl Colours {
    /// Creates a partition in which nodes have the same colour if and only if their keys are equal. Colours
    /// are numbered in the order of their first nodes, also if the work is split over threads. The list that
    /// `key` receives is memory that it may use.
    #[track_caller]
    fn from_keys(n: usize, key: impl Fn(usize, &mut Vec<(i64, i64)>) -> Key + Sync + Send) -> Self {
        let part = |nodes: Range<usize>| {
            let mut numbers = ColourNumbers::default();
            let mut received = Vec::new();
            let mut colours = Self { colour_of_node: Vec::with_capacity(nodes.len()), ..Self::default() };
            for node in nodes {
                let colour = colours.number(&mut numbers, key(node, &mut received), node);
                colours.colour_of_node.push(colour);
            }
            (colours, numbers)
        };
        // The colours of the later part are renumbered by the keys of their first nodes.
        let merge = |(mut colours, mut numbers): (Self, ColourNumbers), (later, _): (Self, ColourNumbers)| {
            let mut received = Vec::new();
            let mut renumbered = Vec::with_capacity(later.representatives.len());
            for &node in &later.representatives {
                renumbered.push(colours.number(&mut numbers, key(node, &mut received), node));
            }
            colours.colour_of_node.extend(later.colour_of_node.iter().map(|&k| renumbered[k as usize]));
            (colours, numbers)
        };
        parallel::merge_parts(n, MIN_NODES_PER_THREAD, part, merge).0
    }

    /// Returns the colour of this key. A new key gets the next colour, with `node` as its first node.
    fn number(&mut self, numbers: &mut ColourNumbers, key: Key, node: usize) -> i64 {
        let next = self.representatives.len() as i64;
        let colour = *numbers.entry(key).or_insert(next);
        if colour == next {
            self.representatives.push(node);
        }
        colour
    }

    /// Creates the partition before the first round of message passing: nodes with equal features have the
    /// same colour.
    pub(super) fn from_features(arrays: &GraphArrays, plan: &Plan) -> Self {
        let sizes = if plan.counts.degrees { sizes_of_nodes(arrays) } else { Vec::new() };
        let lengths = plan.counts.closed_walks;
        let walks = if lengths > 0 { closed_walks(arrays, lengths) } else { Vec::new() };
        Self::from_keys(arrays.nodes.len(), |index, _| {
            let node = &arrays.nodes[index];
            let mut key = Key::new();
            key.push(plan.labels.class(arrays.labels[index]) as i64);
            key.push(i64::from(node.class));
            key.extend(node.attributes.values().iter().map(|&value| i64::from(value)));
            if let Some(&n) = sizes.get(index) {
                key.push(END);
                key.extend(degrees(arrays, index).chain([n]).map(|number| number as i64));
            }
            let walks = walks.iter().skip(index * lengths).take(lengths);
            key.extend(walks.map(|number| number.to_bits() as i64));
            key
        })
    }

    /// Creates a partition in which each of `n` nodes has a different colour.
    pub(super) fn all_distinct(n: usize) -> Self {
        Self { colour_of_node: (0..n as i64).collect(), representatives: (0..n).collect() }
    }

    /// Returns `true` if all nodes have different colours.
    pub(super) fn are_distinct(&self) -> bool {
        self.colour_of_node.len() == self.representatives.len()
    }

    /// Returns the colour of each node, `[N]`; `None` if all colours are different.
    pub(super) fn index(&self) -> Option<Vec<i64>> {
        (!self.are_distinct()).then(|| self.colour_of_node.clone())
    }

    /// Refines the colours in one step, by the colour of each node and the colours of its neighbours. `edges`
    /// holds a number per message that encodes the features of the message's edge, or is empty if messages
    /// don't depend on these features. Nodes whose messages have different numbers get different colours.
    pub(super) fn refined(&self, neighbours: &Neighbours, edges: &[i64]) -> Self {
        let edge = |message: u32| edges.get(message as usize).copied().unwrap_or_default();
        Self::from_keys(self.colour_of_node.len(), |node, received| {
            let mut key = Key::new();
            key.push(self.colour_of_node[node]);
            for entries in [Some(neighbours.incoming(node)), neighbours.outgoing(node)].into_iter().flatten()
            {
                let message =
                    |&(from, message): &(u32, u32)| (self.colour_of_node[from as usize], edge(message));
                received.clear();
                received.extend(entries.iter().map(message));
                received.sort_unstable();
                key.push(END);
                key.extend(received.iter().flat_map(|&(colour, edge)| [colour, edge]));
            }
            key
        })
    }
}

/// Returns a number per message. Messages along edges with equal features have equal numbers.
pub(super) fn edge_keys(arrays: &GraphArrays) -> Vec<i64> {
    let messages_per_edge = arrays.messages_per_edge();
    let mut numbers: FxHashMap<Edge, i64> = FxHashMap::default();
    let mut keys = Vec::with_capacity(messages_per_edge * arrays.edges.len());
    for &edge in &arrays.weights {
        let next = numbers.len() as i64;
        let number = *numbers.entry(edge).or_insert(next);
        keys.resize(keys.len() + messages_per_edge, number);
    }
    keys
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::Rng;

    /// Compares colours with a serial count, for few and for many different keys. A split is seen by the
    /// number of keys that are computed: the key of each colour in a later part is computed twice.
    #[test]
    fn colours_do_not_depend_on_the_number_of_threads() {
        let n = 5 * MIN_NODES_PER_THREAD + 3;
        for n_keys in [7, n] {
            let rng = &mut Rng::seeded(0);
            let keys: Vec<i64> = (0..n).map(|_| rng.below(n_keys) as i64).collect();
            let mut colours = BTreeMap::new();
            let mut representatives = Vec::new();
            for (node, key) in keys.iter().enumerate() {
                colours.entry(key).or_insert_with(|| {
                    representatives.push(node);
                    representatives.len() as i64 - 1
                });
            }
            let expected: Vec<i64> = keys.iter().map(|key| colours[key]).collect();
            for threads in [1, 2, 4] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut n_split = 0;
                // Half of the first 32 calls are split if there are several threads.
                for _ in 0..32 {
                    let n_computed = AtomicUsize::new(0);
                    let got = pool.install(|| {
                        Colours::from_keys(n, |node, _| {
                            n_computed.fetch_add(1, Ordering::Relaxed);
                            Key::from_slice(&[keys[node]])
                        })
                    });
                    assert_eq!(got.colour_of_node, expected, "{threads} threads, {n_keys} keys");
                    assert_eq!(got.representatives, representatives);
                    n_split += usize::from(n_computed.into_inner() > n);
                }
                assert_eq!(n_split > 0, threads > 1, "{n_split} of 32 calls on {threads} threads");
            }
        }
    }
}
