//! Node features before message passing.

use tch::Tensor;

use crate::graph::{GraphBatch, GraphSchema, GraphState};
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

    /// The feature rows of the given nodes, `[R]` to `[R, D]`.
    pub(crate) fn forward(&self, batch: &GraphBatch<'_>, nodes: &Tensor) -> Tensor {
        let mut rows = self.classes.index_select(0, &batch.node_classes.index_select(0, nodes));
        if let Some(labels) = &self.labels {
            let last = labels.size()[0] - 1;
            rows += labels.index_select(0, &batch.node_labels.index_select(0, nodes).clamp_max(last));
        }
        if let Some(table) = &self.attributes {
            rows += table.forward(&batch.node_attributes.index_select(0, nodes));
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

    /// The feature rows of the given nodes, which are in the order of the batch.
    pub(crate) fn forward(&self, graphs: &[GraphState], nodes: &[i64]) -> Vec<f32> {
        debug_assert!(nodes.is_sorted(), "nodes in the order of the batch");
        let n_labels = self.n_labels();
        let mut out = Vec::with_capacity(nodes.len() * self.kinds.width);
        let mut wanted = nodes.iter().peekable();
        let all = graphs.iter().flat_map(|graph| graph.nodes().enumerate());
        for (row, (label, node)) in all.enumerate() {
            if wanted.next_if(|&&next| next == row as i64).is_none() {
                continue;
            }
            let at = out.len();
            out.resize(at + self.kinds.width, 0.0);
            self.kinds.add(node.class, &node.attributes, &mut out[at..]);
            if let Some(labels) = &self.labels {
                add_entry(labels, label.min(n_labels - 1), &mut out[at..]);
            }
        }
        out
    }
}
