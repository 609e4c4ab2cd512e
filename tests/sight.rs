//! Tests of features with which a network distinguishes graphs that message passing can't distinguish: the
//! number of automorphisms, as counted by colour refinement, and counts of closed walks from each node.

use gfn::env::{Direction, Rows, StateGraph};
use gfn::graph::{
    ActionSet, AddEdge, Edge, Free, GraphEnv, GraphKind, GraphRules, GraphSchema, GraphState, GraphStates,
    MoveMask, Node, Scaffold, Semantics, SymmetryCount,
};
use gfn::metrics::Distances;
use gfn::nn::{ConvKind, GraphNet, GraphNetConfig, SymmetryInput};
use gfn::objective::TrajectoryBalance;
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::GraphPolicy;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::colored_graphs::ColoredGraphs;
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig};
use gfn_gym::ring::Ring;
use tch::{Device, Kind, Tensor};

use crate::nets::blocks;

fn undirected(n: usize, joined: impl Fn(usize, usize) -> bool) -> GraphState {
    let pairs = (0..n).flat_map(|b| (0..b).map(move |a| (a, b))).filter(|&(a, b)| joined(a, b));
    let edges: Vec<_> = pairs.map(|(a, b)| (a as u32, b as u32, Edge::default())).collect();
    GraphState::from_parts(GraphKind::Undirected, &vec![Node::default(); n], &edges).unwrap()
}

/// Returns a pair of graphs that message passing can't distinguish: two triangles, and a hexagon.
fn small_pair() -> [GraphState; 2] {
    [undirected(6, |a, b| a / 3 == b / 3), undirected(6, |a, b| (a + 1) % 6 == b || (b + 1) % 6 == a)]
}

/// Returns the two strongly regular graphs of 16 nodes of degree 6 in which any two nodes share 2 neighbours:
/// the graph of a rook's moves on a 4 x 4 board, and Shrikhande's graph.
fn regular_pair() -> [GraphState; 2] {
    let step = |a: usize, b: usize| ((4 + b / 4 - a / 4) % 4, (4 + b % 4 - a % 4) % 4);
    let near = [(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)];
    [
        undirected(16, |a, b| (a / 4 == b / 4) != (a % 4 == b % 4)),
        undirected(16, |a, b| near.contains(&step(a, b))),
    ]
}

/// Builds an environment on `n` nodes whose actions add edges between any two nodes.
fn any_edges(n: usize) -> GraphEnv {
    let actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddEdge::new(1));
    GraphEnv::new(Free, actions, GraphState::with_nodes(GraphKind::Undirected, n)).unwrap()
}

/// Returns ln |Aut| of each graph, and its change by each forward and backward action, counted by the method
/// `count`.
fn counts(env: &GraphEnv, count: SymmetryCount, states: &GraphStates) -> Vec<f64> {
    let both = [Direction::Forward, Direction::Backward].map(|direction| {
        let counted = env.move_symmetries(count, direction, states).unwrap();
        [counted.of_graphs, counted.of_slots.concat()].concat()
    });
    both.concat()
}

/// Checks that counting by colour refinement is exact for small graphs: all graphs of at most 7 nodes, all
/// connected two-coloured graphs of at most 5, all directed graphs of at most 4, and all graphs of at most 4
/// nodes with two classes of edges.
#[test]
fn refinement_counts_the_automorphisms_of_small_graphs() {
    fn check(env: &GraphEnv, least: usize) {
        let states = StateGraph::build(env, 10_000).unwrap().states().clone();
        let [exact, refined] =
            [SymmetryCount::Exact, SymmetryCount::Refined].map(|count| counts(env, count, &states));
        let off = exact.iter().zip(&refined).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(states.len() > least && off < 1e-12, "{} states, {off}", states.len());
    }
    let all = |kind, n| GraphBuilding::new(GraphBuildingConfig::new(kind, n)).unwrap().into_env();
    check(&all(GraphKind::Undirected, 7), 1_200);
    check(&all(GraphKind::Directed, 4), 200);
    check(&ColoredGraphs::new(5).unwrap().into_env(), 400);
    let with_classes =
        GraphBuildingConfig { edge_classes: 2, ..GraphBuildingConfig::new(GraphKind::Undirected, 4) };
    check(&GraphBuilding::new(with_classes).unwrap().into_env(), 60);
    // Both environments start from the same graph. Its nodes are interchangeable in the first environment,
    // and distinguished in the second.
    let start = undirected(4, |a, b| a / 2 == b / 2);
    for scaffold in [Scaffold::Alike, Scaffold::ToldApart] {
        let actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddEdge::new(1));
        let env = GraphEnv::new(Free, actions, start.clone()).unwrap();
        check(&env.with_scaffold(scaffold).unwrap(), 3);
    }
}

