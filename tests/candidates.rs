//! Edges that are added among listed candidates: the same environment as a rule that forbids all other pairs, with fewer slots.

use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Rows, Slots, StateGraph};
use gfn::graph::{
    ActionSet, AddEdge, AddNode, BackwardRule, Edge, Free, GraphEnv, GraphKind, GraphRules, GraphSchema, GraphState,
    GraphStates, MoveMask, Reversed, Scaffold, Semantics,
};
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, EdgeMlp, EdgeMlpConfig, GraphNet, GraphNetConfig};
use gfn::objective::Quantities;
use gfn::objective::TrajectoryBalance;
use gfn::policy::{GraphPolicy, Policy, UniformPolicy};
use gfn::rollout::{Sampler, Trajectories};
use gfn::testing::{check_action_type, check_graph_env};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

const PAIRS: [(u32, u32); 5] = [(0, 1), (3, 1), (2, 3), (0, 3), (1, 4)];

/// Forbids what isn't listed, among all pairs.
struct Listed;

impl GraphRules for Listed {
    fn restrict(&self, _: &GraphState, moves: &mut MoveMask<'_>) {
        if moves.type_name() == "add_edge" {
            moves.retain(|action| {
                PAIRS.iter().any(|&(a, b)| (a, b) == (action.a, action.b) || (b, a) == (action.a, action.b))
            });
        }
    }
}

fn initial(kind: GraphKind) -> GraphState {
    let mut graph = GraphState::with_nodes(kind, 5);
    // A scaffold: one of the candidates, and an edge that is none.
    graph.add_edge(0, 1, Edge::default()).unwrap();
    graph.add_edge(2, 4, Edge::default()).unwrap();
    graph
}

fn pairs(kind: GraphKind) -> Vec<(u32, u32)> {
    let back = PAIRS.iter().map(|&(a, b)| (b, a)).filter(|_| kind == GraphKind::Directed);
    PAIRS.into_iter().chain(back).collect()
}

fn schema(kind: GraphKind) -> GraphSchema {
    GraphSchema { edge_classes: 2, ..GraphSchema::plain(kind, 6) }
}

fn actions(semantics: Semantics, edge: AddEdge) -> ActionSet {
    let set = ActionSet::new(semantics).with(edge);
    if semantics == Semantics::Labelled { set } else { set.with(AddNode::attached(1, 2, 6)) }
}

fn sparse(kind: GraphKind, semantics: Semantics) -> GraphEnv<Free> {
    let initial = initial(kind).with_candidates(pairs(kind)).unwrap();
    let set = actions(semantics, AddEdge::new(2).at_most(5).among_candidates());
    GraphEnv::new(Free, set, schema(kind), initial).unwrap()
}

fn dense(kind: GraphKind, semantics: Semantics) -> GraphEnv<Listed> {
    GraphEnv::new(Listed, actions(semantics, AddEdge::new(2).at_most(5)), schema(kind), initial(kind)).unwrap()
}

const SETTINGS: [(GraphKind, Semantics); 3] = [
    (GraphKind::Undirected, Semantics::Labelled),
    (GraphKind::Directed, Semantics::Labelled),
    (GraphKind::Undirected, Semantics::UpToIsomorphism),
];

#[test]
fn masks_are_those_of_a_rule_over_all_pairs() {
    for (kind, semantics) in SETTINGS {
        let (sparse, dense) = (sparse(kind, semantics), dense(kind, semantics));
        let states = StateGraph::build(&sparse, 20_000).unwrap().states().clone();
        assert_eq!(StateGraph::build(&dense, 20_000).unwrap().len(), states.len(), "{kind:?} {semantics:?}");
        assert!(states.len() > 60, "{}", states.len());
        let moves = |masks: &Masks, set: &ActionSet, row: usize| {
            let graph = &states.graphs()[row];
            let decoded = masks.legal_slots(row).map(|slot| set.decode(masks.direction, graph, slot).unwrap());
            decoded.map(|(kind, _, action)| (kind, action)).collect::<Vec<_>>()
        };
        for direction in [Direction::Forward, Direction::Backward] {
            let (few, all) = (sparse.masks(direction, &states), dense.masks(direction, &dense.adopted(states.clone())));
            for row in 0..states.len() {
                let [few, all] = [moves(&few, sparse.actions(), row), moves(&all, dense.actions(), row)];
                assert_eq!(few, all, "{kind:?} {semantics:?} {direction}: {}", states.graphs()[row]);
            }
            // Slots are those of the candidates alone.
            if direction == Direction::Forward && semantics == Semantics::Labelled {
                assert_eq!(few.row(0).len(), 2 * pairs(kind).len() + 1);
                assert_eq!(all.row(0).len(), 2 * 25 + 1);
            }
        }
    }
}

