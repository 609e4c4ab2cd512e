//! Acyclic graphs: the contract, legality against brute force, the path through petgraph, bad knowledge.

use gfn::Rng;
use gfn::distribution::GraphActionCategorical;
use gfn::env::StateGraph;
use gfn::env::{Direction, DiscreteEnv, Env, Rows, Slots};
use gfn::graph::GraphState;
use gfn::nn::{BackwardPolicy, ConvKind, EstimatorsConfig, GraphNet, GraphNetConfig};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{GraphPolicy, Policy, UniformPolicy};
use gfn::rollout::Sampler;
use gfn::testing::{check_env, check_graph_env};
use gfn_dags::{BayesianStructure, DagGraphs, DagPolicy, DagStates, MAX_NODES, StructureConfig};
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
    for config in [StructureConfig::new(1), StructureConfig::new(4), StructureConfig::new(9), with_knowledge()] {
        let env = BayesianStructure::new(config).unwrap();
        check_env(&env, 30, &mut Rng::seeded(1)).unwrap();
        check_graph_env(&DagGraphs::new(&env).unwrap(), 12, &mut Rng::seeded(2)).unwrap();
    }
}

#[test]
fn there_are_as_many_states_as_acyclic_graphs() {
    for (nodes, count) in [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29_281)] {
        let env = BayesianStructure::new(StructureConfig::new(nodes)).unwrap();
        let graph = StateGraph::build(&env, 100_000).unwrap();
        assert_eq!(graph.len(), count);
        assert_eq!(graph.ends().len(), count, "any graph can be finished");
    }
}

/// A legal edge by the definition: not there, not forbidden, room at its target, and petgraph finds no cycle with it.
fn is_legal(config: &StructureConfig, graph: &GraphState, a: usize, b: usize) -> bool {
    if a == b || graph.has_edge(a as u32, b as u32) || config.forbidden.contains(&(a as u32, b as u32)) {
        return false;
    }
    let mut with_edge = graph.as_directed().unwrap().clone();
    with_edge.add_edge(NodeIndex::new(a), NodeIndex::new(b), Default::default());
    graph.in_degree(b as u32) < config.max_parents.unwrap_or(usize::MAX) && !is_cyclic_directed(&with_edge)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Additions and removals in random order on graphs of up to 30 nodes, and past 64 in some.
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
        let env = BayesianStructure::new(config.clone()).unwrap();
        let mut rng = Rng::seeded(seed);
        let mut states = env.initial(&[0]);
        for k in 0..80 {
            let direction = if rng.uniform() < 0.7 { Direction::Forward } else { Direction::Backward };
            let masks = env.masks(direction, &states);
            let legal: Vec<u32> = masks.legal_slots(0).filter(|&slot| env.edge_of(slot).is_some()).collect();
            if legal.is_empty() {
                continue;
            }
            let slot = legal[rng.below(legal.len())];
            env.step(direction, &mut states, &Slots(vec![slot])).unwrap();
            if k % 20 != 19 {
                continue;
            }
            let graph = states.to_graphs().unwrap().into_graphs().swap_remove(0);
            let (forward, backward) = (env.masks(Direction::Forward, &states), env.masks(Direction::Backward, &states));
            for (a, b) in (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b))) {
                prop_assert_eq!(forward.row(0)[a * nodes + b], is_legal(&config, &graph, a, b), "{} -> {}", a, b);
                let edge = (a as u32, b as u32);
                let removable = graph.has_edge(edge.0, edge.1) && !config.required.contains(&edge);
                prop_assert_eq!(backward.row(0)[a * nodes + b], removable);
            }
            prop_assert!(forward.row(0)[nodes * nodes]);
            prop_assert_eq!(&DagStates::from_graphs(nodes, &vec![graph].into()).unwrap(), &states);
        }
    }
}

