//! Reduced graphs. A reduced graph is the part of a graph that a policy sees, if the other nodes and edges
//! affect neither later moves nor rewards.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::env::{Direction, DiscreteEnv, Grouping, Masks};
use crate::graph::state::MIN_GRAPHS_PER_THREAD;
use crate::graph::{Anchor, Edge, GraphArrays, GraphEnv, GraphState, GraphStates, Node};
use crate::{Error, Result, parallel};

/// The part of a graph that determines its later moves and its rewards: some of its nodes, and some edges
/// between them ([`GraphRules::reduced`](crate::graph::GraphRules::reduced)).
///
/// ```
/// use gfn::graph::{GraphFormat, ReducedGraph};
/// let path = &GraphFormat::EdgeList.read(b"graph undirected 4\nedge 0 1\nedge 1 2\nedge 2 3")?[0];
/// let reduced = ReducedGraph::new(path, |node| node != 1, |a, b| (a, b) != (0, 2));
/// assert_eq!((reduced.nodes(), reduced.edges()), ([0, 2, 3].as_slice(), [(2, 3)].as_slice()));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReducedGraph {
    nodes: Vec<u32>,
    edges: Vec<(u32, u32)>,
}

impl ReducedGraph {
    /// Creates the part of `graph` that has the nodes for which `stays` returns `true`, and those edges
    /// between them for which `edge_stays` returns `true`. The first argument of `edge_stays` is the smaller
    /// node of an undirected edge.
    #[must_use]
    pub fn new(
        graph: &GraphState,
        stays: impl Fn(u32) -> bool,
        edge_stays: impl Fn(u32, u32) -> bool,
    ) -> Self {
        let nodes: Vec<u32> = (0..graph.n_nodes() as u32).filter(|&a| stays(a)).collect();
        let mut is_there = vec![false; graph.n_nodes()];
        for &a in &nodes {
            is_there[a as usize] = true;
        }
        let adjacency = graph.adjacency();
        let mut edges = Vec::new();
        for &a in &nodes {
            let ends = adjacency.neighbours(a as usize).filter(|&b| is_there[b]).map(|b| b as u32);
            edges
                .extend(ends.filter(|&b| (graph.is_directed() || a < b) && edge_stays(a, b)).map(|b| (a, b)));
        }
        Self { nodes, edges }
    }

    /// The labels of the nodes of the reduced graph within the whole graph, ascending.
    #[must_use]
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// The two nodes of each edge of the reduced graph, by their labels in the whole graph, ascending.
    #[must_use]
    pub fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    /// Lists nodes and edges for a network. If the network doesn't see labels, nodes are sorted by their
    /// classes and attributes. Graphs that differ only in their labels then have equal lists more often, and
    /// equal lists are evaluated once.
    fn list_for_network(&self, graph: &GraphState, sees_labels: bool) -> NetworkGraph {
        let node = |a: u32| graph.node(a).unwrap_or_default();
        let mut labels = self.nodes.clone();
        if !sees_labels {
            labels.sort_by_key(|&a| node(a));
        }
        let mut place = vec![0; graph.n_nodes()];
        for (k, &a) in (0..).zip(&labels) {
            place[a as usize] = k;
        }
        let edge = |&(a, b): &(u32, u32)| {
            let weight = graph.edge(a, b).unwrap_or_default();
            let a = place[a as usize];
            let b = place[b as usize];
            if graph.is_directed() || a < b { (a, b, weight) } else { (b, a, weight) }
        };
        let mut edges: Vec<(u32, u32, Edge)> = self.edges.iter().map(edge).collect();
        edges.sort_unstable_by_key(|&(a, b, _)| (a, b));
        NetworkGraph { nodes: labels.iter().map(|&a| node(a)).collect(), edges, labels }
    }
}

/// The nodes and edges of a reduced graph, as a network receives them.
struct NetworkGraph {
    nodes: Vec<Node>,
    edges: Vec<(u32, u32, Edge)>,
    /// The label that each node of the reduced graph has in the whole graph.
    labels: Vec<u32>,
}

/// The reduced graphs of a batch of states, without duplicates, with maps from states and their nodes to the
/// reduced graphs and their nodes.
pub(crate) struct ReducedStates {
    /// The distinct reduced graphs, which are the input of the network.
    pub(crate) arrays: GraphArrays,
    /// The index in `arrays` of each state's reduced graph.
    pub(crate) group_of: Vec<usize>,
    /// The index in `arrays` of each node of each state; `None` if the reduced graph doesn't have the node.
    /// The nodes of state `s` begin at index `node_ptr[s]`.
    rows: Vec<Option<usize>>,
    node_ptr: Vec<usize>,
}

