//! Which rows attend to which in a graph transformer, as dense tables of each graph.

use tch::{Device, Kind, Tensor};

use super::heads::size_groups;
use crate::graph::{Edge, GraphArrays, GraphBatch, GraphKind, GraphSchema};

/// The relation of a row to one that attends to it, apart from edges.
#[derive(Clone, Copy)]
pub(in crate::nn) enum Relation {
    Virtual,
    Node,
    Itself,
    /// The sender is the target of a directed edge from the receiver.
    Target,
}

impl Relation {
    /// Number of relations.
    pub(in crate::nn) fn count(schema: &GraphSchema) -> usize {
        match schema.kind {
            GraphKind::Directed => 4,
            GraphKind::Undirected => 3,
        }
    }
}

/// The tables of which rows attend to which, and of their relations.
///
/// The rows of a graph are its virtual node, then its nodes; `R = N + B` in all. Graphs are so small that a
/// table of all pairs, with a number per head, costs less than gathering a vector for each edge: up to some
/// 270 nodes at width 128.
pub(in crate::nn) struct AttentionTables {
    /// Graphs grouped by size, so that one large graph doesn't widen the tables of small ones.
    pub(in crate::nn) groups: Vec<Group>,
    /// log(1 + number of messages to each row), `[R, 1]`.
    pub(in crate::nn) log_degree: Tensor,
    /// The position of each row among the places of all groups, `[R]`; `None` if places and rows are the
    /// same.
    places: Option<Tensor>,
    /// The position of each row among all nodes followed by all virtual nodes, `[R]`; then the rows of nodes,
    /// `[N]`, and of virtual nodes, `[B]`.
    order: Tensor,
    nodes: Tensor,
    virtuals: Tensor,
}

/// The tables of `G` graphs with `L` places each: one more than the nodes of the largest.
pub(in crate::nn) struct Group {
    /// `G` and `L`.
    pub(in crate::nn) sizes: (i64, i64),
    /// Pairs `[.., to, from, ..]` without attention, `[G, 1, L, L]`.
    pub(in crate::nn) masked: Tensor,
    /// Count of each feature for each pair, `[G, L, L, F]`. Features are edge classes, values of their
    /// attributes, and relations.
    pub(in crate::nn) features: Tensor,
    /// The row in each place, `[G L]`; `None` if places and rows are the same. Places beyond a graph's nodes
    /// repeat its virtual node, and no row attends to them.
    rows: Option<Tensor>,
}

impl Group {
    /// Rows `[R, ..]` at the places of the tables, `[G L, ..]`.
    pub(in crate::nn) fn gather(&self, rows: &Tensor) -> Tensor {
        match &self.rows {
            Some(which) => rows.index_select(0, which),
            None => rows.shallow_clone(),
        }
    }
}

/// The index of the first feature of each part of an edge.
struct Features {
    attribute_starts: Vec<usize>,
    relations: usize,
    count: usize,
}

impl Features {
    fn new(schema: &GraphSchema) -> Self {
        let (mut attribute_starts, mut relations) = (Vec::new(), schema.edge_classes);
        for &values in &schema.edge_attributes {
            attribute_starts.push(relations);
            relations += usize::from(values) + 1;
        }
        Self { attribute_starts, relations, count: relations + Relation::count(schema) }
    }

    fn relation(&self, relation: Relation) -> usize {
        self.relations + relation as usize
    }

    fn edge(&self, edge: Edge) -> impl Iterator<Item = usize> + '_ {
        let attributes = self.attribute_starts.iter().enumerate();
        let attributes = attributes.map(move |(k, start)| start + usize::from(edge.attributes.values()[k]));
        std::iter::once(usize::from(edge.class)).chain(attributes)
    }
}

/// The tables of a group on the host.
struct HostTables<'a> {
    features: &'a Features,
    length: usize,
    masked: Vec<bool>,
    counts: Vec<f32>,
    degree: Vec<u32>,
}

impl<'a> HostTables<'a> {
    fn new(features: &'a Features, graphs: usize, length: usize) -> Self {
        let pairs = graphs * length * length;
        let (masked, counts) = (vec![true; pairs], vec![0.0; pairs * features.count]);
        Self { features, length, masked, counts, degree: vec![0; graphs * length] }
    }

    fn add_message(&mut self, graph: usize, to: usize, from: usize, what: impl Iterator<Item = usize>) {
        let row = graph * self.length + to;
        let pair = row * self.length + from;
        self.masked[pair] = false;
        self.degree[row] += 1;
        what.for_each(|feature| self.counts[pair * self.features.count + feature] += 1.0);
    }

