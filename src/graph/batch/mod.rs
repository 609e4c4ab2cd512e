//! `GraphBatch`: a minibatch of graphs as one sparse edge index, the only part of `graph/` that touches libtorch.

mod arrays;
mod view;

pub use arrays::{GraphArrays, Neighbours};
pub use view::GraphView;

use std::cell::OnceCell;

use tch::{Device, Tensor};

use super::{Edge, GraphSchema, MoveSymmetries, Node};
use crate::Result;
use crate::env::Direction;

/// A minibatch of graphs, concatenated: node and edge rows of all graphs one after another, with offsets.
///
/// `N` is the number of nodes, `E` of edges, `M` of directed messages, `B` of graphs. An undirected edge is two messages, one
/// behind the other, and one row of logits. Edges come in the order of
/// [`GraphState::edges`](crate::graph::GraphState::edges).
///
/// The [arrays](Self::arrays) lie on the host. A tensor of them is made when it is first read, so a network pays only for
/// those that it reads.
#[derive(Debug)]
pub struct GraphBatch<'a> {
    /// Nodes and edges on the host.
    pub arrays: &'a GraphArrays,
    /// Conditions, `[B, C]`.
    pub conditions: Option<Tensor>,
    /// The schema that the graphs were encoded by, and fit.
    pub schema: &'a GraphSchema,
    device: Device,
    /// The class of each label ([`GraphEnv::label_classes`](crate::graph::GraphEnv)), where an environment said so.
    label_classes: Option<Vec<u32>>,
    symmetries: Vec<MoveSymmetries>,
    tensors: Tensors,
}

/// What has been read so far.
#[derive(Debug, Default)]
struct Tensors {
    node_classes: OnceCell<Tensor>,
    node_attributes: OnceCell<Tensor>,
    node_labels: OnceCell<Tensor>,
    node_graph: OnceCell<Tensor>,
    edge_index: OnceCell<Tensor>,
    edge_rows: OnceCell<Tensor>,
    edge_classes: OnceCell<Tensor>,
    edge_attributes: OnceCell<Tensor>,
}

impl<'a> GraphBatch<'a> {
    /// A batch of graphs for networks on a device.
    ///
    /// # Errors
    /// [`Error::Contract`](crate::Error::Contract) for a graph of another kind than the schema's, or with a class or a value of an
    /// attribute that it doesn't have.
    pub fn new(
        schema: &'a GraphSchema,
        arrays: &'a GraphArrays,
        conditions: Option<&Tensor>,
        device: Device,
    ) -> Result<Self> {
        schema.check_graphs(arrays)?;
        let conditions = conditions.map(|c| c.to_device(device));
        let (label_classes, symmetries, tensors) = (None, Vec::new(), Tensors::default());
        Ok(Self { arrays, conditions, schema, device, label_classes, symmetries, tensors })
    }

    /// The same, with the class that an environment gives each label.
    pub(crate) fn with_label_classes(mut self, classes: Vec<u32>) -> Self {
        self.label_classes = Some(classes);
        self
    }

    /// The class of each label, where an environment said so.
    pub(crate) fn label_classes(&self) -> Option<&[u32]> {
        self.label_classes.as_deref()
    }

    /// The same, with what an environment [counted](crate::graph::GraphEnv::move_symmetries) of the moves of these graphs in one
    /// direction, in place of what was given for it before.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for counts of another number of graphs.
    pub fn with_symmetries(mut self, counted: MoveSymmetries) -> Result<Self> {
        counted.check(self.len())?;
        self.symmetries.retain(|other| other.direction != counted.direction);
        self.symmetries.push(counted);
        Ok(self)
    }

    /// The symmetry of the graphs, and the changes that moves of this direction make to it; `None` unless it was
    /// [given](Self::with_symmetries).
    #[must_use]
    pub fn symmetries(&self, direction: Direction) -> Option<&MoveSymmetries> {
        self.symmetries.iter().find(|counted| counted.direction == direction)
    }

    /// The number of graphs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.arrays.len()
    }

    /// `true` if there is no graph.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.arrays.is_empty()
    }

    /// The device that the tensors are on.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// Class of each node, `[N]`.
    pub fn node_classes(&self) -> &Tensor {
        let class = |node: &Node| i64::from(node.class);
        self.tensors.node_classes.get_or_init(|| self.tensor(self.arrays.nodes.iter().map(class)))
    }

    /// Attributes of each node, `[N, K]`, 0 for unset.
    pub fn node_attributes(&self) -> &Tensor {
        let (rows, columns) = (self.arrays.nodes.len(), self.schema.node_attributes.len());
        self.tensors.node_attributes.get_or_init(|| {
            let values = |node: &Node| node.attributes.columns(columns);
            self.tensor(self.arrays.nodes.iter().flat_map(values)).view([rows as i64, columns as i64])
        })
    }

    /// Label of each node within its graph, `[N]`: for estimators of environments with distinguishable nodes.
    pub fn node_labels(&self) -> &Tensor {
        self.tensors.node_labels.get_or_init(|| self.tensor(self.arrays.labels.iter().map(|&label| i64::from(label))))
    }

    /// Graph of each node, `[N]`.
    pub fn node_graph(&self) -> &Tensor {
        let graphs = || self.arrays.sizes().enumerate().flat_map(|(g, n)| std::iter::repeat_n(g as i64, n));
        self.tensors.node_graph.get_or_init(|| self.tensor(graphs()))
    }

    /// Endpoints of each message, `[2, M]`: from, to.
    pub fn edge_index(&self) -> &Tensor {
        self.tensors.edge_index.get_or_init(|| {
            let each = self.arrays.messages_per_edge();
            let edges = self.arrays.edges.iter();
            self.ends(&edges.flat_map(|&(a, b)| [(a, b), (b, a)].into_iter().take(each)).collect::<Vec<_>>())
        })
    }

    /// Endpoints of the edge of each row of edge logits, `[2, E]`.
    pub fn edge_rows(&self) -> &Tensor {
        self.tensors.edge_rows.get_or_init(|| self.ends(&self.arrays.edges))
    }

    /// Class of each message's edge, `[M]`.
    pub fn edge_classes(&self) -> &Tensor {
        self.tensors.edge_classes.get_or_init(|| self.tensor(self.messages().map(|edge| i64::from(edge.class))))
    }

    /// Attributes of each message's edge, `[M, K]`, 0 for unset.
    pub fn edge_attributes(&self) -> &Tensor {
        let (rows, columns) =
            (self.arrays.edges.len() * self.arrays.messages_per_edge(), self.schema.edge_attributes.len());
        self.tensors.edge_attributes.get_or_init(|| {
            let values = self.messages().flat_map(|edge| edge.attributes.columns(columns));
            self.tensor(values).view([rows as i64, columns as i64])
        })
    }

    /// The edge of each message.
    fn messages(&self) -> impl Iterator<Item = &Edge> {
        let each = self.arrays.messages_per_edge();
        self.arrays.weights.iter().flat_map(move |edge| std::iter::repeat_n(edge, each))
    }

    /// The nodes of some pairs, `[2, pairs]`.
    pub(crate) fn ends(&self, pairs: &[(u32, u32)]) -> Tensor {
        let (from, to) = (pairs.iter().map(|pair| pair.0), pairs.iter().map(|pair| pair.1));
        self.tensor(from.chain(to).map(i64::from)).view([2, -1])
    }

    /// Numbers on the batch's device.
    pub(crate) fn tensor(&self, values: impl Iterator<Item = i64>) -> Tensor {
        Tensor::from_slice(&values.collect::<Vec<_>>()).to_device(self.device)
    }
}
