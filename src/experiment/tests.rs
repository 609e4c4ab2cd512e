use tch::{Device, Kind, Tensor};

use super::*;
use crate::env::{Env, PerVector, StateGraph, VectorStates};
use crate::examples::{Triangles, word_env};
use crate::graph::{
    ActionSet, AddEdge, AddNode, Free, GraphEnv, GraphKind, GraphState, GraphStates, PerGraph, Semantics,
};
use crate::metrics::Distances;
use crate::nn::{EstimatorsConfig, GraphNet, GraphNetConfig};
use crate::objective::{
    DetailedBalance, FlowMatching, LogPartitionVariance, Objective, RelativeTrajectoryBalance,
    TrajectoryBalance,
};
use crate::optim::{AdamConfig, Schedule};
use crate::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, UniformPolicy, WithPrior};
use crate::rollout::Sampler;
use crate::run::{Fit, FitOutcome};
use crate::train::{Trainer, TrainerConfig};
use crate::{Error, Result, Rng};

fn log_reward(graph: &GraphState) -> f64 {
    graph.n_edges() as f64
}

fn small() -> GraphNetConfig {
    GraphNetConfig { embedding: 16, ..GraphNetConfig::default() }
}

fn experiment() -> Experiment<GraphEnv> {
    Experiment::new(Triangles::env(), PerGraph(log_reward)).network(small()).steps(25)
}

fn grown() -> GraphEnv {
    let actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 3)).with(AddEdge::new(1));
    let kind = GraphKind::Undirected;
    GraphEnv::new(Free, actions, GraphState::new(kind)).unwrap()
}

