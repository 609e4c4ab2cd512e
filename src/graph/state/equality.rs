//! Two states are equal when they are the same labelled graph of the same instance.

use std::hash::{Hash, Hasher};

use super::GraphState;

impl PartialEq for GraphState {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind()
            && self.instance == other.instance
            && self.marked_edges == other.marked_edges
            && self.adjacency == other.adjacency
            && self.nodes().eq(other.nodes())
            && (self.marked_edges == 0 || self.edges().all(|(a, b)| self.edge(a, b) == other.edge(a, b)))
    }
}

impl Eq for GraphState {}

impl Hash for GraphState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.instance.hash(state);
        self.adjacency.hash(state);
        for node in self.nodes() {
            node.hash(state);
        }
        if self.marked_edges > 0 {
            for (a, b) in self.edges() {
                self.edge(a, b).hash(state);
            }
        }
    }
}
