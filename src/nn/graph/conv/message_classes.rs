//! Which nodes of a batch rounds of messages can't tell apart: these are evaluated once.

use std::collections::HashMap;

use smallvec::SmallVec;
use tch::{Device, Tensor};

use crate::graph::{Edge, GraphState, sum_rows};

/// What tells a node from others: its features, or its colour and those of its neighbours.
type Key = SmallVec<[i64; 24]>;

/// Between the parts of a [`Key`]: neither a colour nor a class.
const END: i64 = -1;

/// The nodes that the rounds of a network compute, `R_0 <= R_1 <= .. <= N` rows of them.
///
/// After `k` rounds a node's value depends on what is at most `k` edges away, and the states of a trajectory differ by one action each:
/// most nodes of one are as they were in the one before. Nodes are coloured by the refinement of Weisfeiler and Leman (two have one
/// colour if they had one before and so had their neighbours), and a round computes one row for each colour. That is exact: nodes of
/// one colour get the same value from any round.
///
/// `T` is where indices are: `Vec<i64>` on the host, [`Tensor`] on a device.
pub(crate) struct MessageRounds<T> {
    /// A node for each row of features, `[R_0]`.
    pub(crate) features: T,
    /// What each round does.
    pub(crate) rounds: Vec<MessageRound<T>>,
    /// The row of each node after the last round, `[N]`; `None` where nodes are the rows.
    pub(crate) index: Option<T>,
}

/// From the `R` rows before a round to the `R'` rows after it.
pub(crate) struct MessageRound<T> {
    /// The row before of each row after, `[R']`; `None` where they are the same.
    pub(crate) own: Option<T>,
    /// The entry of the table that each message is, receiver by receiver, `[M]`: see [`MessageKind`].
    pub(crate) entries: T,
    /// Where each receiver's messages start, `[R']`.
    pub(crate) offsets: T,
    /// For [`MessageKind::WithEdges`]: which message of the batch each is, those against the direction of their edge behind all others, and the
    /// row that it goes to, `[M]` both.
    along: Option<(T, T)>,
}

/// What a node hears.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MessageKind {
    /// Its neighbours, whichever way edges go: entries are rows.
    Sum,
    /// Its neighbours, what the edges are, and which way they go: entries are rows.
    WithEdges,
    /// Itself, sources and targets, each in a way of its own: entries are `3 row`, `3 row + 1` and `3 row + 2`.
    BySide,
}

impl MessageRounds<Vec<i64>> {
    /// The share of rows among nodes from which on each node is a row: gathering costs something, too.
    const WORTHWHILE: f64 = 0.8;

    /// What `rounds` rounds do with the nodes of some graphs, of whose labels so many are told apart.
    pub(crate) fn new(graphs: &[GraphState], n_labels: usize, rounds: usize, hearing: MessageKind) -> Self {
        let n: usize = graphs.iter().map(GraphState::n_nodes).sum();
        let mut colours = Colours::of(n, feature_keys(graphs, n_labels));
        let features = colours.representatives.iter().map(|&node| node as i64).collect();
        if rounds == 0 {
            return Self { features, rounds: Vec::new(), index: colours.index() };
        }
        let lists = Lists::of(graphs, n);
        let edges = if hearing == MessageKind::WithEdges { edge_keys(graphs) } else { Vec::new() };
        let mut out = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let next = match colours.distinct() {
                true => Colours::all(n),
                false => {
                    let next = colours.refined(&lists, &edges);
                    let few = (next.representatives.len() as f64) < Self::WORTHWHILE * n as f64;
                    if few { next } else { Colours::all(n) }
                }
            };
            out.push(MessageRound::new(&colours, &next.representatives, &lists, hearing));
            colours = next;
        }
        Self { features, rounds: out, index: colours.index() }
    }

    /// The same with indices on a device.
    pub(crate) fn to_device(&self, device: Device) -> MessageRounds<Tensor> {
        let tensor = |values: &Vec<i64>| Tensor::from_slice(values).to_device(device);
        let round = |round: &MessageRound<Vec<i64>>| MessageRound {
            own: round.own.as_ref().map(tensor),
            entries: tensor(&round.entries),
            offsets: tensor(&round.offsets),
            along: round.along.as_ref().map(|(messages, to)| (tensor(messages), tensor(to))),
        };
        MessageRounds {
            features: tensor(&self.features),
            rounds: self.rounds.iter().map(round).collect(),
            index: self.index.as_ref().map(tensor),
        }
    }
}