impl ReducedStates {
    /// Builds the reduced graphs of states; `None` if the environment's rules reduce none of them. If
    /// `merges` is `true`, equal reduced graphs are merged. `merges` must be `false` if states have different
    /// conditions.
    pub(crate) fn from_states(
        env: &GraphEnv,
        states: &GraphStates,
        sees_labels: bool,
        merges: bool,
    ) -> Option<Self> {
        let graphs = states.graphs();
        let reduced = parallel::map(graphs, MIN_GRAPHS_PER_THREAD / 8, |graph| {
            Some(env.rules().reduced(graph)?.list_for_network(graph, sees_labels))
        });
        if reduced.iter().all(Option::is_none) {
            return None;
        }
        let whole = |graph: &GraphState| {
            ReducedGraph::new(graph, |_| true, |_, _| true).list_for_network(graph, sees_labels)
        };
        let listed: Vec<NetworkGraph> = graphs
            .iter()
            .zip(reduced)
            .map(|(graph, listed)| listed.unwrap_or_else(|| whole(graph)))
            .collect();
        let content =
            |k: usize| (&listed[k].nodes, &listed[k].edges, sees_labels.then_some(&listed[k].labels));
        let grouping = if merges {
            let hasher = BuildHasherDefault::<DefaultHasher>::default();
            let hashes: Vec<u64> = (0..listed.len()).map(|k| hasher.hash_one(content(k))).collect();
            Grouping::by(&hashes, |i, j| content(i) == content(j))
        } else {
            Grouping::identity(graphs.len())
        };
        let mut arrays = GraphArrays::with_capacity(graphs[0].kind(), grouping.first.len(), 0, 0);
        for NetworkGraph { nodes, edges, labels } in grouping.first.iter().map(|&first| &listed[first]) {
            arrays.push(nodes.iter().copied(), edges.iter().copied());
            if sees_labels {
                let start = arrays.labels.len() - labels.len();
                arrays.labels[start..].copy_from_slice(labels);
            }
        }
        let mut rows = Vec::new();
        let mut node_ptr = vec![0];
        for ((graph, listed), &group) in graphs.iter().zip(&listed).zip(&grouping.group_of) {
            let start = rows.len();
            rows.resize(start + graph.n_nodes(), None);
            for (row, &a) in (arrays.node_ptr[group]..).zip(&listed.labels) {
                rows[start + a as usize] = Some(row);
            }
            node_ptr.push(rows.len());
        }
        Some(Self { arrays, group_of: grouping.group_of, rows, node_ptr })
    }

    /// Returns a map for each block of logits. The map leads from the rows of the block for the states to the
    /// rows that the network computes for the reduced graphs.
    ///
    /// # Errors
    /// [`Error::Contract`] for a legal move at a node that the reduced graph doesn't have, and for action
    /// types whose anchors are edges or pairs of nodes.
    pub(crate) fn rows_of_blocks(&self, env: &GraphEnv, masks: &Masks) -> Result<Vec<BlockRows>> {
        let mut starts = masks.slot_ptr[..masks.len()].to_vec();
        let heads = env.actions().heads(masks.direction).zip(&masks.blocks);
        let blocks = heads.map(|((_, action_type, head), block)| {
            let rows = match head.anchor {
                Anchor::Graph => BlockRows { n_rows: self.arrays.len(), read: self.group_of.clone() },
                Anchor::Node => {
                    for (state, start) in starts.iter().enumerate() {
                        let nodes = &self.rows[self.node_ptr[state]..self.node_ptr[state + 1]];
                        let legal = masks.legal[*start..*start + nodes.len() * head.width].chunks(head.width);
                        let is_lost =
                            |(row, legal): (&Option<usize>, &[bool])| row.is_none() && legal.contains(&true);
                        if let Some(node) = nodes.iter().zip(legal).position(is_lost) {
                            let detail = format!(
                                "`{}` is legal at node {node} of state {state}, which is left out",
                                action_type.name()
                            );
                            return Err(Error::contract(EXPECTED_NO_MOVE_LEFT_OUT, detail));
                        }
                    }
                    let read = self.rows.iter().map(|row| row.unwrap_or(0)).collect();
                    BlockRows { n_rows: self.arrays.nodes.len(), read }
                }
                Anchor::Edge | Anchor::NodePair => {
                    let detail = format!(
                        "`{}` ({}) has one move per {:?}",
                        action_type.name(),
                        masks.direction,
                        head.anchor
                    );
                    return Err(Error::contract(EXPECTED_MOVES_OF_NODES, detail));
                }
            };
            for (start, ends) in starts.iter_mut().zip(block.row_ptr.windows(2)) {
                *start += (ends[1] - ends[0]) * head.width;
            }
            Ok(rows)
        });
        blocks.collect()
    }
}

