//! What a node is before it has heard from others.

use tch::Tensor;

use super::Scope;
use super::attribute_table::AttributeTable;
use super::frozen::floats;
use crate::graph::{GraphBatch, GraphSchema, GraphState};

/// Learned tables for what a node is: its class, its label where nodes are distinguishable, its attributes.
#[derive(Debug)]
pub(crate) struct NodeFeatures {
    classes: Tensor,
    labels: Option<Tensor>,
    attributes: Option<AttributeTable>,
}

impl NodeFeatures {
    pub(crate) fn new(scope: &mut Scope<'_>, schema: &GraphSchema, width: i64, identity: bool) -> Self {
        Self {
            classes: scope.normal("class", &[schema.node_classes as i64, width], 1.0),
            labels: identity.then(|| scope.normal("label", &[schema.max_nodes as i64, width], 1.0)),
            attributes: AttributeTable::new(scope, &schema.node_attributes, width),
        }
    }

    /// Whether a node's label enters.
    pub(crate) fn see_labels(&self) -> bool {
        self.labels.is_some()
    }

    /// The vectors of classes, `[classes, D]`.
    pub(crate) fn classes(&self) -> &Tensor {
        &self.classes
    }

    /// The tables as they are now, on the host.
    pub(crate) fn frozen(&self) -> FrozenFeatures {
        let attributes = self.attributes.as_ref().map(|table| (floats(&table.vectors), table.starts.clone()));
        FrozenFeatures {
            width: self.classes.size()[1] as usize,
            classes: floats(&self.classes),
            labels: self.labels.as_ref().map(floats),
            attributes,
        }
    }

    /// One row for each of some nodes, `[R]` to `[R, D]`.
    pub(crate) fn forward(&self, batch: &GraphBatch<'_>, nodes: &Tensor) -> Tensor {
        let mut rows = self.classes.index_select(0, &batch.node_classes.index_select(0, nodes));
        if let Some(labels) = &self.labels {
            rows += labels.index_select(0, &batch.node_labels.index_select(0, nodes));
        }
        if let Some(table) = &self.attributes {
            rows += table.forward(&batch.node_attributes.index_select(0, nodes));
        }
        rows
    }
}

/// [`NodeFeatures`] on the host.
#[derive(Debug)]
pub(crate) struct FrozenFeatures {
    width: usize,
    classes: Vec<f32>,
    labels: Option<Vec<f32>>,
    attributes: Option<(Vec<f32>, Vec<i64>)>,
}

impl FrozenFeatures {
    pub(crate) fn see_labels(&self) -> bool {
        self.labels.is_some()
    }

    /// One row for each of some nodes, which come in the order of the batch.
    pub(crate) fn forward(&self, graphs: &[GraphState], nodes: &[i64]) -> Vec<f32> {
        debug_assert!(nodes.is_sorted(), "nodes in the order of the batch");
        let mut out = Vec::with_capacity(nodes.len() * self.width);
        let mut wanted = nodes.iter().peekable();
        let all = graphs.iter().flat_map(|graph| graph.nodes().enumerate());
        for (row, (label, node)) in all.enumerate() {
            if wanted.next_if(|&&next| next == row as i64).is_none() {
                continue;
            }
            let at = out.len();
            out.extend_from_slice(&self.classes[usize::from(node.class) * self.width..][..self.width]);
            let mut add = |table: &[f32], entry: usize| {
                let values = &table[entry * self.width..][..self.width];
                out[at..].iter_mut().zip(values).for_each(|(x, value)| *x += value);
            };
            if let Some(labels) = &self.labels {
                add(labels, label);
            }
            if let Some((table, starts)) = &self.attributes {
                let values = node.attributes.values().iter();
                values.zip(starts).for_each(|(&value, &start)| add(table, start as usize + usize::from(value)));
            }
        }
        out
    }
}
