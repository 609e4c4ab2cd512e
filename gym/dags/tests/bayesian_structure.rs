//! Tests of the environment of acyclic graphs: its contract, masks compared with brute force (searches for
//! cycles by petgraph), and contradictory expert knowledge.

use std::sync::Arc;

use gfn::Rng;
use gfn::contract::{Budget, check_action_type, check_env, check_graph_env};
use gfn::distribution::GraphActionCategorical;
use gfn::env::StateGraph;
use gfn::env::{Direction, DiscreteEnv, Env, Slots};
use gfn::graph::{GraphActionType, GraphEnv, GraphRules, GraphState, GraphView, MoveMask, Semantics};
use gfn::nn::{BackwardPolicy, EstimatorsConfig, GraphNet, GraphNetConfig};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{GraphPolicy, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy};
use gfn::rollout::Sampler;
use gfn_dags::{AddArc, AdjacencyFeatures, BayesianStructure, MAX_NODES, StructureConfig, acyclic};
use petgraph::algo::is_cyclic_directed;
use petgraph::graph::NodeIndex;
use proptest::prelude::*;
use tch::{Device, Kind};

fn with_knowledge() -> StructureConfig {
    StructureConfig {
        nodes: 5,
        max_parents: Some(2),
        forbidden: vec![(0, 3), (4, 1)],
        required: vec![(2, 0), (2, 1), (0, 1)],
    }
}

#[test]
fn the_contract_is_kept() {
    for config in
        [StructureConfig::new(1), StructureConfig::new(4), StructureConfig::new(9), with_knowledge()]
    {
        let env = BayesianStructure::new(config).unwrap().into_env();
        check_env(&env, Budget::thorough().with_walks(30), &mut Rng::seeded(1)).unwrap();
        check_graph_env(&env, Budget::thorough().with_walks(12), &mut Rng::seeded(2)).unwrap();
        let walks = Sampler::new(&env, &UniformPolicy).forward(6, &mut Rng::seeded(3)).unwrap();
        check_action_type(&AddArc, Semantics::Labelled, walks.states().graphs()).unwrap();
    }
}

#[test]
fn there_are_as_many_states_as_acyclic_graphs() {
    for (nodes, count) in [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29_281)] {
        let env = BayesianStructure::new(StructureConfig::new(nodes)).unwrap().into_env();
        let graph = StateGraph::build(&env, 100_000).unwrap();
        assert_eq!(graph.len(), count);
        assert_eq!(graph.ends().len(), count, "any graph can be finished");
    }
}

/// Returns `true` if an edge is legal by definition: the graph doesn't have it yet, it isn't forbidden, its
/// target may have another parent, and petgraph finds no cycle after adding it.
fn is_legal(config: &StructureConfig, graph: &GraphState, a: usize, b: usize) -> bool {
    if a == b || graph.has_edge(a as u32, b as u32) || config.forbidden.contains(&(a as u32, b as u32)) {
        return false;
    }
    let mut with_edge = graph.as_directed().unwrap().clone();
    with_edge.add_edge(NodeIndex::new(a), NodeIndex::new(b), Default::default());
    graph.in_degree(b as u32) < config.max_parents.unwrap_or(usize::MAX) && !is_cyclic_directed(&with_edge)
}

/// Tests that `AddArc` offers no edge that closes a cycle in graphs larger than those of a
/// [`BayesianStructure`]. The sizes cover graphs that store adjacency as bits and as lists.
#[test]
fn arcs_close_no_cycle_in_large_graphs() {
    for n in [257, 1_025, 2_100] {
        // The edges form a path through all nodes except the last.
        let mut graph = GraphState::directed(n);
        for b in 2..n as u32 {
            graph.add_edge(b - 2, b - 1, Default::default()).unwrap();
        }
        let mut mask = vec![true; n * n];
        AddArc.mask(Direction::Forward, Semantics::Labelled, GraphView::from(&graph), &mut mask);
        for (at, legal) in mask.into_iter().enumerate() {
            let a = at / n;
            let b = at % n;
            let expected = a != b && (a == n - 1 || b == n - 1 || a + 1 < b);
            assert_eq!(legal, expected, "{a} -> {b} of {n}");
        }
    }
}