/// The same walk on bit rows and on petgraph states: forward slots are the same, removals name the same edges.
#[test]
fn petgraph_states_have_the_same_moves() {
    for config in [StructureConfig::new(6), with_knowledge()] {
        let env = BayesianStructure::new(config).unwrap();
        let graphs = DagGraphs::new(&env).unwrap();
        let mut rng = Rng::seeded(5);
        let (mut states, mut petgraphs) = (env.initial(&[0; 8]), graphs.initial(&[0; 8]));
        for _ in 0..12 {
            let masks = env.masks(Direction::Forward, &states);
            assert_eq!(masks.legal, graphs.masks(Direction::Forward, &petgraphs).legal);
            let back = env.masks(Direction::Backward, &states);
            let petgraph_back = graphs.masks(Direction::Backward, &petgraphs);
            for row in 0..8 {
                let edges: Vec<(u32, u32)> = petgraphs.graphs()[row].edges().collect();
                let listed = petgraph_back.legal_slots(row).map(|rank| edges[rank as usize]);
                let named = back.legal_slots(row).filter_map(|slot| env.edge_of(slot));
                assert!(listed.eq(named.map(|(a, b)| (a as u32, b as u32))));
            }
            let exit = (env.n_nodes() * env.n_nodes()) as u32;
            let slot = |row| {
                let legal: Vec<u32> = masks.legal_slots(row).filter(|&slot| slot != exit).collect();
                if legal.is_empty() { exit } else { legal[rng.below(legal.len())] }
            };
            let slots = Slots((0..8).map(slot).collect());
            let step = env.step(Direction::Forward, &mut states, &slots).unwrap();
            assert_eq!(step.done, graphs.step(Direction::Forward, &mut petgraphs, &slots).unwrap().done);
            assert_eq!(states.to_graphs().unwrap(), petgraphs);
        }
        assert!(states.dags().any(|dag| dag.n_edges() > 5));
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
fn illegal_moves_are_refused_in_words() {
    let env = BayesianStructure::new(with_knowledge()).unwrap();
    let refused = |direction, slot, words: &str| {
        let message = env.step(direction, &mut env.initial(&[0]), &Slots(vec![slot])).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    };
    refused(Direction::Forward, 7, "edge 1 -> 2, which would close a cycle");
    refused(Direction::Forward, 10, "which is required and there");
    refused(Direction::Forward, 6, "which would close a cycle");
    refused(Direction::Backward, 4, "remove edge 0 -> 4, which isn't there");
    refused(Direction::Forward, 26, "slots");
    refused(Direction::Forward, 3, "add edge 0 -> 3, which is forbidden");
    refused(Direction::Backward, 10, "remove edge 2 -> 0, which is required and there");
    // Of as many parents as a node may have, 2 and 0 of node 1 are required.
    refused(Direction::Forward, 16, "add edge 3 -> 1, into a node that has all the parents that it may have");
    let other = BayesianStructure::new(StructureConfig::new(4)).unwrap();
    let message = env.step(Direction::Forward, &mut other.initial(&[0]), &Slots(vec![0])).unwrap_err().to_string();
    assert!(message.contains("states of this environment"), "{message}");
    assert!(DagStates::from_edges(3, [[(0, 1), (0, 1)].as_slice()]).is_err());
    assert_eq!(other.initial(&[0; 3]).select(&[0, 2]).len(), 2);
}

/// A graph network says the same of rows of bits as of petgraph states: P_F slot by slot, P_B edge by edge, and flows.
#[test]
fn a_graph_network_reads_either_kind_of_state() {
    let env = BayesianStructure::new(with_knowledge()).unwrap();
    let graphs = DagGraphs::new(&env).unwrap();
    let config = GraphNetConfig {
        identity: true,
        embedding: 16,
        backward: BackwardPolicy::SharedTorso,
        estimators: EstimatorsConfig::with_flow(true),
        ..GraphNetConfig::default()
    };
    let net = GraphNet::new(&graphs, config, Device::Cpu, Kind::Double, &mut Rng::seeded(0)).unwrap();
    let walks = Sampler::new(&env, &UniformPolicy).forward(20, &mut Rng::seeded(1)).unwrap();
    let states = walks.terminal_states().clone();
    let petgraphs = states.to_graphs().unwrap();
    let wants = Quantities::PF | Quantity::LogPb | Quantity::LogFlow;
    let bits = DagPolicy(&net).evaluate(&env, &states, None, wants).unwrap();
    let other = GraphPolicy(&net).evaluate(&graphs, &petgraphs, None, wants).unwrap();
    let close = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    let log_probs = |dist: &Option<GraphActionCategorical>| dist.as_ref().unwrap().host_log_probs().unwrap().to_vec();
    let pf = log_probs(&bits.pf);
    assert!(close(&pf, &log_probs(&other.pf)));
    // Legal slots ascend in both: by source, then target.
    let pb = log_probs(&bits.pb);
    assert!(close(&pb, &log_probs(&other.pb)) && pb.len() > 20);
    assert!(pb.iter().any(|p| (p - pb[0]).abs() > 1e-3), "P_B is learned");
    assert_eq!(bits.values.get(Quantity::LogFlow).unwrap().size(), [20]);

    let config = GraphNetConfig { conv: ConvKind::Directed, identity: true, ..GraphNetConfig::default() };
    let net = GraphNet::new(&graphs, config, Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap();
    let policy = DagPolicy(&net);
    let frozen = Policy::<BayesianStructure>::on_host(&policy, Direction::Forward).unwrap();
    let got = frozen.distribution(&env, &states).unwrap().host_log_probs().unwrap().to_vec();
    let expected = log_probs(&policy.evaluate(&env, &states, None, Quantities::PF).unwrap().pf);
    let off = got.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(got.len() == expected.len() && off < 1e-4, "{off}");
}
