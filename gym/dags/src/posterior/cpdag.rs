//! Markov equivalence classes of acyclic graphs.

use gfn::Result;
use gfn::graph::{Edge, GraphKind, GraphState, GraphStates};

use crate::{Ancestry, NodeSet};

/// Returns the completed partially directed acyclic graph (CPDAG) of a graph, which represents its Markov
/// equivalence class: all acyclic graphs with the same skeleton and the same v-structures. Observational data
/// and a score such as [`Bge`](crate::Bge) can't tell the members of a class apart.
///
/// An edge is directed if it has the same direction in all members of the class. An undirected edge is
/// returned as two edges, one in each direction. The result can therefore have cycles of two nodes;
/// [`EdgeComparison`](crate::EdgeComparison) accepts it.
///
/// Edges of v-structures are directed first, then Meek's rules 1 to 3 are applied until nothing changes (Meek
/// 1995). Rule 4 is needed only with background knowledge. Data with interventions distinguish more graphs
/// than these classes do.
///
/// ```
/// use gfn_dags::{acyclic, cpdag};
/// // A chain can be reversed, so both edges are undirected. A v-structure can't.
/// assert_eq!(cpdag(&acyclic(3, &[(0, 1), (1, 2)])?)?.n_edges(), 4);
/// assert_eq!(cpdag(&acyclic(3, &[(0, 1), (2, 1)])?)?.edges().collect::<Vec<_>>(), [(0, 1), (2, 1)]);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// Errors of [`Ancestry::from_graph`].
pub fn cpdag(graph: &GraphState) -> Result<GraphState> {
    let ancestry = Ancestry::from_graph(graph)?;
    let n = graph.n_nodes();
    let parents: Vec<NodeSet> = (0..n).map(|node| ancestry.parents(node)).collect();
    let mut adjacent = parents.clone();
    for (a, b) in graph.edges() {
        adjacent[a as usize].insert(b as usize);
    }
    let in_collider = |a: usize, of_node: &NodeSet| !of_node.minus(adjacent[a].with(a)).is_empty();
    let compelled = parents.iter().map(|set| set.iter().filter(|&a| in_collider(a, set)).collect()).collect();
    let mut class = Class { compelled, adjacent };
    loop {
        let open = (0..n).flat_map(|b| parents[b].minus(class.compelled[b]).iter().map(move |a| (a, b)));
        let found: Vec<(usize, usize)> = open.filter(|&(a, b)| class.must_direct(a, b)).collect();
        if found.is_empty() {
            break;
        }
        for (a, b) in found {
            class.compelled[b].insert(a);
        }
    }
    let mut out = GraphState::with_nodes(GraphKind::Directed, n);
    for (a, b) in graph.edges() {
        out.add_edge(a, b, Edge::default())?;
        if !class.compelled[b as usize].contains(a as usize) {
            out.add_edge(b, a, Edge::default())?;
        }
    }
    Ok(out)
}

/// Returns the [`cpdag`] of each graph.
///
/// # Errors
/// Errors of [`cpdag`].
pub fn cpdags(states: &GraphStates) -> Result<GraphStates> {
    Ok(states.graphs().iter().map(cpdag).collect::<Result<Vec<_>>>()?.into())
}

/// The edges of a class that are known to be directed.
struct Class {
    /// The nodes from which a directed edge leads to each node.
    compelled: Vec<NodeSet>,
    /// The nodes that have an edge with each node.
    adjacent: Vec<NodeSet>,
}

impl Class {
    /// Returns `true` if one of Meek's rules directs the edge from `a` to `b`. All members of the class agree
    /// on directed edges, so the rules can only choose the direction that the edge has in the given graph.
    fn must_direct(&self, a: usize, b: usize) -> bool {
        // Rule 1: p -> a - b without an edge between p and b.
        if !self.compelled[a].minus(self.adjacent[b]).is_empty() {
            return true;
        }
        // Rule 2: a -> c -> b.
        if self.compelled[b].iter().any(|c| self.compelled[c].contains(a)) {
            return true;
        }
        // Rule 3: a - p -> b and a - q -> b without an edge between p and q.
        let is_open = |p: usize| {
            self.adjacent[a].contains(p) && !self.compelled[a].contains(p) && !self.compelled[p].contains(a)
        };
        let sides: NodeSet = self.compelled[b].iter().filter(|&p| is_open(p)).collect();
        sides.iter().any(|p| !sides.minus(self.adjacent[p].with(p)).is_empty())
    }
}
