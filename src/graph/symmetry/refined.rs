//! An upper bound of |Aut| by colour refinement, in polynomial time.

use super::key::raw_edges;
use super::reduce::mix;
use super::search::SortKey;
use crate::graph::{Edge, GraphState, Node};

/// The bit that distinguishes incoming edges from outgoing ones.
const INCOMING: u64 = 1 << 63;
/// The bit that distinguishes a fixed node from the other nodes of its signature.
const FIXED: u64 = 1 << 62;
/// The bit that distinguishes edges of the initial graph from added ones: symmetries of the scaffold keep its
/// edges.
const INITIAL: u64 = 1 << 61;
/// The largest number of refinements of a graph. After it, nodes with equal signatures count as
/// interchangeable.
const MAX_REFINEMENTS: usize = 256;

/// An edge by its two nodes, and its colour.
struct ColouredEdge {
    a: usize,
    b: usize,
    colour: u64,
}

/// The colour refinement of a graph (the one-dimensional Weisfeiler-Leman test).
struct Refinement {
    edges: Vec<ColouredEdge>,
    /// [`INCOMING`] if the graph is directed, otherwise 0.
    incoming: u64,
    /// The buffer of new signatures.
    around: Vec<u64>,
    /// The buffer of sorted signatures.
    sorted: Vec<u64>,
}

impl Refinement {
    /// Mixes the signatures of neighbours into each node's signature, until that distinguishes no more nodes.
    /// Returns the number of different signatures.
    fn refine(&mut self, signatures: &mut [u64]) -> usize {
        let mut n_different = self.count(signatures);
        loop {
            self.around.copy_from_slice(signatures);
            for &ColouredEdge { a, b, colour } in &self.edges {
                self.around[a] = self.around[a].wrapping_add(mix(signatures[b] ^ colour));
                self.around[b] = self.around[b].wrapping_add(mix(signatures[a] ^ colour ^ self.incoming));
            }
            signatures.iter_mut().zip(&self.around).for_each(|(signature, &around)| *signature = mix(around));
            let n_refined = self.count(signatures);
            if n_refined <= n_different {
                return n_refined;
            }
            n_different = n_refined;
        }
    }

    /// Sorts the signatures, and returns the number of different ones.
    fn count(&mut self, signatures: &[u64]) -> usize {
        self.sorted.clear();
        self.sorted.extend_from_slice(signatures);
        self.sorted.sort_unstable();
        self.sorted.chunk_by(|first, second| first == second).count()
    }

    /// Returns the size and the signature of each set of nodes with equal signatures, in ascending order.
    fn list_cells(&mut self, signatures: &[u64]) -> Vec<(usize, u64)> {
        self.count(signatures);
        let mut cells: Vec<_> =
            self.sorted.chunk_by(|first, second| first == second).map(|c| (c.len(), c[0])).collect();
        cells.sort_unstable();
        cells
    }
}

/// Returns ln of an upper bound of |Aut|, for a graph that was built from an initial graph.
///
/// `classes` has a class for each label, and nodes of different classes aren't interchangeable. Later labels
/// have the last class.
///
/// In each step, one node of the smallest set of nodes with equal signatures is fixed, and signatures are
/// refined. The number of nodes of the set that result in the same signatures of the whole graph is a factor
/// of the bound. The product of the factors is |Aut| if these nodes are interchangeable (orbit-stabilizer
/// theorem), as in all graphs of at most 7 nodes. Otherwise it is too large. It doesn't depend on labels,
/// except through nodes whose fixing results in the same signatures though they aren't interchangeable.
pub(super) fn log_refined(graph: &GraphState, initial: &GraphState, classes: &[u32]) -> f64 {
    let mut colours = Vec::new();
    if graph.has_edge_weights() {
        colours.extend(raw_edges(graph).iter().map(|edge| edge.weight));
        colours.sort_unstable();
        colours.dedup();
    }
    let edge = |edge: &petgraph::graph::Edge<Edge, u32>| {
        let (a, b) = (edge.source().index(), edge.target().index());
        let is_initial = a.max(b) < initial.n_nodes() && initial.adjacency().get(a, b);
        let colour = mix(colours.partition_point(|other| *other < edge.weight) as u64);
        ColouredEdge { a, b, colour: if is_initial { colour ^ INITIAL } else { colour } }
    };
    let start = |(a, node): (usize, Node)| {
        let weight = SortKey::new(node, 0, false).weight();
        let class = classes.get(a).or(classes.last()).map_or(0, |&class| class.into());
        mix(mix(mix(weight as u64) ^ (weight >> 64) as u64) ^ class)
    };
    let mut signatures: Vec<u64> = graph.nodes().enumerate().map(start).collect();
    let n = signatures.len();
    let mut refinement = Refinement {
        edges: raw_edges(graph).iter().map(edge).collect(),
        incoming: if graph.is_directed() { INCOMING } else { 0 },
        around: vec![0; n],
        sorted: Vec::with_capacity(n),
    };
    let mut n_different = refinement.refine(&mut signatures);
    let mut n_refinements = 1;
    let mut log = 0.0;
    while n_different < n {
        let cells = refinement.list_cells(&signatures);
        let Some(&(size, signature)) = cells.iter().find(|(size, _)| *size > 1) else { break };
        n_refinements += size;
        if n_refinements > MAX_REFINEMENTS {
            return log + cells.iter().flat_map(|&(size, _)| 2..=size).map(|k| (k as f64).ln()).sum::<f64>();
        }
        // The refinement of least hash continues, whatever the labels are.
        let mut best: Option<(u64, Vec<u64>, usize)> = None;
        let mut n_equal = 0;
        for a in (0..n).filter(|&a| signatures[a] == signature) {
            let mut refined = signatures.clone();
            refined[a] = mix(signature ^ FIXED);
            let n_refined = refinement.refine(&mut refined);
            let hash = refined.iter().fold(0, |sum: u64, &signature| sum.wrapping_add(mix(signature)));
            match &best {
                Some((least, ..)) if hash > *least => {}
                Some((least, ..)) if hash == *least => n_equal += 1,
                _ => {
                    best = Some((hash, refined, n_refined));
                    n_equal = 1;
                }
            }
        }
        let Some((_, refined, n_refined)) = best else { break };
        signatures = refined;
        n_different = n_refined;
        log += f64::from(n_equal).ln();
    }
    log
}
