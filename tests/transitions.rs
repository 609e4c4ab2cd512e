//! Tests of updates on single transitions, and of reward exponents that make the reward flat at first.

use gfn::env::{StateGraph, VectorEnv, VectorStates};
use gfn::examples::{Triangles, word_env};
use gfn::graph::{GraphEnv, GraphStates};
use gfn::metrics::Distances;
use gfn::nn::{EstimatorsConfig, GraphNet, GraphNetConfig, MlpConfig, Parameters};
use gfn::objective::{
    DetailedBalance, ModifiedDetailedBalance, Objective, Regression, StateFlow, SubTrajectoryBalance,
    TrajectoryBalance, Weighting, score, score_transitions,
};
use gfn::optim::Schedule;
use gfn::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Container, Sampler};
use gfn::train::{Trainer, TrainerConfig, TransitionBatches};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

fn forward_looking() -> DetailedBalance {
    DetailedBalance { flow: StateFlow::ForwardLooking }
}

/// A reward of words: log R is a factor times the number of ones. Unfinished words have partial log-rewards
/// by the same formula.
struct Ones(f64);

impl gfn::env::Reward<VectorStates> for Ones {
    fn log_reward(&self, words: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(words
            .rows()
            .map(|word| self.0 * word.iter().filter(|&&letter| letter == 1).count() as f64)
            .collect())
    }
    fn partial_log_reward(&self, words: &VectorStates, _: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_reward(words, None).map(Some)
    }
}

fn word_policy(env: &VectorEnv) -> MlpPolicy<KHot> {
    let mlp = MlpConfig { hidden: vec![16], ..MlpConfig::default() };
    let config =
        MlpPolicyConfig { mlp, estimators: EstimatorsConfig::with_flow(true), ..MlpPolicyConfig::default() };
    MlpPolicy::new(env, KHot::new(3, 3), config, Device::Cpu, Kind::Double, &mut Rng::seeded(0)).unwrap()
}

fn gradients(parameters: &Parameters) -> Vec<Tensor> {
    let all = parameters.iter().map(|parameter| parameter.tensor.grad()).filter(Tensor::defined);
    let all = all.map(|gradient| gradient.copy()).collect();
    let used = parameters.iter().map(|parameter| parameter.tensor.grad()).filter(Tensor::defined);
    for mut gradient in used {
        drop(gradient.zero_());
    }
    all
}

fn are_close(a: &[Tensor], b: &[Tensor]) -> bool {
    let apart = a.iter().zip(b).map(|(a, b)| (a - b).abs().max().double_value(&[]));
    a.len() == b.len() && !a.is_empty() && apart.fold(0.0, f64::max) < 1e-9
}

/// Checks that all transitions of a batch, scored one by one, give the loss and the gradient of the batch.
#[test]
fn all_single_transitions_are_the_batch() -> Result<()> {
    let env = word_env(2, 3);
    let mut rng = Rng::seeded(1);
    let policy = word_policy(&env);
    let reward = Ones(1.0);
    let trajectories = Sampler::new(&env, &policy).forward(20, &mut rng)?;
    let parameters = policy.parameters();
    let objectives: [Box<dyn Objective>; 3] = [
        Box::new(DetailedBalance::default()),
        Box::new(forward_looking()),
        Box::new(ModifiedDetailedBalance::default()),
    ];
    for objective in objectives {
        // The transitions are scored in reverse order, with and without recorded log-rewards.
        for recorded in [false, true] {
            let trajectories = trajectories.clone();
            let known = trajectories.log_rewards(&reward)?;
            let trajectories = if recorded { trajectories.with_log_rewards(known)? } else { trajectories };
            let whole = score(&env, &reward, &policy, &trajectories, objective.needs())?;
            let transitions = trajectories.transitions();
            let order: Vec<usize> = (0..transitions.len()).rev().collect();
            let single = transitions.select(order)?;
            let single = score_transitions(&env, &reward, &policy, &single, objective.needs())?;
            let [loss, of_single] =
                [&whole, &single].map(|scores| objective.loss(scores, &Regression::Squared).unwrap());
            let a = loss.double_value(&[]);
            let b = of_single.double_value(&[]);
            assert!((a - b).abs() < 1e-9 * a.abs().max(1.0) && a > 1e-3, "{}: {a} {b}", objective.name());
            loss.backward();
            let of_whole = gradients(parameters);
            of_single.backward();
            assert!(are_close(&of_whole, &gradients(parameters)), "{}", objective.name());
        }
    }
    // As a negative control, half of the transitions must give another loss.
    let half = trajectories.transitions().select(0..trajectories.n_transitions() / 2)?;
    let objective = DetailedBalance::default();
    let of_half = score_transitions(&env, &reward, &policy, &half, objective.needs())?;
    let whole = score(&env, &reward, &policy, &trajectories, objective.needs())?;
    let [a, b] =
        [&whole, &of_half].map(|s| objective.loss(s, &Regression::Squared).unwrap().double_value(&[]));
    assert!((a - b).abs() > 1e-6);
    Ok(())
}