impl MessageRounds<Tensor> {
    /// The rows after the last round for each node, `[N, D]`.
    pub(crate) fn of_nodes(&self, rows: &Tensor) -> Tensor {
        gather(rows, self.index.as_ref())
    }
}

impl MessageRound<Vec<i64>> {
    fn new(before: &Colours, receivers: &[usize], lists: &Lists, hearing: MessageKind) -> Self {
        let own = (!before.distinct()).then(|| receivers.iter().map(|&node| before.of[node]).collect());
        let (mut entries, mut offsets) = (Vec::new(), Vec::with_capacity(receivers.len()));
        let (mut messages, mut to) = (Vec::new(), Vec::new());
        for (row, &node) in receivers.iter().enumerate() {
            offsets.push(entries.len() as i64);
            let (incoming, outgoing) = (lists.incoming(node), lists.outgoing(node));
            let of = |&(node, _): &(usize, usize)| before.of[node];
            match hearing {
                MessageKind::Sum => entries.extend(incoming.iter().chain(outgoing.unwrap_or_default()).map(of)),
                MessageKind::WithEdges => {
                    let outgoing = outgoing.unwrap_or_default();
                    entries.extend(incoming.iter().chain(outgoing).map(of));
                    messages.extend(incoming.iter().map(|&(_, message)| message as i64));
                    messages.extend(outgoing.iter().map(|&(_, message)| (lists.n_messages() + message) as i64));
                    to.resize(entries.len(), row as i64);
                }
                MessageKind::BySide => {
                    entries.push(3 * before.of[node]);
                    entries.extend(incoming.iter().map(|entry| 3 * of(entry) + 1));
                    entries.extend(outgoing.unwrap_or(incoming).iter().map(|entry| 3 * of(entry) + 2));
                }
            }
        }
        Self { own, entries, offsets, along: (hearing == MessageKind::WithEdges).then_some((messages, to)) }
    }
}

impl MessageRound<Tensor> {
    /// Rows before the round where those after it are, `[R', D]`.
    pub(crate) fn own(&self, rows: &Tensor) -> Tensor {
        gather(rows, self.own.as_ref())
    }

    /// The sum of the entries that each row after the round hears, `[R', D]`.
    pub(crate) fn sum(&self, table: &Tensor) -> Tensor {
        sum_rows(table, &self.entries, &self.offsets)
    }

    /// The sum of `relu(row + edge)` over each row's messages, `[R', D]`, given what the batch's messages carry, `[E, D]`; in directed
    /// graphs `[2 E, D]`, along edges and then against them.
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

/// A partition of nodes.
struct Colours {
    /// The colour of each node.
    of: Vec<i64>,
    /// A node of each colour.
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

    /// Each node its own.
    fn all(n: usize) -> Self {
        Self { of: (0..n as i64).collect(), representatives: (0..n).collect() }
    }

    /// Whether each node has a colour of its own.
    fn distinct(&self) -> bool {
        self.of.len() == self.representatives.len()
    }

    /// The colour of each node, `[N]`; `None` where each has its own.
    fn index(&self) -> Option<Vec<i64>> {
        (!self.distinct()).then(|| self.of.clone())
    }

