//! The dense tables of the messages of a graph transformer. A row is the vector of a node, or of the virtual
//! node of a graph.

use tch::{Device, Kind, Tensor};

use crate::graph::{Edge, GraphArrays, GraphBatch, GraphKind, GraphSchema};
use crate::nn::graph::heads::size_groups;
use crate::tensor::{from_host, upload};

/// The relation between a sending row (a node or virtual node) and the row that attends to it, the receiver.
/// The features of an edge between the two rows are stored separately.
#[derive(Clone, Copy)]
pub(super) enum Relation {
    /// The sender is the virtual node of the graph.
    Virtual,
    /// The sender is a node, and the receiver is the virtual node.
    Node,
    /// The sender and the receiver are the same node or virtual node.
    Itself,
    /// The sender is the target of a directed edge from the receiver.
    Target,
}

impl Relation {
    /// Returns the number of relations that occur in graphs of a schema.
    pub(super) fn count(schema: &GraphSchema) -> usize {
        match schema.kind {
            GraphKind::Directed => 4,
            GraphKind::Undirected => 3,
        }
    }
}

/// Tables of the pairs of rows (nodes or virtual nodes) that attend to each other, and of the features of
/// these pairs.
///
/// The rows of a graph are its virtual node, followed by its nodes. The batch has `R = N + B` rows. For
/// graphs of up to about 270 nodes (at width 128) a table of all pairs of rows, with a number per head, costs
/// less than gathering a vector for each edge.
pub(super) struct AttentionTables {
    /// The groups of graphs of similar size. Groups keep a large graph from widening the tables of small
    /// graphs.
    pub(super) groups: Vec<Group>,
    /// The number `log(1 + n)` for each row (node or virtual node), `[R, 1]`, where n is the number of
    /// messages to the row. Two opposite edges count as two messages.
    pub(super) log_degree: Tensor,
    /// The position of each row (node or virtual node) in the padded tables of all groups, concatenated,
    /// `[R]`; `None` without padding, because then row `i` has position `i`.
    table_positions: Option<Tensor>,
    /// The index of each row (node or virtual node) in the list of all nodes followed by all virtual nodes,
    /// `[R]`.
    order: Tensor,
    /// The index of each node's row among the rows of nodes and virtual nodes, `[N]`.
    nodes: Tensor,
    /// The index of each virtual node's row among the rows of nodes and virtual nodes, `[B]`.
    virtuals: Tensor,
}

/// The tables of a group of `G` graphs. A graph has a row for its virtual node and for each of its nodes, and
/// is padded to the `L` rows of the largest graph of the group.
pub(super) struct Group {
    /// The number `G` of graphs and the number `L` of rows (virtual node, nodes and padding) per graph.
    pub(super) sizes: (i64, i64),
    /// A mask `[G, 1, L, L]` that is true for pairs of rows (nodes or virtual nodes) that don't attend to
    /// each other. The last two dimensions are the receiver and the sender.
    pub(super) masked: Tensor,
    /// The count of each feature of each pair of rows (nodes or virtual nodes), `[G, L, L, F]`. Features are
    /// edge classes, values of edge attributes, and relations.
    pub(super) features: Tensor,
    /// The index of the row at each position of the tables, `[G L]`; `None` if there is no padding. Padded
    /// positions repeat the virtual node of the graph, and no other row attends to them.
    rows: Option<Tensor>,
}

impl Group {
    /// Arranges rows of nodes and virtual nodes, `[R, ..]`, in the order of the group's padded tables, `[G L,
    /// ..]`.
    pub(super) fn gather(&self, rows: &Tensor) -> Tensor {
        match &self.rows {
            Some(indices) => rows.index_select(0, indices),
            None => rows.shallow_clone(),
        }
    }
}

