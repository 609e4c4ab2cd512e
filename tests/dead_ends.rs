//! Tests of rules that leave an unfinished state without any action, and of an environment without any
//! action. Both must be refused with a clear message.

use gfn::contract::{Budget, check_env, check_graph_env};
use gfn::env::{Direction, StateGraph, VectorEnv, VectorRules};
use gfn::examples::{Chain, Positions};
use gfn::graph::{ActionSet, AddEdge, Free, GraphEnv, GraphRules, GraphState, MoveMask, PerGraph, Semantics};
use gfn::metrics::pruned_distribution;
use gfn::objective::LogPartitionVariance;
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn::train::TrainEnv;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};

#[track_caller]
fn check_refused<T>(result: Result<T>, words: &[&str]) {
    let Err(error) = result else { panic!("no error") };
    let message = error.to_string();
    for words in words {
        assert!(message.contains(words), "{words}: {message}");
    }
}

const PLAIN: [&str; 2] = ["without any move and without the exit", "forbid the moves that lead to the state"];

/// Rules that forbid all edges after the edge 0-1, although a graph can only be finished with two edges. A
/// graph with this edge is a dead end.
struct TwoEdges;

impl GraphRules for TwoEdges {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        moves.retain(|_| !graph.has_edge(0, 1));
    }
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_edges() == 2
    }
}

/// Rules for words of two different letters. If there is only one letter, no word can be completed.
#[derive(Clone, Copy)]
struct Pairs {
    letters: usize,
    has_exit: bool,
}

impl VectorRules for Pairs {
    fn width(&self) -> usize {
        2
    }

    fn n_values(&self) -> usize {
        self.letters + 1
    }

    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { self.letters } else { 1 }
    }

    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let place = row.iter().filter(|&&x| x > 0).count();
        if direction == Direction::Forward {
            let letter = slot as u16 + 1;
            let open = row.get(place).is_some() && row[0] != letter;
            return open.then(|| {
                row[place] = letter;
                0
            });
        }
        let letter = std::mem::take(&mut row[place.checked_sub(1)?]);
        Some(usize::from(letter) - 1)
    }

    fn can_end(&self, row: &[u16]) -> bool {
        row[1] > 0
    }

    fn has_exit(&self) -> bool {
        self.has_exit
    }
}

fn two_edges() -> GraphEnv {
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    GraphEnv::new(TwoEdges, actions, GraphState::undirected(3)).unwrap()
}

#[test]
fn exact_figures_refuse_dead_ends() {
    let env = two_edges();
    for result in [
        StateGraph::build(&env, 100).map(|_| ()),
        pruned_distribution(&env, &UniformPolicy, 1e-9, 100).map(|_| ()),
        check_graph_env(&env, Budget::thorough().with_walks(10), &mut Rng::seeded(0)).map(|_| ()),
    ] {
        assert!(matches!(result, Err(Error::Contract { .. })), "{result:?}");
        check_refused(result, &[PLAIN[0], PLAIN[1], "edge 0-1"]);
    }
    // A word can't get a second letter if only one letter exists. With two letters, it can.
    for has_exit in [true, false] {
        let one = VectorEnv::new(Pairs { letters: 1, has_exit });
        check_refused(StateGraph::build(&one, 100), &[PLAIN[0], PLAIN[1], "[1, 0]"]);
        check_refused(
            check_env(&one, Budget::thorough().with_walks(10), &mut Rng::seeded(0)),
            &[PLAIN[0], PLAIN[1], "[1, 0]"],
        );
    }
}

#[test]
fn a_roll_out_that_comes_to_a_dead_end_says_so() {
    let drawn = Sampler::new(&two_edges(), &UniformPolicy).forward(64, &mut Rng::seeded(0));
    assert!(matches!(drawn, Err(Error::NoLegalAction { .. })));
    check_refused(drawn, &["no legal forward action", PLAIN[0], PLAIN[1]]);
}

/// Tests that a finished state without further actions isn't a dead end, even if the environment has no
/// exit.
#[test]
fn states_that_end_without_an_exit_are_no_dead_ends() {
    for has_exit in [true, false] {
        let env = VectorEnv::new(Pairs { letters: 3, has_exit });
        assert_eq!(StateGraph::build(&env, 100).unwrap().ends().len(), 6);
        check_env(&env, Budget::thorough().with_walks(10), &mut Rng::seeded(0)).unwrap();
        let pruned = pruned_distribution(&env, &UniformPolicy, 0.0, 100).unwrap();
        assert!((pruned.probs.iter().sum::<f64>() - 1.0).abs() < 1e-12 && pruned.probs.len() == 6);
    }
}

fn train<E: TrainEnv + 'static>(env: E, reward: impl gfn::env::Reward<E::States> + 'static) -> Result<()>
where
    UniformPolicy: gfn::policy::Policy<E>,
{
    let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
    let rng = Rng::seeded(0);
    Trainer::new(env, reward, UniformPolicy, LogPartitionVariance, config, rng).map(|_| ())
}

#[test]
fn an_environment_with_nothing_to_build_is_refused() {
    let edges = |n: usize, semantics: Semantics| {
        let actions = ActionSet::new(semantics).with(AddEdge::new(1));
        GraphEnv::new(Free, actions, GraphState::undirected(n)).unwrap()
    };
    let zero = || PerGraph(|_: &GraphState| 0.0);
    for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
        for n in [0, 1] {
            let refused = train::<GraphEnv>(edges(n, semantics), zero());
            assert!(matches!(refused, Err(Error::Missing { .. })), "{n}");
            check_refused(
                refused,
                &["a move that is legal in the initial state", "the environment has none", "more nodes"],
            );
        }
        train(edges(2, semantics), zero()).unwrap();
    }
    let flat = |states: &Positions, _: Option<&tch::Tensor>| Ok(vec![0.0; states.0.len()]);
    check_refused(train(Chain::new(1), flat), &["legal in the initial state"]);
    train(Chain::new(2), flat).unwrap();
}
