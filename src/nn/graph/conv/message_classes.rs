//! Classes of nodes for which message passing computes equal values. All nodes of a class share one row of
//! numbers, which is computed once.

use super::Conv;
use super::colours::{Colours, edge_keys};
use crate::graph::GraphArrays;
use crate::nn::graph::engine::Engine;
use crate::nn::graph::features::{Counts, Labels, NodeFeatures};
use tch::Tensor;

/// The properties of a network that decide which nodes get equal values.
#[derive(Debug)]
pub(in crate::nn) struct Plan {
    /// The class of each node label. The network doesn't distinguish labels of the same class.
    pub(super) labels: Labels,
    /// The counts (of neighbours and closed walks) that are input features of nodes.
    pub(super) counts: Counts,
    /// The number of rounds of message passing.
    pub(super) rounds: usize,
    /// The kind of messages, which is the same in all rounds.
    pub(super) messages: MessageKind,
    /// `true` if the value of a node depends on its whole graph. In this case no two nodes share a row of
    /// values after a round.
    pub(super) reads_whole_graph: bool,
}

impl Plan {
    /// Collects the properties of a network with these features and these rounds of message passing.
    pub(in crate::nn) fn new(features: &NodeFeatures, convs: &[Conv]) -> Self {
        Self {
            labels: features.labels(),
            counts: features.counts(),
            rounds: convs.len(),
            messages: convs.first().map_or(MessageKind::Sum, Conv::message_kind),
            reads_whole_graph: convs.iter().any(Conv::reads_whole_graph),
        }
    }
}

/// The rows of numbers that each round of message passing computes: one row for all nodes that have equal
/// values. The numbers of rows `R_k` after `k` rounds satisfy `R_0 <= R_1 <= .. <= N`.
///
/// After `k` rounds the value of a node depends only on nodes and edges within a distance of `k` edges.
/// Successive states of a trajectory differ by one action, so many of their nodes have equal values. Nodes
/// are coloured by Weisfeiler-Leman refinement: two nodes get the same colour if they and their neighbours
/// had the same colours before. A round computes one row for each colour. The result is exact, because nodes
/// of the same colour get the same value from any round. If the engine (the code that computes on tensors, or
/// on the host) computes sums as matrix products, each node has a separate row in all rounds.
///
/// The type `T` is the engine's type for lists of row indices.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct MessageRounds<T> {
    /// The index of one node of each class of nodes with equal features, `[R_0]`. The features of this node
    /// are computed for the whole class.
    pub(crate) features: Vec<usize>,
    /// The rounds of message passing, in order.
    pub(crate) rounds: Vec<MessageRound<T>>,
    /// The index of each node's row of values after the last round of message passing, `[N]`; `None` if row
    /// `i` belongs to node `i`.
    pub(crate) index: Option<T>,
}

/// The row indices of one round, which computes `R'` rows from `R` rows. A row holds the values of one node,
/// or of several nodes with equal values.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct MessageRound<T> {
    /// The index of each receiver's row among the rows of node values before the round, `[R']`; `None` if
    /// every node has a separate row before the round. In that case every node also has a separate row after
    /// the round, with the same index.
    pub(crate) receivers: Option<T>,
    /// The index of each message's entry in the table of messages, ordered by receiver, `[M]`. The
    /// [`MessageKind`] defines the table.
    pub(crate) entries: T,
    /// The index in `entries` of the first message to each receiver, `[R']`.
    pub(crate) offsets: T,
    /// The indices for messages that contain edge vectors (the features of an edge); `None` for other
    /// messages.
    edge_messages: Option<EdgeMessages<T>>,
}

/// The indices for messages that contain edge vectors (the features of an edge), ordered by receiver. Each
/// list is `[M]`.
#[derive(PartialEq, Eq, Debug)]
struct EdgeMessages<T> {
    /// The index of each message's edge vector. In directed graphs the vectors of messages along edges come
    /// first, followed by the vectors of messages against edges.
    edges: T,
    /// The index of the row of node values that receives each message.
    receivers: T,
}

/// The kinds of messages that nodes receive in a round. Messages are entries of a table, which is computed
/// from the rows of values before the round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MessageKind {
    /// Messages from all neighbours, regardless of the direction of edges. The table of messages has one
    /// entry per row of node values.
    Sum,
    /// Messages from all neighbours, with the features and the direction of the edge. The table of messages
    /// has one entry per row of node values.
    WithEdges,
    /// Messages as in [`WithEdges`](Self::WithEdges), and a message from the node itself. All messages of
    /// nodes to themselves share one edge vector, whose index comes after the indices of all other edge
    /// vectors. The table of messages has one entry per row of node values.
    WithEdgesAndItself,
    /// Messages from the node itself, from the sources of incoming edges and from the targets of outgoing
    /// edges, with a linear map for each of the three. The table entries of row `row` of the node values are
    /// `3 row` for messages of a node to itself, `3 row + 1` for messages along edges and `3 row + 2` for
    /// messages against edges.
    ByDirection,
}

