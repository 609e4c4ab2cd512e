//! What the graphs of an environment are made of.

use crate::graph::{GraphKind, MAX_ATTRIBUTES};
use crate::{Error, Result};

/// What the graphs of an environment are made of: what an estimator needs to know to size its tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphSchema {
    /// Directed or undirected.
    pub kind: GraphKind,
    /// No graph has more nodes.
    pub max_nodes: usize,
    /// Node classes are `0..node_classes`.
    pub node_classes: usize,
    /// Edge classes are `0..edge_classes`.
    pub edge_classes: usize,
    /// Node attribute `k` has values `0..=node_attributes[k]`, 0 for unset.
    pub node_attributes: Vec<u8>,
    /// Edge attribute `k` has values `0..=edge_attributes[k]`, 0 for unset.
    pub edge_attributes: Vec<u8>,
}

impl GraphSchema {
    /// One class of nodes, one of edges, no attributes.
    #[must_use]
    pub fn plain(kind: GraphKind, max_nodes: usize) -> Self {
        Self {
            kind,
            max_nodes,
            node_classes: 1,
            edge_classes: 1,
            node_attributes: Vec::new(),
            edge_attributes: Vec::new(),
        }
    }

    /// Checks that graphs can hold what this says.
    ///
    /// # Errors
    /// [`Error::Config`] for more than [`MAX_ATTRIBUTES`] attributes of nodes or of edges, and for more than 65536 classes.
    pub fn check(&self) -> Result<()> {
        let refuse = |setting, got: usize, expected| Err(Error::config(setting, got, expected));
        let most = MAX_ATTRIBUTES.max(self.node_attributes.len()).max(self.edge_attributes.len());
        if most > MAX_ATTRIBUTES {
            return refuse(
                "the number of attributes in a schema",
                most,
                "at most 7, as many as a node or an edge holds",
            );
        }
        match self.node_classes.max(self.edge_classes) {
            0..=65536 => Ok(()),
            most => refuse("the number of classes in a schema", most, "at most 65536, as a class has 16 bits"),
        }
    }
}