/// Checks that the single transitions of graphs up to isomorphism give the loss and the gradient of the whole
/// batch. The trajectories are backward trajectories, in which labels change.
#[test]
fn single_transitions_of_graphs_are_the_batch() -> Result<()> {
    let env = gfn_gym::colored_graphs::ColoredGraphs::new(4)?.into_env();
    let mut rng = Rng::seeded(2);
    let config = GraphNetConfig {
        embedding: 8,
        estimators: EstimatorsConfig::with_flow(true),
        ..GraphNetConfig::default()
    };
    let policy = GraphPolicy(GraphNet::new(&env, config, Device::Cpu, Kind::Double, &mut rng)?);
    let reward = |graphs: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(graphs.graphs().iter().map(|graph| 0.3 * graph.n_edges() as f64).collect())
    };
    let sampler = Sampler::new(&env, &policy);
    let forward = sampler.forward(12, &mut rng)?;
    let trajectories = sampler.backward(forward.terminal_states(), &mut rng)?;
    let objective = DetailedBalance::default();
    let whole = score(&env, &reward, &policy, &trajectories, objective.needs())?;
    let single = score_transitions(&env, &reward, &policy, &trajectories.transitions(), objective.needs())?;
    let [a, b] =
        [&whole, &single].map(|s| objective.loss(s, &Regression::Squared).unwrap().double_value(&[]));
    assert!((a - b).abs() < 1e-9 * a.max(1.0), "{a} {b}");
    Ok(())
}

fn trainer(
    objective: impl Into<Box<dyn Objective>>,
    reward: Ones,
    config: TrainerConfig,
) -> Result<Trainer<VectorEnv>> {
    tch::set_num_threads(1);
    let env = word_env(2, 3);
    Trainer::new(env.clone(), reward, word_policy(&env), objective, config, Rng::seeded(3))
}

fn buffer() -> ReplayBuffer<VectorEnv> {
    ReplayBuffer::new(ReplayConfig { capacity: 200, eviction: Eviction::Fifo, draw: Draw::Uniform }).unwrap()
}

fn tv(trainer: &Trainer<VectorEnv>) -> f64 {
    let space = StateGraph::build(trainer.env(), 1_000).unwrap();
    let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap();
    let target = space.target_distribution(trainer.reward(), None).unwrap();
    Distances::between(&learned.probs, &target.probs).unwrap().tv
}

#[test]
fn transitions_of_a_buffer_teach_the_distribution() -> Result<()> {
    let objectives: [Box<dyn Objective>; 3] = [
        Box::new(DetailedBalance::default()),
        Box::new(forward_looking()),
        Box::new(ModifiedDetailedBalance::default()),
    ];
    for objective in objectives {
        let name = objective.name();
        let config = TrainerConfig {
            batch: 16,
            transitions: Some(TransitionBatches { size: 16, updates_per_draw: 8 }),
            lr_scale: Schedule::Linear { from: 3.0, to: 0.0, steps: 250 },
            ..TrainerConfig::default()
        };
        let mut trainer = trainer(objective, Ones(1.5), config)?.with_replay(buffer());
        let before = tv(&trainer);
        for _ in 0..250 {
            assert!(trainer.step()?.log_z.is_nan());
        }
        let after = tv(&trainer);
        assert!(before > 0.2 && after < 0.02, "{name}: {before} {after}");
    }
    Ok(())
}

/// Checks that a reward with exponent 1/4 gives the same steps as the fourth root of this reward, until the
/// exponent rises to 1. Also checks that training with a rising exponent ends at R itself.
#[test]
fn a_reward_that_is_flat_at_first_ends_as_itself() -> Result<()> {
    let config = |reward_exponent| TrainerConfig { batch: 16, reward_exponent, ..TrainerConfig::default() };
    let rising = Schedule::Milestones { from: 0.25, then: vec![(5, 1.0)] };
    for objective in [DetailedBalance::default(), forward_looking()] {
        let mut flat = trainer(objective, Ones(0.5), config(Schedule::Constant(1.0)))?.with_replay(buffer());
        let mut rising = trainer(objective, Ones(2.0), config(rising.clone()))?.with_replay(buffer());
        for step in 0..6 {
            let [a, b] = [flat.step()?.loss, rising.step()?.loss];
            assert_eq!(step < 5, (a - b).abs() < 1e-12, "step {step}: {a} {b}");
        }
        // The buffer must store log-rewards of R itself, without the exponent.
        assert_eq!(rising.replay().unwrap().log_rewards().fold(0.0, f64::max), 6.0);
    }
    let schedule = Schedule::Linear { from: 0.1, to: 1.0, steps: 200 };
    let lr_scale = Schedule::Linear { from: 10.0, to: 0.0, steps: 600 };
    let mut trainer = trainer(TrajectoryBalance, Ones(2.0), TrainerConfig { lr_scale, ..config(schedule) })?;
    for _ in 0..600 {
        trainer.step()?;
    }
    assert!(tv(&trainer) < 0.02, "{}", tv(&trainer));
    Ok(())
}

