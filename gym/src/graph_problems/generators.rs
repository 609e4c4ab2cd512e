//! Generators of random input graphs.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use gfn::graph::{Edge, GraphKind, GraphState};
use gfn::{Error, Result, Rng};

/// Draws a graph of `n` nodes in which each pair has an edge with probability `p` (Erdos and Renyi; Gilbert
/// 1959).
///
/// ```
/// use gfn::Rng;
/// use gfn_gym::graph_problems::erdos_renyi;
/// assert_eq!(erdos_renyi(10, 1.0, &mut Rng::seeded(0))?.n_edges(), 45);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] unless `p` is between 0 and 1.
pub fn erdos_renyi(n: usize, p: f64, rng: &mut Rng) -> Result<GraphState> {
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::config("the probability of an edge", p, "a number from 0 to 1"));
    }
    let mut graph = GraphState::with_nodes(GraphKind::Undirected, n);
    for b in 0..n as u32 {
        for a in 0..b {
            if rng.uniform() < p {
                graph.add_edge(a, b, Edge::default())?;
            }
        }
    }
    Ok(graph)
}

/// Draws a graph of `n` nodes that grows from a star of `attached + 1` nodes (Barabasi and Albert 1999). Each
/// new node gets edges to `attached` existing nodes, drawn in proportion to their degrees. The graph has
/// `attached (n - attached)` edges.
///
/// ```
/// use gfn::Rng;
/// use gfn_gym::graph_problems::barabasi_albert;
/// assert_eq!(barabasi_albert(20, 3, &mut Rng::seeded(0))?.n_edges(), 3 * 17);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] unless `attached` is at least 1 and less than `n`.
pub fn barabasi_albert(n: usize, attached: usize, rng: &mut Rng) -> Result<GraphState> {
    if attached == 0 || attached >= n {
        return Err(Error::config(
            "the number of edges of a new node",
            attached,
            "at least 1, and fewer than the number of nodes",
        ));
    }
    let mut graph = GraphState::with_nodes(GraphKind::Undirected, n);
    // `ends` lists both ends of every edge. A node occurs once for each of its edges, so that a uniform draw
    // from the list draws nodes in proportion to their degrees.
    let mut ends = Vec::new();
    let join = |graph: &mut GraphState, ends: &mut Vec<u32>, a: u32, b: u32| {
        ends.extend([a, b]);
        graph.add_edge(a, b, Edge::default())
    };
    for b in 1..=attached as u32 {
        join(&mut graph, &mut ends, 0, b)?;
    }
    for b in attached as u32 + 1..n as u32 {
        let mut others = Vec::with_capacity(attached);
        while others.len() < attached {
            let a = ends[rng.below(ends.len())];
            if !others.contains(&a) {
                others.push(a);
            }
        }
        for a in others {
            join(&mut graph, &mut ends, a, b)?;
        }
    }
    Ok(graph)
}

/// Settings of graphs on which large independent sets are hard to find: cliques with random edges between
/// them, about as many as still allow independent sets with a node of each clique.
///
/// A graph is a random constraint problem of model RB (Xu and Li, *Exact Phase Transitions in Random
/// Constraint Satisfaction Problems*, 2000). It has a clique for each variable, a node for each value of the
/// variable, and an edge for each pair of values that a constraint forbids. With `n` cliques of `k` nodes and
/// tightness `p` there are `r n ln n - 1` constraints (rounded down), each on two cliques, with `r = a /
/// -ln(1 - p)` and `k = n^a`. Each constraint draws `p k^2` pairs of values (rounded down), or all that are
/// left. Constraints on the same two cliques in the same order never draw the same pair. A constraint on them
/// in the other order may draw it again, which adds no edge. The generator is that of Karalias and Loukas
/// (*Erdos Goes Neural*, 2020), from which Zhang et al. (2023) take their graphs.
///
/// ```
/// use gfn::Rng;
/// use gfn_gym::graph_problems::RbModel;
/// let graph = RbModel::nodes_50_to_100().draw(&mut Rng::seeded(0))?;
/// assert!((50..=100).contains(&graph.n_nodes()));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct RbModel {
    /// The range from which the number of cliques is drawn.
    pub cliques: RangeInclusive<usize>,
    /// The range from which the number of nodes of a clique is drawn. All cliques of a graph have the same
    /// number of nodes.
    pub clique_nodes: RangeInclusive<usize>,
    /// The bounds between which the tightness is drawn. The tightness is the share of the pairs of values
    /// that a constraint forbids.
    pub tightness: [f64; 2],
    /// The range of the number of nodes of a graph. Draws of cliques that give another number of nodes are
    /// repeated.
    pub nodes: RangeInclusive<usize>,
}