/// Trains the experiment of these tests without the builder [`Experiment`], from the parts that it combines.
/// Returns the total variation distance to the target, the learned distribution, and five samples.
fn the_long_way(objective: impl Objective + 'static, flow: bool, seed: u64) -> (f64, Vec<f64>, GraphStates) {
    let env = Triangles::env();
    let mut rng = Rng::seeded(seed);
    let network = GraphNetConfig { estimators: EstimatorsConfig::with_flow(flow), ..small() };
    let net = GraphNet::new(&env, network, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let lr_scale = Schedule::Linear { from: 1.0, to: 0.0, steps: 25 };
    let config = TrainerConfig { lr_scale, ..TrainerConfig::default() };
    let mut trainer =
        Trainer::new(env, PerGraph(log_reward), GraphPolicy(net), objective, config, rng).unwrap();
    for _ in 0..25 {
        trainer.step().unwrap();
    }
    let space = StateGraph::build(trainer.env(), 8).unwrap();
    let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap();
    let target = space.target_distribution(&PerGraph(log_reward), None).unwrap();
    let mut rng = trainer.evaluation_rng();
    let samples = Sampler::new(trainer.env(), trainer.policy()).walks(5, &mut rng).unwrap().terminal;
    (Distances::between(&learned.probs, &target.probs).unwrap().tv, learned.probs, samples)
}

#[test]
fn the_short_way_gives_the_bits_of_the_long_way() {
    tch::set_num_threads(1);
    let check = |mut trained: Trained<GraphEnv>, long: (f64, Vec<f64>, GraphStates)| {
        let exact = trained.exact(8).unwrap();
        assert_eq!((exact.distances.tv, &exact.learned.probs), (long.0, &long.1));
        assert_eq!(trained.sample(5).unwrap(), long.2);
    };
    check(experiment().seed(3).train().unwrap(), the_long_way(TrajectoryBalance, false, 3));
    let balanced = experiment().objective(DetailedBalance::default()).seed(4);
    check(balanced.train().unwrap(), the_long_way(DetailedBalance::default(), true, 4));
    // Different seeds must give different results. Otherwise equal results with and without the builder would
    // not show that the builder uses its seed.
    assert_ne!(the_long_way(TrajectoryBalance, false, 3).1, the_long_way(TrajectoryBalance, false, 4).1);
}

/// Trains a perceptron on words, by the builder and from its parts.
#[test]
fn an_experiment_on_vectors_gives_the_bits_of_the_long_way() {
    tch::set_num_threads(1);
    let count = |word: &[u16]| word.iter().filter(|&&letter| letter == 2).count() as f64;
    let words = || word_env(2, 3);
    let trained = Experiment::new(words(), PerVector(count)).steps(300).seed(5).train().unwrap();
    let exact = trained.exact(100).unwrap();
    assert!(exact.space.len() == 15 && exact.distances.tv < 0.05, "{}", exact.distances.tv);

    let mut rng = Rng::seeded(5);
    let config = MlpPolicyConfig::default();
    let policy =
        MlpPolicy::new(&words(), KHot::new(3, 3), config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let lr_scale = Schedule::Linear { from: 1.0, to: 0.0, steps: 300 };
    let config = TrainerConfig { lr_scale, ..TrainerConfig::default() };
    let reward = move |words: &VectorStates, _: Option<&Tensor>| Ok(words.rows().map(count).collect());
    let mut trainer = Trainer::new(words(), reward, policy, TrajectoryBalance, config, rng).unwrap();
    Fit::new(300).run(&mut trainer).unwrap();
    assert_eq!(Trained::new(trainer).exact(100).unwrap().learned.probs, exact.learned.probs);
}

#[test]
fn a_trainer_is_trained_for_the_steps_of_its_experiment() {
    let mut trainer = experiment().steps(3).trainer().unwrap();
    Fit::for_planned_steps().run(&mut trainer).unwrap();
    assert_eq!(trainer.steps_done(), 3);
    // A run of an experiment that was trained for one step already makes the remaining steps.
    let mut trainer = experiment().steps(3).trainer().unwrap();
    Fit::new(1).run(&mut trainer).unwrap();
    assert_eq!(Fit::for_planned_steps().run_with_outcome(&mut trainer).unwrap(), FitOutcome::Done);
    assert_eq!(trainer.steps_done(), 3);
    // A trainer without an experiment has no planned number of steps.
    let env = Triangles::env();
    let config = TrainerConfig::default();
    let rng = Rng::seeded(0);
    let by_hand = Trainer::new(env, PerGraph(log_reward), UniformPolicy, LogPartitionVariance, config, rng);
    refused(Fit::for_planned_steps().run(&mut by_hand.unwrap()), "set the number of steps (`Fit::new`)");
}

#[test]
fn each_call_draws_new_samples() {
    let mut trained = experiment().train().unwrap();
    assert_ne!(trained.sample(40).unwrap(), trained.sample(40).unwrap());
}

/// Checks that a distribution over labelled graphs and a distribution over graphs up to isomorphism are
/// learned.
#[test]
fn labelled_and_grown_graphs_are_learned() {
    let trained = experiment().steps(300).train().unwrap();
    assert!(trained.exact(8).unwrap().distances.tv < 0.03);
    let lr_scale = Schedule::Linear { from: 1.0, to: 0.0, steps: 300 };
    let adam = AdamConfig { lr: 1e-2, ..AdamConfig::default() };
    let fast = TrainerConfig { batch: 64, adam, lr_scale, ..TrainerConfig::default() };
    let grown = Experiment::new(grown(), PerGraph(log_reward)).network(small()).training(fast).steps(300);
    let grown = grown.train().unwrap();
    let exact = grown.exact(8).unwrap();
    assert!(exact.distances.tv < 0.05, "{exact:?}");
    let most = exact.most_probable(2);
    assert_eq!(exact.space.states().graphs()[most[0]].n_edges(), 3);
    assert!(exact.learned.probs[most[0]] >= exact.learned.probs[most[1]]);
}

fn refused<T: std::fmt::Debug>(result: Result<T>, what: &str) {
    let error = result.unwrap_err();
    assert!(error.to_string().contains(what), "{error}");
}

#[test]
fn settings_that_an_experiment_cannot_keep_are_refused() {
    refused(experiment().steps(0).train(), "steps is 0");
    let conditional = GraphNetConfig { estimators: EstimatorsConfig::conditional(2), ..small() };
    refused(experiment().network(conditional).train(), "with_conditions");
    // The objective needs a prior, which the network lacks. The first step of training must return the error.
    let relative = RelativeTrajectoryBalance::new(1.0).unwrap();
    assert!(matches!(experiment().objective(relative).train(), Err(Error::Missing { .. })));
    let nan = Experiment::new(Triangles::env(), PerGraph(|_: &GraphState| f64::NAN)).network(small());
    assert!(matches!(nan.train(), Err(Error::NonFinite { .. })));
    assert!(experiment().objective(FlowMatching::default()).train().is_ok());
}

#[test]
fn an_exact_evaluation_that_would_mislead_is_refused() {
    let trained = experiment().train().unwrap();
    assert!(matches!(trained.exact(7), Err(Error::TooManyStates { limit: 7 })));
    // An environment of several instances has a distribution per instance, so the exact evaluation must be
    // refused.
    let start = |n| GraphState::with_nodes(GraphKind::Undirected, n);
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    let env = GraphEnv::new(Free, actions, start(3)).unwrap();
    let env = env.with_instances(vec![start(2), start(3)]).unwrap();
    assert_eq!(env.n_instances(), 2);
    let several = || Experiment::new(env.clone(), PerGraph(log_reward)).network(small()).steps(2);
    refused(several().train(), "log Z of each instance");
    let trained = several().objective(DetailedBalance::default()).train().unwrap();
    refused(trained.exact(100), "build_of");
    // With a prior the target isn't R / Z, so the comparison with R / Z must be refused.
    let trainer = experiment().trainer().unwrap();
    let env = Triangles::env();
    let mut rng = Rng::seeded(0);
    let mut net = || GraphNet::new(&env, small(), Device::Cpu, Kind::Float, &mut rng).unwrap();
    let policy = WithPrior { policy: GraphPolicy(net()), prior: GraphPolicy(net()) };
    let config = trainer.context().config.clone();
    let relative = RelativeTrajectoryBalance::new(1.0).unwrap();
    let mut trainer =
        Trainer::new(Triangles::env(), PerGraph(log_reward), policy, relative, config, Rng::seeded(0))
            .unwrap();
    Fit::new(1).run(&mut trainer).unwrap();
    refused(Trained::new(trainer).exact(8), "relative to a prior");
}
