//! Checks that graphs fit the network that evaluates them.

use crate::Result;
use crate::graph::{GraphBatch, GraphSchema, GraphState, misfit};

/// The graphs that a network was built for.
#[derive(Clone, Debug)]
pub(crate) struct Fits {
    pub(crate) schema: GraphSchema,
    /// The number of labels that the network knows, if every node has a label of its own.
    pub(crate) n_labels: Option<usize>,
}

impl Fits {
    /// Checks an encoded batch. Its graphs already fit the schema that they were encoded with.
    pub(crate) fn check(&self, batch: &GraphBatch<'_>) -> Result<()> {
        self.schema.check_covers(batch.schema)?;
        self.check_labels(batch.n_nodes.iter().copied())
    }

    /// Checks graphs that haven't been encoded.
    pub(crate) fn check_graphs(&self, graphs: &[GraphState]) -> Result<()> {
        self.schema.check_graphs(graphs)?;
        self.check_labels(graphs.iter().map(GraphState::n_nodes))
    }

    fn check_labels(&self, mut n_nodes: impl Iterator<Item = usize>) -> Result<()> {
        let Some(most) = self.n_labels else { return Ok(()) };
        match n_nodes.find(|&n| n > most) {
            None => Ok(()),
            Some(n) => Err(misfit(format!("a graph has {n} nodes, and the network knows {most} labels"))),
        }
    }
}
