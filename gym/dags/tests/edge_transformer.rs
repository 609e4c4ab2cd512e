//! Tests of the edge transformer, a network for acyclic graphs: its masks, its gradients, and the learning of
//! a posterior.

use gfn::distribution::Distribution;
use gfn::env::StateGraph;
use gfn::env::{Direction, DiscreteEnv, Env, Rows, Slots};
use gfn::graph::{ActionSet, AddEdge, AddNode, GraphEnv, GraphState, Semantics};
use gfn::metrics::Distances;
use gfn::nn::EstimatorsConfig;
use gfn::nn::GraphNetwork;
use gfn::objective::{ModifiedDetailedBalance, NextExit};
use gfn::objective::{Quantities, Quantity};
use gfn::optim::AdamConfig;
use gfn::optim::Schedule;
use gfn::policy::{GraphPolicy, Policy};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Rng};
use gfn_dags::*;
use tch::{Device, Kind, Tensor};

fn small(env: &GraphEnv, flow: bool) -> GraphPolicy<EdgeTransformer> {
    let config = EdgeTransformerConfig {
        embedding: 32,
        estimators: EstimatorsConfig::with_flow(flow),
        ..EdgeTransformerConfig::default()
    };
    GraphPolicy(EdgeTransformer::new(env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(1)).unwrap())
}

fn reward(n: usize) -> DagReward<CachedScores<Bge>> {
    let rng = &mut Rng::seeded(1);
    let truth = GraphLaw::ErdosRenyi { edges: 2.0 }.draw(n, rng).unwrap();
    let data = Sem::draw(truth, SemConfig::LinearAwayFromZero { low: 0.5, high: 1.0 }, 1.0, rng).unwrap();
    let bge = Bge::new(&data.sample(10, rng).unwrap(), BgeConfig::default()).unwrap();
    DagReward::new(CachedScores::ahead(bge, None).unwrap(), StructurePrior::Uniform).unwrap()
}

#[test]
fn legal_slots_alone_have_mass_and_gradients_are_finite() {
    tch::set_num_threads(1);
    let env = BayesianStructure::new(StructureConfig::new(4)).unwrap().into_env();
    let policy = small(&env, true);
    // The third graph is complete, so its only legal action is the exit.
    let complete = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let states = super::graphs(4, &[&[], &[(0, 1), (2, 1)], &complete]);
    let evaluation = policy.evaluate(&env, &states, None, Quantities::PF | Quantity::LogFlow).unwrap();
    let pf = evaluation.pf.unwrap();
    let masks = env.masks(Direction::Forward, &states);
    assert_eq!(pf.masks(), &masks);
    for row in 0..states.len() {
        let slots: Vec<u32> = masks.legal_slots(row).collect();
        let log_probs = pf.log_prob(&vec![row; slots.len()], &Slots(slots)).unwrap();
        let sum = f64::try_from(log_probs.exp().sum(Kind::Double)).unwrap();
        assert!((sum - 1.0).abs() < 1e-5, "{row}: {sum}");
    }
    let exits = pf.log_prob(&[0, 1, 2], &Slots(vec![16; 3])).unwrap();
    assert!(exits.double_value(&[2]).abs() < 1e-6);
    (exits.sum(Kind::Float) + evaluation.values.get(Quantity::LogFlow).unwrap().sum(Kind::Float)).backward();
    let gradients: Vec<_> = policy.0.parameters().iter().map(|p| p.tensor.grad()).collect();
    let finite =
        gradients.iter().filter(|g| g.defined()).all(|g| f64::try_from(g.abs().max()).unwrap().is_finite());
    assert!(finite && gradients.iter().filter(|g| g.defined()).count() > 20);
}

#[test]
fn a_pair_is_seen_wherever_it_stands() {
    tch::set_num_threads(1);
    let env = BayesianStructure::new(StructureConfig::new(4)).unwrap().into_env();
    let policy = small(&env, false);
    let of = |edges: &[(u32, u32)]| {
        let states = super::graphs(4, &[edges]);
        let pf = policy.evaluate(&env, &states, None, Quantities::PF).unwrap().pf.unwrap();
        pf.log_prob(&[0], &Slots(vec![16])).unwrap().double_value(&[0])
    };
    let values = [of(&[]), of(&[(0, 1)]), of(&[(1, 0)]), of(&[(0, 1), (2, 3)])];
    for (i, a) in values.iter().enumerate() {
        assert!(values[..i].iter().all(|b| (a - b).abs() > 1e-6), "{values:?}");
    }
}

