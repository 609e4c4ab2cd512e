//! Equivalence classes of nodes that message passing can't tell apart. Each class is evaluated once.

use super::Conv;
use crate::graph::{Edge, GraphArrays, Neighbours};
use crate::nn::graph::engine::Engine;
use crate::nn::graph::features::{Counts, Labels, NodeFeatures, closed_walks, degrees, sizes_of_nodes};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tch::Tensor;

/// A key that identifies a node's class: its features, or its colour and those of its neighbours.
type Key = SmallVec<[i64; 24]>;

/// A separator between the parts of a [`Key`]; no colour or class has this value.
const END: i64 = -1;

/// The rounds of a network, as far as they decide which nodes get equal values.
#[derive(Debug)]
pub(in crate::nn) struct Plan {
    /// The labels that are told apart.
    pub(super) labels: Labels,
    /// The counts that nodes are told apart by.
    pub(super) counts: Counts,
    pub(super) rounds: usize,
    pub(super) messages: MessageKind,
    /// What a node gets depends on its whole graph, so that each node has a row after each round.
    pub(super) whole: bool,
}

impl Plan {
    /// The rounds on these features.
    pub(in crate::nn) fn new(features: &NodeFeatures, convs: &[Conv]) -> Self {
        Self {
            labels: features.labels(),
            counts: features.counts(),
            rounds: convs.len(),
            messages: convs.first().map_or(MessageKind::Sum, Conv::message_kind),
            whole: convs.iter().any(Conv::reads_whole),
        }
    }
}

/// The rows that each round of a network computes, `R_0 <= R_1 <= .. <= N`.
///
/// After `k` rounds a node's value depends only on what is at most `k` edges away. Successive states of a
/// trajectory differ by one action, so most of their nodes have equal values. Nodes are coloured by
/// Weisfeiler-Leman refinement: two nodes get one colour if they had one before and so had their neighbours.
/// A round computes one row for each colour. This is exact: nodes of one colour get the same value from any
/// round. Where an engine sums by products of matrices, each node has a row from the start.
///
/// `T` is an engine's type of indices.
pub(crate) struct MessageRounds<T> {
    /// One representative node for each row of features, `[R_0]`.
    pub(crate) features: Vec<usize>,
    /// The rounds, in order.
    pub(crate) rounds: Vec<MessageRound<T>>,
    /// The row of each node after the last round, `[N]`; `None` if every node has its own row.
    pub(crate) index: Option<T>,
}

/// One round, from `R` rows to `R'` rows.
pub(crate) struct MessageRound<T> {
    /// For each row after the round, the same node's row before it, `[R']`; `None` if the rows are the same.
    pub(crate) own: Option<T>,
    /// The table entry of each message, receiver by receiver, `[M]`: see [`MessageKind`].
    pub(crate) entries: T,
    /// The start of each receiver's messages, `[R']`.
    pub(crate) offsets: T,
    /// Only for messages with edges: the index of each message in the batch and the row that receives it,
    /// `[M]` both. Messages against the direction of their edge have the indices after all others.
    along: Option<(T, T)>,
}

/// The messages that a node receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MessageKind {
    /// From neighbours, whatever the direction of edges. Table entries are rows.
    Sum,
    /// From neighbours, with the edge's features and direction. Table entries are rows.
    WithEdges,
    /// The same, and from the node itself; these messages have the index after all others. Table entries are
    /// rows.
    WithEdgesAndItself,
    /// From the node itself, from sources of incoming edges and from targets of outgoing ones, with a linear
    /// map for each. Table entries are `3 row`, `3 row + 1` and `3 row + 2`.
    BySide,
}

impl MessageKind {
    fn has_edges(self) -> bool {
        matches!(self, Self::WithEdges | Self::WithEdgesAndItself)
    }
}

impl<T> MessageRounds<T> {
    /// If rows per node exceed this share, each node gets its own row, because gathering costs something,
    /// too.
    const WORTHWHILE: f64 = 0.8;

