//! An estimate of |Aut| by colour refinement, which takes polynomial time.

use super::key::raw_edges;
use super::reduce::mix;
use super::search::SortKey;
use crate::graph::{Edge, GraphState, Node};

/// Makes an edge that arrives another thing than one that leaves, and a node that is held another than it was.
const ARRIVES: u64 = 1 << 63;
const HELD: u64 = 1 << 62;
/// Makes an edge of the initial graph another thing than one that was added: what moves initial nodes keeps those.
const INITIAL: u64 = 1 << 61;
/// Refinements of one graph, after which the nodes that still look alike count as interchangeable.
const MOST: usize = 256;

/// An edge with its colour, and its two ends.
struct Joined {
    a: usize,
    b: usize,
    colour: u64,
}

/// A graph whose nodes are told apart step by step: the first Weisfeiler-Leman test.
struct Refinement {
    edges: Vec<Joined>,
    arrives: u64,
    around: Vec<u64>,
    sorted: Vec<u64>,
}

impl Refinement {
    /// Lets each node's look say what its neighbours look like, until no more nodes are told apart; the number of different looks.
    fn refine(&mut self, looks: &mut [u64]) -> usize {
        let mut different = self.count(looks);
        loop {
            self.around.copy_from_slice(looks);
            for &Joined { a, b, colour } in &self.edges {
                self.around[a] = self.around[a].wrapping_add(mix(looks[b] ^ colour));
                self.around[b] = self.around[b].wrapping_add(mix(looks[a] ^ colour ^ self.arrives));
            }
            looks.iter_mut().zip(&self.around).for_each(|(look, &around)| *look = mix(around));
            let now = self.count(looks);
            if now <= different {
                return now;
            }
            different = now;
        }
    }

    fn count(&mut self, looks: &[u64]) -> usize {
        self.sorted.clear();
        self.sorted.extend_from_slice(looks);
        self.sorted.sort_unstable();
        self.sorted.chunk_by(|one, other| one == other).count()
    }

    /// The sizes and looks of the sets of nodes that look alike, by size.
    fn cells(&mut self, looks: &[u64]) -> Vec<(usize, u64)> {
        self.count(looks);
        let mut cells: Vec<_> = self.sorted.chunk_by(|one, other| one == other).map(|c| (c.len(), c[0])).collect();
        cells.sort_unstable();
        cells
    }
}

/// ln |Aut| as far as refinement sees of a graph that grew from an initial one; `classes` tells nodes apart by their labels, and those behind
/// are of the last one.
///
/// One node of the smallest set of nodes that look alike is held, and the rest is refined; the number of nodes of the set after
/// which all looks the same is a factor. |Aut| is that product if nodes are alike wherever that tells nothing else (orbits and stabilizers),
/// as in all graphs of at most 7 nodes. Otherwise it is too large. Labels don't matter, up to nodes that look alike even when they are held.
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
        Joined { a, b, colour: if is_initial { colour ^ INITIAL } else { colour } }
    };
    let start = |(a, node): (usize, Node)| {
        let weight = SortKey::new(node, 0, false).weight();
        let class = classes.get(a).or(classes.last()).map_or(0, |&class| class.into());
        mix(mix(mix(weight as u64) ^ (weight >> 64) as u64) ^ class)
    };
    let mut looks: Vec<u64> = graph.nodes().enumerate().map(start).collect();
    let n = looks.len();
    let mut refinement = Refinement {
        edges: raw_edges(graph).iter().map(edge).collect(),
        arrives: if graph.is_directed() { ARRIVES } else { 0 },
        around: vec![0; n],
        sorted: Vec::with_capacity(n),
    };
    let (mut different, mut made, mut log) = (refinement.refine(&mut looks), 1, 0.0);
    while different < n {
        let cells = refinement.cells(&looks);
        let Some(&(size, look)) = cells.iter().find(|(size, _)| *size > 1) else { break };
        made += size;
        if made > MOST {
            return log + cells.iter().flat_map(|&(size, _)| 2..=size).map(|k| (k as f64).ln()).sum::<f64>();
        }
        let mut best: Option<(u64, Vec<u64>, usize)> = None;
        let mut alike = 0;
        for a in (0..n).filter(|&a| looks[a] == look) {
            let mut held = looks.clone();
            held[a] = mix(look ^ HELD);
            let different = refinement.refine(&mut held);
            let sign = held.iter().fold(0, |sum: u64, &look| sum.wrapping_add(mix(look)));
            match &best {
                Some((least, ..)) if sign > *least => {}
                Some((least, ..)) if sign == *least => alike += 1,
                _ => (best, alike) = (Some((sign, held, different)), 1),
            }
        }
        let Some((_, held, now)) = best else { break };
        (looks, different) = (held, now);
        log += f64::from(alike).ln();
    }
    log
}
