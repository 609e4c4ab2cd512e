//! What local search reads and counts: neighbours one after another, and sets of nodes that are drawn from.

use gfn::Rng;
use gfn::graph::GraphState;

/// The most entries of the lists of a complement (128 MB): those of larger ones are walked through.
const MOST_ENTRIES: usize = 1 << 25;

/// The nodes that each node has an edge to, or, of the complement, has none to.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    graph: GraphState,
    of_complement: bool,
    /// `true` if the lists are the graph's own, and stand for the rest of the nodes.
    walked: bool,
    starts: Vec<usize>,
    near: Vec<u32>,
}

impl Lists {
    pub(crate) fn new(graph: &GraphState, of_complement: bool) -> Self {
        let n = graph.n_nodes();
        let walked = of_complement && n * n.saturating_sub(1) - 2 * graph.n_edges() > MOST_ENTRIES;
        let (mut starts, mut near) = (vec![0], Vec::new());
        for a in 0..n {
            let edges = graph.adjacency().ones(a).map(|b| b as u32);
            if of_complement && !walked {
                without(edges, a as u32, n as u32).for_each(|b| near.push(b));
            } else {
                near.extend(edges);
            }
            starts.push(near.len());
        }
        Self { graph: graph.clone(), of_complement, walked, starts, near }
    }

    pub(crate) fn graph(&self) -> &GraphState {
        &self.graph
    }

    pub(crate) fn n_nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Does something with each neighbour of a node, in ascending order.
    pub(crate) fn each(&self, a: u32, mut f: impl FnMut(u32)) {
        let listed = &self.near[self.starts[a as usize]..self.starts[a as usize + 1]];
        if self.walked {
            without(listed.iter().copied(), a, self.n_nodes() as u32).for_each(f);
        } else {
            listed.iter().for_each(|&b| f(b));
        }
    }

    /// `true` for two different nodes that are neighbours.
    pub(crate) fn joined(&self, a: u32, b: u32) -> bool {
        a != b && self.graph.has_edge(a, b) != self.of_complement
    }
}

/// The nodes below `n` but for `a` and the listed ones, which ascend.
fn without(listed: impl Iterator<Item = u32>, a: u32, n: u32) -> impl Iterator<Item = u32> {
    let mut listed = listed.peekable();
    (0..n).filter(move |&b| listed.next_if_eq(&b).is_none() && b != a)
}

/// A set of nodes that any can be added to, taken from and drawn from at once.
#[derive(Clone, Debug)]
pub(crate) struct NodeList {
    nodes: Vec<u32>,
    /// The place of each node, and [`ABSENT`](Self::ABSENT) of those that aren't there.
    at: Vec<u32>,
}

impl NodeList {
    const ABSENT: u32 = u32::MAX;

    pub(crate) fn new(n: usize) -> Self {
        Self { nodes: Vec::new(), at: vec![Self::ABSENT; n] }
    }

    pub(crate) fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn has(&self, a: u32) -> bool {
        self.at[a as usize] != Self::ABSENT
    }

    pub(crate) fn add(&mut self, a: u32) {
        if !self.has(a) {
            self.at[a as usize] = self.nodes.len() as u32;
            self.nodes.push(a);
        }
    }

    pub(crate) fn remove(&mut self, a: u32) {
        if self.has(a) {
            let place = self.at[a as usize] as usize;
            self.nodes.swap_remove(place);
            self.nodes.get(place).iter().for_each(|&&moved| self.at[moved as usize] = place as u32);
            self.at[a as usize] = Self::ABSENT;
        }
    }

    /// One of them, uniformly; `None` of an empty set.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Option<u32> {
        (!self.nodes.is_empty()).then(|| self.nodes[rng.below(self.nodes.len())])
    }
}
