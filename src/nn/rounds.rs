//! Which nodes of a batch rounds of messages can't tell apart: these are evaluated once.

use std::collections::HashMap;

use smallvec::SmallVec;
use tch::{Device, Tensor};

use crate::graph::{GraphBatch, sum_rows};

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
pub(crate) struct Rounds {
    /// A node for each row of features, `[R_0]`.
    pub(crate) features: Tensor,
    /// What each round does.
    pub(crate) rounds: Vec<Round>,
    /// The row of each node after the last round, `[N]`; `None` where nodes are the rows.
    index: Option<Tensor>,
}

/// From the `R` rows before a round to the `R'` rows after it.
pub(crate) struct Round {
    /// The row before of each row after, `[R']`; `None` where they are the same.
    own: Option<Tensor>,
    /// The entry of the table that each message is, receiver by receiver, `[M]`: see [`Hearing`].
    entries: Tensor,
    /// Where each receiver's messages start, `[R']`.
    offsets: Tensor,
    /// For [`Hearing::Edges`]: which message of the batch each is, and the row that it goes to, `[M]` both.
    along: Option<(Tensor, Tensor)>,
}

/// What a node hears.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// Its neighbours, whichever way edges go: entries are rows.
    Neighbours,
    /// Its neighbours, whichever way edges go, and what the edges are: entries are rows.
    Edges,
    /// Itself, sources and targets, each in a way of its own: entries are `3 row`, `3 row + 1` and `3 row + 2`.
    Apart,
}

impl Rounds {
    /// The share of rows among nodes from which on each node is a row: gathering costs something, too.
    const WORTHWHILE: f64 = 0.8;

    /// What `rounds` rounds do with the nodes of a batch that know their `labels`, or don't.
    pub(crate) fn new(batch: &GraphBatch<'_>, labels: bool, rounds: usize, hearing: Hearing) -> Self {
        let n = batch.total_nodes();
        let device = batch.device();
        let mut colours = Colours::of(n, feature_keys(batch, labels));
        let features = indices(colours.representatives.iter().map(|&node| node as i64), device);
        if rounds == 0 {
            return Self { features, rounds: Vec::new(), index: colours.index(device) };
        }
        let lists = Lists::of(batch);
        let edges = if hearing == Hearing::Edges { edge_keys(batch) } else { Vec::new() };
        let mut out = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let next = match colours.distinct() {
                true => Colours::all(n),
                false => {
                    let next = colours.refined(&lists, &edges);
                    if (next.representatives.len() as f64) < Self::WORTHWHILE * n as f64 {
                        next
                    } else {
                        Colours::all(n)
                    }
                }
            };
            out.push(Round::new(&colours, &next.representatives, &lists, hearing, device));
            colours = next;
        }
        Self { features, rounds: out, index: colours.index(device) }
    }

    /// The rows after the last round for each node, `[N, D]`.
    pub(crate) fn of_nodes(&self, rows: &Tensor) -> Tensor {
        gather(rows, self.index.as_ref())
    }
}

impl Round {
    fn new(before: &Colours, receivers: &[usize], lists: &Lists, hearing: Hearing, device: Device) -> Self {
        let own = (!before.distinct()).then(|| indices(receivers.iter().map(|&node| before.of[node]), device));
        let (mut entries, mut offsets) = (Vec::new(), Vec::with_capacity(receivers.len()));
        let (mut messages, mut to) = (Vec::new(), Vec::new());
        for (row, &node) in receivers.iter().enumerate() {
            offsets.push(entries.len() as i64);
            let (incoming, outgoing) = (lists.incoming(node), lists.outgoing(node));
            let of = |&(node, _): &(usize, usize)| before.of[node];
            match hearing {
                Hearing::Neighbours => entries.extend(incoming.iter().chain(outgoing.unwrap_or_default()).map(of)),
                Hearing::Edges => {
                    let all = || incoming.iter().chain(outgoing.unwrap_or_default());
                    entries.extend(all().map(of));
                    messages.extend(all().map(|&(_, message)| message as i64));
                    to.resize(entries.len(), row as i64);
                }
                Hearing::Apart => {
                    entries.push(3 * before.of[node]);
                    entries.extend(incoming.iter().map(|entry| 3 * of(entry) + 1));
                    entries.extend(outgoing.unwrap_or(incoming).iter().map(|entry| 3 * of(entry) + 2));
                }
            }
        }
        let tensor = |values: &[i64]| Tensor::from_slice(values).to_device(device);
        let along = (hearing == Hearing::Edges).then(|| (tensor(&messages), tensor(&to)));
        Self { own, entries: tensor(&entries), offsets: tensor(&offsets), along }
    }

    /// Rows before the round where those after it are, `[R', D]`.
    pub(crate) fn own(&self, rows: &Tensor) -> Tensor {
        gather(rows, self.own.as_ref())
    }

    /// The sum of the entries that each row after the round hears, `[R', D]`.
    pub(crate) fn sum(&self, table: &Tensor) -> Tensor {
        sum_rows(table, &self.entries, &self.offsets)
    }

    /// The sum of `relu(row + edge)` over each row's messages, `[R', D]`, given what the batch's messages carry, `[E, D]`.
    pub(crate) fn sum_along(&self, rows: &Tensor, edges: &Tensor) -> Tensor {
        let shape = [self.offsets.size()[0], rows.size()[1]];
        let sum = Tensor::zeros(shape, (rows.kind(), rows.device()));
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
    fn index(&self, device: Device) -> Option<Tensor> {
        (!self.distinct()).then(|| Tensor::from_slice(&self.of).to_device(device))
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
    fn of(batch: &GraphBatch<'_>) -> Self {
        let n = batch.total_nodes();
        let edges = batch.edges.iter().map(|&(a, b)| (a as usize, b as usize)).enumerate();
        match batch.directed {
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
fn feature_keys<'a>(batch: &'a GraphBatch<'_>, labels: bool) -> impl Iterator<Item = Key> + 'a {
    batch.graphs().iter().flat_map(move |graph| {
        graph.nodes().enumerate().map(move |(label, node)| {
            let mut key = Key::new();
            key.push(if labels { label as i64 } else { END });
            key.push(i64::from(node.class));
            key.extend(node.attributes.values().iter().map(|&value| i64::from(value)));
            key
        })
    })
}

/// A number for what each message's edge is.
fn edge_keys(batch: &GraphBatch<'_>) -> Vec<i64> {
    let mut numbers: HashMap<Key, i64> = HashMap::new();
    let each = if batch.directed { 1 } else { 2 };
    let mut keys = Vec::with_capacity(batch.total_edges() * each);
    for graph in batch.graphs() {
        for (a, b) in graph.edges() {
            let edge = graph.edge(a, b).unwrap_or_default();
            let mut key = Key::new();
            key.push(i64::from(edge.class));
            key.extend(edge.attributes.values().iter().map(|&value| i64::from(value)));
            let next = numbers.len() as i64;
            let number = *numbers.entry(key).or_insert(next);
            keys.resize(keys.len() + each, number);
        }
    }
    keys
}

fn indices(values: impl Iterator<Item = i64>, device: Device) -> Tensor {
    Tensor::from_slice(&values.collect::<Vec<_>>()).to_device(device)
}
