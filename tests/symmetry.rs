//! Tests of the number of automorphisms |Aut| as a feature of graph networks: the counts are compared with
//! permutations, a network that computes with tensors is compared with its copy on the host, and the benefit
//! of the feature is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gfn::env::{Direction, Env, Rows, StateGraph};
use gfn::graph::{
    ActionSet, AddEdge, AddNode, Free, GraphBatch, GraphEnv, GraphKind, GraphRules, GraphState, GraphStates,
    MoveMask, Semantics, SymmetryCount,
};
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, GraphNet, GraphNetConfig, GraphNetwork, SymmetryInput};
use gfn::objective::TrajectoryBalance;
use gfn::objective::{Quantities, Quantity};
use gfn::optim::AdamConfig;
use gfn::policy::{GraphPolicy, Policy};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs};
use gfn_gym::ring::Ring;
use gfn_molecules::fragments::{FragmentLibrary, Fragments};
use tch::{Device, Kind, Tensor};

/// Counts the automorphisms of a graph by trying all permutations of its nodes.
fn count_automorphisms(graph: &GraphState) -> usize {
    fn orders(n: usize) -> Vec<Vec<u32>> {
        if n == 0 {
            return vec![Vec::new()];
        }
        let shorter = orders(n - 1);
        let with = |order: &Vec<u32>, at: usize| {
            let mut order = order.clone();
            order.insert(at, n as u32 - 1);
            order
        };
        shorter.iter().flat_map(|order| (0..n).map(move |at| with(order, at))).collect()
    }
    orders(graph.n_nodes()).iter().filter(|order| graph.induced(order) == *graph).count()
}

fn all_states(env: &GraphEnv) -> GraphStates {
    StateGraph::build(env, 1_000).unwrap().states().clone()
}

#[test]
fn counts_of_moves_equal_those_of_permutations() {
    let env = ColoredGraphs::new(4).unwrap().into_env();
    let states = all_states(&env);
    for direction in [Direction::Forward, Direction::Backward] {
        let counted = env.move_symmetries(SymmetryCount::Exact, direction, &states).unwrap();
        let mut changes = 0;
        for row in 0..states.len() {
            let own = count_automorphisms(&states.graphs()[row]) as f64;
            assert!((counted.of_graphs[row] - own.ln()).abs() < 1e-12);
            // This list has a number for each slot of one state, action type by action type: the change of ln
            // |Aut| that the action of this slot causes.
            let of_row = counted.blocks.iter().zip(&counted.of_slots).flat_map(|(block, all)| {
                all[block.row_ptr[row] * block.width..block.row_ptr[row + 1] * block.width].iter().copied()
            });
            let of_row: Vec<f64> = of_row.collect();
            let masks = gfn::env::DiscreteEnv::masks(&env, direction, &states.select(&[row]));
            assert_eq!(of_row.len(), masks.legal.len());
            for (slot, change) in of_row.into_iter().enumerate() {
                let exit = masks.has_exit && slot + 1 == masks.legal.len();
                let expected = match masks.legal[slot] && !exit {
                    false => 0.0,
                    true => {
                        let mut child = states.select(&[row]);
                        env.step(direction, &mut child, &gfn::env::Slots(vec![slot as u32])).unwrap();
                        (count_automorphisms(&child.graphs()[0]) as f64 / own).ln()
                    }
                };
                assert!((change - expected).abs() < 1e-12, "{direction:?} row {row} slot {slot}");
                changes += usize::from(change.abs() > 0.1);
            }
        }
        assert!(changes > 50, "{direction:?}: {changes} moves change the symmetry");
    }
}

fn config(symmetry: SymmetryInput) -> GraphNetConfig {
    GraphNetConfig {
        embedding: 32,
        layers: 3,
        identity: false,
        pair_walks: Some(2),
        backward: BackwardPolicy::SharedTorso,
        symmetry,
        ..GraphNetConfig::default()
    }
}

