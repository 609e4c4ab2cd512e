//! The nodes and edges of a batch of graphs, which are listed once on the host.

use std::sync::OnceLock;

use crate::graph::{Edge, GraphKind, GraphState, Node};

/// The nodes and edges of a batch of graphs, one graph after another. Masks and networks share these arrays.
///
/// In the shapes below `N` is the number of nodes, `E` the number of edges, and `B` the number of graphs.
/// Nodes are numbered throughout the batch: graph `g` has the nodes `node_ptr[g]..node_ptr[g + 1]`. The edges
/// of a graph are in the order of [`GraphState::edges`], and an undirected edge is listed once.
///
/// [`GraphStates::arrays`](crate::graph::GraphStates::arrays) caches the arrays of a batch of states.
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
    /// The kind of the graphs: directed or undirected.
    pub kind: GraphKind,
    /// The class and the attributes of each node, `[N]`.
    pub nodes: Vec<Node>,
    /// The label of each node within its graph, `[N]`.
    pub labels: Vec<u32>,
    /// The two nodes of each edge, numbered throughout the batch, `[E]`. A directed edge leads from the first
    /// node to the second. The first node of an undirected edge is the smaller one.
    pub edges: Vec<(u32, u32)>,
    /// The class and the attributes of each edge, `[E]`.
    pub weights: Vec<Edge>,
    /// The index of each graph's first node, followed by the number of nodes, `[B + 1]`.
    pub node_ptr: Vec<usize>,
    /// The index of each graph's first edge, followed by the number of edges, `[B + 1]`.
    pub edge_ptr: Vec<usize>,
    /// The index of each graph's first ordered pair of nodes, followed by the number of pairs, `[B + 1]`. A
    /// graph of `n` nodes has `n * n` pairs.
    pub pair_ptr: Vec<usize>,
    /// The index of the first graph whose kind isn't `kind`; `None` if all graphs have this kind.
    pub(in crate::graph) first_of_other_kind: Option<usize>,
    neighbours: OnceLock<Neighbours>,
}

/// Creates a list of offsets with memory for `n` more entries. The list holds only the offset of the first
/// graph, which is 0.
pub(in crate::graph) fn new_ptr(n: usize) -> Vec<usize> {
    let mut ptr = Vec::with_capacity(n + 1);
    ptr.push(0);
    ptr
}

impl GraphArrays {
    /// Lists the nodes and edges of graphs. The arrays have the kind of the first graph; without graphs the
    /// kind is directed.
    #[must_use]
    pub fn from_graphs(graphs: &[GraphState]) -> Self {
        let kind = graphs.first().map_or(GraphKind::Directed, GraphState::kind);
        let count = |of: fn(&GraphState) -> usize| graphs.iter().map(of).sum();
        let mut out =
            Self::with_capacity(kind, graphs.len(), count(GraphState::n_nodes), count(GraphState::n_edges));
        for graph in graphs {
            let has_weights = graph.has_edge_weights();
            let weight =
                |a, b| if has_weights { graph.edge(a, b).unwrap_or_default() } else { Edge::default() };
            out.push(graph.nodes(), graph.edges().map(|(a, b)| (a, b, weight(a, b))));
        }
        out.first_of_other_kind = graphs.iter().position(|graph| graph.kind() != kind);
        out
    }

    /// Creates arrays without graphs, with memory for the given numbers of graphs, nodes and edges.
    pub(in crate::graph) fn with_capacity(
        kind: GraphKind,
        graphs: usize,
        nodes: usize,
        edges: usize,
    ) -> Self {
        Self {
            kind,
            nodes: Vec::with_capacity(nodes),
            labels: Vec::with_capacity(nodes),
            edges: Vec::with_capacity(edges),
            weights: Vec::with_capacity(edges),
            node_ptr: new_ptr(graphs),
            edge_ptr: new_ptr(graphs),
            pair_ptr: new_ptr(graphs),
            first_of_other_kind: None,
            neighbours: OnceLock::new(),
        }
    }

    /// Appends a graph, given by its nodes and its edges (from, to, class and attributes), without checks.
    /// Edges name nodes by their labels within the graph, and must be in the order of [`GraphState::edges`].
    pub(in crate::graph) fn push(
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

    /// The number of messages that a network passes along each edge: 1 in directed graphs, and 2 (one in each
    /// direction) in undirected graphs.
    #[must_use]
    pub fn messages_per_edge(&self) -> usize {
        if self.is_directed() { 1 } else { 2 }
    }

    /// The number of ordered pairs of nodes in all graphs, including the pairs of a node with itself.
    #[must_use]
    pub fn n_pairs(&self) -> usize {
        self.pair_ptr.last().copied().unwrap_or(0)
    }

    /// The number of nodes of each graph, `[B]`.
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = usize> + Clone + '_ {
        self.node_ptr.windows(2).map(|ends| ends[1] - ends[0])
    }

    /// Returns the number of nodes per graph if all graphs have the same number; `None` if the numbers
    /// differ, or if there is no graph.
    #[must_use]
    pub fn same_size(&self) -> Option<usize> {
        let mut sizes = self.sizes();
        let first = sizes.next()?;
        sizes.all(|n| n == first).then_some(first)
    }

