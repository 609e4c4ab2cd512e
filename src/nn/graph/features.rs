//! The initial features of nodes and edges: learned vectors of their classes, labels and attributes, and
//! linear maps of counts.

use tch::{Kind, Tensor};

use super::GraphNetConfig;
use super::engine::Engine;
use super::heads::pair_features;
use crate::graph::{Attributes, GraphArrays, GraphKind, GraphSchema};
use crate::nn::{Linear, Scope};

/// The class of each node label. A network distinguishes two labels only if their classes differ. The list is
/// empty if the network doesn't use labels.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Labels(pub(crate) Vec<u32>);

impl Labels {
    /// The number of different classes of labels.
    pub(crate) fn classes(&self) -> usize {
        self.0.iter().max().map_or(0, |&last| last as usize + 1)
    }

    /// Returns the class of a label. Labels beyond the end of the list have the class of the last entry.
    /// Without a list the result is 0.
    pub(crate) fn class(&self, label: u32) -> usize {
        self.0.get(label as usize).or(self.0.last()).map_or(0, |&class| class as usize)
    }
}

/// A table of learned vectors: one for each value of each attribute, including the value 0 of an attribute
/// that isn't set.
#[derive(Debug)]
struct AttributeTable {
    /// The vectors of all attributes, one attribute after another, `[values, D]`. The first vector of an
    /// attribute belongs to the value 0, which means that the attribute isn't set.
    vectors: Tensor,
    /// The index of each attribute's first vector in the table.
    starts: Vec<i64>,
}

impl AttributeTable {
    /// Builds a table for attributes with these numbers of values, not counting 0 (not set). Returns `None`
    /// if there are no attributes.
    fn new(scope: &mut Scope<'_>, sizes: &[u8], width: i64) -> Option<Self> {
        let mut starts = Vec::with_capacity(sizes.len());
        let mut values = 0;
        for &n in sizes {
            starts.push(values);
            values += i64::from(n) + 1;
        }
        (values > 0).then(|| Self { vectors: scope.normal("attribute", &[values, width], 1.0), starts })
    }

    /// Computes, for each node or edge, the sum of the vectors of its attribute values.
    fn forward<'a, E: Engine>(&self, engine: &E, rows: impl Iterator<Item = &'a Attributes>) -> E::Rows {
        let k = self.starts.len();
        let entry = |(value, start): (i64, &i64)| value + start;
        let entries = rows.flat_map(|attributes| attributes.columns(k).zip(&self.starts).map(entry));
        engine.look_up(&self.vectors, &entries.collect::<Vec<_>>(), k)
    }
}

/// The initial features of nodes: the sum of learned vectors of a node's class, label and attributes, and of
/// linear maps of its counts.
#[derive(Debug)]
pub(crate) struct NodeFeatures {
    /// The learned vector of each node class, `[classes, D]`.
    classes: Tensor,
    /// The classes of labels, and the learned vector of each class, `[classes, D]`; `None` if the network
    /// doesn't use labels.
    labels: Option<(Labels, Tensor)>,
    attributes: Option<AttributeTable>,
    /// The linear map of the features of degrees ([`degree_features`]); `None` if the network doesn't use
    /// degrees.
    degrees: Option<Linear>,
    /// The number of walk lengths for which closed walks are counted, and the linear map of these counts;
    /// `None` if the network doesn't use closed walks.
    closed_walks: Option<(usize, Linear)>,
}

/// The counts that are input features of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// `true` if the degrees and the number of nodes of the graph are input features.
    pub(crate) degrees: bool,
    /// The number of walk lengths for which counts of closed walks are input features. The first length is 2.
    pub(crate) closed_walks: usize,
}

/// Computes `log(1 + number of walks)` for walks of lengths `2..=lengths + 1` from each node to itself,
/// `[N, lengths]`.
pub(crate) fn closed_walks(arrays: &GraphArrays, lengths: usize) -> Vec<f64> {
    let all = pair_features(arrays, lengths);
    let columns = 1 + lengths;
    let graphs = arrays.sizes().zip(&arrays.pair_ptr);
    let nodes = graphs.flat_map(|(n, &first)| (0..n).map(move |a| first + a * n + a));
    nodes.flat_map(|pair| all[pair * columns + 1..(pair + 1) * columns].iter().copied()).collect()
}

/// Returns the degree of a node; in directed graphs its in-degree and its out-degree.
pub(crate) fn degrees(arrays: &GraphArrays, node: usize) -> impl Iterator<Item = usize> + '_ {
    let neighbours = arrays.neighbours();
    [Some(neighbours.incoming(node)), neighbours.outgoing(node)].into_iter().flatten().map(<[_]>::len)
}

/// Returns, for each node, the number of nodes of its graph.
pub(crate) fn sizes_of_nodes(arrays: &GraphArrays) -> Vec<usize> {
    arrays.sizes().flat_map(|n| std::iter::repeat_n(n, n)).collect()
}

/// Returns `log(1 + d)`, `d / n` and `1 / (1 + d)` for each of these degrees `d` of a node, followed by
/// `log(1 + n)`, where `n` is the number of nodes of the graph.
fn degree_features(degrees: impl Iterator<Item = usize>, n: usize) -> impl Iterator<Item = f64> {
    let n = n as f64;
    let features = degrees.map(|degree| degree as f64).flat_map(move |d| [d.ln_1p(), d / n, 1.0 / (1.0 + d)]);
    features.chain([n.ln_1p()])
}

