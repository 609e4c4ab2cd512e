use gfn::env::Reward;
use gfn::graph::{GraphState, GraphStates};
use gfn::runtime::Threads;
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

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

/// The neighbours of a node, as bits; graphs here have at most one word per row.
fn neighbours(graph: &GraphState, a: usize) -> u64 {
    graph.adjacency().bits(a).map_or(0, |words| words[0])
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

/// Bron and Kerbosch (1973) with pivoting: every maximal clique that holds `chosen`, grows from `candidates`, and holds none of
/// `excluded`.
fn maximal_cliques(graph: &GraphState, chosen: u64, candidates: u64, excluded: u64, found: &mut impl FnMut(u64)) {
    if candidates | excluded == 0 {
        if chosen != 0 {
            found(chosen);
        }
        return;
    }
    let (mut candidates, mut excluded) = (candidates, excluded);
    let pivot = bits(candidates | excluded).max_by_key(|&a| (neighbours(graph, a) & candidates).count_ones());
    let skipped = pivot.map_or(0, |a| neighbours(graph, a));
    for a in bits(candidates & !skipped) {
        let near = neighbours(graph, a);
        maximal_cliques(graph, chosen | 1 << a, candidates & near, excluded & near, found);
        candidates &= !(1 << a);
        excluded |= 1 << a;
    }
}

/// The set bits of a word, ascending.
fn bits(word: u64) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)))
        .take_while(|rest| *rest != 0)
        .map(|rest| rest.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use gfn::graph::{Edge, GraphKind, Node};
    use proptest::prelude::*;

    use super::*;

    fn graph(colours: &[u16], edges: &[(u32, u32)]) -> GraphState {
        let nodes: Vec<Node> = colours.iter().map(|&c| Node::of_class(c)).collect();
        let edges: Vec<_> = edges.iter().map(|&(a, b)| (a, b, Edge::default())).collect();
        GraphState::from_parts(GraphKind::Undirected, &nodes, &edges).unwrap()
    }

    fn close(reward: ColoredGraphReward, graph: &GraphState, expected: f64) {
        let got = reward.of(graph).unwrap();
        assert!((got - expected).abs() < 1e-12, "{reward:?}: {got}, not {expected}");
    }

    const COMPLETE: [(u32, u32); 6] = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];

    #[test]
    fn count_by_hand() {
        close(ColoredGraphReward::Count, &graph(&[0, 0, 1, 1], &[(0, 1), (1, 2), (2, 3)]), 0.0);
        close(ColoredGraphReward::Count, &graph(&[0], &[]), -5.0);
        close(ColoredGraphReward::Count, &graph(&[1], &[]), -6.25);
        close(ColoredGraphReward::Count, &graph(&[0; 7], &[]), -10.0);
    }

    #[test]
    fn even_by_hand() {
        close(ColoredGraphReward::Even, &graph(&[0, 1, 0], &[(0, 1), (1, 2)]), -50.0 / 7.0);
        // A square of alternating colours: each node has two neighbours of the other.
        let square = [(0, 1), (1, 2), (2, 3), (0, 3)];
        close(ColoredGraphReward::Even, &graph(&[0, 1, 0, 1], &square), 0.0);
        // One colour: no such neighbour at all, which doesn't count.
        close(ColoredGraphReward::Even, &graph(&[0; 4], &square), -40.0 / 7.0);
        // A path 0-1-0-0: nodes have 1, 2, 1, 0 such neighbours.
        close(ColoredGraphReward::Even, &graph(&[0, 1, 0, 0], &[(0, 1), (1, 2), (2, 3)]), -30.0 / 7.0);
    }

    #[test]
    fn cliques_by_hand() {
        // One maximal clique of size 4: 1 - 4 + 4 - 1, and half the bonus for two and two.
        close(ColoredGraphReward::Clique, &graph(&[0, 0, 0, 0], &COMPLETE), 0.0);
        close(ColoredGraphReward::Clique, &graph(&[0, 1, 1, 1], &COMPLETE), 0.0);
        close(ColoredGraphReward::Clique, &graph(&[0, 0, 1, 1], &COMPLETE), -0.5);
        // One node: 0 - 1 + 1 - 1; an edge: 0 - 2 + 2 - 1; a path of three: 0 - 4 + 3 - 1.
        close(ColoredGraphReward::Clique, &graph(&[0], &[]), -1.0);
        close(ColoredGraphReward::Clique, &graph(&[0, 1], &[(0, 1)]), -1.0);
        close(ColoredGraphReward::Clique, &graph(&[0, 1, 0], &[(0, 1), (1, 2)]), -2.0);
        // A clique of 5 is no clique of 4: 0 - 5 + 5 - 1.
        let five: Vec<(u32, u32)> = (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b))).collect();
        close(ColoredGraphReward::Clique, &graph(&[0; 5], &five), -1.0);
        // Two cliques of 4 that share an edge: 2 - 8 + 6 - 1.
        let mut two = COMPLETE.to_vec();
        two.extend([(2, 4), (2, 5), (3, 4), (3, 5), (4, 5)]);
        close(ColoredGraphReward::Clique, &graph(&[0; 6], &two), -1.0);
        // A star of 12 leaves: 0 - 24 + 13 - 1 is below the floor.
        let star: Vec<(u32, u32)> = (1..13).map(|b| (0, b)).collect();
        close(ColoredGraphReward::Clique, &graph(&[0; 13], &star), -10.0);
    }

    #[test]
    fn graphs_out_of_range_are_refused() {
        let large = GraphState::with_nodes(GraphKind::Undirected, 65);
        let directed = GraphState::with_nodes(GraphKind::Directed, 3);
        for reward in [ColoredGraphReward::Count, ColoredGraphReward::Even, ColoredGraphReward::Clique] {
            assert!(reward.of(&GraphState::with_nodes(GraphKind::Undirected, 64)).is_ok());
            assert!(reward.of(&large).unwrap_err().to_string().contains("65 nodes"));
            assert!(reward.log_reward(&vec![directed.clone()].into(), None).is_err());
        }
    }

    /// Maximal cliques by trying every subset.
    fn brute_force(graph: &GraphState) -> Vec<u64> {
        let n = graph.n_nodes();
        let is_clique = |set: u64| bits(set).all(|a| set & !(neighbours(graph, a) | 1 << a) == 0);
        let grows = |set: u64| (0..n).any(|a| set >> a & 1 == 0 && is_clique(set | 1 << a));
        (1..1u64 << n).filter(|&set| is_clique(set) && !grows(set)).collect()
    }

    fn any_graph() -> impl Strategy<Value = (GraphState, Vec<u32>)> {
        (1usize..8).prop_flat_map(|n| {
            let order = Just((0..n as u32).collect::<Vec<_>>()).prop_shuffle();
            let colours = proptest::collection::vec(0u16..2, n);
            let edges = proptest::collection::vec(any::<bool>(), n * (n - 1) / 2);
            (colours, edges, order).prop_map(move |(colours, present, order)| {
                let pairs = (0..n as u32).flat_map(|a| (a + 1..n as u32).map(move |b| (a, b)));
                let edges: Vec<_> = pairs.zip(present).filter(|(_, p)| *p).map(|(pair, _)| pair).collect();
                (graph(&colours, &edges), order)
            })
        })
    }

    proptest! {
        #[test]
        fn relabelling_changes_no_reward((graph, order) in any_graph()) {
            let relabelled = graph.induced(&order);
            for reward in [ColoredGraphReward::Count, ColoredGraphReward::Even, ColoredGraphReward::Clique] {
                prop_assert_eq!(reward.of(&graph).unwrap(), reward.of(&relabelled).unwrap());
            }
        }

        #[test]
        fn maximal_cliques_equal_brute_force((graph, _) in any_graph()) {
            let mut found = Vec::new();
            maximal_cliques(&graph, 0, (1 << graph.n_nodes()) - 1, 0, &mut |clique| found.push(clique));
            found.sort_unstable();
            prop_assert_eq!(found, brute_force(&graph));
        }
    }
}
