//! A batch of graph states.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::env::{Grouping, Rows};
use crate::graph::GraphState;
use crate::parallel;

/// How many graphs a thread takes at least: below that, handing work over costs more than it saves.
pub(crate) const MIN_GRAPHS_PER_THREAD: usize = 64;

/// A batch of graph states.
///
/// ```
/// use gfn::{env::Rows, graph::{GraphKind, GraphState, GraphStates}};
/// let states = GraphStates::from(vec![GraphState::new(GraphKind::Directed); 3]);
/// assert_eq!(states.len(), 3);
/// assert_eq!(states.group().first, [0]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GraphStates(Vec<GraphState>);

impl GraphStates {
    /// The graphs.
    #[must_use]
    pub fn graphs(&self) -> &[GraphState] {
        &self.0
    }

    /// The graphs, for editing in place.
    pub fn graphs_mut(&mut self) -> &mut [GraphState] {
        &mut self.0
    }

    /// The graphs, by value.
    #[must_use]
    pub fn into_graphs(self) -> Vec<GraphState> {
        self.0
    }
}

impl From<Vec<GraphState>> for GraphStates {
    fn from(graphs: Vec<GraphState>) -> Self {
        Self(graphs)
    }
}

impl Rows for GraphStates {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn select(&self, rows: &[usize]) -> Self {
        Self(rows.iter().map(|&i| self.0[i].clone()).collect())
    }
    fn describe(&self, row: usize) -> Option<String> {
        self.0.get(row).map(GraphState::to_string)
    }
    fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
    fn permute(self, order: &[usize]) -> Self {
        let mut graphs: Vec<Option<GraphState>> = self.0.into_iter().map(Some).collect();
        Self(order.iter().filter_map(|&i| graphs[i].take()).collect())
    }
    fn group(&self) -> Grouping {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let hashes = parallel::map(&self.0, MIN_GRAPHS_PER_THREAD, |graph| hasher.hash_one(graph));
        Grouping::by(&hashes, |i, j| self.0[i] == self.0[j])
    }
}