/// Checks that a step refuses the slots that the mask forbids.
#[test]
fn a_step_that_closes_a_cycle_is_refused() {
    let env = BayesianStructure::new(StructureConfig::new(3)).unwrap().into_env();
    for slots in [vec![1, 3], vec![1, 5, 6], vec![4]] {
        let mut states = env.initial(&[0]);
        let (last, before) = slots.split_last().unwrap();
        for &slot in before {
            drop(env.step(Direction::Forward, &mut states, &Slots(vec![slot])).unwrap());
        }
        let refused = env.step(Direction::Forward, &mut states, &Slots(vec![*last])).unwrap_err().to_string();
        assert!(refused.contains("must not close a directed cycle"), "{refused}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Compares masks with brute force after random additions and removals of edges. The graphs have up to 30
    /// nodes, or 65 to 69 nodes, for which a set of nodes needs two 64-bit words.
    #[test]
    fn masks_are_those_of_brute_force(
        nodes in prop_oneof![2usize..=30, 65usize..70],
        max_parents in proptest::option::of(1usize..4),
        forbidden in proptest::collection::vec((0u32..30, 0u32..30), 0..10),
        seed in any::<u64>(),
    ) {
        let n = nodes as u32;
        let forbidden: Vec<_> = forbidden.into_iter().filter(|&(a, b)| a < n && b < n && a != b).collect();
        let required: Vec<_> = [(1, 0)].into_iter().filter(|edge| !forbidden.contains(edge)).collect();
        let config = StructureConfig { nodes, max_parents, forbidden, required };
        let env = BayesianStructure::new(config.clone()).unwrap().into_env();
        let mut rng = Rng::seeded(seed);
        let mut states = env.initial(&[0]);
        for k in 0..80 {
            let direction = if rng.uniform() < 0.7 { Direction::Forward } else { Direction::Backward };
            let masks = env.masks(direction, &states);
            let legal: Vec<u32> =
                masks.legal_slots(0).filter(|&slot| (slot as usize) < nodes * nodes).collect();
            if legal.is_empty() {
                continue;
            }
            let slot = legal[rng.below(legal.len())];
            env.step(direction, &mut states, &Slots(vec![slot])).unwrap();
            if k % 20 != 19 {
                continue;
            }
            let graph = &states.graphs()[0];
            let forward = env.masks(Direction::Forward, &states);
            let backward = env.masks(Direction::Backward, &states);
            for (a, b) in (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b))) {
                prop_assert_eq!(forward.row(0)[a * nodes + b], is_legal(&config, graph, a, b), "{} -> \
                    {}", a, b);
                let edge = (a as u32, b as u32);
                let removable = graph.has_edge(edge.0, edge.1) && !config.required.contains(&edge);
                prop_assert_eq!(backward.row(0)[a * nodes + b], removable);
            }
            prop_assert!(forward.row(0)[nodes * nodes]);
        }
    }
}

#[test]
fn knowledge_that_contradicts_itself_is_refused() {
    let refused = |config: StructureConfig, words: &str| {
        let message = BayesianStructure::new(config).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    };
    let config = StructureConfig::new;
    refused(config(0), "nodes is 0");
    refused(config(MAX_NODES + 1), "1 to 200");
    refused(StructureConfig { required: vec![(0, 1), (1, 2), (2, 0)], ..config(3) }, "directed cycle");
    refused(
        StructureConfig { required: vec![(0, 1)], forbidden: vec![(0, 1)], ..config(3) },
        "both required and forbidden",
    );
    let crowded = StructureConfig { required: vec![(0, 2), (1, 2)], max_parents: Some(1), ..config(3) };
    refused(crowded, "more than max_parents");
    refused(StructureConfig { required: vec![(0, 3)], ..config(3) }, "doesn't join two of the 3 nodes");
    refused(StructureConfig { forbidden: vec![(1, 1)], ..config(3) }, "doesn't join two of the 3 nodes");
    assert!(BayesianStructure::new(StructureConfig { required: vec![(0, 1), (0, 1)], ..config(2) }).is_ok());
    assert!(BayesianStructure::new(config(MAX_NODES)).is_ok());
}