impl RbModel {
    /// Returns the settings for graphs of 50 to 100 nodes, which have 10 to 16 cliques of 4 to 9 nodes.
    #[must_use]
    pub fn nodes_50_to_100() -> Self {
        Self { cliques: 10..=16, clique_nodes: 4..=9, tightness: [0.3, 1.0], nodes: 50..=100 }
    }

    /// Returns the settings for graphs of 200 to 300 nodes, which have 20 to 24 cliques of 5 to 11 nodes.
    /// Zhang et al. call these graphs small. Their program draws from ranges without the upper end, so no
    /// graph has more than 264 nodes.
    #[must_use]
    pub fn nodes_200_to_300() -> Self {
        Self { cliques: 20..=24, clique_nodes: 5..=11, tightness: [0.3, 1.0], nodes: 200..=300 }
    }

    /// Returns the settings for graphs of 800 to 1,200 nodes, which have 40 to 54 cliques of 20 to 24 nodes.
    /// Zhang et al. call these graphs large.
    #[must_use]
    pub fn nodes_800_to_1200() -> Self {
        Self { cliques: 40..=54, clique_nodes: 20..=24, tightness: [0.3, 1.0], nodes: 800..=1_200 }
    }

    fn check(&self) -> Result<()> {
        let n = &self.cliques;
        let k = &self.clique_nodes;
        if *n.start() < 2 || *k.start() < 2 || n.is_empty() || k.is_empty() {
            let got = format!("{n:?} cliques of {k:?} nodes");
            return Err(Error::config(
                "the number of cliques of an RB graph",
                got,
                "at least 2 cliques, of at least 2 nodes",
            ));
        }
        let sizes = n.clone().flat_map(|n| k.clone().map(move |k| n.saturating_mul(k)));
        if !sizes.into_iter().any(|nodes| self.nodes.contains(&nodes)) {
            let got = format!("{:?} with {n:?} cliques of {k:?} nodes", self.nodes);
            return Err(Error::config(
                "nodes of an RB graph",
                got,
                "a range with at least one product of a number of cliques and a number of nodes per clique",
            ));
        }
        let [least, most] = self.tightness;
        if !(0.0 < least && least <= most && most <= 1.0) {
            let got = format!("{:?}", self.tightness);
            return Err(Error::config(
                "tightness of an RB graph",
                got,
                "two numbers above 0 and at most 1, the smaller one first",
            ));
        }
        Ok(())
    }

    /// Draws a graph. With `k` nodes per clique, clique `i` consists of the nodes `i k..(i + 1) k`.
    ///
    /// # Errors
    /// [`Error::Config`] if a graph may have fewer than two cliques, if a clique may have fewer than two
    /// nodes, if a range is empty, if no combination of cliques has a number of nodes in the range `nodes`,
    /// and if the tightness isn't above 0 and at most 1.
    pub fn draw(&self, rng: &mut Rng) -> Result<GraphState> {
        self.check()?;
        loop {
            let n = from(&self.cliques, rng);
            let k = from(&self.clique_nodes, rng);
            let p = self.tightness[0] + (self.tightness[1] - self.tightness[0]) * rng.uniform();
            if self.nodes.contains(&(n * k)) {
                return rb_graph(n, k, p, rng);
            }
        }
    }
}

fn rb_graph(n: usize, k: usize, p: f64, rng: &mut Rng) -> Result<GraphState> {
    // This is `r n ln n - 1`. If the tightness `p` is 1, the formula without the lower bound gives -1.
    let constraints = (n as f64 * (k as f64).ln() / -(1.0 - p).ln() - 1.0).max(0.0) as usize;
    let forbidden = (p * (k * k) as f64) as usize;
    let mut graph = GraphState::with_nodes(GraphKind::Undirected, n * k);
    for b in 0..n * k {
        for a in b / k * k..b {
            graph.add_edge(a as u32, b as u32, Edge::default())?;
        }
    }
    let mut drawn = HashSet::new();
    for _ in 0..constraints {
        let i = rng.below(n);
        let j = (i + 1 + rng.below(n - 1)) % n;
        let pair = |at: usize| ((i * k + at / k) as u32, (j * k + at % k) as u32);
        let mut free: Vec<_> = (0..k * k).map(pair).filter(|pair| !drawn.contains(pair)).collect();
        for _ in 0..forbidden.min(free.len()) {
            let (a, b) = free.swap_remove(rng.below(free.len()));
            drawn.insert((a, b));
            if !graph.has_edge(a, b) {
                graph.add_edge(a, b, Edge::default())?;
            }
        }
    }
    Ok(graph)
}

/// Draws a number from a range that isn't empty.
fn from(range: &RangeInclusive<usize>, rng: &mut Rng) -> usize {
    range.start() + rng.below(range.end() - range.start() + 1)
}