#[test]
fn both_forms_of_the_network_read_the_same_counts() {
    let env = ColoredGraphs::new(4).unwrap().into_env();
    let net = GraphNet::new(&env, config(SymmetryInput::Auto), Device::Cpu, Kind::Float, &mut Rng::seeded(0))
        .unwrap();
    assert_eq!(net.config().symmetry, SymmetryInput::Exact);
    let blind =
        GraphNet::new(&env, config(SymmetryInput::Ignored), Device::Cpu, Kind::Float, &mut Rng::seeded(0))
            .unwrap();
    let states = all_states(&env);
    let batch = || GraphBatch::new(env.schema(), states.arrays(), None, Device::Cpu).unwrap();
    let wants = Quantity::LogPf | Quantity::LogPb;
    let counted = |direction| env.move_symmetries(SymmetryCount::Exact, direction, &states).unwrap();
    let refused = |error: gfn::Error| {
        let message = error.to_string();
        assert!(message.contains("move_symmetries"), "{message}");
    };
    refused(net.forward(&batch(), wants).unwrap_err());
    // Numbers of automorphisms that were counted for one direction must be refused if the network evaluates
    // both directions, or only the other one.
    let backward = counted(Direction::Backward);
    let forward_alone = batch().with_symmetries(counted(Direction::Forward)).unwrap();
    assert!(net.forward(&forward_alone, Quantities::PF).is_ok());
    refused(net.forward(&forward_alone, wants).unwrap_err());
    // Numbers of automorphisms that were counted for fewer graphs than the batch has must be refused, too.
    let fewer =
        env.move_symmetries(SymmetryCount::Exact, Direction::Forward, &states.select(&[0, 1])).unwrap();
    refused(batch().with_symmetries(fewer).unwrap_err());
    let with_both = forward_alone.with_symmetries(backward).unwrap();
    let output = net.forward(&with_both, wants).unwrap();
    let other = blind.forward(&batch(), wants).unwrap();
    let evaluated = GraphPolicy(&net).evaluate(&env, &states, None, wants).unwrap();
    let both = [
        (Direction::Forward, evaluated.pf, output.pf, other.pf),
        (Direction::Backward, evaluated.pb, output.pb, other.pb),
    ];
    for (direction, distribution, blocks, of_blind) in both {
        let host = net.on_host(direction).unwrap().distribution(&env, &states).unwrap();
        let host = host.host_log_probs().unwrap();
        let distribution = distribution.unwrap();
        let expected = distribution.host_log_probs().unwrap();
        let is_close = |(a, b): (&f64, &f64)| a == b || (a - b).abs() < 1e-4;
        assert!(host.len() == expected.len() && host.iter().zip(expected).all(is_close), "{direction:?}");
        let change = |(block, of_blind): (&Tensor, Tensor)| (block - of_blind).abs().max().double_value(&[]);
        let largest = blocks.unwrap().iter().zip(of_blind.unwrap()).map(change).fold(0.0, f64::max);
        assert!(largest > 1e-3, "{direction:?}: the counts change logits");
    }
}

/// Checks that numbers of automorphisms that were counted for the same graphs are refused if they come from
/// an environment with other actions.
#[test]
fn counts_of_other_moves_are_refused() {
    let kind = GraphKind::Undirected;
    let env = |actions: ActionSet| GraphEnv::new(Free, actions, GraphState::new(kind)).unwrap();
    let set = || ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 3));
    let all = env(set().with(AddEdge::new(1)));
    let nodes = env(set());
    let states = GraphStates::from(vec![GraphState::with_nodes(kind, 3)]);
    let net = GraphNet::new(&all, config(SymmetryInput::Auto), Device::Cpu, Kind::Float, &mut Rng::seeded(0))
        .unwrap();
    let of_others = nodes.move_symmetries(SymmetryCount::Exact, Direction::Forward, &states).unwrap();
    let batch = GraphBatch::new(all.schema(), states.arrays(), None, Device::Cpu).unwrap();
    let batch = batch.with_symmetries(of_others).unwrap();
    let message = net.forward(&batch, Quantities::PF).unwrap_err().to_string();
    assert!(message.contains("symmetries of moves, block"), "{message}");
    // A policy counts automorphisms for the environment of the current call, even if an earlier call had
    // another environment.
    let policy = GraphPolicy(net);
    let first = policy.evaluate(&all, &states, None, Quantities::PF).unwrap().pf.unwrap();
    drop(
        GraphPolicy(
            GraphNet::new(&nodes, config(SymmetryInput::Auto), Device::Cpu, Kind::Float, &mut Rng::seeded(0))
                .unwrap(),
        )
        .evaluate(&nodes, &states, None, Quantities::PF)
        .unwrap(),
    );
    let again = policy.evaluate(&all, &states, None, Quantities::PF).unwrap().pf.unwrap();
    assert_eq!(first.host_log_probs().unwrap(), again.host_log_probs().unwrap());
}

