//! The upper bound of |Aut| that colour refinement computes in polynomial time. The signature of a node is a
//! hash of the node and its surroundings. The colour of an edge is an integer computed from the edge's class
//! and attributes.

use super::search::SortKey;
use super::signatures::{list_colours, ranked_edges, refine_signatures};
use crate::graph::state::mix;
use crate::graph::{GraphState, Node};

/// The bit that is flipped in the signature (hash) of a fixed node, to distinguish the node from the other
/// nodes with the same signature.
const FIXED: u64 = 1 << 62;
/// The bit of an edge's colour (an integer computed from its class and attributes) that distinguishes edges
/// of the initial graph from added edges. The bit is needed because symmetries of the initial graph must
/// preserve its edges.
const INITIAL: u64 = 1 << 61;
/// The largest number of refinements of one graph. After these refinements, nodes with equal signatures count
/// as interchangeable.
const MAX_REFINEMENTS: usize = 256;

/// The colour refinement of a graph (the one-dimensional Weisfeiler-Leman test).
struct Refinement {
    /// The two nodes and the colour of each edge.
    edges: Vec<(usize, usize, u64)>,
    is_directed: bool,
    /// The buffer in which new signatures are computed.
    around: Vec<u64>,
    /// The buffer in which signatures are sorted.
    sorted: Vec<u64>,
}

impl Refinement {
    /// Mixes the signatures of neighbours into each node's signature, until no more nodes are distinguished.
    /// Returns the number of different signatures.
    fn refine(&mut self, signatures: &mut [u64]) -> usize {
        let mut n_different = self.count(signatures);
        loop {
            refine_signatures(self.edges.iter().copied(), self.is_directed, signatures, &mut self.around);
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

    /// Returns the size and the signature of each set of nodes with equal signatures, in ascending order of
    /// size.
    fn list_cells(&mut self, signatures: &[u64]) -> Vec<(usize, u64)> {
        self.count(signatures);
        let mut cells: Vec<_> =
            self.sorted.chunk_by(|first, second| first == second).map(|c| (c.len(), c[0])).collect();
        cells.sort_unstable();
        cells
    }
}

/// Returns the logarithm of an upper bound of |Aut| of a graph that was built from an initial graph.
///
/// `classes` holds a class for each label, and nodes of different classes aren't interchangeable. Labels
/// beyond the list have the last class.
///
/// Each step takes the smallest set of two or more nodes with equal signatures. Each node of the set is fixed
/// in turn, and signatures are refined. Nodes that lead to the same signatures of the whole graph count as
/// interchangeable. The number of such nodes is one factor of the bound, and the next step continues from one
/// of them. The product of the factors is |Aut| if these nodes really are interchangeable (orbit-stabilizer
/// theorem), as in all graphs of at most 7 nodes. Otherwise the product is too large, and may depend on
/// labels.
pub(super) fn log_refined(graph: &GraphState, initial: &GraphState, classes: &[u32]) -> f64 {
    let mut colours = Vec::new();
    list_colours(graph, &mut colours);
    let mark = |(a, b, rank): (usize, usize, usize)| {
        let mark = if initial.has_edge(a as u32, b as u32) { INITIAL } else { 0 };
        (a, b, mix(rank as u64) ^ mark)
    };
    let start = |(a, node): (usize, Node)| {
        let weight = SortKey::new(node, 0, false).weight();
        let class = classes.get(a).or(classes.last()).map_or(0, |&class| class.into());
        mix(mix(mix(weight as u64) ^ (weight >> 64) as u64) ^ class)
    };
    let mut signatures: Vec<u64> = graph.nodes().enumerate().map(start).collect();
    let n = signatures.len();
    let mut refinement = Refinement {
        edges: ranked_edges(graph, &colours).map(mark).collect(),
        is_directed: graph.is_directed(),
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
        // The next step continues from a node whose refined signatures have the smallest hash, so that the
        // choice doesn't depend on labels.
        let mut best: Option<(u64, Vec<u64>, usize)> = None;
        let mut n_equal = 0;
        for a in (0..n).filter(|&a| signatures[a] == signature) {
            let mut refined = signatures.clone();
            refined[a] = mix(signature ^ FIXED);
            let n_refined = refinement.refine(&mut refined);
            let hash = refined.iter().fold(0, |sum: u64, &signature| sum.wrapping_add(mix(signature)));
            let least = best.as_ref().map(|(least, ..)| *least);
            n_equal += u32::from(least == Some(hash));
            if least.is_none_or(|least| hash < least) {
                best = Some((hash, refined, n_refined));
                n_equal = 1;
            }
        }
        let Some((_, refined, n_refined)) = best else { break };
        signatures = refined;
        n_different = n_refined;
        log += f64::from(n_equal).ln();
    }
    log
}
