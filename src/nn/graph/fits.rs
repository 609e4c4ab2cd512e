//! Checks that graphs fit the network that evaluates them.

use std::collections::HashMap;

use super::features::Labels;
use crate::Result;
use crate::graph::{GraphArrays, GraphBatch, GraphSchema, misfit};

/// The graphs that a network was built for.
#[derive(Clone, Debug)]
pub(crate) struct Fits {
    pub(crate) schema: GraphSchema,
    /// The number of labels that the network knows, if every node has a label of its own.
    pub(crate) n_labels: Option<usize>,
    /// Which labels the network tells apart.
    pub(crate) labels: Labels,
}

impl Fits {
    /// Checks an encoded batch. Its graphs already fit the schema that they were encoded with.
    pub(crate) fn check(&self, batch: &GraphBatch<'_>) -> Result<()> {
        self.schema.check_covers(batch.schema)?;
        batch.label_classes().map_or(Ok(()), |classes| self.check_classes(classes, batch.schema.max_nodes))?;
        self.check_labels(batch.arrays)
    }

    /// Checks that the network tells no two labels apart that are alike in an environment (nodes of another
    /// initial graph).
    pub(crate) fn check_classes(&self, classes: &[u32], max_nodes: usize) -> Result<()> {
        if self.labels.0.is_empty() || self.labels.0 == classes {
            return Ok(());
        }
        let (env, mut seen) = (Labels(classes.to_vec()), HashMap::new());
        // Those behind are all of the last class.
        let told_apart = classes.len().max(self.labels.0.len()) + 1;
        for label in 0..told_apart.min(max_nodes) as u32 {
            let own = self.labels.class(label);
            let (first, class) = *seen.entry(env.class(label)).or_insert((label, own));
            if class != own {
                return Err(misfit(format!(
                    "the network tells nodes {first} and {label} apart, and in this environment they are alike: it was built for \
                     another initial graph"
                )));
            }
        }
        Ok(())
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
