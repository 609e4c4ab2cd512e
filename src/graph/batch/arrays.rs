//! The nodes and edges of a batch of graphs, listed once on the host.

use std::sync::OnceLock;

use crate::graph::{Edge, GraphKind, GraphState, Node};
use crate::{Error, Result};

/// The nodes and edges of a batch of graphs, one graph after another: the one listing that masks and networks read.
///
/// `N` is the number of nodes, `E` of edges, `B` of graphs. Nodes are numbered through the batch, so graph `g` has the nodes
/// `node_ptr[g]..node_ptr[g + 1]`. Edges come in the order of [`GraphState::edges`], an undirected one once.
///
/// [`GraphStates::arrays`](crate::graph::GraphStates::arrays) keeps them for a batch of states. Graphs are added by
/// [`push`](Self::push), not by editing the vectors: neighbours that are listed already would be stale.
///
/// ```
/// use gfn::graph::{Edge, GraphKind, GraphState, GraphStates};
/// let mut graph = GraphState::with_nodes(GraphKind::Directed, 3);
/// graph.add_edge(0, 2, Edge::default())?;
/// let states = GraphStates::from(vec![graph; 2]);
/// let arrays = states.arrays();
/// assert_eq!(arrays.edges, [(0, 2), (3, 5)]);
/// assert_eq!(arrays.node_ptr, [0, 3, 6]);
/// // Node 5 gets message 1 from node 3.
/// assert_eq!(arrays.neighbours().incoming(5), [(3, 1)]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct GraphArrays {
    /// Directed or undirected.
    pub kind: GraphKind,
    /// Class and attributes of each node, `[N]`.
    pub nodes: Vec<Node>,
    /// Label of each node within its graph, `[N]`.
    pub labels: Vec<u32>,
    /// Ends of each edge, from and to, `[E]`; undirected: the smaller one first.
    pub edges: Vec<(u32, u32)>,
    /// Class and attributes of each edge, `[E]`.
    pub weights: Vec<Edge>,
    /// Where each graph's nodes start, `[B + 1]`.
    pub node_ptr: Vec<usize>,
    /// Where each graph's edges start, `[B + 1]`.
    pub edge_ptr: Vec<usize>,
    /// Where each graph's ordered pairs of nodes start, `[B + 1]`; a graph of `n` nodes has `n * n`.
    pub pair_ptr: Vec<usize>,
    /// The first graph that is of another kind.
    pub(in crate::graph) other_kind: Option<usize>,
    neighbours: OnceLock<Neighbours>,
}

impl GraphArrays {
    /// Lists some graphs.
    #[must_use]
    pub fn of(graphs: &[GraphState]) -> Self {
        let kind = graphs.first().map_or(GraphKind::Directed, GraphState::kind);
        let count = |of: fn(&GraphState) -> usize| graphs.iter().map(of).sum();
        let mut out = Self::with_capacity(kind, graphs.len(), count(GraphState::n_nodes), count(GraphState::n_edges));
        for graph in graphs {
            let weighted = graph.has_edge_weights();
            let weight = |a, b| if weighted { graph.edge(a, b).unwrap_or_default() } else { Edge::default() };
            out.list(graph.nodes(), graph.edges().map(|(a, b)| (a, b, weight(a, b))));
        }
        out.other_kind = graphs.iter().position(|graph| graph.kind() != kind);
        out
    }

    /// No graph yet.
    #[must_use]
    pub fn new(kind: GraphKind) -> Self {
        Self::with_capacity(kind, 0, 0, 0)
    }

    fn with_capacity(kind: GraphKind, graphs: usize, nodes: usize, edges: usize) -> Self {
        let ptr = || {
            let mut ptr = Vec::with_capacity(graphs + 1);
            ptr.push(0);
            ptr
        };
        Self {
            kind,
            nodes: Vec::with_capacity(nodes),
            labels: Vec::with_capacity(nodes),
            edges: Vec::with_capacity(edges),
            weights: Vec::with_capacity(edges),
            node_ptr: ptr(),
            edge_ptr: ptr(),
            pair_ptr: ptr(),
            other_kind: None,
            neighbours: OnceLock::new(),
        }
    }