    /// By a node's colour and those of its neighbours; `edges` tell messages apart, too, if there are any.
    fn refined(&self, lists: &Lists, edges: &[i64]) -> Self {
        let mut heard: Vec<(i64, i64)> = Vec::new();
        let keys = (0..self.of.len()).map(|node| {
            let mut key = Key::new();
            key.push(self.of[node]);
            for entries in [Some(lists.incoming(node)), lists.outgoing(node)].into_iter().flatten() {
                heard.clear();
                let edge = |message: usize| edges.get(message).copied().unwrap_or_default();
                heard.extend(entries.iter().map(|&(from, message)| (self.of[from], edge(message))));
                heard.sort_unstable();
                key.push(END);
                key.extend(heard.iter().flat_map(|&(colour, edge)| [colour, edge]));
            }
            key
        });
        Self::of(self.of.len(), keys)
    }
}

/// Neighbours of all nodes and the messages from them.
struct Lists {
    incoming: List,
    /// Undirected graphs have none: each edge comes in at both of its ends.
    outgoing: Option<List>,
}

/// Entries of all nodes, one node after another.
struct List {
    entries: Vec<(usize, usize)>,
    /// Where each node's start, and the end of the last one's.
    offsets: Vec<usize>,
}

impl Lists {
    fn of(graphs: &[GraphState], n: usize) -> Self {
        let directed = graphs.first().is_some_and(GraphState::is_directed);
        let mut edges = Vec::new();
        let mut first = 0;
        for graph in graphs {
            edges.extend(graph.edges().map(|(a, b)| (first + a as usize, first + b as usize)));
            first += graph.n_nodes();
        }
        let edges = edges.iter().copied().enumerate();
        match directed {
            true => Self {
                incoming: List::new(n, edges.clone().map(|(e, (a, b))| (a, b, e))),
                outgoing: Some(List::new(n, edges.map(|(e, (a, b))| (b, a, e)))),
            },
            false => Self {
                incoming: List::new(n, edges.flat_map(|(e, (a, b))| [(a, b, 2 * e), (b, a, 2 * e + 1)])),
                outgoing: None,
            },
        }
    }

    /// Messages of the batch, each way along an undirected edge.
    fn n_messages(&self) -> usize {
        self.incoming.entries.len()
    }

    fn incoming(&self, node: usize) -> &[(usize, usize)] {
        self.incoming.at(node)
    }

    fn outgoing(&self, node: usize) -> Option<&[(usize, usize)]> {
        self.outgoing.as_ref().map(|list| list.at(node))
    }
}

impl List {
    /// Of messages `(from, to, message)`: a counting sort, stable.
    fn new(n: usize, messages: impl Iterator<Item = (usize, usize, usize)> + Clone) -> Self {
        let mut offsets = vec![0; n + 1];
        messages.clone().for_each(|(_, to, _)| offsets[to + 1] += 1);
        for node in 0..n {
            offsets[node + 1] += offsets[node];
        }
        let mut place = offsets.clone();
        let mut entries = vec![(0, 0); offsets[n]];
        for (from, to, message) in messages {
            entries[place[to]] = (from, message);
            place[to] += 1;
        }
        Self { entries, offsets }
    }

    fn at(&self, node: usize) -> &[(usize, usize)] {
        &self.entries[self.offsets[node]..self.offsets[node + 1]]
    }
}

/// What each node is before the first round.
fn feature_keys(graphs: &[GraphState], n_labels: usize) -> impl Iterator<Item = Key> + '_ {
    graphs.iter().flat_map(move |graph| {
        graph.nodes().enumerate().map(move |(label, node)| {
            let mut key = Key::new();
            key.push(label.min(n_labels.saturating_sub(1)) as i64);
            key.push(i64::from(node.class));
            key.extend(node.attributes.values().iter().map(|&value| i64::from(value)));
            key
        })
    })
}

/// A number for what each message's edge is.
fn edge_keys(graphs: &[GraphState]) -> Vec<i64> {
    let mut numbers: HashMap<Edge, i64> = HashMap::new();
    let mut keys = Vec::new();
    for graph in graphs {
        let each = if graph.is_directed() { 1 } else { 2 };
        for (a, b) in graph.edges() {
            let next = numbers.len() as i64;
            let number = *numbers.entry(graph.edge(a, b).unwrap_or_default()).or_insert(next);
            keys.resize(keys.len() + each, number);
        }
    }
    keys
}
