//! Tests of reduced graphs, and of policies whose networks get reduced graphs. The reduced graph of a state
//! is the part of the graph on which all further moves and rewards depend.

use std::collections::HashMap;

use gfn::distribution::Distribution;
use gfn::env::{Child, Direction, DiscreteEnv, Env, Reward, Rows, Slots, StateGraph};
use gfn::graph::{
    CanonicalKey, Edge, GraphBatch, GraphEnv, GraphState, GraphStates, ReducedGraph, canonical_key,
};
use gfn::nn::{ConvKind, EstimatorsConfig, GraphNet, GraphNetConfig, GraphNetwork};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{GraphPolicy, Policy, UniformPolicy};
use gfn::{Result, Rng};
use gfn_gym::graph_problems::{GraphProblem, Instances, Mark, Problem, SizeReward};
use tch::{Device, Kind, Tensor};

/// Builds a separate graph from the reduced graph of a state.
fn reduced_as_graph(graph: &GraphState, reduced: &ReducedGraph) -> GraphState {
    let place = |a: u32| reduced.nodes().iter().position(|&b| b == a).unwrap() as u32;
    let nodes: Vec<_> = reduced.nodes().iter().map(|&a| graph.node(a).unwrap()).collect();
    let edges: Vec<_> = reduced.edges().iter().map(|&(a, b)| (place(a), place(b), Edge::default())).collect();
    GraphState::from_parts(graph.kind(), &nodes, &edges).unwrap()
}

fn env(problem: Problem) -> GraphEnv {
    let graphs = Instances::all(4).unwrap().and(Instances::all(5).unwrap());
    GraphProblem::for_size(problem, &graphs).unwrap().into_env()
}

fn reduced(env: &GraphEnv, graph: &GraphState) -> ReducedGraph {
    env.rules().reduced(graph).unwrap()
}

/// Compares pairs of states whose reduced graphs, computed by `seen`, are isomorphic. Returns the largest
/// difference of their exact P_F, log F and log R, and the number of pairs.
fn largest_difference(problem: Problem, seen: impl Fn(&GraphState) -> GraphState) -> (f64, usize) {
    let env = env(problem);
    let reward = SizeReward::new(problem, 1.5).unwrap();
    let mut known: HashMap<CanonicalKey, Vec<f64>> = HashMap::new();
    let mut largest = 0.0f64;
    let mut compared = 0;
    for instance in 0..env.n_instances() {
        let space = StateGraph::build_of(&env, instance, 10_000).unwrap();
        let flows = space.exact_flows(&env, &UniformPolicy, &reward, None).unwrap();
        let ways_back = env.masks(Direction::Backward, space.states());
        let own = reward.log_reward(space.states(), None).unwrap();
        for (state, graph) in space.states().graphs().iter().enumerate() {
            let of_child = |child| match child {
                Child::Exit => own[state] - flows.log_flow[state],
                Child::State(next) => {
                    flows.log_flow[next] - (ways_back.n_legal(next) as f64).ln() - flows.log_flow[state]
                }
            };
            let mut facts: Vec<f64> = space.children(state).map(of_child).collect();
            facts.sort_by(f64::total_cmp);
            facts.extend([flows.log_flow[state], own[state]]);
            match known.entry(canonical_key(&seen(graph))) {
                std::collections::hash_map::Entry::Vacant(new) => drop(new.insert(facts)),
                std::collections::hash_map::Entry::Occupied(other) => {
                    compared += 1;
                    assert_eq!(facts.len(), other.get().len());
                    let apart = facts.iter().zip(other.get()).map(|(a, b)| (a - b).abs());
                    largest = largest.max(apart.fold(0.0, f64::max));
                }
            }
        }
    }
    (largest, compared)
}

#[test]
fn the_future_depends_on_the_reduced_graph() {
    for problem in Problem::ALL {
        let env = env(problem);
        let (largest, compared) =
            largest_difference(problem, |graph| reduced_as_graph(graph, &reduced(&env, graph)));
        assert!(largest < 1e-9 && compared > 80, "{problem}: {largest} of {compared}");
    }
}