    /// Adds a graph that isn't a [`GraphState`]: its nodes, and its edges by their labels, in the order of
    /// [`GraphState::edges`].
    ///
    /// # Errors
    /// [`Error::Contract`] for an edge at a node that isn't there, and for edges that aren't in order; nothing is added then.
    pub fn push(
        &mut self,
        nodes: impl IntoIterator<Item = Node>,
        edges: impl IntoIterator<Item = (u32, u32, Edge)>,
    ) -> Result<()> {
        let (nodes, edges): (Vec<_>, Vec<_>) = (nodes.into_iter().collect(), edges.into_iter().collect());
        let wrong = |&(a, b, _): &(u32, u32, Edge)| {
            a == b || a.max(b) as usize >= nodes.len() || (!self.is_directed() && a > b)
        };
        if let Some((a, b, _)) = edges.iter().find(|edge| wrong(edge)) {
            let detail = format!("edge ({a}, {b}) of {} nodes", nodes.len());
            return Err(Error::contract(
                "the edges of a graph join two of its nodes, undirected ones the smaller first",
                detail,
            ));
        }
        if !edges.is_sorted_by(|before, after| (before.0, before.1) < (after.0, after.1)) {
            return Err(Error::contract(
                "the edges of a graph ascend, each given once",
                format!("{} edges", edges.len()),
            ));
        }
        self.list(nodes, edges);
        Ok(())
    }

    pub(in crate::graph) fn list(
        &mut self,
        nodes: impl IntoIterator<Item = Node>,
        edges: impl IntoIterator<Item = (u32, u32, Edge)>,
    ) {
        let first = self.nodes.len();
        self.nodes.extend(nodes);
        let n = self.nodes.len() - first;
        self.labels.extend(0..n as u32);
        for (a, b, weight) in edges {
            self.edges.push((first as u32 + a, first as u32 + b));
            self.weights.push(weight);
        }
        self.node_ptr.push(self.nodes.len());
        self.edge_ptr.push(self.edges.len());
        self.pair_ptr.push(self.n_pairs() + n * n);
        self.neighbours = OnceLock::new();
    }

    /// The number of graphs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.node_ptr.len() - 1
    }

    /// `true` if there is no graph.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `true` if edges have a direction.
    #[must_use]
    pub fn is_directed(&self) -> bool {
        self.kind == GraphKind::Directed
    }

    /// The number of messages that an edge is: an undirected one carries one each way.
    #[must_use]
    pub fn messages_per_edge(&self) -> usize {
        if self.is_directed() { 1 } else { 2 }
    }

    /// The number of ordered node pairs of all graphs, those of a node with itself included.
    #[must_use]
    pub fn n_pairs(&self) -> usize {
        self.pair_ptr.last().copied().unwrap_or(0)
    }

    /// The number of nodes of each graph, `[B]`.
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = usize> + Clone + '_ {
        self.node_ptr.windows(2).map(|ends| ends[1] - ends[0])
    }

    /// The number of nodes that all graphs have, if it is the same.
    #[must_use]
    pub fn same_size(&self) -> Option<usize> {
        let mut sizes = self.sizes();
        let first = sizes.next()?;
        sizes.all(|n| n == first).then_some(first)
    }

    /// The edges of graph `g`: the labels of both ends, and what it carries.
    ///
    /// # Panics
    /// If there is no such graph.
    pub fn edges_of(&self, g: usize) -> impl ExactSizeIterator<Item = (usize, usize, Edge)> + '_ {
        let (first, range) = (self.node_ptr[g], self.edge_ptr[g]..self.edge_ptr[g + 1]);
        let edges = self.edges[range.clone()].iter().zip(&self.weights[range]);
        edges.map(move |(&(a, b), &weight)| (a as usize - first, b as usize - first, weight))
    }

    /// The place of each edge among all ordered pairs of nodes of all graphs, `[E]`.
    pub fn edge_pairs(&self) -> impl Iterator<Item = usize> + '_ {
        let graphs = self.sizes().zip(&self.pair_ptr).enumerate();
        graphs.flat_map(|(g, (n, first))| self.edges_of(g).map(move |(a, b, _)| first + a * n + b))
    }

    /// The neighbours that messages come from, listed on the first call.
    #[must_use]
    pub fn neighbours(&self) -> &Neighbours {
        self.neighbours.get_or_init(|| Neighbours::of(self))
    }
}

/// The neighbours of each node of a batch, with the numbers of the messages between them, in compressed sparse rows.
///
/// A directed edge is one message, with the edge's number; an undirected one with number `e` is message `2 e` from its first
/// end to its second, and message `2 e + 1` back.
#[derive(Debug)]
pub struct Neighbours {
    incoming: Csr,
    /// `None` in undirected graphs: each edge is incoming at both of its ends.
    outgoing: Option<Csr>,
}

impl Neighbours {
    fn of(arrays: &GraphArrays) -> Self {
        let n = arrays.nodes.len();
        let edges = arrays.edges.iter().zip(0u32..);
        if arrays.is_directed() {
            let incoming = Csr::new(n, edges.clone().map(|(&(a, b), e)| (a, b, e)));
            Self { incoming, outgoing: Some(Csr::new(n, edges.map(|(&(a, b), e)| (b, a, e)))) }
        } else {
            let messages = edges.flat_map(|(&(a, b), e)| [(a, b, 2 * e), (b, a, 2 * e + 1)]);
            Self { incoming: Csr::new(n, messages), outgoing: None }
        }
    }

