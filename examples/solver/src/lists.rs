//! Neighbour lists and sets of nodes, which local search works on.

use gfn::Rng;
use gfn::graph::GraphState;

/// The largest total number of entries (128 MB) up to which the neighbour lists of a graph's complement are
/// stored. Longer lists are computed from the graph's neighbour lists whenever they are needed.
const MAX_ENTRIES: usize = 1 << 25;

/// The neighbours of each node, either in a graph or in its complement.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    graph: GraphState,
    is_complement: bool,
    /// `true` if `near` holds neighbours in the graph, although this type returns neighbours in the
    /// complement. The neighbours in the complement are then computed from `near`.
    is_implicit: bool,
    starts: Vec<usize>,
    near: Vec<u32>,
}

impl Lists {
    pub(crate) fn new(graph: &GraphState, is_complement: bool) -> Self {
        let n = graph.n_nodes();
        let is_implicit = is_complement && n * n.saturating_sub(1) - 2 * graph.n_edges() > MAX_ENTRIES;
        let mut starts = vec![0];
        let mut near = Vec::new();
        for a in 0..n {
            let edges = graph.adjacency().neighbours(a).map(|b| b as u32);
            if is_complement && !is_implicit {
                for b in complement_of(edges, a as u32, n as u32) {
                    near.push(b);
                }
            } else {
                near.extend(edges);
            }
            starts.push(near.len());
        }
        Self { graph: graph.clone(), is_complement, is_implicit, starts, near }
    }

    pub(crate) fn graph(&self) -> &GraphState {
        &self.graph
    }

    pub(crate) fn n_nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Calls `f` with each neighbour of a node, in ascending order.
    pub(crate) fn each(&self, a: u32, mut f: impl FnMut(u32)) {
        let listed = &self.near[self.starts[a as usize]..self.starts[a as usize + 1]];
        if self.is_implicit {
            complement_of(listed.iter().copied(), a, self.n_nodes() as u32).for_each(f);
        } else {
            for &b in listed {
                f(b);
            }
        }
    }

    /// Returns `true` if two nodes are different and adjacent, in the graph or in its complement.
    pub(crate) fn are_neighbours(&self, a: u32, b: u32) -> bool {
        a != b && self.graph.has_edge(a, b) != self.is_complement
    }
}

/// Returns all nodes below `n` except for `a` and the nodes in `listed`. `listed` must be in ascending order.
fn complement_of(listed: impl Iterator<Item = u32>, a: u32, n: u32) -> impl Iterator<Item = u32> {
    let mut listed = listed.peekable();
    (0..n).filter(move |&b| listed.next_if_eq(&b).is_none() && b != a)
}

/// A set of nodes. Insertion, removal and uniform sampling take constant time.
#[derive(Clone, Debug)]
pub(crate) struct NodeList {
    nodes: Vec<u32>,
    /// The index of each node in `nodes`, or [`ABSENT`](Self::ABSENT) for a node that isn't in the set.
    positions: Vec<u32>,
}

impl NodeList {
    const ABSENT: u32 = u32::MAX;

    pub(crate) fn new(n: usize) -> Self {
        Self { nodes: Vec::new(), positions: vec![Self::ABSENT; n] }
    }

    pub(crate) fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn has(&self, a: u32) -> bool {
        self.positions[a as usize] != Self::ABSENT
    }

    pub(crate) fn add(&mut self, a: u32) {
        if !self.has(a) {
            self.positions[a as usize] = self.nodes.len() as u32;
            self.nodes.push(a);
        }
    }

    pub(crate) fn remove(&mut self, a: u32) {
        if self.has(a) {
            let place = self.positions[a as usize] as usize;
            self.nodes.swap_remove(place);
            if let Some(&moved) = self.nodes.get(place) {
                self.positions[moved as usize] = place as u32;
            }
            self.positions[a as usize] = Self::ABSENT;
        }
    }

    /// Draws a node uniformly; `None` if the set is empty.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Option<u32> {
        (!self.nodes.is_empty()).then(|| self.nodes[rng.below(self.nodes.len())])
    }
}
