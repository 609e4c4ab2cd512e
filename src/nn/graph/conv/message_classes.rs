//! Equivalence classes of nodes that message passing can't tell apart. Each class is evaluated once.

use std::collections::HashMap;

use smallvec::SmallVec;
use tch::{Device, Tensor};

use crate::graph::{Edge, GraphArrays, Neighbours};
use crate::nn::graph::node_features::Labels;

/// A key that identifies a node's class: its features, or its colour and those of its neighbours.
type Key = SmallVec<[i64; 24]>;

/// A separator between the parts of a [`Key`]; no colour or class has this value.
const END: i64 = -1;

/// The rows that each round of a network computes, `R_0 <= R_1 <= .. <= N`.
///
/// After `k` rounds a node's value depends only on what is at most `k` edges away. Successive states of a trajectory
/// differ by one action, so most of their nodes have equal values. Nodes are coloured by Weisfeiler-Leman refinement:
/// two nodes get one colour if they had one before and so had their neighbours. A round computes one row for each
/// colour. This is exact: nodes of one colour get the same value from any round.
///
/// `T` is the type of indices: `Vec<i64>` on the host, [`Tensor`] on a device.
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
    /// Only for [`MessageKind::WithEdges`]: the index of each message in the batch and the row that receives it, `[M]`
    /// both. Messages against the direction of their edge have the indices after all others.
    along: Option<(T, T)>,
}

/// The messages that a node receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MessageKind {
    /// From neighbours, whatever the direction of edges. Table entries are rows.
    Sum,
    /// The same, and from the whole graph: each node has a row after each round. Table entries are rows.
    SumAndWhole,
    /// From neighbours, with the edge's features and direction. Table entries are rows.
    WithEdges,
    /// From the node itself, from sources of incoming edges and from targets of outgoing ones, with a linear map for
    /// each. Table entries are `3 row`, `3 row + 1` and `3 row + 2`.
    BySide,
}

impl MessageRounds<Vec<i64>> {
    /// If rows per node exceed this share, each node gets its own row, because gathering costs something, too.
    const WORTHWHILE: f64 = 0.8;

    /// The classes for `rounds` rounds over some graphs, in which these labels are told apart.
    pub(crate) fn new(arrays: &GraphArrays, labels: &Labels, rounds: usize, message_kind: MessageKind) -> Self {
        let n = arrays.nodes.len();
        let mut colours = Colours::of(n, feature_keys(arrays, labels));
        let features = colours.representatives.clone();
        if rounds == 0 {
            return Self { features, rounds: Vec::new(), index: colours.index() };
        }
        let neighbours = arrays.neighbours();
        let edges = if message_kind == MessageKind::WithEdges { edge_keys(arrays) } else { Vec::new() };
        let mut out = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let next = match colours.distinct() || message_kind == MessageKind::SumAndWhole {
                true => Colours::all(n),
                false => {
                    let next = colours.refined(neighbours, &edges);
                    let few = (next.representatives.len() as f64) < Self::WORTHWHILE * n as f64;
                    if few { next } else { Colours::all(n) }
                }
            };
            out.push(MessageRound::new(&colours, &next.representatives, neighbours, message_kind));
            colours = next;
        }
        Self { features, rounds: out, index: colours.index() }
    }

    /// The rounds with their indices on a device.
    pub(crate) fn on_device(self, device: Device) -> MessageRounds<Tensor> {
        let tensor = |values: &Vec<i64>| Tensor::from_slice(values).to_device(device);
        let round = |round: &MessageRound<Vec<i64>>| MessageRound {
            own: round.own.as_ref().map(tensor),
            entries: tensor(&round.entries),
            offsets: tensor(&round.offsets),
            along: round.along.as_ref().map(|(messages, to)| (tensor(messages), tensor(to))),
        };
        MessageRounds {
            features: self.features,
            rounds: self.rounds.iter().map(round).collect(),
            index: self.index.as_ref().map(tensor),
        }
    }
}

impl MessageRounds<Tensor> {
    /// Each node's row after the last round, `[N, D]`.
    pub(crate) fn of_nodes(&self, rows: &Tensor) -> Tensor {
        gather(rows, self.index.as_ref())
    }
}

impl MessageRound<Vec<i64>> {
    fn new(before: &Colours, receivers: &[usize], neighbours: &Neighbours, message_kind: MessageKind) -> Self {
        let own = (!before.distinct()).then(|| receivers.iter().map(|&node| before.of[node]).collect());
        let (mut entries, mut offsets) = (Vec::new(), Vec::with_capacity(receivers.len()));
        let (mut messages, mut to) = (Vec::new(), Vec::new());
        for (row, &node) in receivers.iter().enumerate() {
            offsets.push(entries.len() as i64);
            let (incoming, outgoing) = (neighbours.incoming(node), neighbours.outgoing(node));
            let of = |&(node, _): &(u32, u32)| before.of[node as usize];
            match message_kind {
                MessageKind::Sum | MessageKind::SumAndWhole => {
                    entries.extend(incoming.iter().chain(outgoing.unwrap_or_default()).map(of))
                }
                MessageKind::WithEdges => {
                    let outgoing = outgoing.unwrap_or_default();
                    entries.extend(incoming.iter().chain(outgoing).map(of));
                    messages.extend(incoming.iter().map(|&(_, message)| i64::from(message)));
                    let n = neighbours.n_messages() as i64;
                    messages.extend(outgoing.iter().map(|&(_, message)| n + i64::from(message)));
                    to.resize(entries.len(), row as i64);
                }
                MessageKind::BySide => {
                    entries.push(3 * before.of[node]);
                    entries.extend(incoming.iter().map(|entry| 3 * of(entry) + 1));
                    entries.extend(outgoing.unwrap_or(incoming).iter().map(|entry| 3 * of(entry) + 2));
                }
            }
        }
        Self { own, entries, offsets, along: (message_kind == MessageKind::WithEdges).then_some((messages, to)) }
    }