impl MessageKind {
    fn has_edges(self) -> bool {
        matches!(self, Self::WithEdges | Self::WithEdgesAndItself)
    }
}

impl<T> MessageRounds<T> {
    /// The limit of the number of distinct rows divided by the number of nodes. From this limit on each node
    /// gets a separate row, even if some nodes have equal values. Sharing would then save few rows, and
    /// gathering shared rows costs time, too.
    const MAX_ROWS_PER_NODE: f64 = 0.8;

    /// Finds, for each round of message passing, which nodes get equal values, so that the values of all
    /// these nodes are computed as one row.
    pub(crate) fn new<E: Engine<Index = T>>(engine: &E, plan: &Plan) -> Self {
        let arrays = engine.arrays();
        let kind = plan.messages;
        let n = arrays.nodes.len();
        let needs_all_nodes = kind == MessageKind::Sum && plan.rounds > 0 && engine.sums_over_neighbours();
        let mut colours =
            if needs_all_nodes { Colours::all_distinct(n) } else { Colours::from_features(arrays, plan) };
        let features = colours.representatives.clone();
        let edges = if kind.has_edges() { edge_keys(arrays) } else { Vec::new() };
        let mut lists = Vec::with_capacity(plan.rounds);
        for _ in 0..plan.rounds {
            let mut next = Colours::all_distinct(n);
            if !colours.are_distinct() && !plan.reads_whole_graph {
                let refined = colours.refined(arrays.neighbours(), &edges);
                if (refined.representatives.len() as f64) < Self::MAX_ROWS_PER_NODE * n as f64 {
                    next = refined;
                }
            }
            lists.push(message_lists(arrays, &colours, &next.representatives, kind));
            colours = next;
        }
        let share_rows: Vec<bool> = lists.iter().map(|[receivers, ..]| !receivers.is_empty()).collect();
        let rounds = engine.index_all(lists).into_iter().zip(share_rows);
        let rounds = rounds
            .map(|([receivers, entries, offsets, edges, message_receivers], shares_rows)| MessageRound {
                receivers: shares_rows.then_some(receivers),
                entries,
                offsets,
                edge_messages: kind
                    .has_edges()
                    .then_some(EdgeMessages { edges, receivers: message_receivers }),
            })
            .collect();
        Self { features, rounds, index: colours.index().map(|index| engine.index(index)) }
    }

    /// Expands the rows after the last round, which nodes with equal values share, to one row for each node,
    /// `[N, D]`.
    pub(crate) fn expand_to_nodes<E: Engine<Index = T>>(&self, engine: &E, rows: &E::Rows) -> E::Rows {
        engine.gather(rows, self.index.as_ref())
    }
}

impl<T> MessageRound<T> {
    /// Adds messages to the rows `to` of their receivers, `[R', D]`. A message is `relu(row + edge vector)`,
    /// computed from the sender's row in `rows`. `edges` holds the edge vector of each message of the batch.
    /// In undirected graphs `edges` is `[M, D]`. In directed graphs `edges` is `[2 E, D]`: first the vectors
    /// of messages along edges, then those of messages against edges.
    pub(crate) fn add_messages<E: Engine<Index = T>>(
        &self,
        engine: &E,
        to: E::Rows,
        rows: &E::Rows,
        edges: &E::Rows,
    ) -> E::Rows {
        debug_assert!(self.edge_messages.is_some(), "a round of `MessageKind::WithEdges`");
        let Some(EdgeMessages { edges: edge_rows, receivers }) = &self.edge_messages else { return to };
        engine.add_messages(to, rows, &self.entries, edges, edge_rows, receivers)
    }

    /// Computes the attention of each receiver to its messages, `[R', D]`. `to` holds a row per receiver. A
    /// message consists of the sender's row in `rows` and an edge vector. `edges` has the vectors that
    /// `add_messages` expects, followed by one vector for messages of nodes to themselves.
    pub(crate) fn attend_along<E: Engine<Index = T>>(
        &self,
        engine: &E,
        to: E::Rows,
        rows: &E::Rows,
        edges: &E::Rows,
        scores: &Tensor,
    ) -> E::Rows {
        debug_assert!(self.edge_messages.is_some(), "a round of `MessageKind::WithEdgesAndItself`");
        let Some(EdgeMessages { edges: edge_rows, receivers }) = &self.edge_messages else { return to };
        let sent = engine.gather(rows, Some(&self.entries));
        let sum = engine.add(engine.gather(&to, Some(receivers)), &sent);
        let sum = engine.add(sum, &engine.gather(edges, Some(edge_rows)));
        engine.attend(&sum, scores, &sent, receivers, &self.offsets)
    }
}

