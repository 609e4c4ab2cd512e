use gfn::env::Direction;
use gfn::graph::{AddEdge, Anchor, Edge, GraphActionType, GraphState, GraphView, Head, Move, Semantics};
use gfn::{Error, Result};
use petgraph::algo::has_path_connecting;
use petgraph::graph::NodeIndex;
use smallvec::SmallVec;

/// An action type that adds an edge, without class or attributes, if the edge closes no directed cycle. The
/// backward action identifies the removed edge by its pair of nodes, not by an index of the edge.
///
/// All graphs of `n` nodes therefore have the same slots in both directions: slot `source * n + target`
/// belongs to the pair (source, target). Networks on vectors, such as
/// [`MlpPolicy`](gfn::policy::MlpPolicy), can have a logit for each slot.
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env, Slots};
/// use gfn::graph::{ActionSet, Free, GraphEnv, GraphKind, GraphSchema, GraphState, Semantics};
/// use gfn_dags::AddArc;
/// let (kind, actions) = (GraphKind::Directed, ActionSet::new(Semantics::Labelled).with(AddArc));
/// let env = GraphEnv::new(Free, actions, GraphState::with_nodes(kind, 3))?;
/// let mut states = env.initial(&[0]);
/// env.step(Direction::Forward, &mut states, &Slots(vec![5]))?;
/// assert_eq!(env.masks(Direction::Backward, &states).legal_slots(0).collect::<Vec<_>>(), [5]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddArc;

impl GraphActionType for AddArc {
    fn name(&self) -> &str {
        "add_arc"
    }

    fn head(&self, _: Direction) -> Option<Head> {
        Some(Head { anchor: Anchor::NodePair, width: 1 })
    }

    fn mask(&self, direction: Direction, _: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        match direction {
            Direction::Forward => mark_open(&graph, mask),
            Direction::Backward => {
                let all = !graph.has_edge_weights();
                let plain = graph.edges().filter(|&(a, b)| all || graph.edge(a, b) == Some(Edge::default()));
                for (a, b) in plain {
                    mask[a as usize * graph.n_nodes() + b as usize] = true;
                }
            }
        }
    }

    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        let names = || format!("{} -> {} in {graph}", action.a, action.b);
        if direction == Direction::Forward {
            let from = NodeIndex::new(action.b as usize);
            let to = NodeIndex::new(action.a as usize);
            let nodes = [action.a, action.b].iter().all(|&node| (node as usize) < graph.n_nodes());
            match graph.as_directed().filter(|_| nodes) {
                None => return Err(Error::contract("an arc joins two nodes of a directed graph", names())),
                Some(joined) => {
                    // The edge closes a cycle if a path leads from its target to its source. The search for a
                    // path is skipped if the target has no children, which is the most frequent case.
                    let goes_on = from == to || graph.adjacency().count(from.index()) > 0;
                    if goes_on && has_path_connecting(joined, from, to, None) {
                        return Err(Error::contract("an arc must not close a directed cycle", names()));
                    }
                }
            }
        }
        AddEdge::new(1).apply(direction, graph, action)
    }

    fn reverse(&self, _: Direction, _: &GraphState, action: Move) -> Move {
        action
    }
}

/// Marks the legal pairs of nodes in `mask`: those that have no edge yet, and whose edge would close no
/// cycle. Masks take a noticeable part of the training time, so sets of nodes are handled as 64-bit words.
fn mark_open(graph: &GraphState, mask: &mut [bool]) {
    let n = graph.n_nodes();
    let adjacency = graph.adjacency();
    let stride = n.div_ceil(64);
    // Each node has a row of bits for the node itself and its descendants. A row starts with the node and its
    // children, and Warshall's algorithm adds the other descendants. The rows are stored on the stack if they
    // have at most 64 words in total. A larger array on the stack would slow down every call.
    let mut below: SmallVec<[u64; 64]> = SmallVec::from_elem(0, n * stride);
    for (a, row) in below.chunks_exact_mut(stride.max(1)).enumerate() {
        match adjacency.bits(a) {
            Some(words) => row.copy_from_slice(words),
            None => adjacency.neighbours(a).for_each(|b| row[b / 64] |= 1 << (b % 64)),
        }
        row[a / 64] |= 1 << (a % 64);
    }
    for k in 0..n {
        let word = k / 64;
        let bit = 1 << (k % 64);
        for a in (0..n).map(|a| a * stride).filter(|&a| a != k * stride) {
            if below[a + word] & bit != 0 {
                for w in 0..stride {
                    below[a + w] |= below[k * stride + w];
                }
            }
        }
    }
    for (a, row) in mask.chunks_exact_mut(n.max(1)).enumerate() {
        let word = a / 64;
        let bit = 1 << (a % 64);
        for (legal, below) in row.iter_mut().zip(below.chunks_exact(stride)) {
            *legal = below[word] & bit == 0;
        }
        for b in adjacency.neighbours(a) {
            row[b] = false;
        }
    }
}