    /// Adds graph `g` of the batch, as graph `k` of the group.
    fn push(&mut self, k: usize, arrays: &GraphArrays, g: usize) {
        let features = self.features;
        let relation = |of| std::iter::once(features.relation(of));
        for (a, b, edge) in arrays.edges_of(g) {
            let (i, j) = (a + 1, b + 1);
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
        // Every place attends to itself, also those beyond the graph, so that no softmax is empty.
        (0..self.length).for_each(|row| self.add_message(k, row, row, relation(Relation::Itself)));
    }

    fn group(&self, graphs: usize, rows: Option<Tensor>, kind: Kind, device: Device) -> Group {
        let (g, l) = (graphs as i64, self.length as i64);
        Group {
            sizes: (g, l),
            masked: Tensor::from_slice(&self.masked).view([g, 1, l, l]).to_device(device),
            features: Tensor::from_slice(&self.counts).view([g, l, l, -1]).to_device(device).to_kind(kind),
            rows,
        }
    }
}

impl AttentionTables {
    /// The tables of a batch that isn't empty.
    pub(in crate::nn) fn new(batch: &GraphBatch<'_>, schema: &GraphSchema, kind: Kind) -> Self {
        let (arrays, device) = (batch.arrays, batch.device());
        let (b, n, sizes) = (arrays.len(), arrays.nodes.len(), arrays.sizes().collect::<Vec<_>>());
        let features = Features::new(schema);
        let tensor = |values: &[i64]| Tensor::from_slice(values).to_device(device);
        let same = arrays.same_size().is_some();
        let first_row = |g: usize| arrays.node_ptr[g] + g;
        let (mut groups, mut base) = (Vec::new(), 0);
        let (mut places, mut log_degree) = (vec![0i64; n + b], vec![0.0; n + b]);
        for members in size_groups(arrays) {
            let length = 1 + members.iter().map(|&g| sizes[g]).max().unwrap_or(0);
            let mut tables = HostTables::new(&features, members.len(), length);
            let mut rows = Vec::with_capacity(members.len() * length);
            for (k, &g) in members.iter().enumerate() {
                tables.push(k, arrays, g);
                let (first, size) = (first_row(g), 1 + sizes[g]);
                rows.extend((0..length).map(|place| (first + if place < size { place } else { 0 }) as i64));
                for place in 0..size {
                    places[first + place] = (base + k * length + place) as i64;
                    log_degree[first + place] = f64::from(tables.degree[k * length + place]).ln_1p();
                }
            }
            base += members.len() * length;
            groups.push(tables.group(members.len(), (!same).then(|| tensor(&rows)), kind, device));
        }
        let (mut order, mut row_of) = (Vec::with_capacity(n + b), vec![0i64; n + b]);
        for (g, ends) in arrays.node_ptr.windows(2).enumerate() {
            order.push(n + g);
            order.extend(ends[0]..ends[1]);
        }
        for (row, &which) in order.iter().enumerate() {
            row_of[which] = row as i64;
        }
        let order: Vec<i64> = order.into_iter().map(|which| which as i64).collect();
        Self {
            groups,
            log_degree: crate::tensor::from_host(&log_degree, kind, device).unsqueeze(1),
            places: (!same).then(|| tensor(&places)),
            order: tensor(&order),
            nodes: tensor(&row_of[..n]),
            virtuals: tensor(&row_of[n..]),
        }
    }

    /// Vectors of nodes `[N, D]` and of virtual nodes `[B, D]` as rows `[R, D]`.
    pub(in crate::nn) fn rows(&self, nodes: &Tensor, virtuals: &Tensor) -> Tensor {
        Tensor::cat(&[nodes, virtuals], 0).index_select(0, &self.order)
    }

    /// Rows `[R, D]` as vectors of nodes `[N, D]` and of virtual nodes `[B, D]`.
    pub(in crate::nn) fn split(&self, rows: &Tensor) -> (Tensor, Tensor) {
        (rows.index_select(0, &self.nodes), rows.index_select(0, &self.virtuals))
    }

    /// The places of each group, `[G L, ..]`, as rows `[R, ..]`.
    pub(in crate::nn) fn scatter(&self, groups: &[Tensor]) -> Tensor {
        match (&self.places, groups) {
            (None, [places]) => places.shallow_clone(),
            (None, _) => Tensor::cat(groups, 0),
            (Some(which), _) => Tensor::cat(groups, 0).index_select(0, which),
        }
    }
}