#[test]
fn the_contracts_hold() {
    for (kind, semantics) in SETTINGS {
        let env = sparse(kind, semantics);
        check_graph_env(&env, 40, &mut Rng::seeded(0)).unwrap();
        let states = StateGraph::build(&env, 20_000).unwrap();
        let edge = AddEdge::new(2).at_most(5).among_candidates();
        let bare = GraphState::with_nodes(kind, 5).with_candidates(pairs(kind)).unwrap();
        check_action_type(&edge, semantics, &[bare]).unwrap();
        // By type, too, where no edge of the scaffold is a candidate.
        let apart = initial(kind).with_candidates(pairs(kind).into_iter().filter(|pair| *pair != (0, 1))).unwrap();
        let by_type = GraphEnv::new(
            Free,
            ActionSet::new(Semantics::Labelled).with(AddEdge::new(2).among_candidates()),
            schema(kind),
            apart,
        );
        check_graph_env(&by_type.unwrap().with_backward(BackwardRule::ByType), 40, &mut Rng::seeded(0)).unwrap();
        assert_eq!(env.keys(states.states()).len(), states.len());
    }
}

#[test]
fn edges_that_go_are_among_candidates_going_back() {
    let kind = GraphKind::Undirected;
    let mut full = GraphState::with_nodes(kind, 5);
    PAIRS.iter().for_each(|&(a, b)| full.add_edge(a, b, Edge::default()).unwrap());
    let set = ActionSet::new(Semantics::Labelled).with(Reversed(AddEdge::new(1).among_candidates()));
    let env = GraphEnv::new(Free, set, GraphSchema::plain(kind, 5), full.with_candidates(PAIRS).unwrap()).unwrap();
    assert_eq!(StateGraph::build(&env, 100).unwrap().len(), 32);
    check_graph_env(&env, 40, &mut Rng::seeded(0)).unwrap();
}

/// Log-rewards that differ from state to state.
fn reward(states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    Ok(states
        .graphs()
        .iter()
        .map(|graph| graph.edges().map(|(a, b)| f64::from(a) - 0.5 * f64::from(b)).sum::<f64>() * 0.4)
        .collect())
}

fn distance<P: Policy<GraphEnv<Free>, Dist = GraphActionCategorical>>(trainer: &Trainer<GraphEnv<Free>, P>) -> f64 {
    let states = StateGraph::build(trainer.env(), 20_000).unwrap();
    let target = states.target_of(&reward(states.states(), None).unwrap()).unwrap();
    let learned = states.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap();
    Distances::between(&learned.probs, &target.probs).unwrap().tv
}

fn trained<P: Policy<GraphEnv<Free>, Dist = GraphActionCategorical>>(
    env: GraphEnv<Free>,
    policy: P,
    rng: Rng,
) -> [f64; 2] {
    let config = TrainerConfig { batch: 32, ..TrainerConfig::default() };
    let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, config, rng).unwrap();
    let before = distance(&trainer);
    for _ in 0..400 {
        trainer.step().unwrap();
    }
    [before, distance(&trainer)]
}

#[test]
fn networks_learn_what_is_built_among_candidates() {
    let env = || {
        let kind = GraphKind::Undirected;
        let initial = GraphState::with_nodes(kind, 5).with_candidates(PAIRS).unwrap();
        let set = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1).among_candidates());
        GraphEnv::new(Free, set, GraphSchema::plain(kind, 5), initial).unwrap()
    };
    let rng = &mut Rng::seeded(3);
    for walks in [None, Some(2)] {
        let config = GraphNetConfig {
            embedding: 32,
            pair_walks: walks,
            backward: BackwardPolicy::SharedTorso,
            ..GraphNetConfig::default()
        };
        let net = GraphNet::new(&env(), config, Device::Cpu, Kind::Float, rng).unwrap();
        let [before, after] = trained(env(), GraphPolicy(net), rng.split());
        assert!(before > 0.2 && after < 0.02, "{walks:?}: {before} {after}");
    }
    let net = EdgeMlp::new(&env(), EdgeMlpConfig::default(), Device::Cpu, Kind::Float, rng).unwrap();
    let [before, after] = trained(env(), GraphPolicy(net), rng.split());
    assert!(before > 0.2 && after < 0.02, "{before} {after}");
}