#[test]
fn labelled_graphs_have_no_symmetry_to_see() {
    let env = Ring::new(4, GraphKind::Directed).unwrap().into_env();
    let made =
        |symmetry| GraphNet::new(&env, config(symmetry), Device::Cpu, Kind::Float, &mut Rng::seeded(0));
    let message = made(SymmetryInput::Exact).unwrap_err().to_string();
    assert!(message.contains("labelled"), "{message}");
    assert_eq!(made(SymmetryInput::Auto).unwrap().config().symmetry, SymmetryInput::Ignored);
    let large = ColoredGraphs::new(9).unwrap().into_env();
    let of = |symmetry| {
        GraphNet::new(&large, config(symmetry), Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap()
    };
    assert_eq!(of(SymmetryInput::Auto).config().symmetry, SymmetryInput::Refined);
    assert_eq!(of(SymmetryInput::Exact).config().symmetry, SymmetryInput::Exact);
}

/// Compares the exact distances from the target after a short training, with and without the number of
/// automorphisms as a feature.
#[test]
#[ignore = "half a minute or more: `scripts/check_all` runs it"]
fn a_network_that_sees_symmetry_learns_faster() {
    let tv = |symmetry| {
        let env = ColoredGraphs::new(5).unwrap().into_env();
        let mut rng = Rng::seeded(3);
        let net = GraphNet::new(&env, config(symmetry), Device::Cpu, Kind::Float, &mut rng).unwrap();
        let adam = AdamConfig { lr: 3e-3, ..AdamConfig::default() };
        let config = TrainerConfig { batch: 32, adam, ..TrainerConfig::default() };
        let reward = ColoredGraphReward::Count;
        let mut trainer =
            Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap();
        for _ in 0..600 {
            trainer.step().unwrap();
        }
        let graph = StateGraph::build(trainer.env(), 1_000).unwrap();
        let learned = graph.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap();
        let target = graph.target_distribution(&reward, None).unwrap();
        Distances::between(&learned.probs, &target.probs).unwrap().tv
    };
    let seen = tv(SymmetryInput::Exact);
    let unseen = tv(SymmetryInput::Ignored);
    assert!(seen < 0.7 * unseen, "{seen} where symmetry is seen, {unseen} where it isn't");
}

/// Rules that count how often |Aut| is requested.
struct CountingRules(Arc<dyn GraphRules>, Arc<AtomicUsize>);

impl GraphRules for CountingRules {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        self.0.restrict(graph, moves);
    }
    fn restrict_backward(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        self.0.restrict_backward(graph, moves);
    }
    fn can_exit(&self, graph: &GraphState) -> bool {
        self.0.can_exit(graph)
    }
    fn is_reachable(&self, graph: &GraphState) -> bool {
        self.0.is_reachable(graph)
    }
    fn log_automorphisms(&self, graph: &GraphState, n_fixed: usize) -> Result<f64> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.log_automorphisms(graph, n_fixed)
    }
}

/// Returns the number of times that |Aut| is computed in a training step, divided by the batch size.
fn counts_of_a_step(env: GraphEnv, symmetry: SymmetryInput) -> usize {
    const BATCH: usize = 4;
    let count = Arc::new(AtomicUsize::new(0));
    let env = env.with_rules(|rules| CountingRules(rules, Arc::clone(&count)));
    let config = GraphNetConfig { embedding: 8, layers: 1, symmetry, ..GraphNetConfig::default() };
    let mut rng = Rng::seeded(1);
    let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let reward =
        |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; states.len()]) };
    let config = TrainerConfig { batch: BATCH, ..TrainerConfig::default() };
    let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap();
    // The first step isn't counted, because it also checks the environment.
    trainer.step().unwrap();
    count.store(0, Ordering::Relaxed);
    trainer.step().unwrap();
    count.load(Ordering::Relaxed) / BATCH
}

/// Checks that networks get numbers of automorphisms by default only if graphs have few moves. Trees of 8
/// fragments have thousands of actions each, and |Aut| would be computed for each child.
#[test]
fn symmetry_is_used_by_default_if_graphs_have_few_moves() {
    let library = (0..16).map(|k| format!("{}C(C)C 0,{}\n", "C".repeat(k), k + 1)).collect::<String>();
    let library = FragmentLibrary::parse(&format!("c1ccccc1 0,1,2,3,4,5\n{library}")).unwrap();
    let fragments = || Fragments::new(&library, 8).unwrap().into_env();
    assert!(counts_of_a_step(fragments(), SymmetryInput::Auto) <= 2);
    assert!(counts_of_a_step(fragments(), SymmetryInput::Exact) > 1_000);
    assert!(counts_of_a_step(ColoredGraphs::new(5).unwrap().into_env(), SymmetryInput::Auto) > 10);
}
