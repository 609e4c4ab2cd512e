use gfn::env::Reward;
use gfn::graph::{GraphState, GraphStates};
use gfn::runtime::Threads;
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

use super::cliques::{maximal_cliques, neighbours};
use super::env::MAX_NODES;

/// The rewards of recursionpharma/gflownet's basic graph task, on undirected graphs of two colours.
///
/// They depend on the graph alone, not on the labels of its nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColoredGraphReward {
    /// log R = -10/4 |n0 + n1/2 - 3|, with n0 and n1 nodes of the two colours. The default.
    #[default]
    Count,
    /// log R = 10/7 (e - n) for more than 3 nodes, else -50/7, with e the nodes whose number of neighbours of the other
    /// colour is even and not zero.
    Even,
    /// log R = max(m - s + n - 1, -10), with s the sum of the sizes of all maximal cliques and m the number of those of size
    /// 4, each counted 1 if at least 3 of its nodes share a colour and 1/2 otherwise.
    Clique,
}

impl ColoredGraphReward {
    /// log R of one graph.
    ///
    /// ```
    /// use gfn::graph::{GraphKind, GraphState};
    /// use gfn_gym::colored_graphs::ColoredGraphReward;
    /// let three_nodes = GraphState::with_nodes(GraphKind::Undirected, 3);
    /// assert_eq!(ColoredGraphReward::Count.of(&three_nodes)?, 0.0);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for a graph of more than 64 nodes, or a directed one.
    pub fn of(self, graph: &GraphState) -> Result<f64> {
        let n = graph.n_nodes();
        if n > MAX_NODES || graph.is_directed() {
            return Err(Error::config(
                "a graph that `ColoredGraphReward` was asked about",
                format!("{:?}, with {n} nodes", graph.kind()),
                "an undirected graph of at most 64 nodes",
            ));
        }
        Ok(match self {
            Self::Count => count(graph),
            Self::Even => even(graph),
            Self::Clique => clique(graph),
        })
    }
}

impl Reward<GraphStates> for ColoredGraphReward {
    fn log_reward(&self, states: &GraphStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        Threads::try_map(states.graphs(), 64, |graph| self.of(graph))
    }
}

/// The nodes of colour 0, as bits.
fn first_colour(graph: &GraphState) -> u64 {
    let nodes = graph.nodes().enumerate();
    nodes.fold(0, |bits, (a, node)| bits | u64::from(node.class == 0) << a)
}

fn count(graph: &GraphState) -> f64 {
    let n0 = f64::from(first_colour(graph).count_ones());
    let n1 = graph.n_nodes() as f64 - n0;
    -10.0 / 4.0 * (n0 + n1 / 2.0 - 3.0).abs()
}

fn even(graph: &GraphState) -> f64 {
    let n = graph.n_nodes();
    if n <= 3 {
        return -50.0 / 7.0;
    }
    let first = first_colour(graph);
    let is_even = |a: &usize| {
        let other = if first >> a & 1 == 1 { !first } else { first };
        let differing = (neighbours(graph, *a) & other).count_ones();
        differing > 0 && differing.is_multiple_of(2)
    };
    let e = (0..n).filter(is_even).count();
    10.0 / 7.0 * (e as f64 - n as f64)
}

fn clique(graph: &GraphState) -> f64 {
    let n = graph.n_nodes();
    let first = first_colour(graph);
    let all = if n == 64 { u64::MAX } else { (1 << n) - 1 };
    let (mut matches, mut sizes) = (0.0, 0.0);
    maximal_cliques(graph, 0, all, 0, &mut |clique| {
        let size = clique.count_ones();
        sizes += f64::from(size);
        if size == 4 {
            let of_first = (clique & first).count_ones();
            matches += if of_first.max(4 - of_first) >= 3 { 1.0 } else { 0.5 };
        }
    });
    (matches - sizes + n as f64 - 1.0).max(-10.0)
}