#[test]
fn large_graphs_pay_for_their_candidates_alone() {
    let (n, kind) = (5_000u32, GraphKind::Undirected);
    let near = (0..n).flat_map(|a| [1, 7].map(|k| (a, (a + k) % n)));
    let initial = GraphState::with_nodes(kind, n as usize).with_candidates(near).unwrap();
    let set = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1).among_candidates().at_most(30));
    let env = GraphEnv::new(Full, set, GraphSchema::plain(kind, n as usize), initial).unwrap();
    // All pairs would be 25 million slots.
    assert_eq!(env.masks(Direction::Forward, &env.initial(&[0])).row(0).len(), 2 * n as usize + 1);
    let drawn = Sampler::new(&env, &UniformPolicy).forward(3, &mut Rng::seeded(0)).unwrap();
    assert!(drawn.terminal_states().graphs().iter().all(|graph| graph.n_edges() == 30));
    let net = GraphNetConfig { identity: false, embedding: 8, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, net, Device::Cpu, Kind::Float, &mut Rng::seeded(1)).unwrap();
    let evaluation = GraphPolicy(net).evaluate(&env, drawn.terminal_states(), None, Quantities::PF).unwrap();
    assert_eq!(evaluation.pf.unwrap().len(), 3);
}

/// Done when as many edges as may be are there.
struct Full;

impl GraphRules for Full {
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_edges() == 30
    }
}

#[test]
fn candidates_that_would_mean_nothing_are_refused() {
    let kind = GraphKind::Undirected;
    let (plain, among) = (AddEdge::new(1), AddEdge::new(1).among_candidates());
    let env = |edge: AddEdge, initial: GraphState, semantics| {
        GraphEnv::new(Free, ActionSet::new(semantics).with(edge), GraphSchema::plain(kind, 3), initial)
    };
    let bare = GraphState::with_nodes(kind, 3);
    let listed = bare.clone().with_candidates([(0, 1)]).unwrap();
    let message = |env: Result<GraphEnv<Free>>| env.unwrap_err().to_string();
    assert!(message(env(among, bare.clone(), Semantics::Labelled)).contains("with_candidates"));
    assert!(message(env(plain, listed.clone(), Semantics::Labelled)).contains("among_candidates"));
    let right = env(among, listed, Semantics::UpToIsomorphism).unwrap();
    assert!(message(right.clone().with_instances(vec![bare.clone()])).contains("with_candidates"));
    assert!(message(right.clone().with_scaffold(Scaffold::Alike)).contains("candidates"));
    // A move between others has no slot.
    let set = right.actions();
    let graph = &right.initial_graphs()[0];
    let far = gfn::graph::Move { a: 1, b: 2, class: 0 };
    let error = set.encode(Direction::Forward, graph, gfn::graph::ActionKind(0), far).unwrap_err();
    assert!(matches!(error, Error::Contract { .. }) && error.to_string().contains("1 and 2"), "{error}");
}

/// States with other candidates than their instance has would name other edges by the same slots.
#[test]
fn states_of_elsewhere_are_refused_until_they_are_adopted() {
    let kind = GraphKind::Undirected;
    let set = || ActionSet::new(Semantics::Labelled).with(AddEdge::new(1).among_candidates());
    let env = |pairs: &[(u32, u32)]| {
        let initial = GraphState::with_nodes(kind, 4).with_candidates(pairs.iter().copied()).unwrap();
        GraphEnv::new(Free, set(), GraphSchema::plain(kind, 4), initial).unwrap()
    };
    let (one, other) = (env(&[(0, 1), (1, 2)]), env(&[(0, 1), (2, 3)]));
    let rng = &mut Rng::seeded(0);
    let net = GraphNet::new(&one, GraphNetConfig::default(), Device::Cpu, Kind::Float, rng).unwrap();
    let policy = GraphPolicy(net);
    let built = |edge| {
        let mut graph = GraphState::with_nodes(kind, 4);
        graph.add_edge(0, edge, Edge::default()).unwrap();
        GraphStates::from(vec![graph])
    };
    for foreign in [other.initial(&[0]), vec![GraphState::with_nodes(kind, 4)].into(), built(1)] {
        for direction in [Direction::Forward, Direction::Backward] {
            assert_eq!(one.masks(direction, &foreign).n_legal(0), 0);
        }
        let evaluated = policy.evaluate(&one, &foreign, None, Quantities::PF).map(|_| ());
        let stepped = one.step(Direction::Forward, &mut foreign.clone(), &Slots(vec![0])).map(|_| ());
        for error in [evaluated.unwrap_err(), stepped.unwrap_err()] {
            assert!(error.to_string().contains("adopted"), "{error}");
        }
        assert!(Sampler::new(&one, &UniformPolicy).backward(&foreign, rng).is_err());
        assert!(!one.is_initial(&foreign)[0]);
    }
    // Adopted they are states, and only those that can be built have a way back.
    assert!(one.is_initial(&one.adopted(other.initial(&[0])))[0]);
    let back = Sampler::new(&one, &UniformPolicy).backward(&one.adopted(built(1)), rng).unwrap();
    assert_eq!(back.n_transitions(), 2);
    assert!(Sampler::new(&one, &UniformPolicy).backward(&one.adopted(built(3)), rng).is_err());
    let plain = GraphEnv::new(
        Free,
        ActionSet::new(Semantics::Labelled).with(AddEdge::new(1)),
        GraphSchema::plain(kind, 4),
        GraphState::with_nodes(kind, 4),
    );
    assert!(plain.unwrap().adopted(one.initial(&[0])).graphs()[0].candidates().is_empty());
}