    /// Returns the edges of graph `g`. Each edge has the labels that its two nodes have within the graph, and
    /// its class and attributes.
    ///
    /// # Panics
    /// If there is no such graph.
    pub fn edges_of(&self, g: usize) -> impl ExactSizeIterator<Item = (usize, usize, Edge)> + '_ {
        let first = self.node_ptr[g];
        let range = self.edge_ptr[g]..self.edge_ptr[g + 1];
        let edges = self.edges[range.clone()].iter().zip(&self.weights[range]);
        edges.map(move |(&(a, b), &weight)| (a as usize - first, b as usize - first, weight))
    }

    /// Returns the index of each edge among the ordered pairs of nodes of all graphs, `[E]`.
    pub fn edge_pairs(&self) -> impl Iterator<Item = usize> + '_ {
        let graphs = self.sizes().zip(&self.pair_ptr).enumerate();
        graphs.flat_map(|(g, (n, first))| self.edges_of(g).map(move |(a, b, _)| first + a * n + b))
    }

    /// Returns the neighbours of each node. The neighbours are listed on the first call and cached.
    #[must_use]
    pub fn neighbours(&self) -> &Neighbours {
        self.neighbours.get_or_init(|| Neighbours::new(self))
    }
}

/// The neighbours of each node of a batch in compressed sparse rows, each with the index of the message that
/// a network passes along the edge between the two nodes.
///
/// Directed edge `e` is message `e`. Undirected edge `e` is message `2 e` from its first node to its second,
/// and message `2 e + 1` in the other direction.
#[derive(Debug)]
pub struct Neighbours {
    incoming: Csr,
    /// The targets of each node's outgoing edges. The field is `None` for undirected graphs, whose edges
    /// count as incoming at both of their nodes.
    outgoing: Option<Csr>,
}

impl Neighbours {
    fn new(arrays: &GraphArrays) -> Self {
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

    /// The number of messages along all edges of the batch.
    #[must_use]
    pub fn n_messages(&self) -> usize {
        self.incoming.entries.len()
    }

    /// Returns the sources of the edges into a node (undirected: its neighbours), each with the index of the
    /// message along the edge.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn incoming(&self, node: usize) -> &[(u32, u32)] {
        self.incoming.row(node)
    }

    /// Returns the targets of the edges out of a node, each with the index of the message along the edge;
    /// `None` in undirected graphs.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn outgoing(&self, node: usize) -> Option<&[(u32, u32)]> {
        self.outgoing.as_ref().map(|csr| csr.row(node))
    }
}

/// Compressed sparse rows: one row of entries for each node, concatenated.
#[derive(Debug)]
struct Csr {
    /// The entries of all nodes' rows. An entry holds a neighbour, and the index of the message from or to
    /// this neighbour.
    entries: Vec<(u32, u32)>,
    /// The index of each node's first entry, followed by the number of entries.
    offsets: Vec<usize>,
}

impl Csr {
    /// Groups messages `(from, to, index)` by receiver. The grouping is a counting sort that keeps the order
    /// of messages to the same receiver.
    fn new(n: usize, messages: impl Iterator<Item = (u32, u32, u32)> + Clone) -> Self {
        let mut offsets = vec![0; n + 1];
        for (_, to, _) in messages.clone() {
            offsets[to as usize + 1] += 1;
        }
        for node in 0..n {
            offsets[node + 1] += offsets[node];
        }
        let mut next = offsets.clone();
        let mut entries = vec![(0, 0); offsets[n]];
        for (from, to, index) in messages {
            let place = &mut next[to as usize];
            entries[*place] = (from, index);
            *place += 1;
        }
        Self { entries, offsets }
    }

    fn row(&self, node: usize) -> &[(u32, u32)] {
        &self.entries[self.offsets[node]..self.offsets[node + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Rows;
    use crate::graph::GraphStates;

    #[test]
    fn arrays_follow_edits_of_the_graphs() {
        for kind in [GraphKind::Directed, GraphKind::Undirected] {
            let edges = [(0, 1, Edge::from_class(2)), (2, 1, Edge::default()), (3, 0, Edge::from_class(1))];
            let graph = GraphState::from_parts(kind, &[0, 3, 1, 0].map(Node::from_class), &edges).unwrap();
            let mut states =
                GraphStates::from(vec![graph.clone(), GraphState::new(kind), graph.induced(&[3, 2, 0])]);
            check(&states);
            states.graphs_mut()[1].add_node(Node::from_class(7));
            check(&states);
            states.append(states.select(&[2, 0]));
            check(&states);
            check(&states.clone().permute(&[3, 0, 4, 2, 1]));
        }
    }

    fn check(states: &GraphStates) {
        let arrays = states.arrays();
        let graphs = states.graphs();
        assert_eq!(arrays.len(), graphs.len());
        assert_eq!(arrays.n_pairs(), graphs.iter().map(|graph| graph.n_nodes().pow(2)).sum::<usize>());
        let neighbours = arrays.neighbours();
        let mut pairs = arrays.edge_pairs();
        for (g, graph) in graphs.iter().enumerate() {
            let first = arrays.node_ptr[g];
            let first_edge = arrays.edge_ptr[g];
            let nodes: Vec<Node> = graph.nodes().collect();
            assert_eq!(arrays.nodes[first..arrays.node_ptr[g + 1]], nodes);
            let listed: Vec<(u32, u32)> = arrays.edges_of(g).map(|(a, b, _)| (a as u32, b as u32)).collect();
            assert_eq!(listed, graph.edges().collect::<Vec<_>>());
            for (e, (a, b, edge)) in arrays.edges_of(g).enumerate() {
                assert_eq!(Some(edge), graph.edge(a as u32, b as u32));
                assert_eq!(pairs.next(), Some(arrays.pair_ptr[g] + a * nodes.len() + b));
                let a = first + a;
                let b = first + b;
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
}