#[test]
fn graphs_of_other_nodes_lead_nowhere() {
    let env = BayesianStructure::new(with_knowledge()).unwrap().into_env();
    let other = BayesianStructure::new(StructureConfig::new(4)).unwrap().into_env();
    for direction in [Direction::Forward, Direction::Backward] {
        let masks = env.masks(direction, &super::graphs(4, &[&[(0, 1)]]));
        // A graph of four nodes isn't a state of `env`, whose graphs have five nodes. Forwards only the exit
        // is legal; backwards no action is legal.
        assert_eq!(masks.n_legal(0), usize::from(direction == Direction::Forward));
    }
    assert!(acyclic(3, &[(0, 1), (0, 1)]).is_err() && acyclic(3, &[(0, 3)]).is_err());
    // Custom rules can forbid edges in addition to the environment's own rules.
    assert!(other.tensor_form().is_some());
    let sinks = other.with_rules(FirstIsSink);
    assert!(sinks.tensor_form().is_none(), "the tensor form has the old rules");
    let graph = StateGraph::build(&sinks, 1000).unwrap();
    assert!(graph.states().graphs().iter().all(|graph| graph.out_degree(0) == 0));
    assert!(graph.len() > 25 && graph.len() < 543);
}

/// Custom rules that add a restriction to the rules that they contain: node 0 has no children.
struct FirstIsSink(Arc<dyn GraphRules>);

impl GraphRules for FirstIsSink {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        self.0.restrict(graph, moves);
        moves.retain(|action| action.a != 0);
    }
}

/// Tests an MLP and a graph network, each with a learned P_B. A slot is an ordered pair of nodes, and each
/// policy must give every legal slot a probability.
#[test]
fn policies_give_each_legal_slot_a_probability() {
    let env = BayesianStructure::new(with_knowledge()).unwrap().into_env();
    let walks = Sampler::new(&env, &UniformPolicy).forward(20, &mut Rng::seeded(1)).unwrap();
    let states = walks.terminal_states();
    let estimators = EstimatorsConfig::with_flow(true);
    let backward = BackwardPolicy::SharedTorso;
    let config = GraphNetConfig {
        embedding: 16,
        backward,
        estimators: estimators.clone(),
        ..GraphNetConfig::default()
    };
    let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap();
    let config = MlpPolicyConfig { backward, estimators, ..MlpPolicyConfig::default() };
    let mlp = MlpPolicy::new(
        &env,
        AdjacencyFeatures::new(5),
        config,
        Device::Cpu,
        Kind::Float,
        &mut Rng::seeded(0),
    );
    let policies: [Box<dyn Policy<GraphEnv>>; 2] = [Box::new(GraphPolicy(net)), Box::new(mlp.unwrap())];
    for policy in &policies {
        let wants = Quantities::PF | Quantity::LogPb | Quantity::LogFlow;
        let evaluation = policy.evaluate(&env, states, None, wants).unwrap();
        let log_probs = |dist: &GraphActionCategorical| dist.host_log_probs().unwrap().to_vec();
        for (direction, dist) in [(Direction::Forward, &evaluation.pf), (Direction::Backward, &evaluation.pb)]
        {
            let dist = dist.as_ref().unwrap();
            let masks = env.masks(direction, states);
            assert_eq!(dist.masks().legal, masks.legal);
            let probs = log_probs(dist);
            assert!(
                (probs.iter().map(|p| p.exp()).sum::<f64>()
                    - (0..20).filter(|&row| masks.n_legal(row) > 0).count() as f64)
                    .abs()
                    < 1e-4
            );
            assert!(probs.iter().any(|p| (p - probs[0]).abs() > 1e-3));
            let on_host = log_probs(&policy.on_host(direction).unwrap().distribution(&env, states).unwrap());
            let off = on_host.iter().zip(&probs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(on_host.len() == probs.len() && off < 1e-4, "{off}");
        }
        assert_eq!(evaluation.values.get(Quantity::LogFlow).unwrap().size(), [20]);
    }
}