/// The indices of the features of pairs of rows (nodes or virtual nodes) in the tables. Edge classes come
/// first, followed by the values of edge attributes and by relations.
struct Features {
    /// The index of the first value of each edge attribute among the features.
    attribute_starts: Vec<usize>,
    /// The index of the first feature that is a [`Relation`] between the two rows of a pair.
    relations: usize,
    /// The number of all features.
    count: usize,
}

impl Features {
    fn new(schema: &GraphSchema) -> Self {
        let mut attribute_starts = Vec::new();
        let mut relations = schema.edge_classes;
        for &values in &schema.edge_attributes {
            attribute_starts.push(relations);
            relations += usize::from(values) + 1;
        }
        Self { attribute_starts, relations, count: relations + Relation::count(schema) }
    }

    /// Returns the index of the feature that stands for a relation between two rows (nodes or virtual nodes).
    fn relation(&self, relation: Relation) -> usize {
        self.relations + relation as usize
    }

    /// Returns the indices of the features of an edge.
    fn edge(&self, edge: Edge) -> impl Iterator<Item = usize> + '_ {
        let attributes = self.attribute_starts.iter().enumerate();
        let attributes = attributes.map(move |(k, start)| start + usize::from(edge.attributes.values()[k]));
        std::iter::once(usize::from(edge.class)).chain(attributes)
    }
}

/// The tables of a group while they are filled on the host.
struct HostTables<'a> {
    features: &'a Features,
    /// The number of rows (nodes or virtual nodes) per graph, including padding.
    length: usize,
    /// A mask that is true for pairs of rows (nodes or virtual nodes) that don't attend to each other,
    /// `[graphs, length, length]`.
    masked: Vec<bool>,
    /// The count of each feature of each pair of rows (nodes or virtual nodes), `[graphs, length, length,
    /// features]`.
    counts: Vec<f32>,
    /// The number of messages to each row (node or virtual node), `[graphs, length]`. Two opposite edges
    /// count as two messages.
    degree: Vec<u32>,
}

impl<'a> HostTables<'a> {
    fn new(features: &'a Features, graphs: usize, length: usize) -> Self {
        let pairs = graphs * length * length;
        Self {
            features,
            length,
            masked: vec![true; pairs],
            counts: vec![0.0; pairs * features.count],
            degree: vec![0; graphs * length],
        }
    }

    /// Adds a message with these features between two rows (nodes or virtual nodes) of graph `graph` of the
    /// group.
    fn add_message(&mut self, graph: usize, to: usize, from: usize, features: impl Iterator<Item = usize>) {
        let row = graph * self.length + to;
        let pair = row * self.length + from;
        self.masked[pair] = false;
        self.degree[row] += 1;
        for feature in features {
            self.counts[pair * self.features.count + feature] += 1.0;
        }
    }

    /// Adds the messages of graph `g` of the batch, which is graph `k` of the group.
    fn push(&mut self, k: usize, arrays: &GraphArrays, g: usize) {
        let features = self.features;
        let relation = |relation| std::iter::once(features.relation(relation));
        for (a, b, edge) in arrays.edges_of(g) {
            let i = a + 1;
            let j = b + 1;
            self.add_message(k, j, i, features.edge(edge));
            if arrays.is_directed() {
                self.add_message(k, i, j, features.edge(edge).chain(relation(Relation::Target)))
            } else {
                self.add_message(k, i, j, features.edge(edge))
            }
        }
        for node in 1..=arrays.node_ptr[g + 1] - arrays.node_ptr[g] {
            self.add_message(k, node, 0, relation(Relation::Virtual));
            self.add_message(k, 0, node, relation(Relation::Node));
        }
        // Every row (node or virtual node) attends to itself. Padded rows do, too, so that no softmax is over
        // an empty set.
        for row in 0..self.length {
            self.add_message(k, row, row, relation(Relation::Itself));
        }
    }

