//! Node features before message passing.

use tch::Tensor;

use crate::graph::{GraphArrays, GraphBatch, GraphSchema};
use crate::nn::Scope;
use crate::nn::host::floats;
use crate::nn::layers::{AttributeTable, HostKinds, add_entry};

/// Learned tables for a node's class, label (if labels mean something) and attributes.
#[derive(Debug)]
pub(crate) struct NodeFeatures {
    classes: Tensor,
    /// A vector for each label that is told apart; all later nodes share the last.
    labels: Option<Tensor>,
    attributes: Option<AttributeTable>,
}

impl NodeFeatures {
    pub(crate) fn new(scope: &mut Scope<'_>, schema: &GraphSchema, width: i64, n_labels: usize) -> Self {
        Self {
            classes: scope.normal("class", &[schema.node_classes as i64, width], 1.0),
            labels: (n_labels > 0).then(|| scope.normal("label", &[n_labels as i64, width], 1.0)),
            attributes: AttributeTable::new(scope, &schema.node_attributes, width),
        }
    }

    /// Number of labels that are told apart; 0 if labels aren't used.
    pub(crate) fn n_labels(&self) -> usize {
        self.labels.as_ref().map_or(0, |labels| labels.size()[0] as usize)
    }

    /// The vectors of classes, `[classes, D]`.
    pub(crate) fn classes(&self) -> &Tensor {
        &self.classes
    }

    /// A copy of the tables on the host.
    pub(crate) fn on_host(&self) -> HostFeatures {
        HostFeatures {
            kinds: HostKinds::new(&self.classes, self.attributes.as_ref()),
            labels: self.labels.as_ref().map(floats),
        }
    }

    /// The feature rows of the given nodes, `[R, D]`.
    pub(crate) fn forward(&self, batch: &GraphBatch<'_>, nodes: &[usize]) -> Tensor {
        let arrays = batch.arrays;
        let each = || nodes.iter().map(|&node| arrays.nodes[node]);
        let mut rows = self.classes.index_select(0, &batch.tensor(each().map(|node| i64::from(node.class))));
        if let Some(labels) = &self.labels {
            let last = labels.size()[0] - 1;
            let of_nodes = nodes.iter().map(|&node| i64::from(arrays.labels[node]).min(last));
            rows += labels.index_select(0, &batch.tensor(of_nodes));
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
    labels: Option<Vec<f32>>,
}

impl HostFeatures {
    /// Number of labels that are told apart; 0 if labels aren't used.
    pub(crate) fn n_labels(&self) -> usize {
        self.labels.as_ref().map_or(0, |labels| labels.len() / self.kinds.width)
    }

    /// The feature rows of the given nodes.
    pub(crate) fn forward(&self, arrays: &GraphArrays, nodes: &[usize]) -> Vec<f32> {
        let (width, last) = (self.kinds.width, self.n_labels().saturating_sub(1));
        let mut out = vec![0.0; nodes.len() * width];
        for (&node, row) in nodes.iter().zip(out.chunks_exact_mut(width)) {
            let (class, attributes) = (arrays.nodes[node].class, &arrays.nodes[node].attributes);
            self.kinds.add(class, attributes, row);
            if let Some(labels) = &self.labels {
                add_entry(labels, last.min(arrays.labels[node] as usize), row);
            }
        }
        out
    }
}
