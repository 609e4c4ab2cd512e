//! Expert knowledge about the structure of a network: a limit on the number of parents, required edges and
//! forbidden edges.

use gfn::graph::GraphState;
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

use super::ancestry::parent_sets;
use super::node_set::{count_subsets, subsets};
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

    /// Returns `true` if an edge from `a` to `b` isn't forbidden and `b`, which has the given parents, may
    /// have one more.
    pub(crate) fn permits(&self, a: usize, b: usize, parents: &NodeSet) -> bool {
        self.max_parents.is_none_or(|most| parents.len() < most)
            && !self.forbidden.contains(&(a as u32, b as u32))
    }

    /// Returns the nodes that a node must have as parents, the nodes that it may have in addition, and the
    /// largest number of the latter.
    fn parent_choices(&self, node: usize) -> (NodeSet, Vec<usize>, usize) {
        let required = Self::sources(&self.required, node);
        let excluded = Self::sources(&self.forbidden, node).union(required).with(node);
        let optional: Vec<usize> = (0..self.nodes).filter(|&other| !excluded.contains(other)).collect();
        let most = self.max_parents.map_or(optional.len(), |most| most.saturating_sub(required.len()));
        let most = most.min(optional.len());
        (required, optional, most)
    }

    /// Lists the permitted parent sets of a node.
    pub(crate) fn parent_sets(&self, node: usize) -> impl Iterator<Item = NodeSet> + use<> {
        let (required, optional, most) = self.parent_choices(node);
        subsets(&optional, most).into_iter().map(move |set| set.union(required))
    }

    /// Returns the number of permitted parent sets of all nodes; `None` if it doesn't fit into a `usize`.
    pub(crate) fn count_parent_sets(&self) -> Option<usize> {
        (0..self.nodes).try_fold(0usize, |sum, node| {
            let (_, optional, most) = self.parent_choices(node);
            sum.checked_add(count_subsets(optional.len(), most)?)
        })
    }

    /// Returns the nodes from which one of the given edges leads to `node`.
    fn sources(edges: &[(u32, u32)], node: usize) -> NodeSet {
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