#[test]
fn conditions_that_it_does_not_take_are_refused() {
    let env = BayesianStructure::new(StructureConfig::new(4)).unwrap().into_env();
    let policy = small(&env, false);
    let with = |columns: i64| {
        let conditions = Tensor::zeros([2, columns], (Kind::Float, Device::Cpu));
        policy.evaluate(&env, &env.initial(&[0; 2]), Some(&conditions), Quantities::PF).map(|_| ())
    };
    assert!(matches!(with(3), Err(Error::Missing { .. })));
    // The policy takes no conditions, but a tensor of conditions with 0 columns must be accepted.
    with(0).unwrap();
}

#[test]
fn wrong_sizes_are_refused() {
    let env = BayesianStructure::new(StructureConfig::new(3)).unwrap().into_env();
    for (embedding, heads) in [(0, 4), (32, 0), (30, 4), (9, 3)] {
        let config = EdgeTransformerConfig { embedding, heads, ..EdgeTransformerConfig::default() };
        let made = EdgeTransformer::new(&env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(0));
        assert!(matches!(made, Err(Error::Config { .. })), "{embedding} {heads}");
    }
    let others = BayesianStructure::new(StructureConfig::new(4)).unwrap().into_env();
    let result = small(&env, false).evaluate(&others, &others.initial(&[0; 2]), None, Quantities::PF);
    assert!(matches!(result, Err(Error::Shape { .. })));
}

/// Trains a policy as Deleu et al. do: by modified detailed balance with a target network. Returns the
/// Jensen-Shannon divergence between the policy and the posterior over graphs of three nodes, before and
/// after training.
fn trained<P>(policy: impl FnOnce(&GraphEnv) -> P) -> [f64; 2]
where
    P: Policy<GraphEnv> + Send + 'static,
{
    tch::set_num_threads(1);
    let env = BayesianStructure::new(StructureConfig::new(3)).unwrap().into_env();
    let graph = StateGraph::build(&env, 100).unwrap();
    let reward = reward(3).relative_to(&graph.states().graphs()[0]).unwrap();
    let posterior = ExactPosterior::from_states(graph.states(), &reward).unwrap();
    let steps = 300;
    let config = TrainerConfig {
        batch: 16,
        adam: AdamConfig { lr: 5e-3, ..AdamConfig::default() },
        epsilon: Some(Schedule::Linear { from: 1.0, to: 0.1, steps }),
        lr_scale: Schedule::Linear { from: 1.0, to: 0.02, steps },
        ..TrainerConfig::default()
    };
    let objective = ModifiedDetailedBalance { next_exit: NextExit::TargetNetwork };
    let trainer = Trainer::new(env.clone(), reward, policy(&env), objective, config, Rng::seeded(2)).unwrap();
    let mut trainer = trainer.with_target_network(10).unwrap();
    let distance = |trainer: &Trainer<GraphEnv>| {
        let sampled = graph.terminating_distribution(&env, trainer.policy(), None).unwrap();
        Distances::between(&sampled.probs, posterior.probs()).unwrap().jsd
    };
    let before = distance(&trainer);
    for _ in 0..steps {
        trainer.step().unwrap();
    }
    [before, distance(&trainer)]
}

#[test]
fn it_learns_a_posterior() {
    let [before, after] = trained(|env| small(env, false));
    assert!(before > 0.1 && after < 0.02, "{before} {after}");
}

/// Checks that the network refuses graph environments in which the number of nodes varies, or in which an
/// ordered pair of nodes has no action.
#[test]
fn environments_without_all_pairs_as_actions_are_refused() {
    let config = || EdgeTransformerConfig { embedding: 16, ..EdgeTransformerConfig::default() };
    let made =
        |env: &GraphEnv| EdgeTransformer::new(env, config(), Device::Cpu, Kind::Float, &mut Rng::seeded(0));
    let grown = ActionSet::new(Semantics::Labelled).with(AddNode::free(1, 3)).with(AddEdge::new(1));
    let grown = GraphEnv::free(grown, GraphState::directed(1)).unwrap();
    for env in [gfn::examples::Triangles::env(), grown] {
        let message = made(&env).unwrap_err().to_string();
        assert!(message.contains("the environment of an edge transformer"), "{message}");
    }
    made(BayesianStructure::new(StructureConfig::new(3)).unwrap().env()).unwrap();
}
