//! Learned vectors for the classes and attributes of edges.

use tch::Tensor;

use crate::graph::{GraphBatch, GraphSchema};
use crate::nn::Scope;
use crate::nn::layers::{AttributeTable, HostKinds};

/// Learned tables for an edge's class and attributes.
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

    /// The vectors of all classes, then those of each attribute's values, `[classes + values, width]`.
    pub(crate) fn table(&self) -> Tensor {
        match &self.attributes {
            None => self.classes.shallow_clone(),
            Some(table) => Tensor::cat(&[&self.classes, &table.vectors], 0),
        }
    }

    /// The edge vector of each message, `[M, width]`.
    pub(crate) fn of_messages(&self, batch: &GraphBatch<'_>) -> Tensor {
        self.of_every(1, batch)
    }

    /// The vector of each edge, an undirected one counted once, `[E, width]`.
    pub(crate) fn of_edges(&self, batch: &GraphBatch<'_>) -> Tensor {
        self.of_every(batch.arrays.messages_per_edge() as i64, batch)
    }

    /// The edge vectors of every `step`th message.
    fn of_every(&self, step: i64, batch: &GraphBatch<'_>) -> Tensor {
        let at = |values: &Tensor| values.slice(0, None, None, step);
        let classes = self.classes.index_select(0, &at(batch.edge_classes()));
        match &self.attributes {
            None => classes,
            Some(table) => classes + table.forward(&at(batch.edge_attributes())),
        }
    }

    /// A copy of the tables on the host.
    pub(crate) fn on_host(&self) -> HostKinds {
        HostKinds::new(&self.classes, self.attributes.as_ref())
    }
}