/// Lists the messages to the nodes `receivers` in one round of message passing, as the fields `receivers`
/// (empty for `None`), `entries` and `offsets` of a [`MessageRound`], and the fields of its [`EdgeMessages`].
/// Nodes of the same colour have equal values and share a row, so the index of a sender's row before the
/// round is its colour in `before`.
fn message_lists(
    arrays: &GraphArrays,
    before: &Colours,
    receivers: &[usize],
    kind: MessageKind,
) -> [Vec<i64>; 5] {
    let neighbours = arrays.neighbours();
    let n = neighbours.n_messages() as i64;
    let mut receiver_rows = Vec::new();
    if !before.are_distinct() {
        receiver_rows.extend(receivers.iter().map(|&node| before.colour_of_node[node]));
    }
    let mut entries = Vec::new();
    let mut offsets = Vec::with_capacity(receivers.len());
    let mut messages = Vec::new();
    let mut message_receivers = Vec::new();
    for (row, &node) in receivers.iter().enumerate() {
        offsets.push(entries.len() as i64);
        let incoming = neighbours.incoming(node);
        let outgoing = neighbours.outgoing(node);
        let sender_row = |&(node, _): &(u32, u32)| before.colour_of_node[node as usize];
        if kind == MessageKind::ByDirection {
            entries.push(3 * before.colour_of_node[node]);
            entries.extend(incoming.iter().map(|entry| 3 * sender_row(entry) + 1));
            entries.extend(outgoing.unwrap_or(incoming).iter().map(|entry| 3 * sender_row(entry) + 2));
            continue;
        }
        let outgoing = outgoing.unwrap_or_default();
        entries.extend(incoming.iter().chain(outgoing).map(sender_row));
        if kind.has_edges() {
            messages.extend(incoming.iter().map(|&(_, message)| i64::from(message)));
            messages.extend(outgoing.iter().map(|&(_, message)| n + i64::from(message)));
            if kind == MessageKind::WithEdgesAndItself {
                entries.push(before.colour_of_node[node]);
                messages.push(if arrays.is_directed() { 2 * n } else { n });
            }
            message_receivers.resize(entries.len(), row as i64);
        }
    }
    [receiver_rows, entries, offsets, messages, message_receivers]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::graph::{Edge, GraphKind, GraphState, GraphStates, Node};
    use crate::nn::graph::engine::HostGraphs;
    use crate::nn::host::{Mirror, Packed};

    /// Draws graphs of 20 nodes, with enough nodes in all for four threads.
    fn random_graphs(kind: GraphKind, rng: &mut Rng) -> GraphStates {
        let mut graphs = Vec::new();
        for _ in 0..450 {
            let nodes: Vec<Node> = (0..20).map(|_| Node::from_class(rng.below(3) as u16)).collect();
            let mut graph = GraphState::from_parts(kind, &nodes, &[]).unwrap();
            for _ in 0..8 {
                let a = rng.below(19) as u32;
                let b = a + 1 + rng.below(19 - a as usize) as u32;
                if !graph.has_edge(a, b) {
                    graph.add_edge(a, b, Edge::from_class(rng.below(2) as u16)).unwrap();
                }
            }
            graphs.push(graph);
        }
        graphs.into()
    }

    #[test]
    fn rounds_do_not_depend_on_the_number_of_threads() {
        for kind in [GraphKind::Directed, GraphKind::Undirected] {
            let rng = &mut Rng::seeded(3);
            let batches = [random_graphs(kind, rng), random_graphs(kind, rng)];
            for messages in [MessageKind::Sum, MessageKind::WithEdgesAndItself, MessageKind::ByDirection] {
                let counts = Counts { degrees: true, closed_walks: 1 };
                let labels = Labels::default();
                let plan = Plan { labels, counts, rounds: 2, messages, reads_whole_graph: false };
                let rounds = |threads: usize, batch: &GraphStates| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    // The second of the calls for each list of colours is split if there are several threads.
                    pool.install(|| {
                        let packed = Packed::new(Mirror::default());
                        let copies = [batch.clone(), batch.clone(), batch.clone()];
                        let graphs = copies.each_ref().map(|copy| HostGraphs::new(copy.arrays(), &packed));
                        graphs.map(|graphs| MessageRounds::new(&graphs, &plan))
                    })
                };
                let expected = rounds(1, &batches[0]);
                let [first, ..] = &expected;
                assert!(first.features.len() > 10 && first.rounds[0].entries.len() > 1_000);
                assert!(first.index.is_some(), "nodes share rows");
                for threads in [2, 4] {
                    assert_eq!(rounds(threads, &batches[0]), expected, "{kind:?}, {messages:?}");
                }
                // Other graphs have other rounds, so the comparison can fail.
                assert_ne!(rounds(2, &batches[1]), expected);
            }
        }
    }
}
