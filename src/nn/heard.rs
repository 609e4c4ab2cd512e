//! Who hears of whom in a graph transformer, as dense tables of each graph.

use tch::{Kind, Tensor};

use crate::graph::{Edge, GraphBatch, GraphKind, GraphSchema};

/// What a row is to one that hears of it, beside or instead of an edge.
#[derive(Clone, Copy)]
pub(super) enum Relation {
    Virtual,
    Node,
    Itself,
    /// It is where a directed edge from the hearer ends.
    Target,
}

impl Relation {
    /// How many there are.
    pub(super) fn count(schema: &GraphSchema) -> usize {
        match schema.kind {
            GraphKind::Directed => 4,
            GraphKind::Undirected => 3,
        }
    }
}

/// Who hears of whom, and what they are to each other.
///
/// Rows are graph by graph: its virtual node, then its nodes; `R = N + B`. Tables have `L` rows for each graph, one more than the largest
/// has nodes. Graphs are so small that a table of all pairs, with a number per head, costs less than vectors gathered for each edge:
/// up to some 270 nodes at width 128.
pub(super) struct Heard {
    /// Graphs, and `L`.
    pub(super) sizes: (i64, i64),
    /// Which row `[.., to, from, ..]` does not hear of which, `[B, 1, L, L]`.
    pub(super) deaf: Tensor,
    /// How often each feature holds of a pair, `[B, L, L, F]`: classes of edges, values of their attributes, relations.
    pub(super) features: Tensor,
    /// log(1 + number of messages to each row), `[R, 1]`.
    pub(super) log_degree: Tensor,
    /// The row in each place of the tables, `[B L]`, and the place of each row, `[R]`, where graphs have different sizes. Places beyond
    /// a graph's nodes have its virtual node, and nobody hears of them.
    places: Option<(Tensor, Tensor)>,
    /// Among nodes and then virtual nodes, which each row is, `[R]`; the rows of nodes `[N]`, and of virtual nodes `[B]`.
    order: Tensor,
    nodes: Tensor,
    virtuals: Tensor,
}

/// The tables on the host.
struct Tables {
    length: usize,
    n_features: usize,
    deaf: Vec<bool>,
    features: Vec<f32>,
    degree: Vec<u32>,
}

impl Tables {
    fn hears(&mut self, graph: usize, to: usize, from: usize, features: impl IntoIterator<Item = usize>) {
        let row = graph * self.length + to;
        let pair = row * self.length + from;
        self.deaf[pair] = false;
        self.degree[row] += 1;
        features.into_iter().for_each(|feature| self.features[pair * self.n_features + feature] += 1.0);
    }
}

impl Heard {
    pub(super) fn new(batch: &GraphBatch<'_>, schema: &GraphSchema, kind: Kind) -> Self {
        let (b, n, device) = (batch.len(), batch.total_nodes(), batch.device());
        let length = 1 + batch.n_nodes.iter().max().copied().unwrap_or(0);
        let mut attribute_starts = Vec::new();
        let mut relations = schema.edge_classes;
        for &values in &schema.edge_attributes {
            attribute_starts.push(relations);
            relations += usize::from(values) + 1;
        }
        let relation = |of: Relation| relations + of as usize;
        let of_edge = |edge: Edge| {
            let values = edge.attributes.values();
            let attributes: Vec<usize> =
                attribute_starts.iter().zip(values).map(|(start, &value)| start + usize::from(value)).collect();
            std::iter::once(usize::from(edge.class)).chain(attributes)
        };
        let n_features = relations + Relation::count(schema);
        let pairs = b * length * length;
        let (deaf, features, degree) = (vec![true; pairs], vec![0.0; pairs * n_features], vec![0; b * length]);
        let mut tables = Tables { length, n_features, deaf, features, degree };
        let (mut order, mut places, mut back) = (Vec::with_capacity(n + b), Vec::new(), Vec::with_capacity(n + b));
        for (g, graph) in batch.graphs().iter().enumerate() {
            let weighted = graph.has_edge_weights();
            for (i, j) in graph.edges() {
                let edge = if weighted { graph.edge(i, j).unwrap_or_default() } else { Edge::default() };
                let (i, j) = (i as usize + 1, j as usize + 1);
                tables.hears(g, j, i, of_edge(edge));
                match batch.directed {
                    true => tables.hears(g, i, j, of_edge(edge).chain([relation(Relation::Target)])),
                    false => tables.hears(g, i, j, of_edge(edge)),
                }
            }
            let size = 1 + graph.n_nodes();
            for node in 1..size {
                tables.hears(g, node, 0, [relation(Relation::Virtual)]);
                tables.hears(g, 0, node, [relation(Relation::Node)]);
            }
            // So that nobody hears nothing, those beyond the graph either.
            (0..length).for_each(|row| tables.hears(g, row, row, [relation(Relation::Itself)]));

            let first = order.len() as i64;
            order.push((n + g) as i64);
            order.extend((batch.node_ptr[g]..batch.node_ptr[g + 1]).map(|node| node as i64));
            places.extend((0..length).map(|row| first + if row < size { row as i64 } else { 0 }));
            back.extend((0..size).map(|row| (g * length + row) as i64));
        }
        let log_degree: Vec<f64> = back.iter().map(|&place| f64::from(tables.degree[place as usize]).ln_1p()).collect();
        let mut rows_of = vec![0i64; order.len()];
        for (row, &which) in order.iter().enumerate() {
            rows_of[which as usize] = row as i64;
        }
        let tensor = |values: &[i64]| Tensor::from_slice(values).to_device(device);
        let (b, length) = (b as i64, length as i64);
        Self {
            sizes: (b, length),
            deaf: Tensor::from_slice(&tables.deaf).view([b, 1, length, length]).to_device(device),
            features: Tensor::from_slice(&tables.features)
                .view([b, length, length, -1])
                .to_device(device)
                .to_kind(kind),
            log_degree: crate::dist::from_host(&log_degree, kind, device).unsqueeze(1),
            places: batch.same_n_nodes().is_none().then(|| (tensor(&places), tensor(&back))),
            order: tensor(&order),
            nodes: tensor(&rows_of[..n]),
            virtuals: tensor(&rows_of[n..]),
        }
    }

    /// Vectors of nodes `[N, D]` and of virtual nodes `[B, D]` as rows `[R, D]`.
    pub(super) fn rows(&self, nodes: &Tensor, virtuals: &Tensor) -> Tensor {
        Tensor::cat(&[nodes, virtuals], 0).index_select(0, &self.order)
    }

    /// Rows `[R, D]` as vectors of nodes `[N, D]` and of virtual nodes `[B, D]`.
    pub(super) fn split(&self, rows: &Tensor) -> (Tensor, Tensor) {
        (rows.index_select(0, &self.nodes), rows.index_select(0, &self.virtuals))
    }

    /// Rows `[R, ..]` in the places of the tables, `[B L, ..]`.
    pub(super) fn pad(&self, rows: &Tensor) -> Tensor {
        match &self.places {
            Some((places, _)) => rows.index_select(0, places),
            None => rows.shallow_clone(),
        }
    }

    /// Places of the tables `[B L, ..]` as rows `[R, ..]`.
    pub(super) fn unpad(&self, places: &Tensor) -> Tensor {
        match &self.places {
            Some((_, back)) => places.index_select(0, back),
            None => places.shallow_clone(),
        }
    }
}
