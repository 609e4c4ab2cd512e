//! A batch of graph states.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::OnceLock;

use crate::env::{Grouping, Rows};
use crate::graph::{GraphArrays, GraphState};
use crate::parallel;

/// The smallest number of graphs per thread. With fewer graphs, starting a thread costs more than it saves.
pub(crate) const MIN_GRAPHS_PER_THREAD: usize = 64;

/// A batch of graph states.
///
/// ```
/// use gfn::{env::Rows, graph::{GraphKind, GraphState, GraphStates}};
/// let states = GraphStates::from(vec![GraphState::new(GraphKind::Directed); 3]);
/// assert_eq!(states.len(), 3);
/// assert_eq!(states.group().first, [0]);
/// ```
///
/// The list of all nodes and edges ([`arrays`](Self::arrays)) is cached until a graph is edited. Clones don't
/// copy the cache.
#[derive(Debug, Default)]
pub struct GraphStates {
    graphs: Vec<GraphState>,
    arrays: OnceLock<GraphArrays>,
}

impl GraphStates {
    /// The graphs of the batch, in order.
    #[must_use]
    pub fn graphs(&self) -> &[GraphState] {
        &self.graphs
    }

    /// Returns the nodes and edges of all graphs. The lists are made on the first call after an edit, and
    /// cached.
    #[must_use]
    pub fn arrays(&self) -> &GraphArrays {
        self.arrays.get_or_init(|| GraphArrays::from_graphs(&self.graphs))
    }

    /// Returns the graphs for editing in place, and discards the cached [`arrays`](Self::arrays).
    pub fn graphs_mut(&mut self) -> &mut [GraphState] {
        self.arrays = OnceLock::new();
        &mut self.graphs
    }

    /// Returns the graphs of the batch by value.
    #[must_use]
    pub fn into_graphs(self) -> Vec<GraphState> {
        self.graphs
    }
}

impl Clone for GraphStates {
    fn clone(&self) -> Self {
        self.graphs.clone().into()
    }
}

impl PartialEq for GraphStates {
    fn eq(&self, other: &Self) -> bool {
        self.graphs == other.graphs
    }
}

impl Eq for GraphStates {}

impl From<Vec<GraphState>> for GraphStates {
    fn from(graphs: Vec<GraphState>) -> Self {
        Self { graphs, arrays: OnceLock::new() }
    }
}

impl Rows for GraphStates {
    fn len(&self) -> usize {
        self.graphs.len()
    }
    fn select(&self, rows: &[usize]) -> Self {
        rows.iter().map(|&i| self.graphs[i].clone()).collect::<Vec<_>>().into()
    }
    fn describe(&self, row: usize) -> Option<String> {
        self.graphs.get(row).map(GraphState::to_string)
    }
    fn append(&mut self, mut other: Self) {
        self.arrays = OnceLock::new();
        self.graphs.append(&mut other.graphs);
    }
    fn permute(self, order: &[usize]) -> Self {
        let mut graphs: Vec<Option<GraphState>> = self.graphs.into_iter().map(Some).collect();
        order.iter().filter_map(|&i| graphs[i].take()).collect::<Vec<_>>().into()
    }
    fn group(&self) -> Grouping {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let hashes = parallel::map(&self.graphs, MIN_GRAPHS_PER_THREAD, |graph| hasher.hash_one(graph));
        Grouping::by(&hashes, |i, j| self.graphs[i] == self.graphs[j])
    }
}
