//! Tests of leaks of P_B: backward moves that lead to states which no forward move reaches. Checkers, exact
//! flows and trainers must return errors for them.

use gfn::contract::{Budget, WaysBack, check_env, check_graph_env};
use gfn::distribution::GraphActionCategorical;
use gfn::env::StateGraph;
use gfn::env::{Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Slots, Step};
use gfn::examples::Positions;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, BackwardRule, Edge, GraphEnv, GraphKind, GraphRules, GraphState,
    GraphStates, Node, Semantics,
};
use gfn::metrics::{Distances, ExactPolicy};
use gfn::objective::LogPartitionVariance;
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::hypergrid::HyperGrid;
use tch::Tensor;

/// Rules of an environment up to isomorphism, in which graphs grow by attached nodes and by edges. Unless
/// `truthful` is `true`, the rules have a mistake: a backward move may remove an edge even if this
/// disconnects the graph.
struct AttachedGrowth {
    /// `true` if `is_reachable` is correct: it then excludes graphs that are not connected.
    truthful: bool,
}

impl AttachedGrowth {
    fn env(max_nodes: usize, rule: BackwardRule, truthful: bool) -> GraphEnv {
        let actions = ActionSet::new(Semantics::UpToIsomorphism)
            .with(AddNode::first(1))
            .with(AddNode::attached(1, 1, max_nodes))
            .with(AddEdge::new(1));
        let kind = GraphKind::Undirected;
        let env = GraphEnv::new(Self { truthful }, actions, GraphState::new(kind));
        env.unwrap().with_backward(rule)
    }
}

impl GraphRules for AttachedGrowth {
    fn is_reachable(&self, graph: &GraphState) -> bool {
        !self.truthful || graph.as_undirected().is_none_or(|g| petgraph::algo::connected_components(g) <= 1)
    }
}

fn reward(states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    Ok(states.graphs().iter().map(|graph| 0.5 * graph.n_edges() as f64).collect())
}