/// A data set of one environment isn't read as one of another whose slots are as many.
#[test]
fn data_sets_know_their_candidates() {
    let kind = GraphKind::Undirected;
    let env = |pairs: [(u32, u32); 2]| {
        let initial = GraphState::with_nodes(kind, 4).with_candidates(pairs).unwrap();
        let set = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1).among_candidates());
        GraphEnv::new(Free, set, GraphSchema::plain(kind, 4), initial).unwrap()
    };
    let (one, other) = (env([(0, 1), (1, 2)]), env([(0, 1), (2, 3)]));
    let drawn = Sampler::new(&one, &UniformPolicy).forward(20, &mut Rng::seeded(0)).unwrap();
    let path = std::env::temp_dir().join(format!("gfn_candidates_{}", std::process::id()));
    drawn.save(&one, &path).unwrap();
    let read = Trajectories::load(&one, &path).unwrap();
    assert_eq!(read.terminal_states(), drawn.terminal_states());
    assert!(Trajectories::load(&other, &path).is_err());
    std::fs::remove_dir_all(&path).unwrap();
}

/// A type that takes nodes of the initial graph would take the candidates that name them.
#[test]
fn nodes_that_candidates_name_stay() {
    let kind = GraphKind::Undirected;
    let initial = GraphState::with_nodes(kind, 3).with_candidates([(0, 1), (1, 2)]).unwrap();
    let set = ActionSet::new(Semantics::UpToIsomorphism)
        .with(AddEdge::new(1).among_candidates())
        .with(Reversed(AddNode::free(1, 3)));
    let env = GraphEnv::new(Free, set, GraphSchema::plain(kind, 3), initial).unwrap();
    let error = Sampler::new(&env, &UniformPolicy).forward(50, &mut Rng::seeded(0)).unwrap_err();
    assert!(error.to_string().contains("which name its nodes"), "{error}");
}

/// Each instance has its own list.
#[test]
fn instances_have_candidates_of_their_own() {
    let kind = GraphKind::Undirected;
    let initial = |n: usize, pairs: &[(u32, u32)]| {
        GraphState::with_nodes(kind, n).with_candidates(pairs.iter().copied()).unwrap()
    };
    let set = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1).among_candidates());
    let env = GraphEnv::new(Free, set, GraphSchema::plain(kind, 4), initial(3, &[(0, 1)])).unwrap();
    let instances = vec![initial(3, &[(0, 1), (1, 2)]), initial(4, &[(0, 3), (1, 3), (2, 3)]), initial(2, &[])];
    let env = env.with_instances(instances).unwrap();
    let sizes = [0, 1, 2].map(|instance| StateGraph::build_of(&env, instance, 100).unwrap().len());
    assert_eq!(sizes, [4, 8, 1]);
    let net = GraphNet::new(&env, GraphNetConfig::default(), Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap();
    let drawn = Sampler::new(&env, &GraphPolicy(net)).forward_of(&[0, 1, 2, 1, 0], &mut Rng::seeded(0)).unwrap();
    for (graph, n) in drawn.terminal_states().graphs().iter().zip([3, 4, 2, 4, 3]) {
        let listed = env.initial_graphs()[graph.instance() as usize].candidates();
        assert!(graph.n_nodes() == n && graph.edges().all(|edge| listed.contains(&edge)));
    }
}
