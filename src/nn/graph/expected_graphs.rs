//! Checks that a network was built for the graphs that it evaluates.

use std::collections::HashMap;

use super::features::Labels;
use crate::Result;
use crate::graph::{GraphArrays, GraphBatch, GraphSchema, misfit};

/// A description of the graphs that a network was built for.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedGraphs {
    pub(crate) schema: GraphSchema,
    /// The maximum number of nodes of a graph, if each node of a graph needs a different label that has a
    /// learned vector; otherwise `None`.
    pub(crate) n_labels: Option<usize>,
    /// The class of each label. The network distinguishes two labels only if their classes differ.
    pub(crate) labels: Labels,
}

impl ExpectedGraphs {
    /// Checks that the network was built for the graphs of a batch of tensors. When the graphs were converted
    /// to tensors, they were checked against the batch's schema.
    ///
    /// # Errors
    /// Returns the error of [`misfit`] if the network wasn't built for these graphs.
    pub(crate) fn check(&self, batch: &GraphBatch<'_>) -> Result<()> {
        self.schema.check_covers(batch.schema)?;
        if let Some(classes) = batch.label_classes() {
            self.check_classes(classes, batch.schema.max_nodes)?;
        }
        self.check_labels(batch.arrays)
    }

    /// Checks that the network distinguishes no two labels that are equivalent in an environment. A network
    /// can distinguish such labels if it was built for another initial graph.
    pub(crate) fn check_classes(&self, classes: &[u32], max_nodes: usize) -> Result<()> {
        if self.labels.0.is_empty() || self.labels.0 == classes {
            return Ok(());
        }
        let env_labels = Labels(classes.to_vec());
        let mut network_classes = HashMap::new();
        // A label beyond the end of a list of classes has the last class of the list. All labels beyond both
        // lists are therefore equivalent, and one of them is enough for the check.
        let n_labels = classes.len().max(self.labels.0.len()) + 1;
        for label in 0..n_labels.min(max_nodes) as u32 {
            let network_class = self.labels.class(label);
            let (first, class) =
                *network_classes.entry(env_labels.class(label)).or_insert((label, network_class));
            if class != network_class {
                return Err(misfit(format!(
                    "the network distinguishes nodes {first} and {label}, but in this environment they are \
                     interchangeable: the network was built for another initial graph"
                )));
            }
        }
        Ok(())
    }

    /// Checks that the network was built for these graphs, which are on the host and haven't been converted
    /// to tensors.
    pub(crate) fn check_graphs(&self, arrays: &GraphArrays) -> Result<()> {
        self.schema.check_graphs(arrays)?;
        self.check_labels(arrays)
    }

    /// Checks that the network has a learned vector for the label of each node, if it uses such vectors.
    fn check_labels(&self, arrays: &GraphArrays) -> Result<()> {
        let Some(n_labels) = self.n_labels else { return Ok(()) };
        match arrays.sizes().find(|&n| n > n_labels) {
            None => Ok(()),
            Some(n) => Err(misfit(format!(
                "a graph has {n} nodes, but the network was built for at most {n_labels} nodes"
            ))),
        }
    }
}
