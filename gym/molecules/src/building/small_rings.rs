//! Which graphs have small rings only: those whose rings are sums of small ones.

use gfn::graph::GraphState;

/// `true` if the rings of at most `size` nodes generate all others (the largest ring of a minimum cycle basis has at most so many),
/// once the edge `without` is gone.
///
/// Closing a ring of at most `size` nodes keeps it so, and where it holds before and after an edge is removed, that edge
/// closed such a ring: it is what graphs that grow by small rings have in common, in whatever order they grow.
pub(super) fn small_rings_span(graph: &GraphState, size: usize, without: Option<(u32, u32)>) -> bool {
    let gone = without.map_or((usize::MAX, usize::MAX), |(a, b)| (a.min(b) as usize, a.max(b) as usize));
    let n_edges = graph.n_edges() - usize::from(without.is_some());
    let independent = (n_edges + 1).saturating_sub(graph.n_nodes());
    if independent == 0 || graph.n_nodes() == 0 {
        return true;
    }
    let mut basis = Basis::new(graph.n_edges());
    let mut search = SmallRingSearch { graph, size, gone, path: Vec::new(), basis: &mut basis };
    for start in 0..graph.n_nodes() {
        search.path.push(start);
        search.grow(start);
        search.path.pop();
        if search.basis.rows.len() == independent {
            return true;
        }
    }
    false
}

/// Independent rings as sets of edges, reduced: each has a leading edge that no later one has.
pub(crate) struct Basis {
    rows: Vec<(usize, Vec<u64>)>,
    words: usize,
}

impl Basis {
    /// No ring yet, of a graph with so many edges.
    pub(crate) fn new(n_edges: usize) -> Self {
        Self { rows: Vec::new(), words: n_edges.div_ceil(64) }
    }

    /// Adds a ring unless it is a sum of those that are there; whether it was added.
    pub(crate) fn add(&mut self, edges: impl Iterator<Item = usize>) -> bool {
        let mut row = vec![0; self.words];
        for edge in edges {
            row[edge / 64] ^= 1u64 << (edge % 64);
        }
        for (leading, other) in &self.rows {
            if row[leading / 64] >> (leading % 64) & 1 == 1 {
                row.iter_mut().zip(other).for_each(|(word, other)| *word ^= other);
            }
        }
        let leading = row.iter().enumerate().find(|(_, word)| **word != 0);
        let Some((place, word)) = leading else { return false };
        self.rows.push((64 * place + word.trailing_zeros() as usize, row));
        true
    }
}

struct SmallRingSearch<'a> {
    graph: &'a GraphState,
    size: usize,
    gone: (usize, usize),
    path: Vec<usize>,
    basis: &'a mut Basis,
}

impl SmallRingSearch<'_> {
    /// Adds the small rings through the path whose smallest node is its first.
    fn grow(&mut self, last: usize) {
        let start = self.path[0];
        let graph = self.graph;
        for next in graph.adjacency().ones(last) {
            if (last.min(next), last.max(next)) == self.gone || next < start {
                continue;
            }
            if next == start && self.path.len() > 2 && self.path[1] < last {
                let ends = self.path.iter().zip(self.path.iter().cycle().skip(1));
                self.basis.add(ends.map(|(&a, &b)| graph.edge_rank(a as u32, b as u32)));
            }
            if self.path.len() < self.size && !self.path.contains(&next) {
                self.path.push(next);
                self.grow(next);
                self.path.pop();
            }
        }
    }
}