    /// The number of messages along edges.
    #[must_use]
    pub fn n_messages(&self) -> usize {
        self.incoming.entries.len()
    }

    /// The sources of edges into a node (undirected: its neighbours), each with the message's number.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn incoming(&self, node: usize) -> &[(u32, u32)] {
        self.incoming.at(node)
    }

    /// The targets of edges out of a node, each with the message's number; `None` in undirected graphs.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn outgoing(&self, node: usize) -> Option<&[(u32, u32)]> {
        self.outgoing.as_ref().map(|csr| csr.at(node))
    }
}

/// One row of entries per node, concatenated.
#[derive(Debug)]
struct Csr {
    entries: Vec<(u32, u32)>,
    /// The start of each node's entries, and the end of the last one's.
    offsets: Vec<usize>,
}

impl Csr {
    /// Groups messages `(from, to, number)` by receiver, by a stable counting sort.
    fn new(n: usize, messages: impl Iterator<Item = (u32, u32, u32)> + Clone) -> Self {
        let mut offsets = vec![0; n + 1];
        messages.clone().for_each(|(_, to, _)| offsets[to as usize + 1] += 1);
        for node in 0..n {
            offsets[node + 1] += offsets[node];
        }
        let mut place = offsets.clone();
        let mut entries = vec![(0, 0); offsets[n]];
        for (from, to, number) in messages {
            let place = &mut place[to as usize];
            entries[*place] = (from, number);
            *place += 1;
        }
        Self { entries, offsets }
    }

    fn at(&self, node: usize) -> &[(u32, u32)] {
        &self.entries[self.offsets[node]..self.offsets[node + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Rows;
    use crate::graph::GraphStates;

    #[test]
    fn what_is_listed_is_what_the_graphs_have_now() {
        for kind in [GraphKind::Directed, GraphKind::Undirected] {
            let edges = [(0, 1, Edge::of_class(2)), (2, 1, Edge::default()), (3, 0, Edge::of_class(1))];
            let graph = GraphState::from_parts(kind, &[0, 3, 1, 0].map(Node::of_class), &edges).unwrap();
            let mut states = GraphStates::from(vec![graph.clone(), GraphState::new(kind), graph.induced(&[3, 2, 0])]);
            check(&states);
            states.graphs_mut()[1].add_node(Node::of_class(7));
            check(&states);
            states.append(states.select(&[2, 0]));
            check(&states);
            check(&states.clone().permute(&[3, 0, 4, 2, 1]));
        }
    }

    fn check(states: &GraphStates) {
        let (arrays, graphs) = (states.arrays(), states.graphs());
        assert_eq!(arrays.len(), graphs.len());
        assert_eq!(arrays.n_pairs(), graphs.iter().map(|graph| graph.n_nodes().pow(2)).sum::<usize>());
        let neighbours = arrays.neighbours();
        let mut pairs = arrays.edge_pairs();
        for (g, graph) in graphs.iter().enumerate() {
            let (first, first_edge) = (arrays.node_ptr[g], arrays.edge_ptr[g]);
            let nodes: Vec<Node> = graph.nodes().collect();
            assert_eq!(arrays.nodes[first..arrays.node_ptr[g + 1]], nodes);
            let listed: Vec<(u32, u32)> = arrays.edges_of(g).map(|(a, b, _)| (a as u32, b as u32)).collect();
            assert_eq!(listed, graph.edges().collect::<Vec<_>>());
            for (e, (a, b, edge)) in arrays.edges_of(g).enumerate() {
                assert_eq!(Some(edge), graph.edge(a as u32, b as u32));
                assert_eq!(pairs.next(), Some(arrays.pair_ptr[g] + a * nodes.len() + b));
                let (a, b) = (first + a, first + b);
                let number = (arrays.messages_per_edge() * (first_edge + e)) as u32;
                assert!(neighbours.incoming(b).contains(&(a as u32, number)));
                match neighbours.outgoing(a) {
                    Some(outgoing) => assert!(outgoing.contains(&(b as u32, number))),
                    None => assert!(neighbours.incoming(a).contains(&(b as u32, number + 1))),
                }
            }
        }
        assert_eq!(neighbours.n_messages(), arrays.edges.len() * arrays.messages_per_edge());
        assert_eq!(pairs.next(), None);
    }

    #[test]
    fn an_edge_to_nowhere_is_refused() {
        let mut arrays = GraphArrays::new(GraphKind::Directed);
        arrays.push([Node::default(); 2], [(0, 1, Edge::default())]).unwrap();
        let error = arrays.push([Node::default(); 2], [(1, 2, Edge::default())]).unwrap_err();
        assert!(error.to_string().contains("edge (1, 2) of 2 nodes"), "{error}");
    }
}
