//! Checks that graphs fit the network that evaluates them.

use crate::Result;
use crate::graph::{GraphArrays, GraphBatch, GraphSchema, misfit};

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
        self.check_labels(batch.arrays)
    }

    /// Checks graphs that haven't been encoded.
    pub(crate) fn check_graphs(&self, arrays: &GraphArrays) -> Result<()> {
        self.schema.check_graphs(arrays)?;
        self.check_labels(arrays)
    }

    fn check_labels(&self, arrays: &GraphArrays) -> Result<()> {
        let Some(most) = self.n_labels else { return Ok(()) };
        match arrays.sizes().find(|&n| n > most) {
            None => Ok(()),
            Some(n) => Err(misfit(format!("a graph has {n} nodes, and the network knows {most} labels"))),
        }
    }
}
