//! An exact search for the largest clique and for the largest independent set of a graph.

use gfn::graph::GraphState;

/// Finds the largest clique of a graph, by branch and bound. Returns its nodes, ascending; `None` if more
/// than `max_branches` branches are needed to prove that it is the largest.
///
/// Greedy colourings give the bounds (Tomita and Seki, *An Efficient Branch-and-Bound Algorithm for Finding a
/// Maximum Clique*, 2003). Sets of nodes are stored as bits (San Segundo et al. 2011). The search uses the
/// edges of the graph and ignores marks of nodes.
///
/// ```
/// use gfn::graph::GraphFormat;
/// use gfn_gym::graph_problems::maximum_clique;
/// let graph =
///     &GraphFormat::EdgeList.read(b"graph undirected 4\nedge 0 1\nedge 1 2\nedge 0 2\nedge 2 3")?[0];
/// assert_eq!(maximum_clique(graph, 1_000), Some(vec![0, 1, 2]));
/// # Ok::<(), gfn::Error>(())
/// ```
#[must_use]
pub fn maximum_clique(graph: &GraphState, max_branches: u64) -> Option<Vec<u32>> {
    CliqueSearch::new(graph, true, max_branches).run()
}

/// Finds the largest independent set of a graph, which is the [largest clique](maximum_clique) of its
/// complement.
///
/// ```
/// use gfn::{Rng, graph::GraphState};
/// use gfn_gym::graph_problems::{RbModel, maximum_independent_set};
/// let graph = RbModel::nodes_50_to_100().draw(&mut Rng::seeded(0))?;
/// assert!(maximum_independent_set(&graph, 1_000_000).is_some());
/// # Ok::<(), gfn::Error>(())
/// ```
#[must_use]
pub fn maximum_independent_set(graph: &GraphState, max_branches: u64) -> Option<Vec<u32>> {
    CliqueSearch::new(graph, false, max_branches).run()
}

/// A set of nodes as bits. Nodes are numbered in the order in which the search considers them.
type Bits = Vec<u64>;

struct CliqueSearch {
    /// The neighbours of each node (in the complement if an independent set is sought), as a set. Nodes are
    /// numbered in the order of the search.
    near: Vec<Bits>,
    /// The node of the input graph for each number in the order of the search.
    order: Vec<u32>,
    clique: Vec<usize>,
    best: Vec<usize>,
    branches_left: u64,
}

impl CliqueSearch {
    fn new(graph: &GraphState, of_edges: bool, max_branches: u64) -> Self {
        let n = graph.n_nodes();
        let joined = |a: u32, b: u32| a != b && graph.has_edge(a, b) == of_edges;
        let degree = |a: u32| (0..n as u32).filter(|&b| joined(a, b)).count();
        let mut order: Vec<u32> = (0..n as u32).collect();
        // Nodes with many neighbours come first, so that they get the first colours, and the search branches
        // on them last.
        order.sort_by_key(|&a| std::cmp::Reverse(degree(a)));
        let near = order.iter().map(|&a| {
            let mut row = vec![0; n.div_ceil(64)];
            for k in (0..n).filter(|&k| joined(a, order[k])) {
                row[k / 64] |= 1 << (k % 64);
            }
            row
        });
        Self {
            near: near.collect(),
            order: order.clone(),
            clique: Vec::new(),
            best: Vec::new(),
            branches_left: max_branches,
        }
    }

    fn run(mut self) -> Option<Vec<u32>> {
        let n = self.order.len();
        let mut all = vec![0; n.div_ceil(64)];
        for k in 0..n {
            all[k / 64] |= 1 << (k % 64);
        }
        self.extend(all)?;
        let mut nodes: Vec<u32> = self.best.iter().map(|&k| self.order[k]).collect();
        nodes.sort_unstable();
        Some(nodes)
    }

    /// Extends the current clique in all promising ways by nodes of `nodes`, each of which has an edge to
    /// every node of the clique. Updates the best clique. Returns `None` if the permitted number of branches
    /// is used up.
    fn extend(&mut self, mut nodes: Bits) -> Option<()> {
        if self.clique.len() > self.best.len() {
            self.best.clone_from(&self.clique);
        }
        let coloured = self.colours(&nodes);
        for &(k, colours) in coloured.iter().rev() {
            // Nodes of a clique have different colours. Therefore the number of colours of the remaining
            // nodes bounds the number of nodes by which the clique can still grow.
            if self.clique.len() + colours <= self.best.len() {
                return Some(());
            }
            self.branches_left = self.branches_left.checked_sub(1)?;
            self.clique.push(k);
            let rest = nodes.iter().zip(&self.near[k]).map(|(x, y)| x & y).collect();
            self.extend(rest)?;
            self.clique.pop();
            nodes[k / 64] &= !(1 << (k % 64));
        }
        Some(())
    }

    /// Colours the nodes greedily, so that no edge joins two nodes of the same colour, and lists the nodes
    /// colour by colour. Each node comes with the number of colours that this node and the nodes before it in
    /// the list use.
    fn colours(&self, nodes: &Bits) -> Vec<(usize, usize)> {
        let mut left = nodes.clone();
        let mut out = Vec::new();
        let mut colours = 0;
        while left.iter().any(|word| *word != 0) {
            colours += 1;
            let mut free = left.clone();
            while let Some(k) = first(&free) {
                left[k / 64] &= !(1 << (k % 64));
                free[k / 64] &= !(1 << (k % 64));
                for (x, y) in free.iter_mut().zip(&self.near[k]) {
                    *x &= !y;
                }
                out.push((k, colours));
            }
        }
        out
    }
}

fn first(bits: &Bits) -> Option<usize> {
    let word = bits.iter().position(|word| *word != 0)?;
    Some(64 * word + bits[word].trailing_zeros() as usize)
}
