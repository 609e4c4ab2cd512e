//! The problems that can be solved on input graphs, and the sizes of their solutions.

use gfn::graph::GraphState;
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

use super::mark_node::NodeSet;
use super::{Mark, MarkNode};

/// A problem on an input graph, whose solutions are sets of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Problem {
    /// The problem of finding the largest set of nodes of which no two share an edge.
    IndependentSet,
    /// The problem of finding the largest set of nodes of which any two share an edge.
    Clique,
    /// The problem of finding the smallest set of nodes such that every other node has an edge to a node of
    /// the set.
    DominatingSet,
    /// The problem of dividing the nodes into two sides, such that the number of edges between the sides is
    /// as large as possible. The solution is the set of nodes on one side.
    Cut,
}

impl Problem {
    /// Returns the nodes of the solution that a finished state of [`GraphProblem`](super::GraphProblem)
    /// holds, ascending. For an unfinished state these are the nodes chosen so far or, for a dominating set,
    /// the nodes that haven't been removed.
    #[must_use]
    pub fn solution(self, state: &GraphState) -> Vec<u32> {
        let counts = |node| match self {
            Self::DominatingSet => Mark::from_node(node) != Mark::Out,
            _ => Mark::from_node(node) == Mark::In,
        };
        (0..).zip(state.nodes()).filter(|&(_, node)| counts(node)).map(|(a, _)| a).collect()
    }

    /// Returns the state of [`GraphProblem`](super::GraphProblem) whose [`solution`](Self::solution) so far
    /// consists of these nodes: the graph with the marks that follow from these nodes.
    ///
    /// # Errors
    /// [`Error::Contract`] for a node that the graph doesn't have.
    pub fn state(self, graph: &GraphState, nodes: &[u32]) -> Result<GraphState> {
        let n = graph.n_nodes();
        if let Some(a) = nodes.iter().find(|a| **a as usize >= n) {
            return Err(Error::contract(
                "a solution consists of nodes of the graph",
                format!("node {a} is beyond the {n} nodes of the graph"),
            ));
        }
        let mut chosen = NodeSet::new(n);
        if self == Self::DominatingSet {
            for a in 0..n {
                chosen.set(a, true);
            }
        }
        for &a in nodes {
            chosen.set(a as usize, self != Self::DominatingSet);
        }
        let mut state = graph.clone();
        MarkNode(self).mark(&mut state, &chosen)?;
        Ok(state)
    }

    /// A list of all problems.
    pub const ALL: [Self; 4] = [Self::IndependentSet, Self::Clique, Self::DominatingSet, Self::Cut];

    /// Returns `true` if the best solution is the smallest one, and `false` if it is the largest one.
    #[must_use]
    pub fn is_minimised(self) -> bool {
        self == Self::DominatingSet
    }

    /// Returns `true` if a solution of size `size` is better than a solution of size `other`.
    #[must_use]
    pub fn is_better(self, size: usize, other: usize) -> bool {
        if self.is_minimised() { size < other } else { size > other }
    }

    /// Checks that a set of nodes is a solution and returns its size: the number of its nodes, or, for a cut,
    /// the number of edges between the two sides.
    ///
    /// The check uses only the graph's edges and the list of nodes, neither marks nor an environment.
    ///
    /// ```
    /// use gfn::graph::GraphFormat;
    /// use gfn_gym::graph_problems::Problem;
    /// let path = &GraphFormat::EdgeList.read(b"graph undirected 3\nedge 0 1\nedge 1 2")?[0];
    /// assert_eq!(Problem::IndependentSet.check(path, &[2, 0])?, 2);
    /// assert_eq!(Problem::Cut.check(path, &[1])?, 2);
    /// assert!(Problem::Clique.check(path, &[2, 0]).unwrap_err().to_string().contains("no edge"));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Contract`] for a node that the graph doesn't have or that is listed twice, and for a set that
    /// is no solution; the message names the nodes at fault.
    pub fn check(self, graph: &GraphState, nodes: &[u32]) -> Result<usize> {
        let n = graph.n_nodes();
        let mut is_in = vec![false; n];
        for &a in nodes {
            match is_in.get_mut(a as usize) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => {
                    return Err(Error::contract(
                        "a solution names each of its nodes once",
                        format!("node {a} is named twice"),
                    ));
                }
                None => {
                    return Err(Error::contract(
                        "a solution consists of nodes of the graph",
                        format!("node {a} is beyond the {n} nodes of the graph"),
                    ));
                }
            }
        }
        let mut pairs = nodes.iter().enumerate().flat_map(|(k, &a)| nodes[..k].iter().map(move |&b| (b, a)));
        let violation = match self {
            Self::IndependentSet => {
                let edge = graph.edges().find(|&(a, b)| is_in[a as usize] && is_in[b as usize]);
                edge.map(|(a, b)| {
                    ("no two nodes of an independent set have an edge", format!("edge ({a}, {b})"))
                })
            }
            Self::Clique => pairs.find(|&(a, b)| !graph.has_edge(a, b)).map(|(a, b)| {
                (
                    "any two nodes of a clique have an edge",
                    format!("there is no edge between nodes {a} and {b}"),
                )
            }),
            Self::DominatingSet => {
                let mut dominated = is_in;
                for &a in nodes {
                    for b in graph.adjacency().neighbours(a as usize) {
                        dominated[b] = true;
                    }
                }
                dominated.iter().position(|is_dominated| !is_dominated).map(|a| {
                    let law = "each node is in a dominating set, or has an edge to a node of the set";
                    (law, format!("node {a} isn't in the set and has no edge to a node of the set"))
                })
            }
            Self::Cut => {
                return Ok(graph.edges().filter(|&(a, b)| is_in[a as usize] != is_in[b as usize]).count());
            }
        };
        match violation {
            None => Ok(nodes.len()),
            Some((law, detail)) => Err(Error::contract(law, detail)),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::IndependentSet => "independent set",
            Self::Clique => "clique",
            Self::DominatingSet => "dominating set",
            Self::Cut => "cut",
        })
    }
}