/// Checks that a reduced graph needs more than the undecided nodes, which are neither chosen for the solution
/// nor excluded from it. Two states whose undecided nodes form isomorphic graphs may have a different P_F,
/// because P_F also depends on the number of chosen nodes.
#[test]
fn the_number_of_chosen_nodes_matters() {
    for problem in [Problem::IndependentSet, Problem::Clique] {
        let open = |graph: &GraphState| {
            let is_open = |a: u32| graph.node(a).map(Mark::from_node) == Some(Mark::Undecided);
            reduced_as_graph(graph, &ReducedGraph::new(graph, is_open, |_, _| true))
        };
        let (largest, _) = largest_difference(problem, open);
        assert!(largest > 0.1, "{problem}: {largest}");
    }
}

/// Checks that a policy has the same outputs for a state as its network has for the reduced graph of this
/// state. The outputs are computed in two ways: with tensors, and without tensors on the CPU.
#[test]
fn policies_say_of_states_what_networks_say_of_reduced_graphs() -> Result<()> {
    for problem in Problem::ALL {
        let env = env(problem);
        let mut states = GraphStates::from(Vec::new());
        for instance in (0..env.n_instances()).step_by(3) {
            states.append(StateGraph::build_of(&env, instance, 10_000)?.states().clone());
        }
        let estimators = EstimatorsConfig::with_flow(true);
        let config = GraphNetConfig {
            identity: false,
            conv: ConvKind::GinVirtual,
            estimators,
            ..GraphNetConfig::default()
        };
        let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(0))?;
        // Noise is added to the parameters instead of training them, because untrained logits would be nearly
        // equal.
        let noise = |of: &Tensor| Tensor::randn_like(of) * 0.2;
        tch::manual_seed(0);
        for parameter in net.parameters() {
            let mut values = parameter.tensor.shallow_clone();
            tch::no_grad(|| drop(values.f_add_(&noise(&parameter.tensor))));
        }
        let mut of_reduced = Vec::new();
        for graph in states.graphs() {
            let one = GraphStates::from(vec![reduced_as_graph(graph, &reduced(&env, graph))]);
            let batch = GraphBatch::new(env.schema(), one.arrays(), None, Device::Cpu)?;
            let output = net.forward(&batch, Quantity::LogPf | Quantity::LogFlow)?;
            let blocks = output.pf.unwrap();
            let of_nodes = Vec::<f32>::try_from(blocks[0].view(-1))?;
            let exit = blocks[1].double_value(&[0, 0]) as f32;
            of_reduced.push((
                of_nodes,
                exit,
                output.values.get(Quantity::LogFlow).unwrap().double_value(&[0]),
            ));
        }
        let policy = GraphPolicy(net);
        let evaluation = policy.evaluate(&env, &states, None, Quantity::LogPf | Quantity::LogFlow)?;
        let flows =
            Vec::<f64>::try_from(evaluation.values.get(Quantity::LogFlow).unwrap().to_kind(Kind::Double))?;
        let dist = evaluation.pf.unwrap();
        let host = policy.on_host(Direction::Forward).unwrap().distribution(&env, &states)?;
        let masks = dist.masks().clone();
        let mut compared = 0;
        for (row, graph) in states.graphs().iter().enumerate() {
            let (of_nodes, exit, flow) = &of_reduced[row];
            assert!((flows[row] - flow).abs() < 1e-4, "{problem}: {} {flow}", flows[row]);
            let nodes = reduced(&env, graph);
            let slots: Vec<u32> = masks.legal_slots(row).collect();
            let logit = |slot: u32| match nodes.nodes().iter().position(|&a| a == slot) {
                Some(place) => f64::from(of_nodes[place]),
                None => f64::from(*exit),
            };
            assert!(
                slots.iter().all(|&slot| slot as usize == graph.n_nodes() || nodes.nodes().contains(&slot))
            );
            let sum = slots.iter().map(|&slot| logit(slot).exp()).sum::<f64>().ln();
            for &slot in &slots {
                compared += 1;
                for dist in [&dist, &host] {
                    let log_prob = dist.log_prob(&[row], &Slots(vec![slot]))?.double_value(&[0]);
                    assert!((log_prob - (logit(slot) - sum)).abs() < 1e-4, "{problem}, {graph}: {log_prob}");
                }
            }
        }
        assert!(compared > 200);
        let uniform = policy.evaluate(&env, &states, None, Quantities::PB)?.pb.unwrap();
        assert_eq!(uniform.masks().legal, env.masks(Direction::Backward, &states).legal);
    }
    Ok(())
}
