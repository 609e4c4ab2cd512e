//! Node features before message passing.

use tch::Tensor;

use crate::graph::{GraphArrays, GraphBatch, GraphSchema};
use crate::nn::Scope;
use crate::nn::host::floats;
use crate::nn::layers::{AttributeTable, HostKinds, add_entry};

/// The class of each label of a node, as far as a network tells labels apart; none if it doesn't.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Labels(pub(crate) Vec<u32>);

impl Labels {
    /// The number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.0.iter().max().map_or(0, |&last| last as usize + 1)
    }

    /// The class of a label; labels behind share the last one. 0 where labels aren't used.
    pub(crate) fn class(&self, label: u32) -> usize {
        self.0.get(label as usize).or(self.0.last()).map_or(0, |&class| class as usize)
    }
}

/// Learned tables for a node's class, label (if labels mean something) and attributes.
#[derive(Debug)]
pub(crate) struct NodeFeatures {
    classes: Tensor,
    /// A vector for each class of labels.
    labels: Option<(Labels, Tensor)>,
    attributes: Option<AttributeTable>,
}

impl NodeFeatures {
    pub(crate) fn new(scope: &mut Scope<'_>, schema: &GraphSchema, width: i64, labels: &Labels) -> Self {
        Self {
            classes: scope.normal("class", &[schema.node_classes as i64, width], 1.0),
            labels: (labels.classes() > 0)
                .then(|| (labels.clone(), scope.normal("label", &[labels.classes() as i64, width], 1.0))),
            attributes: AttributeTable::new(scope, &schema.node_attributes, width),
        }
    }

    /// Which labels are told apart.
    pub(crate) fn labels(&self) -> Labels {
        self.labels.as_ref().map(|(labels, _)| labels.clone()).unwrap_or_default()
    }

    /// The vectors of classes, `[classes, D]`.
    pub(crate) fn classes(&self) -> &Tensor {
        &self.classes
    }

    /// A copy of the tables on the host.
    pub(crate) fn on_host(&self) -> HostFeatures {
        HostFeatures {
            kinds: HostKinds::new(&self.classes, self.attributes.as_ref()),
            labels: self.labels.as_ref().map(|(labels, table)| (labels.clone(), floats(table))),
        }
    }

    /// The feature rows of the given nodes, `[R, D]`.
    pub(crate) fn forward(&self, batch: &GraphBatch<'_>, nodes: &[usize]) -> Tensor {
        let arrays = batch.arrays;
        let each = || nodes.iter().map(|&node| arrays.nodes[node]);
        let mut rows = self.classes.index_select(0, &batch.tensor(each().map(|node| i64::from(node.class))));
        if let Some((labels, table)) = &self.labels {
            let of_nodes = nodes.iter().map(|&node| labels.class(arrays.labels[node]) as i64);
            rows += table.index_select(0, &batch.tensor(of_nodes));
        }
        if let Some(table) = &self.attributes {
            let k = table.starts.len();
            rows +=
                table.forward(&batch.tensor(each().flat_map(|node| node.attributes.columns(k))).view([-1, k as i64]));
        }
        rows
    }
}

/// A copy of [`NodeFeatures`] on the host.
#[derive(Debug)]
pub(crate) struct HostFeatures {
    kinds: HostKinds,
    labels: Option<(Labels, Vec<f32>)>,
}

impl HostFeatures {
    /// Which labels are told apart.
    pub(crate) fn labels(&self) -> Labels {
        self.labels.as_ref().map(|(labels, _)| labels.clone()).unwrap_or_default()
    }

    /// The feature rows of the given nodes.
    pub(crate) fn forward(&self, arrays: &GraphArrays, nodes: &[usize]) -> Vec<f32> {
        let width = self.kinds.width;
        let mut out = vec![0.0; nodes.len() * width];
        for (&node, row) in nodes.iter().zip(out.chunks_exact_mut(width)) {
            let (class, attributes) = (arrays.nodes[node].class, &arrays.nodes[node].attributes);
            self.kinds.add(class, attributes, row);
            if let Some((labels, table)) = &self.labels {
                add_entry(table, labels.class(arrays.labels[node]), row);
            }
        }
        out
    }
}