    /// The classes for the rounds of a plan over an engine's graphs.
    pub(crate) fn new<E: Engine<Index = T>>(engine: &E, plan: &Plan) -> Self {
        let (arrays, kind) = (engine.arrays(), plan.messages);
        let n = arrays.nodes.len();
        let apart = kind == MessageKind::Sum && plan.rounds > 0 && engine.sums_over_neighbours();
        let mut colours = if apart { Colours::all(n) } else { Colours::of(n, feature_keys(arrays, plan)) };
        let features = colours.representatives.clone();
        let edges = if kind.has_edges() { edge_keys(arrays) } else { Vec::new() };
        let mut made = Vec::with_capacity(plan.rounds);
        for _ in 0..plan.rounds {
            let mut next = Colours::all(n);
            if !colours.distinct() && !plan.whole {
                let refined = colours.refined(arrays.neighbours(), &edges);
                if (refined.representatives.len() as f64) < Self::WORTHWHILE * n as f64 {
                    next = refined;
                }
            }
            made.push(MessageRound::new(engine, &colours, &next.representatives, kind));
            colours = next;
        }
        Self { features, rounds: made, index: colours.index().map(|index| engine.index(index)) }
    }

    /// Each node's row after the last round, `[N, D]`.
    pub(crate) fn of_nodes<E: Engine<Index = T>>(&self, engine: &E, rows: &E::Rows) -> E::Rows {
        engine.gather(rows, self.index.as_ref())
    }
}

impl<T> MessageRound<T> {
    fn new<E: Engine<Index = T>>(engine: &E, before: &Colours, receivers: &[usize], kind: MessageKind) -> Self {
        let neighbours = engine.arrays().neighbours();
        let own = (!before.distinct()).then(|| receivers.iter().map(|&node| before.of[node]).collect());
        let (mut entries, mut offsets) = (Vec::new(), Vec::with_capacity(receivers.len()));
        let (mut messages, mut to) = (Vec::new(), Vec::new());
        for (row, &node) in receivers.iter().enumerate() {
            offsets.push(entries.len() as i64);
            let (incoming, outgoing) = (neighbours.incoming(node), neighbours.outgoing(node));
            let of = |&(node, _): &(u32, u32)| before.of[node as usize];
            if kind == MessageKind::BySide {
                entries.push(3 * before.of[node]);
                entries.extend(incoming.iter().map(|entry| 3 * of(entry) + 1));
                entries.extend(outgoing.unwrap_or(incoming).iter().map(|entry| 3 * of(entry) + 2));
                continue;
            }
            let outgoing = outgoing.unwrap_or_default();
            entries.extend(incoming.iter().chain(outgoing).map(of));
            if kind.has_edges() {
                let n = neighbours.n_messages() as i64;
                messages.extend(incoming.iter().map(|&(_, message)| i64::from(message)));
                messages.extend(outgoing.iter().map(|&(_, message)| n + i64::from(message)));
                if kind == MessageKind::WithEdgesAndItself {
                    entries.push(before.of[node]);
                    messages.push(if engine.arrays().is_directed() { 2 * n } else { n });
                }
                to.resize(entries.len(), row as i64);
            }
        }
        let index = |rows| engine.index(rows);
        let along = kind.has_edges().then(|| (index(messages), index(to)));
        Self { own: own.map(index), entries: index(entries), offsets: index(offsets), along }
    }

    /// Adds `relu(row + edge)` over each receiver's messages to its row of `to`, `[R', D]`, given the edge
    /// vector of each message of the batch, `[E, D]`. In directed graphs it is `[2 E, D]`: first along edges,
    /// then against them.
    pub(crate) fn add_along<E: Engine<Index = T>>(
        &self,
        engine: &E,
        to: E::Rows,
        rows: &E::Rows,
        edges: &E::Rows,
    ) -> E::Rows {
        debug_assert!(self.along.is_some(), "a round of `MessageKind::WithEdges`");
        match &self.along {
            Some((messages, receivers)) => engine.add_along(to, rows, &self.entries, edges, messages, receivers),
            None => engine.add(to, &engine.sum(rows, &self.entries, &self.offsets)),
        }
    }