#[test]
fn labels_do_not_change_the_count_and_it_is_never_below_the_automorphisms() {
    let mut rng = Rng::seeded(5);
    for n in [12, 30] {
        for (k, start) in
            regular_pair().into_iter().chain([undirected(n, |a, b| (a * b + a + b) % 5 == 0)]).enumerate()
        {
            let env = any_edges(start.n_nodes());
            let of = |count, graph: GraphState| {
                env.move_symmetries(count, Direction::Backward, &GraphStates::from(vec![graph]))
                    .unwrap()
                    .of_graphs[0]
            };
            let first = of(SymmetryCount::Refined, start.clone());
            assert!(first >= of(SymmetryCount::Exact, start.clone()) - 1e-12, "graph {k}");
            for _ in 0..20 {
                let mut order: Vec<u32> = (0..start.n_nodes() as u32).collect();
                for k in 1..order.len() {
                    order.swap(k, rng.below(k + 1));
                }
                assert!(
                    (of(SymmetryCount::Refined, start.induced(&order)) - first).abs() < 1e-12,
                    "graph {k}"
                );
            }
        }
    }
    // Counting must not take long if nearly all nodes are equivalent. In this graph all 200 nodes are
    // interchangeable.
    let env = any_edges(200);
    let alike = GraphStates::from(vec![GraphState::with_nodes(GraphKind::Undirected, 200)]);
    let counted =
        env.move_symmetries(SymmetryCount::Refined, Direction::Backward, &alike).unwrap().of_graphs[0];
    assert!((counted - (2..=200).map(|k| f64::from(k).ln()).sum::<f64>()).abs() < 1e-9);
}

/// Returns how far a network's outputs for two graphs differ: the larger of the differences of log F and of
/// the exit's logit.
fn output_difference(config: &GraphNetConfig, [one, other]: &[GraphState; 2]) -> f64 {
    let env = any_edges(one.n_nodes());
    let config = GraphNetConfig { identity: false, layers: 4, embedding: 16, ..config.clone() };
    let config = GraphNetConfig { estimators: gfn::nn::EstimatorsConfig::with_flow(true), ..config };
    let net = GraphNet::new(&env, config, Device::Cpu, Kind::Double, &mut Rng::seeded(0)).unwrap();
    let of = |graph: &GraphState| {
        let output = blocks(&env, &net, std::slice::from_ref(graph), None);
        let exit = output.pf.unwrap().last().unwrap().double_value(&[0, 0]);
        [exit, output.values.get(gfn::objective::Quantity::LogFlow).unwrap().double_value(&[0])]
    };
    of(one).iter().zip(of(other)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Checks which features distinguish the two graphs of a pair. The small pair is two triangles and a hexagon;
/// the regular pair is two strongly regular graphs, which the second-order Weisfeiler-Leman test can't
/// distinguish. As the negative control, message passing alone distinguishes neither pair. Closed walks
/// distinguish only the small pair. The number of automorphisms, as counted by colour refinement with fixed
/// nodes, distinguishes both pairs.
#[test]
fn pairs_beyond_message_passing_are_distinguished() {
    let blind =
        GraphNetConfig { symmetry: SymmetryInput::Ignored, degrees: true, ..GraphNetConfig::default() };
    for conv in [ConvKind::Gin, ConvKind::GinVirtual, ConvKind::Gat { heads: 4 }, ConvKind::Gps { heads: 4 }]
    {
        let plain = GraphNetConfig { conv, ..blind.clone() };
        for pair in [small_pair(), regular_pair()] {
            assert!(
                output_difference(&plain, &pair) < 1e-9,
                "{conv:?}: {}",
                output_difference(&plain, &pair)
            );
        }
        let walks = GraphNetConfig { closed_walks: Some(2), ..plain.clone() };
        assert!(
            output_difference(&walks, &small_pair()) > 1e-3,
            "{conv:?}: {}",
            output_difference(&walks, &small_pair())
        );
        assert!(output_difference(&walks, &regular_pair()) < 1e-9, "{conv:?}");
        let refined = GraphNetConfig { symmetry: SymmetryInput::Refined, ..plain };
        for pair in [small_pair(), regular_pair()] {
            assert!(
                output_difference(&refined, &pair) > 1e-3,
                "{conv:?}: {}",
                output_difference(&refined, &pair)
            );
        }
    }
}

/// Rules under which an action joins a node of class 0 to a node of class 2, if each has only one edge so
/// far. A graph is finished when it has six edges, so that no such nodes are left.
struct ClosingRules;

impl GraphRules for ClosingRules {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        let open =
            |a: u32, class| graph.node(a).is_some_and(|node| node.class == class) && graph.degree(a) == 1;
        moves.retain(|at| open(at.a, 0) && open(at.b, 2) || open(at.a, 2) && open(at.b, 0));
    }
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_edges() == 6
    }
}