    /// The row before the round of the node of a row after it.
    pub(super) fn own_row(&self, row: usize) -> i64 {
        self.own.as_ref().map_or(row as i64, |own| own[row])
    }

    /// The entries that a row sums.
    pub(super) fn entries_of(&self, row: usize) -> std::ops::Range<usize> {
        let end = self.offsets.get(row + 1).map_or(self.entries.len(), |&end| end as usize);
        self.offsets[row] as usize..end
    }

    /// The number in the batch of the message of an entry; 0 where messages don't depend on edges.
    pub(super) fn number(&self, entry: usize) -> i64 {
        self.along.as_ref().map_or(0, |(messages, _)| messages[entry])
    }
}

impl MessageRound<Tensor> {
    /// For each row after the round, the same node's row before it, `[R', D]`.
    pub(crate) fn own(&self, rows: &Tensor) -> Tensor {
        gather(rows, self.own.as_ref())
    }

    /// The sum of each receiver's table entries, `[R', D]`.
    pub(crate) fn sum(&self, table: &Tensor) -> Tensor {
        sum_rows(table, &self.entries, &self.offsets)
    }

    /// The sum of `relu(row + edge)` over each receiver's messages, `[R', D]`, given the edge vector of each message of
    /// the batch, `[E, D]`. In directed graphs it is `[2 E, D]`: first along edges, then against them.
    pub(crate) fn sum_along(&self, rows: &Tensor, edges: &Tensor) -> Tensor {
        let shape = [self.offsets.size()[0], rows.size()[1]];
        let sum = Tensor::zeros(shape, (rows.kind(), rows.device()));
        debug_assert!(self.along.is_some(), "a round of `MessageKind::WithEdges`");
        match &self.along {
            None => sum,
            Some((messages, to)) => {
                let sent = (rows.index_select(0, &self.entries) + edges.index_select(0, messages)).relu();
                sum.index_add(0, to, &sent)
            }
        }
    }
}

fn gather(rows: &Tensor, index: Option<&Tensor>) -> Tensor {
    index.map_or_else(|| rows.shallow_clone(), |index| rows.index_select(0, index))
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
        let mut colours: HashMap<Key, i64> = HashMap::new();
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

    /// Whether each node has a colour of its own.
    fn distinct(&self) -> bool {
        self.of.len() == self.representatives.len()
    }

    /// The colour of each node, `[N]`; `None` if each has its own.
    fn index(&self) -> Option<Vec<i64>> {
        (!self.distinct()).then(|| self.of.clone())
    }

    /// One refinement step, by each node's colour and those of its neighbours. If `edges` isn't empty, the edge of a
    /// message counts, too.
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
fn feature_keys<'a>(arrays: &'a GraphArrays, labels: &'a Labels) -> impl Iterator<Item = Key> + 'a {
    arrays.nodes.iter().zip(&arrays.labels).map(move |(node, &label)| {
        let mut key = Key::new();
        key.push(labels.class(label) as i64);
        key.push(i64::from(node.class));
        key.extend(node.attributes.values().iter().map(|&value| i64::from(value)));
        key
    })
}

/// A number for each message that identifies its edge's features.
fn edge_keys(arrays: &GraphArrays) -> Vec<i64> {
    let each = arrays.messages_per_edge();
    let mut numbers: HashMap<Edge, i64> = HashMap::new();
    let mut keys = Vec::with_capacity(each * arrays.edges.len());
    for &edge in &arrays.weights {
        let next = numbers.len() as i64;
        let number = *numbers.entry(edge).or_insert(next);
        keys.resize(keys.len() + each, number);
    }
    keys
}

/// Sums of rows of `table` by segment: segment `i` holds `table[indices[offsets[i]..offsets[i + 1]]]`, the last one to the end.
fn sum_rows(table: &Tensor, indices: &Tensor, offsets: &Tensor) -> Tensor {
    const SUM: i64 = 0;
    if offsets.numel() == 0 || indices.numel() == 0 {
        return Tensor::zeros([offsets.size()[0], table.size()[1]], (table.kind(), table.device()));
    }
    // embedding_bag gathers and sums in one pass: measured 1.6 times faster than index_select and index_add, both ways.
    Tensor::embedding_bag::<Tensor>(table, indices, offsets, false, SUM, false, None, false).0
}
