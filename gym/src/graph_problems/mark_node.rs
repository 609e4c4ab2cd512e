//! The only action type of graph problems, which chooses a node. It also marks all nodes that the choice
//! forces into the solution or out of it.

use gfn::env::Direction;
use gfn::graph::{
    Adjacency, Anchor, GraphActionType, GraphSchema, GraphState, GraphView, Head, Move, Node, Semantics,
};
use gfn::{Error, Result};

use super::Problem;

/// The mark of a node: its relation to the solution so far. The mark is stored as the node's attribute 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mark {
    /// The node is neither in the solution nor excluded from it, so it can still be chosen.
    Undecided,
    /// The node belongs to the solution. For a cut, the node has changed sides.
    In,
    /// The node doesn't belong to the solution.
    Out,
}

impl Mark {
    /// Returns the mark that a node of a state has.
    #[must_use]
    pub fn from_node(node: Node) -> Self {
        match node.attributes.get(0) {
            0 => Self::Undecided,
            1 => Self::In,
            _ => Self::Out,
        }
    }

    fn value(self) -> u8 {
        match self {
            Self::Undecided => 0,
            Self::In => 1,
            Self::Out => 2,
        }
    }
}

/// An action type that chooses a node and marks it. The action also marks all other nodes that the choice
/// forces into the solution or out of it. A backward action undoes the choice of any one of the chosen nodes.
///
/// Chosen nodes are in the solution. The exception is a dominating set, from which chosen nodes are removed.
/// If a set of nodes can be chosen, each of its subsets can be chosen, too. The marks depend on the set of
/// chosen nodes, not on their order.
///
/// ```
/// use gfn::{env::Direction, graph::*};
/// use gfn_gym::graph_problems::{Mark, MarkNode, Problem};
/// let mut path = GraphFormat::EdgeList.read(b"graph undirected 3\nedge 0 1\nedge 1 2")?.remove(0);
/// MarkNode(Problem::IndependentSet).apply(Direction::Forward, &mut path, Move { a: 0, ..Move::default() })?;
/// assert_eq!(path.nodes().map(Mark::from_node).collect::<Vec<_>>(), [Mark::In, Mark::Out, Mark::Undecided]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkNode(pub Problem);

impl GraphActionType for MarkNode {
    fn name(&self) -> &str {
        "mark_node"
    }
    fn head(&self, _: Direction) -> Option<Head> {
        Some(Head { anchor: Anchor::Node, width: 1 })
    }
    fn widen(&self, schema: &mut GraphSchema) {
        schema.node_attributes = vec![2];
    }
    fn mask(&self, direction: Direction, _: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        let wanted = self.mark_before(direction);
        for (legal, node) in mask.iter_mut().zip(graph.nodes()) {
            *legal = Mark::from_node(node) == wanted;
        }
    }
    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        let node = graph.node(action.a).unwrap_or_default();
        if Mark::from_node(node) != self.mark_before(direction) || action.a as usize >= graph.n_nodes() {
            return Err(Error::contract(
                "only an undecided node can be chosen, and only the choice of a chosen node can be undone",
                format!("this isn't so for node {} of {graph}", action.a),
            ));
        }
        let mut chosen = self.chosen_nodes(graph);
        chosen.set(action.a as usize, direction == Direction::Forward);
        self.mark(graph, &chosen)
    }
    fn reverse(&self, _: Direction, _: &GraphState, action: Move) -> Move {
        action
    }
}

impl MarkNode {
    /// Returns the mark that a node gets when it is chosen.
    fn choice(self) -> Mark {
        if self.0 == Problem::DominatingSet { Mark::Out } else { Mark::In }
    }

    fn mark_before(self, direction: Direction) -> Mark {
        match direction {
            Direction::Forward => Mark::Undecided,
            Direction::Backward => self.choice(),
        }
    }

    pub(super) fn chosen_nodes(self, graph: &GraphState) -> NodeSet {
        let mut chosen = NodeSet::new(graph.n_nodes());
        for (a, node) in graph.nodes().enumerate() {
            if Mark::from_node(node) == self.choice() {
                chosen.set(a, true);
            }
        }
        chosen
    }

    /// Sets the marks of all nodes of a graph to those that follow from these chosen nodes.
    pub(super) fn mark(self, graph: &mut GraphState, chosen: &NodeSet) -> Result<()> {
        let marks = self.marks(graph, chosen);
        for (a, mark) in (0..).zip(marks) {
            let mut node = graph.node(a).unwrap_or_default();
            if Mark::from_node(node) != mark {
                node.attributes.set(0, mark.value());
                graph.set_node(a, node)?;
            }
        }
        Ok(())
    }

    /// Returns the mark that each node has if exactly these nodes are chosen.
    pub(super) fn marks(self, graph: &GraphState, chosen: &NodeSet) -> Vec<Mark> {
        let n = graph.n_nodes();
        let adjacency = graph.adjacency();
        // `near` holds for each node the number of nodes that can dominate it: the node itself and its
        // neighbours, without the nodes that are out of the set. In this problem these are the chosen nodes.
        // Only dominating sets need this number.
        let near: Vec<usize> = match self.0 {
            Problem::DominatingSet => (0..n)
                .map(|a| adjacency.count(a) - chosen.common(adjacency, a) + usize::from(!chosen.has(a)))
                .collect(),
            _ => Vec::new(),
        };
        let n_chosen = chosen.len();
        let mark = |a: usize| {
            if chosen.has(a) {
                return self.choice();
            }
            let (forced, to) = match self.0 {
                Problem::IndependentSet => (chosen.common(adjacency, a) > 0, Mark::Out),
                Problem::Clique => (chosen.common(adjacency, a) < n_chosen, Mark::Out),
                Problem::DominatingSet => {
                    (near[a] < 2 || adjacency.neighbours(a).any(|b| near[b] < 2), Mark::In)
                }
                Problem::Cut => (false, Mark::Out),
            };
            if forced { to } else { Mark::Undecided }
        };
        (0..n).map(mark).collect()
    }
}

/// A set of nodes as bits: bit `a % 64` of word `a / 64` represents node `a`. The rows of an adjacency matrix
/// have the same layout.
pub(super) struct NodeSet(Vec<u64>);

impl NodeSet {
    pub(super) fn new(n: usize) -> Self {
        Self(vec![0; n.div_ceil(64)])
    }

    pub(super) fn set(&mut self, a: usize, is_in: bool) {
        let bit = 1 << (a % 64);
        self.0[a / 64] = self.0[a / 64] & !bit | if is_in { bit } else { 0 };
    }

    pub(super) fn has(&self, a: usize) -> bool {
        self.0[a / 64] >> (a % 64) & 1 == 1
    }

    fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the number of neighbours of node `a` that belong to the set.
    fn common(&self, adjacency: &Adjacency, a: usize) -> usize {
        match adjacency.bits(a) {
            Some(bits) => self.0.iter().zip(bits).map(|(x, y)| (x & y).count_ones() as usize).sum(),
            None => adjacency.neighbours(a).filter(|&b| self.has(b)).count(),
        }
    }
}