impl NodeFeatures {
    pub(crate) fn new(
        scope: &mut Scope<'_>,
        schema: &GraphSchema,
        labels: &Labels,
        config: &GraphNetConfig,
    ) -> Self {
        let width = config.embedding;
        let sides = if schema.kind == GraphKind::Directed { 2 } else { 1 };
        Self {
            classes: scope.normal("class", &[schema.node_classes as i64, width], 1.0),
            labels: (labels.classes() > 0)
                .then(|| (labels.clone(), scope.normal("label", &[labels.classes() as i64, width], 1.0))),
            attributes: AttributeTable::new(scope, &schema.node_attributes, width),
            degrees: config
                .degrees
                .then(|| Linear::without_bias(&mut scope.sub("degrees"), 3 * sides + 1, width)),
            closed_walks: config.closed_walks.map(|lengths| {
                (lengths, Linear::without_bias(&mut scope.sub("closed_walks"), lengths as i64, width))
            }),
        }
    }

    /// Returns the counts that are input features of a node.
    pub(crate) fn counts(&self) -> Counts {
        let closed_walks = self.closed_walks.as_ref().map_or(0, |(lengths, _)| *lengths);
        Counts { degrees: self.degrees.is_some(), closed_walks }
    }

    /// Returns the classes of labels. The list is empty if the network doesn't use labels.
    pub(crate) fn labels(&self) -> Labels {
        self.labels.as_ref().map(|(labels, _)| labels.clone()).unwrap_or_default()
    }

    /// The kind (data type) of the feature vectors.
    pub(crate) fn kind(&self) -> Kind {
        self.classes.kind()
    }

    /// The width of the feature vectors.
    pub(crate) fn width(&self) -> i64 {
        self.classes.size()[1]
    }

    /// Computes the features of these nodes, `[R, D]`.
    pub(crate) fn forward<E: Engine>(&self, engine: &E, nodes: &[usize]) -> E::Rows {
        let arrays = engine.arrays();
        let node_data = || nodes.iter().map(|&node| &arrays.nodes[node]);
        let classes: Vec<i64> = node_data().map(|node| i64::from(node.class)).collect();
        let mut rows = engine.look_up(&self.classes, &classes, 1);
        if let Some((labels, table)) = &self.labels {
            let label_classes: Vec<i64> =
                nodes.iter().map(|&node| labels.class(arrays.labels[node]) as i64).collect();
            rows = engine.add(rows, &engine.look_up(table, &label_classes, 1));
        }
        if let Some(table) = &self.attributes {
            rows = engine.add(rows, &table.forward(engine, node_data().map(|node| &node.attributes)));
        }
        if let Some(layer) = &self.degrees {
            let sizes = sizes_of_nodes(arrays);
            let features = nodes.iter().flat_map(|&node| degree_features(degrees(arrays, node), sizes[node]));
            let numbers = engine.rows(&features.collect::<Vec<_>>(), layer.weight().size()[1] as usize);
            rows = engine.add(rows, &engine.linear(layer, &numbers));
        }
        if let Some((lengths, layer)) = &self.closed_walks {
            let all = closed_walks(arrays, *lengths);
            let walks = nodes.iter().flat_map(|&node| &all[node * lengths..(node + 1) * lengths]);
            let numbers = engine.rows(&walks.copied().collect::<Vec<_>>(), *lengths);
            rows = engine.add(rows, &engine.linear(layer, &numbers));
        }
        rows
    }
}

/// The features of edges: the sums of learned vectors of an edge's class and attributes.
#[derive(Debug)]
pub(crate) struct EdgeFeatures {
    classes: Tensor,
    attributes: Option<AttributeTable>,
}

impl EdgeFeatures {
    pub(crate) fn new(scope: &mut Scope<'_>, schema: &GraphSchema, width: i64) -> Self {
        Self {
            classes: scope.normal("class", &[schema.edge_classes as i64, width], 1.0),
            attributes: AttributeTable::new(scope, &schema.edge_attributes, width),
        }
    }

    /// Returns the vectors of all classes, followed by the vectors of each attribute's values, `[classes +
    /// values, width]`.
    pub(crate) fn table(&self) -> Tensor {
        match &self.attributes {
            None => self.classes.shallow_clone(),
            Some(table) => Tensor::cat(&[&self.classes, &table.vectors], 0),
        }
    }

    /// Computes the feature vector of each edge, repeated `repeats` times in succession, `[repeats * E,
    /// width]`.
    pub(crate) fn forward<E: Engine>(&self, engine: &E, repeats: usize) -> E::Rows {
        let edges = || engine.arrays().weights.iter().flat_map(|edge| std::iter::repeat_n(edge, repeats));
        let classes: Vec<i64> = edges().map(|edge| i64::from(edge.class)).collect();
        let rows = engine.look_up(&self.classes, &classes, 1);
        match &self.attributes {
            Some(table) => engine.add(rows, &table.forward(engine, edges().map(|edge| &edge.attributes))),
            None => rows,
        }
    }
}
