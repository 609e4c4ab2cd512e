//! Expert knowledge about the structure of a network: a limit on the number of parents, required edges and
//! forbidden edges.

use gfn::graph::GraphState;
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

use super::ancestry::parent_sets;
use super::{NodeSet, acyclic, check_size};

/// The number of nodes of a [`BayesianStructure`](super::BayesianStructure), and expert knowledge about its
/// edges. An edge is a pair `(source, target)`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StructureConfig {
    /// The number of nodes, which is at least 1 and at most 200.
    pub nodes: usize,
    /// The largest number of parents of a node. `None`, the default, means that there is no limit.
    #[serde(default)]
    pub max_parents: Option<usize>,
    /// The edges that no graph may have. The list is empty by default.
    #[serde(default)]
    pub forbidden: Vec<(u32, u32)>,
    /// The edges that every graph must have. The initial graph has exactly these edges. The list is empty
    /// by default.
    #[serde(default)]
    pub required: Vec<(u32, u32)>,
}

impl StructureConfig {
    /// Creates a configuration of all acyclic graphs with `nodes` nodes, without a limit on the number of
    /// parents and without expert knowledge.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        Self { nodes, max_parents: None, forbidden: Vec::new(), required: Vec::new() }
    }

    /// Checks the configuration, and returns the graph of the required edges.
    pub(super) fn initial(&self) -> Result<GraphState> {
        let n = check_size(self.nodes)?;
        for edge in self.required.iter().chain(&self.forbidden) {
            if edge.0.max(edge.1) as usize >= n || edge.0 == edge.1 {
                return Err(knowledge(format!("edge {edge:?} doesn't join two of the {n} nodes")));
            }
        }
        if let Some(edge) = self.required.iter().find(|edge| self.forbidden.contains(edge)) {
            return Err(knowledge(format!("edge {edge:?} is both required and forbidden")));
        }
        let mut required = self.required.clone();
        required.sort_unstable();
        required.dedup();
        let initial = acyclic(n, &required)
            .map_err(|_| knowledge(format!("the required edges {required:?} form a directed cycle")))?;
        let most = self.max_parents.unwrap_or(n);
        if let Some((node, parents)) =
            parent_sets(&initial).iter().enumerate().find(|(_, set)| set.len() > most)
        {
            let parents: Vec<usize> = parents.iter().collect();
            let got =
                format!("node {node} has the required parents {parents:?}, more than max_parents = {most}");
            return Err(knowledge(got));
        }
        Ok(initial)
    }

    /// Returns the nodes from which one of the given edges leads to `node`.
    pub(crate) fn sources(edges: &[(u32, u32)], node: usize) -> NodeSet {
        edges.iter().filter(|edge| edge.1 as usize == node).map(|edge| edge.0 as usize).collect()
    }
}

fn knowledge(got: String) -> Error {
    Error::config(
        "expert knowledge",
        got,
        "required edges without a directed cycle, none of them forbidden, and no more into a node than \
         max_parents",
    )
}
