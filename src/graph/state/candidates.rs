//! The pairs of nodes that edges may be added between, where they are listed.

use std::sync::Arc;

use super::{GraphKind, GraphState};
use crate::{Error, Result};

/// Pairs of nodes, ascending.
pub(in crate::graph) type Candidates = Vec<(u32, u32)>;

impl GraphState {
    /// The same graph, with all pairs of nodes that [`AddEdge::among_candidates`](crate::graph::AddEdge::among_candidates) may join: they
    /// alone get logits. States that are built from it share the list; a graph
    /// with another list, or none, is another state. Undirected pairs may be given either
    /// way round, and any pair more than once.
    ///
    /// ```
    /// use gfn::graph::{GraphKind, GraphState};
    /// let graph = GraphState::with_nodes(GraphKind::Undirected, 10_000);
    /// let graph = graph.with_candidates((1..10_000).map(|a| (a, a - 1)))?;
    /// assert_eq!(graph.candidates()[..2], [(0, 1), (1, 2)]);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Contract`] for a pair of a node with itself, and for a node that isn't there.
    pub fn with_candidates(self, pairs: impl IntoIterator<Item = (u32, u32)>) -> Result<Self> {
        let mut pairs: Vec<(u32, u32)> = pairs.into_iter().map(|(a, b)| self.ordered(a, b)).collect();
        let n = self.n_nodes();
        if let Some((a, b)) = pairs.iter().find(|(a, b)| a == b || *a.max(b) as usize >= n) {
            let detail = format!("({a}, {b}) of {n} nodes");
            return Err(Error::contract("a candidate names two different nodes of the graph", detail));
        }
        pairs.sort_unstable();
        pairs.dedup();
        Ok(Self { candidates: Some(Arc::new(pairs)), ..self })
    }

    /// The pairs of nodes that edges may be added between, ascending, undirected ones with the smaller node first; none where they aren't
    /// listed.
    #[must_use]
    pub fn candidates(&self) -> &[(u32, u32)] {
        self.candidates.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The same graph without a list of candidates.
    #[must_use]
    pub fn without_candidates(self) -> Self {
        Self { candidates: None, ..self }
    }

    /// Whether a list is there, though it may be empty.
    pub(in crate::graph) fn lists_candidates(&self) -> bool {
        self.candidates.is_some()
    }

    /// Whether both have the same list, or none.
    pub(in crate::graph) fn has_candidates_of(&self, other: &Self) -> bool {
        match (&self.candidates, &other.candidates) {
            (None, None) => true,
            (Some(own), Some(others)) => Arc::ptr_eq(own, others) || own == others,
            _ => false,
        }
    }

    /// The same graph with the list of another, or without.
    pub(in crate::graph) fn with_candidates_of(self, other: &Self) -> Self {
        Self { candidates: other.candidates.clone(), ..self }
    }

    pub(in crate::graph) fn shared_candidates(&self) -> Option<Arc<Candidates>> {
        self.candidates.clone()
    }

    /// The candidates by other names of their nodes; those that name a node without one are left out.
    pub(super) fn renamed_candidates(&self, name: impl Fn(u32) -> Option<u32>) -> Option<Arc<Candidates>> {
        let renamed = self.candidates.as_deref()?.iter().filter_map(|&(a, b)| {
            let (a, b) = (name(a)?, name(b)?);
            Some(if self.kind() == GraphKind::Directed || a < b { (a, b) } else { (b, a) })
        });
        let mut renamed: Vec<_> = renamed.collect();
        renamed.sort_unstable();
        Some(Arc::new(renamed))
    }

    /// The candidates of the graph on these nodes.
    pub(super) fn induced_candidates(&self, nodes: &[u32]) -> Option<Arc<Candidates>> {
        let listed = self.candidates.as_ref()?;
        if nodes.iter().copied().eq(0..self.n_nodes() as u32) {
            return Some(listed.clone());
        }
        let mut names = vec![None; self.n_nodes()];
        for (name, &a) in (0..).zip(nodes) {
            if let Some(place) = names.get_mut(a as usize) {
                *place = Some(name);
            }
        }
        self.renamed_candidates(|a| names[a as usize])
    }

    /// Leaves out those candidates that name a node; none does that came after the initial graph.
    pub(super) fn forget_candidates_of(&mut self, a: u32) {
        if self.candidates().iter().any(|&(b, c)| b == a || c == a) {
            self.candidates = self.renamed_candidates(|b| (b != a).then_some(b));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Edge;

    #[test]
    fn candidates_go_with_their_nodes() {
        let graph = |kind| GraphState::with_nodes(kind, 4).with_candidates([(2, 0), (0, 1), (1, 0), (3, 2)]).unwrap();
        let undirected = graph(GraphKind::Undirected);
        assert_eq!(undirected.candidates(), [(0, 1), (0, 2), (2, 3)]);
        assert_eq!(graph(GraphKind::Directed).candidates(), [(0, 1), (1, 0), (2, 0), (3, 2)]);
        assert_ne!(undirected, GraphState::with_nodes(GraphKind::Undirected, 4));
        assert_eq!(undirected.clone().without_candidates(), GraphState::with_nodes(GraphKind::Undirected, 4));
        assert_eq!(undirected, graph(GraphKind::Undirected));

        let mut edited = undirected.clone();
        edited.add_node(crate::graph::Node::default());
        edited.add_edge(4, 3, Edge::default()).unwrap();
        assert_eq!(edited.candidates(), undirected.candidates());
        edited.remove_node(4).unwrap();
        assert!(Arc::ptr_eq(&edited.shared_candidates().unwrap(), &undirected.shared_candidates().unwrap()));
        // Nodes behind a removed one shift down.
        edited.remove_node(1).unwrap();
        assert_eq!(edited.candidates(), [(0, 1), (1, 2)]);
        edited.remove_node(2).unwrap();
        assert_eq!(edited.candidates(), [(0, 1)]);
        assert_eq!(undirected.induced(&[3, 2, 0]).candidates(), [(0, 1), (1, 2)]);
    }

    #[test]
    fn a_candidate_names_two_nodes() {
        let graph = GraphState::with_nodes(GraphKind::Undirected, 3);
        for pair in [(1, 1), (0, 3), (7, 1)] {
            let message = graph.clone().with_candidates([(0, 1), pair]).unwrap_err().to_string();
            assert!(message.contains("of 3 nodes"), "{message}");
        }
        assert!(graph.candidates().is_empty());
    }
}
