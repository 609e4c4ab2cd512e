//! Fuzz tests of graph environments with random action types, graphs and rules. Either the checkers must
//! refuse an environment, or its exact policy must sample in proportion to the reward.

use crate::attack::{Runs, wait_for_turn};
use gfn::contract::{Budget, check_graph_env};
use gfn::env::StateGraph;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, BackwardRule, Edge, GraphEnv, GraphKind, GraphRules, GraphState,
    GraphStates, MoveMask, Node, Reverse, Scaffold, Semantics, SetEdgeAttr, SetNodeAttr,
};
use gfn::metrics::{Distances, ExactPolicy};
use gfn::policy::UniformPolicy;
use gfn::{Error, Result, Rng};
use tch::Tensor;

/// The largest number of states of an environment. Larger environments are skipped.
const MAX_STATES: usize = 400;

/// Random rules. The rule `label` depends on the label of a node. The other rules are equal for isomorphic
/// graphs.
#[derive(Clone, Copy, Debug)]
struct RandomRules {
    /// Nodes whose degree has this remainder modulo 3 get no edge.
    closed: Option<usize>,
    /// Graphs whose number of edges has this remainder modulo 3 can't be finished.
    unfinished: Option<usize>,
    /// The node with this label can't be the first end of a new edge. Such a rule is invalid up to
    /// isomorphism.
    label: Option<u32>,
    /// Graphs with this number of edges are declared unreachable.
    unreachable: Option<usize>,
}

impl RandomRules {
    fn new(rng: &mut Rng) -> Self {
        let mut one_of = |chance: usize, n: usize| (rng.below(chance) == 0).then(|| rng.below(n));
        let closed = one_of(4, 3);
        let unfinished = one_of(4, 3);
        Self { closed, unfinished, label: one_of(8, 3).map(|label| label as u32), unreachable: one_of(12, 4) }
    }
}

impl GraphRules for RandomRules {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        if let Some(closed) = self.closed.filter(|_| moves.type_name() == "add_edge") {
            moves.retain(|action| {
                graph.degree(action.a) % 3 != closed && graph.degree(action.b) % 3 != closed
            });
        }
        if let Some(label) = self.label.filter(|_| moves.type_name() == "add_edge") {
            moves.retain(|action| action.a != label);
        }
    }

    fn can_exit(&self, graph: &GraphState) -> bool {
        self.unfinished.is_none_or(|rest| graph.n_edges() % 3 != rest)
    }

    fn is_reachable(&self, graph: &GraphState) -> bool {
        self.unreachable != Some(graph.n_edges())
    }
}

fn actions(rng: &mut Rng) -> ActionSet {
    let semantics = if rng.below(2) == 0 { Semantics::Labelled } else { Semantics::UpToIsomorphism };
    let mut set = ActionSet::new(semantics);
    let classes = 1 + rng.below(2) as u16;
    let edge_classes = 1 + rng.below(2) as u16;
    let most = 1 + rng.below(4);
    for _ in 0..1 + rng.below(3) {
        let edge = AddEdge::new(edge_classes).at_most(1 + rng.below(4));
        set = match rng.below(10) {
            0 | 1 => set.with(AddNode::free(classes, most)),
            2 => set.with(AddNode::first(classes)),
            3 => set.with(AddNode::attached(classes, edge_classes, most)),
            4 | 5 => set.with(edge),
            6 => set.with(edge.keeping_connected()),
            7 => set.with(SetNodeAttr::new(&[1 + rng.below(2) as u8]).unwrap()),
            8 => set.with(SetEdgeAttr::new(&[1]).unwrap()),
            _ => set.with(Reverse(AddEdge::new(1))),
        };
    }
    set
}

fn initial(rng: &mut Rng) -> GraphState {
    let kind = if rng.below(2) == 0 { GraphKind::Directed } else { GraphKind::Undirected };
    let n = rng.below(4);
    let nodes: Vec<Node> = (0..n).map(|_| Node::from_class(rng.below(2) as u16)).collect();
    let mut edges = Vec::new();
    for a in 0..n as u32 {
        for b in 0..n as u32 {
            let is_pair = if kind == GraphKind::Directed { a != b } else { a < b };
            if is_pair && rng.below(3) == 0 {
                edges.push((a, b, Edge::default()));
            }
        }
    }
    GraphState::from_parts(kind, &nodes, &edges).unwrap()
}

fn env(rng: &mut Rng) -> Result<GraphEnv> {
    let env = GraphEnv::new(RandomRules::new(rng), actions(rng), initial(rng))?;
    let env = if rng.below(3) == 0 { env.with_scaffold(Scaffold::Alike)? } else { env };
    Ok(env.with_backward(if rng.below(3) == 0 { BackwardRule::ByType } else { BackwardRule::Derived }))
}

/// Returns log-rewards that depend on how many edges and nodes a graph has, and on classes and attributes of
/// its nodes, but not on labels.
fn log_reward(states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    let of = |graph: &GraphState| {
        let attributes: usize =
            graph.nodes().map(|node| usize::from(node.attributes.get(0)) + usize::from(node.class)).sum();
        0.7 * graph.n_edges() as f64 - 0.3 * graph.n_nodes() as f64 + 0.45 * attributes as f64
    };
    Ok(states.graphs().iter().map(of).collect())
}

/// Returns the total variation between the exact policy's distribution and the target; `None` if the
/// environment has too many states.
fn distance(env: &GraphEnv) -> Result<Option<f64>> {
    let Ok(graph) = StateGraph::build(env, MAX_STATES) else { return Ok(None) };
    let target = graph.target_distribution(&log_reward, None)?.probs;
    let exact = ExactPolicy::new(&graph, env, &UniformPolicy, &log_reward)?;
    let learned = graph.terminating_distribution(env, &exact, None)?.probs;
    Ok(Some(Distances::between(&learned, &target)?.tv))
}

#[test]
fn accepted_environments_sample_the_reward() {
    let _turn = wait_for_turn();
    let mut runs = Runs::begin(1_000);
    let mut passed = 0;
    let mut refused = 0;
    let mut large = 0;
    let mut missed = 0;
    while let Some(mut rng) = runs.next() {
        let Ok(env) = env(&mut rng) else {
            refused += 1;
            continue;
        };
        match check_graph_env(&env, Budget::thorough().with_walks(10), &mut rng) {
            Err(_) => refused += 1,
            Ok(_) => match distance(&env) {
                // The ten random trajectories of the checkers may miss a mistake in the rules. An illegal
                // action must then be found when the exact policy is computed.
                Err(Error::Contract { .. }) => refused += 1,
                Err(Error::IllegalAction { .. }) => missed += 1,
                Err(other) => panic!("execution {}: {other}", runs.done),
                Ok(None) => large += 1,
                Ok(Some(tv)) => {
                    passed += 1;
                    assert!(tv < 1e-5, "execution {}: TV {tv} of {env:?}", runs.done);
                }
            },
        }
    }
    println!(
        "environments: {passed} are right, {refused} refused, {missed} by the exact policy alone, {large} \
         too large to list"
    );
    assert!(100_000 * missed <= passed + refused + 100_000, "{missed} faults were missed by the checks");
    // Most random environments must be valid, and some must be invalid.
    assert!(2 * passed > refused && 20 * refused > passed);
}