    /// Copies the tables to a device, as a group of `graphs` graphs.
    fn group(&self, graphs: usize, rows: Option<Tensor>, kind: Kind, device: Device) -> Group {
        let g = graphs as i64;
        let l = self.length as i64;
        Group {
            sizes: (g, l),
            masked: upload(&self.masked, device).view([g, 1, l, l]),
            features: upload(&self.counts, device).view([g, l, l, -1]).to_kind(kind),
            rows,
        }
    }
}

impl AttentionTables {
    /// Builds the tables of a batch of at least one graph.
    pub(super) fn new(batch: &GraphBatch<'_>, schema: &GraphSchema, kind: Kind) -> Self {
        let arrays = batch.arrays;
        let device = batch.device();
        let b = arrays.len();
        let n = arrays.nodes.len();
        let sizes: Vec<usize> = arrays.sizes().collect();
        let features = Features::new(schema);
        let tensor = |values: &[i64]| upload(values, device);
        let is_padded = arrays.same_size().is_none();
        let first_row = |g: usize| arrays.node_ptr[g] + g;
        let mut groups = Vec::new();
        let mut base = 0;
        let mut table_positions = vec![0i64; n + b];
        let mut log_degree = vec![0.0; n + b];
        for members in size_groups(arrays) {
            let length = 1 + members.iter().map(|&g| sizes[g]).max().unwrap_or(0);
            let mut tables = HostTables::new(&features, members.len(), length);
            let mut rows = Vec::with_capacity(members.len() * length);
            for (k, &g) in members.iter().enumerate() {
                tables.push(k, arrays, g);
                let first = first_row(g);
                let size = 1 + sizes[g];
                rows.extend((0..length).map(|i| (first + if i < size { i } else { 0 }) as i64));
                for i in 0..size {
                    table_positions[first + i] = (base + k * length + i) as i64;
                    log_degree[first + i] = f64::from(tables.degree[k * length + i]).ln_1p();
                }
            }
            base += members.len() * length;
            groups.push(tables.group(members.len(), is_padded.then(|| tensor(&rows)), kind, device));
        }
        let mut order = Vec::with_capacity(n + b);
        let mut row_of = vec![0i64; n + b];
        for (g, ends) in arrays.node_ptr.windows(2).enumerate() {
            order.push(n + g);
            order.extend(ends[0]..ends[1]);
        }
        for (row, &index) in order.iter().enumerate() {
            row_of[index] = row as i64;
        }
        let order = order.into_iter().map(|index| index as i64);
        let both = tensor(&order.chain(row_of).collect::<Vec<_>>());
        let part = |start: usize, length: usize| both.narrow(0, start as i64, length as i64);
        Self {
            groups,
            log_degree: from_host(&log_degree, kind, device).unsqueeze(1),
            table_positions: is_padded.then(|| tensor(&table_positions)),
            order: part(0, n + b),
            nodes: part(n + b, n),
            virtuals: part(n + b + n, b),
        }
    }

    /// Merges the vectors of nodes `[N, D]` and of virtual nodes `[B, D]` into rows `[N + B, D]`. The rows of
    /// each graph are its virtual node, followed by its nodes.
    pub(super) fn rows(&self, nodes: &Tensor, virtuals: &Tensor) -> Tensor {
        Tensor::cat(&[nodes, virtuals], 0).index_select(0, &self.order)
    }

    /// Splits rows `[R, D]` into vectors of nodes `[N, D]` and of virtual nodes `[B, D]`.
    pub(super) fn split(&self, rows: &Tensor) -> (Tensor, Tensor) {
        (rows.index_select(0, &self.nodes), rows.index_select(0, &self.virtuals))
    }

    /// Arranges the padded tables of all groups, each `[G L, ..]`, as rows `[R, ..]` without padding.
    pub(super) fn scatter(&self, groups: &[Tensor]) -> Tensor {
        match (&self.table_positions, groups) {
            (None, [rows]) => rows.shallow_clone(),
            (None, _) => Tensor::cat(groups, 0),
            (Some(positions), _) => Tensor::cat(groups, 0).index_select(0, positions),
        }
    }
}