#[test]
fn invalid_settings_are_refused() -> Result<()> {
    let some = |size, updates_per_draw| TrainerConfig {
        transitions: Some(TransitionBatches { size, updates_per_draw }),
        ..TrainerConfig::default()
    };
    let message = |result: Result<Trainer<VectorEnv>>, word: &str| {
        let message = result.err().unwrap().to_string();
        assert!(message.contains(word), "{message}");
    };
    message(trainer(DetailedBalance::default(), Ones(1.0), some(0, 1)), "at least one transition");
    message(trainer(DetailedBalance::default(), Ones(1.0), some(1, 0)), "one update");
    message(trainer(TrajectoryBalance, Ones(1.0), some(8, 1)), "whole trajectories");
    let subtb = SubTrajectoryBalance::new(Weighting::Equal)?;
    message(trainer(subtb, Ones(1.0), some(8, 1)), "whole trajectories");
    let chunked = TrainerConfig { chunk: Some(100), ..some(8, 1) };
    message(trainer(DetailedBalance::default(), Ones(1.0), chunked), "chunk");
    for schedule in [Schedule::Constant(0.5), Schedule::InverseRoot { from: 1.0, steps: 10 }] {
        let config = TrainerConfig { reward_exponent: schedule, ..TrainerConfig::default() };
        message(trainer(TrajectoryBalance, Ones(1.0), config), "ends at 1");
    }
    // A buffer that draws by loss must be refused, because no losses per object are computed here.
    let draw = Draw::LossPrioritised { exponent: 1.0 };
    let by_loss = ReplayBuffer::new(ReplayConfig { capacity: 50, eviction: Eviction::Fifo, draw })?;
    let mut trainer = trainer(DetailedBalance::default(), Ones(1.0), some(8, 2))?.with_replay(by_loss);
    let error = trainer.step().unwrap_err();
    assert!(
        matches!(error, Error::Missing { .. }) && error.to_string().contains("single transitions"),
        "{error}"
    );
    assert!(trainer.draw().unwrap_err().to_string().contains("single transitions"));
    Ok(())
}

/// Checks that the setting `unit` of a graph network doesn't change an untrained policy, with tensors and on
/// the host. A unit of 0 must be refused.
#[test]
fn a_unit_leaves_untrained_logits_as_they_are() -> Result<()> {
    let env = Triangles::env();
    let net = |unit| {
        let estimators = EstimatorsConfig::with_flow(true);
        let config = GraphNetConfig { unit, embedding: 8, estimators, ..GraphNetConfig::default() };
        GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(4))
    };
    let states = gfn::env::Env::initial(&env, &[0; 1]);
    let logits = |net: GraphNet| -> Result<[Vec<f64>; 2]> {
        use gfn::distribution::Distribution;
        use gfn::env::{Direction, DiscreteEnv, Slots};
        let policy = GraphPolicy(net);
        let slots: Vec<u32> = env.masks(Direction::Forward, &states).legal_slots(0).collect();
        let dist = policy.evaluate(&env, &states, None, gfn::objective::Quantities::PF)?.pf.unwrap();
        let host =
            Policy::<GraphEnv>::on_host(&policy, Direction::Forward).unwrap().distribution(&env, &states)?;
        let of = |dist: &gfn::distribution::GraphActionCategorical| -> Result<Vec<f64>> {
            let values = slots
                .iter()
                .map(|&slot| dist.log_prob(&[0], &Slots(vec![slot])).map(|p| p.double_value(&[0])));
            let values: Vec<f64> = values.collect::<Result<_>>()?;
            // Logits are compared relative to the last slot, the exit, so that a constant, which the softmax
            // ignores, cancels.
            Ok(values.iter().map(|value| value - values[values.len() - 1]).collect())
        };
        Ok([of(&dist)?, of(&host)?])
    };
    let one = logits(net(1.0)?)?;
    let ten = logits(net(10.0)?)?;
    for (one, ten) in one.iter().zip(&ten) {
        assert!(one.iter().any(|value| value.abs() > 1e-4));
        assert!(one.iter().zip(ten).all(|(one, ten)| (one - ten).abs() < 1e-5), "{one:?} {ten:?}");
    }
    assert!(net(0.0).unwrap_err().to_string().contains("unit"));
    Ok(())
}
