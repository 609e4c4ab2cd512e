//! A minibatch of graphs as tensors with one sparse edge index: `GraphBatch`.

mod arrays;
mod view;

pub(in crate::graph) use arrays::new_ptr;
pub use arrays::{GraphArrays, Neighbours};
pub use view::GraphView;

use std::cell::OnceCell;

use tch::{Device, Tensor};

use super::{Edge, GraphSchema, MoveSymmetries, Node, Weight};
use crate::Result;
use crate::env::Direction;
use crate::tensor::{to_device, upload};

/// A minibatch of graphs, concatenated: the rows of nodes and of edges of all graphs, one graph after
/// another.
///
/// In the shapes below `N` is the number of nodes, `E` the number of edges, `M` the number of directed
/// messages, `B` the number of graphs, `C` the width of a condition, and `K` the number of attributes in the
/// schema. An undirected edge is two consecutive messages, and one row of logits. The edges of a graph are in
/// the order of [`GraphState::edges`](crate::graph::GraphState::edges).
///
/// The [arrays](Self::arrays) are on the host. Each tensor is created when it is first requested, so a
/// network pays only for the tensors that it uses.
#[derive(Debug)]
pub struct GraphBatch<'a> {
    /// The nodes and edges of all graphs, on the host.
    pub arrays: &'a GraphArrays,
    /// The condition of each graph, `[B, C]`; `None` without conditions.
    pub conditions: Option<Tensor>,
    /// The schema of the graphs. All graphs were checked against it.
    pub schema: &'a GraphSchema,
    device: Device,
    /// The class of each node label ([`GraphEnv::label_classes`](crate::graph::GraphEnv)); a network can't
    /// distinguish labels of the same class. `None` if no environment provided classes.
    label_classes: Option<Vec<u32>>,
    /// The number of automorphisms of each graph, and the factors by which moves change this number. The list
    /// has at most one entry for forward moves and one for backward moves.
    symmetries: Vec<MoveSymmetries>,
    tensors: TensorCache,
}

/// The tensors that have been requested so far.
#[derive(Debug, Default)]
struct TensorCache {
    node_classes: OnceCell<Tensor>,
    node_attributes: OnceCell<Tensor>,
    node_labels: OnceCell<Tensor>,
    node_graph: OnceCell<Tensor>,
    edge_index: OnceCell<Tensor>,
    edge_classes: OnceCell<Tensor>,
    edge_attributes: OnceCell<Tensor>,
}

impl<'a> GraphBatch<'a> {
    /// Creates a batch of graphs for networks on a device; `conditions` has shape `[B, C]`.
    ///
    /// # Errors
    /// [`Error::Contract`](crate::Error::Contract) for a graph of another kind than the schema's, or with a
    /// class or a value of an attribute that the schema doesn't allow.
    pub fn new(
        schema: &'a GraphSchema,
        arrays: &'a GraphArrays,
        conditions: Option<&Tensor>,
        device: Device,
    ) -> Result<Self> {
        schema.check_graphs(arrays)?;
        let conditions = conditions.map(|c| to_device(c, device));
        Ok(Self {
            arrays,
            conditions,
            schema,
            device,
            label_classes: None,
            symmetries: Vec::new(),
            tensors: TensorCache::default(),
        })
    }

    /// Sets the class of each node label, as an environment defines it. A network can't distinguish labels of
    /// the same class.
    pub(crate) fn with_label_classes(mut self, classes: Vec<u32>) -> Self {
        self.label_classes = Some(classes);
        self
    }

    /// The class of each node label, if an environment provided classes.
    pub(crate) fn label_classes(&self) -> Option<&[u32]> {
        self.label_classes.as_deref()
    }

    /// Sets the number of automorphisms of each graph, and the changes of this number by moves in one
    /// direction, as [`GraphEnv::move_symmetries`](crate::graph::GraphEnv::move_symmetries) counts them.
    /// Counts that were set earlier for the same direction are replaced.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the counts are for more or fewer graphs than the batch has.
    pub fn with_symmetries(mut self, counted: MoveSymmetries) -> Result<Self> {
        counted.check(self.len())?;
        self.symmetries.retain(|other| other.direction != counted.direction);
        self.symmetries.push(counted);
        Ok(self)
    }