    /// Attention of each receiver, by its row of `to`, to its messages, each a row and the vector of its edge
    /// as above; then that of messages to oneself. `[R', D]`.
    pub(crate) fn attend_along<E: Engine<Index = T>>(
        &self,
        engine: &E,
        to: E::Rows,
        rows: &E::Rows,
        edges: &E::Rows,
        scores: &Tensor,
    ) -> E::Rows {
        debug_assert!(self.along.is_some(), "a round of `MessageKind::WithEdgesAndItself`");
        let Some((messages, receivers)) = &self.along else { return to };
        let sent = engine.gather(rows, Some(&self.entries));
        let met = engine.add(engine.gather(&to, Some(receivers)), &sent);
        let met = engine.add(met, &engine.gather(edges, Some(messages)));
        engine.attend(&engine.head_scores(&met, scores), &sent, receivers, &self.offsets)
    }
}

/// A partition of the nodes.
struct Colours {
    /// The colour of each node.
    of: Vec<i64>,
    /// One node of each colour.
    representatives: Vec<usize>,
}

impl Colours {
    fn of(n: usize, keys: impl Iterator<Item = Key>) -> Self {
        let mut colours: FxHashMap<Key, i64> = FxHashMap::default();
        let (mut of, mut representatives) = (Vec::with_capacity(n), Vec::new());
        for (node, key) in keys.enumerate() {
            let next = representatives.len() as i64;
            let colour = *colours.entry(key).or_insert(next);
            if colour == next {
                representatives.push(node);
            }
            of.push(colour);
        }
        Self { of, representatives }
    }

    /// A colour of its own for each node.
    fn all(n: usize) -> Self {
        Self { of: (0..n as i64).collect(), representatives: (0..n).collect() }
    }

    /// `true` if each node has a colour of its own.
    fn distinct(&self) -> bool {
        self.of.len() == self.representatives.len()
    }

    /// The colour of each node, `[N]`; `None` if each has its own.
    fn index(&self) -> Option<Vec<i64>> {
        (!self.distinct()).then(|| self.of.clone())
    }

    /// One refinement step, by each node's colour and those of its neighbours. If `edges` isn't empty, the
    /// edge of a message counts, too.
    fn refined(&self, neighbours: &Neighbours, edges: &[i64]) -> Self {
        let mut received: Vec<(i64, i64)> = Vec::new();
        let keys = (0..self.of.len()).map(|node| {
            let mut key = Key::new();
            key.push(self.of[node]);
            for entries in [Some(neighbours.incoming(node)), neighbours.outgoing(node)].into_iter().flatten() {
                received.clear();
                let edge = |message: u32| edges.get(message as usize).copied().unwrap_or_default();
                received.extend(entries.iter().map(|&(from, message)| (self.of[from as usize], edge(message))));
                received.sort_unstable();
                key.push(END);
                key.extend(received.iter().flat_map(|&(colour, edge)| [colour, edge]));
            }
            key
        });
        Self::of(self.of.len(), keys)
    }
}

/// Each node's key before the first round: its features.
fn feature_keys<'a>(arrays: &'a GraphArrays, plan: &'a Plan) -> impl Iterator<Item = Key> + 'a {
    let sizes = if plan.counts.degrees { sizes_of_nodes(arrays) } else { Vec::new() };
    let lengths = plan.counts.closed_walks;
    let walks = if lengths > 0 { closed_walks(arrays, lengths) } else { Vec::new() };
    arrays.nodes.iter().zip(&arrays.labels).enumerate().map(move |(at, (node, &label))| {
        let mut key = Key::new();
        key.push(plan.labels.class(label) as i64);
        key.push(i64::from(node.class));
        key.extend(node.attributes.values().iter().map(|&value| i64::from(value)));
        if let Some(&n) = sizes.get(at) {
            key.push(END);
            key.extend(degrees(arrays, at).chain([n]).map(|number| number as i64));
        }
        key.extend(walks.iter().skip(at * lengths).take(lengths).map(|number| number.to_bits() as i64));
        key
    })
}

/// A number for each message that identifies its edge's features.
fn edge_keys(arrays: &GraphArrays) -> Vec<i64> {
    let each = arrays.messages_per_edge();
    let mut numbers: FxHashMap<Edge, i64> = FxHashMap::default();
    let mut keys = Vec::with_capacity(each * arrays.edges.len());
    for &edge in &arrays.weights {
        let next = numbers.len() as i64;
        let number = *numbers.entry(edge).or_insert(next);
        keys.resize(keys.len() + each, number);
    }
    keys
}