fn message<T>(result: Result<T>) -> String {
    match result {
        Err(error @ Error::Contract { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("nothing was found"),
    }
}

/// Checks that a message about a leak names the move, both graphs and a remedy.
fn check_words(found: &str) {
    for words in
        ["undo add_edge (node 0, node 1, column 0)", "2 nodes", "edge 0-1", "no edges", "is_reachable"]
    {
        assert!(found.contains(words), "{words}: {found}");
    }
}

#[test]
fn the_checkers_follow_every_backward_move() {
    for rule in [BackwardRule::Derived, BackwardRule::ByType] {
        let env = AttachedGrowth::env(5, rule, false);
        for found in [
            message(check_env(&env, Budget::thorough().with_walks(100), &mut Rng::seeded(0))),
            message(check_graph_env(&env, Budget::thorough().with_walks(100), &mut Rng::seeded(0))),
        ] {
            check_words(&found);
            assert!(found.contains("backward moves lead on to the initial state"), "{found}");
        }
    }
    let env = AttachedGrowth::env(5, BackwardRule::Derived, true);
    let coverage = check_graph_env(&env, Budget::thorough().with_walks(100), &mut Rng::seeded(0)).unwrap();
    let WaysBack::All { states } = coverage.ways_back else { panic!("{coverage:?}") };
    assert!(states >= coverage.n_visited && states <= StateGraph::build(&env, 1000).unwrap().len());
}

#[test]
fn backward_trajectories_are_sampled_if_there_are_too_many_states() {
    // The checker's random trajectories exit only in the last corner, where no other action is legal. From
    // there, backward moves can reach all 8,000 cells, which are too many to be followed one by one.
    let env = HyperGrid::new(3, 20).unwrap().env();
    let coverage = check_env(&env, Budget::thorough().with_walks(12), &mut Rng::seeded(0)).unwrap();
    let WaysBack::Sample { walks } = coverage.ways_back else { panic!("{coverage:?}") };
    assert_eq!(walks, 4 * coverage.n_visited);
}

#[test]
fn exact_flows_lose_no_mass() {
    for rule in [BackwardRule::Derived, BackwardRule::ByType] {
        for corrects_symmetry in [true, false] {
            let env = AttachedGrowth::env(5, rule, false).with_symmetry_correction(corrects_symmetry);
            let space = StateGraph::build(&env, 1000).unwrap();
            let found = message(ExactPolicy::new(&space, &env, &UniformPolicy, &reward));
            check_words(&found);
            assert!(
                found.contains("P_B loses no probability") && found.contains("check_graph_env"),
                "{found}"
            );
            assert_eq!(found.contains("log F(s0) is"), corrects_symmetry, "{found}");
        }
    }
    let env = AttachedGrowth::env(5, BackwardRule::Derived, true);
    let space = StateGraph::build(&env, 1000).unwrap();
    let exact = ExactPolicy::new(&space, &env, &UniformPolicy, &reward).unwrap();
    let target = space.target_distribution(&reward, None).unwrap();
    let sampled = space.terminating_distribution(&env, &exact, None).unwrap();
    assert!(Distances::between(&sampled.probs, &target.probs).unwrap().l1 < 1e-9);
    assert!((exact.flows().log_z - target.log_z).abs() < 1e-9);
}

#[test]
fn a_trainer_refuses_a_leak_before_its_first_step() {
    let trainer = |env| {
        Trainer::new(
            env,
            reward,
            UniformPolicy,
            LogPartitionVariance,
            TrainerConfig::default(),
            Rng::seeded(0),
        )
        .map(|_| ())
    };
    for rule in [BackwardRule::Derived, BackwardRule::ByType] {
        let found = message(trainer(AttachedGrowth::env(5, rule, false)));
        assert!(found.contains("lead on to the initial state") && found.contains("is_reachable"), "{found}");
    }
    trainer(AttachedGrowth::env(5, BackwardRule::Derived, true)).unwrap();
}

#[test]
fn a_roll_out_that_meets_a_leak_names_the_checker() {
    let env = AttachedGrowth::env(3, BackwardRule::Derived, false);
    let nodes = [Node::default(); 2];
    let edge = GraphState::from_parts(GraphKind::Undirected, &nodes, &[(0, 1, Edge::default())]).unwrap();
    let edges = GraphStates::from(vec![edge; 50]);
    let error = Sampler::new(&env, &UniformPolicy).backward(&edges, &mut Rng::seeded(0)).unwrap_err();
    assert!(matches!(error, Error::NoLegalAction { direction: Direction::Backward, .. }), "{error}");
    assert!(error.to_string().contains("contract::check_graph_env"), "{error}");
}

/// An environment with the positions 0 to 3, reached by steps of one. Its mistake is that backward moves
/// lead from position 3 to position 10 as well, and between the positions 10 and 11 in a cycle.
struct BackwardCycle;

/// The moves of the environment as (from, to, slot). A move has the same slot number forwards and
/// backwards.
const MOVES: [(u32, u32, u32); 6] = [(0, 1, 0), (1, 2, 0), (2, 3, 0), (10, 3, 1), (11, 10, 0), (10, 11, 2)];

impl Env for BackwardCycle {
    type States = Positions;
    type Actions = Slots;
    type Dist = GraphActionCategorical;

    fn initial(&self, instances: &[u32]) -> Positions {
        Positions(vec![0; instances.len()])
    }
    fn step(&self, direction: Direction, states: &mut Positions, actions: &Slots) -> Result<Step<Slots>> {
        let done = |x: u32| if direction == Direction::Forward { x == 3 } else { x == 0 };
        for (x, slot) in states.0.iter_mut().zip(&actions.0) {
            *x = MOVES
                .iter()
                .find_map(|&(from, to, s)| match direction {
                    Direction::Forward => (from == *x && s == *slot).then_some(to),
                    Direction::Backward => (to == *x && s == *slot).then_some(from),
                })
                .unwrap();
        }
        let done = states.0.iter().map(|&x| done(x)).collect();
        Ok(Step { reverse: actions.clone(), exit: vec![false; actions.0.len()], done })
    }
    fn is_initial(&self, states: &Positions) -> Vec<bool> {
        states.0.iter().map(|&x| x == 0).collect()
    }
    fn exit_actions(&self, _: &Positions) -> Option<Slots> {
        None
    }
}

impl DiscreteEnv for BackwardCycle {
    fn masks(&self, direction: Direction, states: &Positions) -> Masks {
        let legal = |x: u32, slot: u32| {
            MOVES.iter().any(|&(from, to, s)| {
                s == slot && if direction == Direction::Forward { from == x } else { to == x }
            })
        };
        let rows = states.0.iter().flat_map(|&x| (0..3).map(move |slot| legal(x, slot)));
        Masks::dense(direction, 3, rows.collect(), false).unwrap()
    }
    fn describe(&self, _: Direction, _: &Positions, _: usize, slot: u32) -> String {
        format!("move {slot}")
    }
}

impl EnumerableEnv for BackwardCycle {
    type Key = u32;
    fn keys(&self, states: &Positions) -> Vec<u32> {
        states.0.clone()
    }
}

#[test]
fn backward_cycles_are_found() {
    let found = message(check_env(&BackwardCycle, Budget::thorough().with_walks(5), &mut Rng::seeded(0)));
    let words = "backward slot 1 (move 1) of position 3 leads to position 10, from which backward moves lead \
        in a circle";
    assert!(found.contains(words), "{found}");
    let reward =
        |states: &Positions, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; states.0.len()]) };
    let space = StateGraph::build(&BackwardCycle, 100).unwrap();
    let found = message(space.exact_flows(&BackwardCycle, &UniformPolicy, &reward, None));
    // Position 3 is the only object. Half of its reward flows to position 10.
    assert!(
        found.contains("log F(s0) is -0.69") && found.contains("position 3 leads to position 10"),
        "{found}"
    );
}