    /// Returns the number of automorphisms of each graph, and the changes of this number by moves in this
    /// direction; `None` if they weren't [set](Self::with_symmetries).
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

    /// The device on which the tensors are created.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// The class of each node, `[N]`, as `i64`. All tensors of the batch except the conditions have this
    /// type.
    pub fn node_classes(&self) -> &Tensor {
        let class = |node: &Node| i64::from(node.class);
        self.tensors.node_classes.get_or_init(|| self.tensor(self.arrays.nodes.iter().map(class)))
    }

    /// The attributes of each node, `[N, K]`; 0 if an attribute isn't set.
    pub fn node_attributes(&self) -> &Tensor {
        let columns = self.schema.node_attributes.len();
        self.tensors.node_attributes.get_or_init(|| self.attributes(self.arrays.nodes.iter(), columns))
    }

    /// The label of each node within its graph, `[N]`. The tensor is meant for networks in environments whose
    /// nodes are distinguishable.
    pub fn node_labels(&self) -> &Tensor {
        self.tensors
            .node_labels
            .get_or_init(|| self.tensor(self.arrays.labels.iter().map(|&label| i64::from(label))))
    }

    /// The index of the graph to which each node belongs, `[N]`.
    pub fn node_graph(&self) -> &Tensor {
        let graphs = || self.arrays.sizes().enumerate().flat_map(|(g, n)| std::iter::repeat_n(g as i64, n));
        self.tensors.node_graph.get_or_init(|| self.tensor(graphs()))
    }

    /// The two nodes of each message, `[2, M]`. The first row holds the senders, the second row the
    /// receivers.
    pub fn edge_index(&self) -> &Tensor {
        self.tensors.edge_index.get_or_init(|| {
            let each = self.arrays.messages_per_edge();
            let edges = self.arrays.edges.iter();
            self.ends(&edges.flat_map(|&(a, b)| [(a, b), (b, a)].into_iter().take(each)).collect::<Vec<_>>())
        })
    }

    /// The class of each message's edge, `[M]`.
    pub fn edge_classes(&self) -> &Tensor {
        self.tensors
            .edge_classes
            .get_or_init(|| self.tensor(self.messages().map(|edge| i64::from(edge.class))))
    }

    /// The attributes of each message's edge, `[M, K]`; 0 if an attribute isn't set.
    pub fn edge_attributes(&self) -> &Tensor {
        let columns = self.schema.edge_attributes.len();
        self.tensors.edge_attributes.get_or_init(|| self.attributes(self.messages(), columns))
    }

    /// Returns the first `columns` attributes of nodes or edges, given by their `weights`, as a tensor with a
    /// row per node or edge.
    fn attributes<'w>(&self, weights: impl Iterator<Item = &'w Weight> + Clone, columns: usize) -> Tensor {
        let rows = weights.clone().count();
        let values = weights.flat_map(|weight| weight.attributes.columns(columns));
        self.tensor(values).view([rows as i64, columns as i64])
    }

    /// Returns the class and the attributes of each message's edge.
    fn messages(&self) -> impl Iterator<Item = &Edge> + Clone {
        let each = self.arrays.messages_per_edge();
        self.arrays.weights.iter().flat_map(move |edge| std::iter::repeat_n(edge, each))
    }

    /// Returns the two nodes of some pairs as a tensor, `[2, pairs]`.
    pub(crate) fn ends(&self, pairs: &[(u32, u32)]) -> Tensor {
        let from = pairs.iter().map(|pair| pair.0);
        let to = pairs.iter().map(|pair| pair.1);
        self.tensor(from.chain(to).map(i64::from)).view([2, -1])
    }

    /// Returns values as a one-dimensional tensor on the batch's device.
    pub(crate) fn tensor(&self, values: impl Iterator<Item = i64>) -> Tensor {
        upload(&values.collect::<Vec<_>>(), self.device)
    }
}