/// Builds an environment whose initial graph is two paths of three nodes. Actions join the ends within each
/// path, which gives two triangles, or across the paths, which gives a hexagon.
fn closing_env() -> GraphEnv {
    let nodes: Vec<Node> = [0, 1, 2, 0, 1, 2].map(Node::from_class).to_vec();
    let edges = [(0, 1), (1, 2), (3, 4), (4, 5)].map(|(a, b)| (a, b, Edge::default()));
    let start = GraphState::from_parts(GraphKind::Undirected, &nodes, &edges).unwrap();
    let actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddEdge::new(1));
    let schema = GraphSchema { node_classes: 3, ..GraphSchema::plain(GraphKind::Undirected, 6) };
    let env = GraphEnv::new(ClosingRules, actions, start).and_then(|env| env.with_schema(schema)).unwrap();
    env.with_scaffold(Scaffold::Alike).unwrap()
}

/// Trains a network with these settings. Returns the learned probability of the graph of two triangles. Its
/// target probability is 0.9.
fn triangles(config: GraphNetConfig) -> f64 {
    let env = closing_env();
    let mut rng = Rng::seeded(1);
    let config = GraphNetConfig { conv: ConvKind::Gin, layers: 3, embedding: 16, identity: false, ..config };
    let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let is_triangles = |graph: &GraphState| {
        (0..6).all(|a| {
            graph
                .adjacency()
                .neighbours(a)
                .all(|b| graph.adjacency().neighbours(b).any(|c| c != a && graph.adjacency().get(c, a)))
        })
    };
    let reward = move |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(states.graphs().iter().map(|graph| if is_triangles(graph) { 9.0f64.ln() } else { 0.0 }).collect())
    };
    let adam = AdamConfig { lr: 1e-2, ..AdamConfig::default() };
    let config = TrainerConfig {
        batch: 32,
        adam,
        lr_scale: Schedule::Linear { from: 1.0, to: 0.01, steps: 400 },
        ..TrainerConfig::default()
    };
    let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap();
    for _ in 0..400 {
        trainer.step().unwrap();
    }
    let graph = StateGraph::build(trainer.env(), 100).unwrap();
    let learned = graph.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap();
    let target = graph.target_distribution(&reward, None).unwrap();
    assert_eq!(target.probs.iter().filter(|p| **p > 0.0).count(), 2);
    let most = target.probs.iter().position(|p| (p - 0.9).abs() < 1e-9).unwrap();
    assert!(
        (Distances::between(&learned.probs, &target.probs).unwrap().tv - (learned.probs[most] - 0.9).abs())
            .abs()
            < 1e-6
    );
    learned.probs[most]
}

#[test]
fn a_ratio_of_nine_to_one_is_learned_for_a_pair_beyond_message_passing() {
    let plain = GraphNetConfig { symmetry: SymmetryInput::Ignored, ..GraphNetConfig::default() };
    // As a negative control, a network that gets neither closed walks nor numbers of automorphisms gives an
    // edge within a path and an edge across the paths the same logit.
    let blind = triangles(plain.clone());
    assert!((blind - 0.5).abs() < 1e-4, "{blind}");
    let seen = triangles(GraphNetConfig { pair_walks: Some(1), ..plain.clone() });
    assert!((seen - 0.9).abs() < 0.01, "{seen}");
    // Neither closed walks of nodes nor |Aut| help here. Closed walks don't reveal where an edge leads, and a
    // graph has the same |Aut| after an edge within a path as after an edge across the paths.
    for config in [
        GraphNetConfig { closed_walks: Some(2), ..plain.clone() },
        GraphNetConfig { symmetry: SymmetryInput::Exact, ..plain },
    ] {
        let blind = triangles(config);
        assert!((blind - 0.5).abs() < 1e-4, "{blind}");
    }
}

#[test]
fn features_without_information_are_refused() {
    let net = |config| {
        GraphNet::new(
            &Ring::new(4, GraphKind::Directed).unwrap().into_env(),
            config,
            Device::Cpu,
            Kind::Float,
            &mut Rng::seeded(0),
        )
    };
    let refined = GraphNetConfig { symmetry: SymmetryInput::Refined, ..GraphNetConfig::default() };
    assert!(net(refined).unwrap_err().to_string().contains("labelled"));
    let none = GraphNetConfig { closed_walks: Some(0), ..GraphNetConfig::default() };
    assert!(net(none).unwrap_err().to_string().contains("closed_walks"));
}