/// A map for one block of logits. It leads from the rows that the states need in this block to the rows that
/// the network computes for the reduced graphs.
pub(crate) struct BlockRows {
    /// The number of rows that a network returns in this block of logits for the reduced graphs.
    pub(crate) n_rows: usize,
    /// The index of the network's row for each row of the block of logits of the states. The index is 0, and
    /// isn't used, for nodes that the reduced graph doesn't have.
    pub(crate) read: Vec<usize>,
}

/// Checks that the reduced graphs of states contain all nodes at which a move is legal.
///
/// # Errors
/// Returns the errors of [`ReducedStates::rows_of_blocks`].
pub(crate) fn check_reduced(env: &GraphEnv, states: &GraphStates) -> Result<()> {
    let Some(reduced) = ReducedStates::from_states(env, states, true, true) else { return Ok(()) };
    for direction in [Direction::Forward, Direction::Backward] {
        reduced.rows_of_blocks(env, &env.masks(direction, states))?;
    }
    Ok(())
}

const EXPECTED_NO_MOVE_LEFT_OUT: &str = "no move is legal at a node that `GraphRules::reduced` leaves out";
const EXPECTED_MOVES_OF_NODES: &str =
    "if `GraphRules::reduced` reduces graphs, each move belongs to a node or to the whole graph";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::contract::{Budget, check_graph_env};
    use crate::env::Rows;
    use crate::graph::{ActionSet, AddEdge, GraphRules, Semantics, SetNodeAttr};
    use crate::nn::{GraphNet, GraphNetConfig};
    use crate::policy::{GraphPolicy, Policy};
    use crate::quantity::{Quantities, Quantity};

    /// Rules whose reduced graphs leave out the marked nodes, that is, the nodes with an attribute. If
    /// `is_right` is `false`, the reduced graphs wrongly leave out the first unmarked node, too.
    struct Marks {
        is_right: bool,
    }

    impl GraphRules for Marks {
        fn restrict_backward(&self, _: &GraphState, moves: &mut crate::graph::MoveMask<'_>) {
            moves.retain(|_| false);
        }
        fn reduced(&self, graph: &GraphState) -> Option<ReducedGraph> {
            let open = |a: u32| graph.node(a).unwrap_or_default().attributes.is_unset();
            let first = (0..).find(|&a| open(a));
            Some(ReducedGraph::new(graph, |a| open(a) && (self.is_right || Some(a) != first), |_, _| true))
        }
    }

    fn mark(graph: &GraphState, a: u32) -> GraphState {
        let mut graph = graph.clone();
        let mut node = graph.node(a).unwrap();
        node.attributes.set(0, 1);
        graph.set_node(a, node).unwrap();
        graph
    }

    fn env(is_right: bool) -> GraphEnv {
        let edges = [(0, 1), (1, 2), (2, 3)].map(|(a, b)| (a, b, Edge::default()));
        let path = GraphState::from_parts(crate::graph::GraphKind::Undirected, &[Node::default(); 4], &edges)
            .unwrap();
        let actions = ActionSet::new(Semantics::Labelled).with(SetNodeAttr::new(&[1]).unwrap());
        GraphEnv::new(Marks { is_right }, actions, path)
            .unwrap()
            .with_backward(crate::graph::BackwardRule::ByType)
    }

    #[test]
    fn a_legal_move_at_a_node_that_is_left_out_is_refused() {
        let states = |env: &GraphEnv| crate::env::Env::initial(env, &[0; 2]);
        let wrong = env(false);
        let config = GraphNetConfig { identity: false, ..GraphNetConfig::default() };
        let device = tch::Device::Cpu;
        let kind = tch::Kind::Float;
        let policy = GraphPolicy(GraphNet::new(&wrong, config, device, kind, &mut Rng::seeded(0)).unwrap());
        for error in [
            check_reduced(&wrong, &states(&wrong)).unwrap_err(),
            policy.evaluate(&wrong, &states(&wrong), None, Quantities::PF).unwrap_err(),
            check_graph_env(&wrong, Budget::quick(), &mut Rng::seeded(0)).unwrap_err(),
        ] {
            let message = error.to_string();
            assert!(
                message.contains("leaves out") && message.contains("`set_node_attr` is legal at node 0"),
                "{message}"
            );
        }
        let right = env(true);
        let nothing_left = (0..4).fold(right.initial_graphs()[0].clone(), |graph, a| mark(&graph, a));
        let states = GraphStates::from(vec![nothing_left, right.initial_graphs()[0].clone()]);
        check_reduced(&right, &states).unwrap();
        // A policy can evaluate a batch in which all reduced graphs are empty.
        let pf = policy.evaluate(&right, &states.select(&[0]), None, Quantities::PF).unwrap().pf.unwrap();
        assert_eq!(pf.masks().legal_slots(0).collect::<Vec<_>>(), [4]);
    }

    /// A network whose output has a wrong shape: one row fewer than there are nodes, or one flow more than
    /// there are graphs.
    struct Misshapen {
        net: GraphNet,
        has_wrong_flows: bool,
    }

    impl crate::nn::GraphNetwork for Misshapen {
        fn forward(
            &self,
            batch: &crate::graph::GraphBatch<'_>,
            wants: Quantities,
        ) -> Result<crate::nn::NetworkOutput> {
            let mut output = self.net.forward(batch, wants)?;
            if self.has_wrong_flows {
                let flows =
                    tch::Tensor::zeros([batch.len() as i64 + 1], (tch::Kind::Float, tch::Device::Cpu));
                output.values.insert(Quantity::LogFlow, flows);
            } else if let Some(blocks) = &mut output.pf {
                blocks[0] = blocks[0].narrow(0, 0, blocks[0].size()[0] - 1);
            }
            Ok(output)
        }
        fn parameters(&self) -> &crate::nn::Parameters {
            self.net.parameters()
        }
    }

    #[test]
    fn outputs_of_other_shapes_than_the_reduced_graphs_are_refused() {
        let env = env(true);
        let states = crate::env::Env::initial(&env, &[0; 2]);
        for (has_wrong_flows, words) in [(false, "set_node_attr"), (true, "LogFlow")] {
            let config = GraphNetConfig { identity: false, ..GraphNetConfig::default() };
            let net =
                GraphNet::new(&env, config, tch::Device::Cpu, tch::Kind::Float, &mut Rng::seeded(0)).unwrap();
            let policy = GraphPolicy(Misshapen { net, has_wrong_flows });
            let error =
                policy.evaluate(&env, &states, None, Quantity::LogPf | Quantity::LogFlow).unwrap_err();
            assert!(matches!(error, Error::Shape { .. }) && error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn moves_of_pairs_are_refused() {
        struct Halved;
        impl GraphRules for Halved {
            fn reduced(&self, graph: &GraphState) -> Option<ReducedGraph> {
                Some(ReducedGraph::new(graph, |a| a < 2, |_, _| true))
            }
        }
        let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
        let env = GraphEnv::new(Halved, actions, GraphState::undirected(4)).unwrap();
        let message = check_graph_env(&env, Budget::quick(), &mut Rng::seeded(0)).unwrap_err().to_string();
        assert!(message.contains("each move belongs to a node") && message.contains("add_edge"), "{message}");
    }

    /// Checks that reduced graphs that differ only in labels are merged if the network sees no labels.
    #[test]
    fn equal_reduced_graphs_are_listed_once() {
        let env = env(true);
        let path = &env.initial_graphs()[0];
        // The reduced graphs of the first two states have one edge each; the reduced graph of the last state
        // has two nodes without an edge.
        let states = GraphStates::from(vec![
            mark(&mark(path, 0), 1),
            mark(&mark(path, 2), 3),
            mark(&mark(path, 1), 2),
        ]);
        for (sees_labels, of) in [(false, [0, 0, 1]), (true, [0, 1, 2])] {
            let reduced = ReducedStates::from_states(&env, &states, sees_labels, true).unwrap();
            assert_eq!(reduced.group_of, of);
            let labels = if sees_labels { vec![2, 3, 0, 1, 0, 3] } else { vec![0, 1, 0, 1] };
            assert_eq!(reduced.arrays.labels, labels);
        }
        assert_eq!(ReducedStates::from_states(&env, &states, false, false).unwrap().group_of, [0, 1, 2]);
    }
}
