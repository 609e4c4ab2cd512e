//! Tests of features that change how a trainer samples, but not what it learns, such as an adaptive teacher.
//! The policy must learn the same target, and a resumed run must equal an uninterrupted run.

use std::cell::Cell;

use gfn::distribution::GraphActionCategorical;
use gfn::env::StateGraph;
use gfn::env::{Reward, Rows, VectorEnv, VectorStates};
use gfn::examples::word_env;
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig, Parameters};
use gfn::objective::score;
use gfn::objective::{
    ModifiedDetailedBalance, NextExit, Objective, RelativeLogPartitionVariance, RelativeTrajectoryBalance,
    TrajectoryBalance, TrustPcl,
};
use gfn::objective::{Quantities, Quantity};
use gfn::optim::AdamConfig;
use gfn::optim::Schedule;
use gfn::policy::{ByNumber, Evaluation, KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy, WithPrior};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::Sampler;
use gfn::train::{ReplayPath, StepStats, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_extras::explore::{Teacher, TeacherConfig, Thompson, thompson_step};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use tch::{Device, Kind, Tensor};

use crate::vectors_training::distances;

pub(crate) type GridTrainer = Trainer<VectorEnv>;

pub(crate) fn grid() -> VectorEnv {
    tch::set_num_threads(1);
    HyperGrid::new(2, 6).unwrap().env()
}

pub(crate) fn grid_reward() -> OriginalReward {
    OriginalReward::standard(&HyperGrid::new(2, 6).unwrap()).unwrap()
}

pub(crate) fn network(heads: usize, rng: &mut Rng) -> MlpPolicy<KHot> {
    let mlp = MlpConfig { hidden: vec![64], ..MlpConfig::default() };
    let estimators = EstimatorsConfig { initial_log_z: Some(0.0), ..EstimatorsConfig::default() };
    let config = MlpPolicyConfig {
        mlp,
        heads,
        backward: BackwardPolicy::Uniform,
        estimators,
        ..MlpPolicyConfig::default()
    };
    MlpPolicy::new(&grid(), KHot::new(2, 6), config, Device::Cpu, Kind::Float, rng).unwrap()
}

pub(crate) fn trainer(seed: u64, heads: usize, steps: usize) -> GridTrainer {
    trainer_by(TrajectoryBalance, seed, heads, steps)
}

fn trainer_by(objective: impl Objective + 'static, seed: u64, heads: usize, steps: usize) -> GridTrainer {
    let env = grid();
    let mut rng = Rng::seeded(seed);
    let policy = network(heads, &mut rng);
    let reward = grid_reward();
    let adam = AdamConfig { lr: 5e-3, ..AdamConfig::default() };
    let lr_scale = Schedule::Linear { from: 1.0, to: 0.0, steps };
    let config = TrainerConfig { batch: 32, adam, lr_scale, ..TrainerConfig::default() };
    Trainer::new(env.clone(), reward, policy, objective, config, rng).unwrap()
}

fn target_network(seed: u64, steps: usize, every: usize) -> GridTrainer {
    let objective = ModifiedDetailedBalance { next_exit: NextExit::TargetNetwork };
    trainer_by(objective, seed, 1, steps).with_target_network(every).unwrap()
}

fn with_teacher(seed: u64, steps: usize) -> GridTrainer {
    let policy = network(1, &mut Rng::seeded(seed + 100));
    let adam = AdamConfig { lr: 5e-3, ..AdamConfig::default() };
    let teacher = Teacher::new(&grid(), policy, TeacherConfig { adam, ..TeacherConfig::default() }).unwrap();
    trainer(seed, 1, steps).with_source(0.5, teacher).unwrap()
}

/// Returns the exact total variation between the learned distribution and the target.
pub(crate) fn tv(trainer: &GridTrainer) -> f64 {
    distances(trainer.env(), trainer.policy(), trainer.reward()).tv
}

fn bits(stats: &StepStats) -> [u64; 4] {
    [stats.loss, stats.log_z, stats.mean_len, stats.grad_norm].map(f64::to_bits)
}

pub(crate) fn steps(trainer: &mut GridTrainer, n: usize) -> Vec<[u64; 4]> {
    (0..n).map(|_| bits(&step(trainer).unwrap())).collect()
}

/// Makes a step of Thompson sampling if the trainer has Thompson heads, and an ordinary step otherwise.
pub(crate) fn step(trainer: &mut GridTrainer) -> Result<StepStats> {
    if trainer.source::<Thompson>().is_some() { thompson_step(trainer) } else { trainer.step() }
}

pub(crate) fn with_thompson(trainer: GridTrainer, share: f64) -> Result<GridTrainer> {
    let thompson = Thompson::new(trainer.policy(), share)?;
    trainer.with_fresh(thompson)
}

/// Checks that a run that is interrupted and resumed equals an uninterrupted run.
pub(crate) fn check_resume(name: &str, make: impl Fn(u64) -> GridTrainer) {
    let folder = std::env::temp_dir().join(format!("gfn-{name}-{}", std::process::id()));
    let fifo = || {
        let config = ReplayConfig { capacity: 50, eviction: Eviction::Fifo, draw: Draw::Uniform };
        ReplayBuffer::new(config).unwrap()
    };
    let mut whole = make(1).with_replay(fifo());
    steps(&mut whole, 14);
    whole.save(&folder).unwrap();
    let expected = steps(&mut whole, 8);
    let mut resumed = make(2).with_replay(fifo());
    resumed.resume(&folder).unwrap();
    assert_eq!(steps(&mut resumed, 8), expected);
    let ends = ["a", "b"].map(|name| folder.join(name));
    std::fs::create_dir_all(&folder).unwrap();
    whole.save(&ends[0]).unwrap();
    resumed.save(&ends[1]).unwrap();
    let tensors = ends.map(|end| std::fs::read(end.join("model.safetensors")).unwrap());
    assert!(tensors[0] == tensors[1], "all that is saved is equal");
    std::fs::remove_dir_all(&folder).ok();
}

#[test]
fn a_taught_student_samples_the_target() {
    let mut trainer = with_teacher(0, 800);
    steps(&mut trainer, 800);
    assert!(tv(&trainer) < 0.02, "{}", tv(&trainer));
}

#[test]
fn a_taught_run_resumes_bit_for_bit() {
    check_resume("taught", |seed| with_teacher(seed, 100));
}

#[test]
fn with_a_target_network_the_target_is_sampled() {
    let mut trainer = target_network(0, 800, 20);
    steps(&mut trainer, 800);
    assert!(tv(&trainer) < 0.02, "{}", tv(&trainer));
}

#[test]
fn a_target_network_catches_up_when_it_is_due() {
    let own = || trainer_by(ModifiedDetailedBalance::default(), 3, 1, 100);
    let losses =
        |mut trainer: GridTrainer| steps(&mut trainer, 6).into_iter().map(|bits| bits[0]).collect::<Vec<_>>();
    let never = losses(target_network(3, 100, 100));
    let always = losses(target_network(3, 100, 1));
    // A target network is a copy of the policy, renewed from time to time. Before the first update it equals
    // the policy, so the first losses are equal. The second losses differ: in one run the copy is old
    // (`never`), in the other it has just been renewed (`always`).
    assert_eq!(losses(own())[0], never[0]);
    assert_eq!(never[0], always[0]);
    assert_ne!(never[1], always[1]);
    let message = trainer_by(ModifiedDetailedBalance { next_exit: NextExit::TargetNetwork }, 0, 1, 1)
        .step()
        .unwrap_err()
        .to_string();
    assert!(message.contains("with_target_network"), "{message}");
    assert!(matches!(own().with_target_network(0), Err(Error::Config { .. })));
}

#[test]
fn a_run_with_a_target_network_resumes_bit_for_bit() {
    check_resume("target_network", |seed| target_network(seed, 100, 4));
}

#[test]
fn a_checkpoint_without_a_teacher_is_refused() {
    let folder = std::env::temp_dir().join(format!("gfn-untaught-{}", std::process::id()));
    trainer(0, 1, 10).save(&folder).unwrap();
    let refused = with_teacher(0, 10).resume(&folder).unwrap_err().to_string();
    assert!(refused.contains("teacher"), "{refused}");
    std::fs::remove_dir_all(&folder).ok();
}

/// Checks that a teacher samples objects in proportion to its exact reward, if its student (the trainer's
/// policy) doesn't learn. The states are words, which form a tree, so that each object has a single
/// trajectory.
#[test]
fn a_teacher_samples_where_the_student_is_wrong() {
    tch::set_num_threads(1);
    let env = word_env(3, 3);
    let graph = StateGraph::build(&env, 1_000).unwrap();
    let estimators = EstimatorsConfig { initial_log_z: Some(0.0), ..EstimatorsConfig::default() };
    let config =
        MlpPolicyConfig { backward: BackwardPolicy::Uniform, estimators, ..MlpPolicyConfig::default() };
    let table =
        || MlpPolicy::tabular(&env, ByNumber::new(3, 4), config.clone(), Device::Cpu, Kind::Float).unwrap();
    // The student is the trainer's policy, which stays uniform. Relative to its probabilities, the reward is
    // much too large at some words, and much too small at others.
    let log_r = |row: &[u16]| row.iter().map(|&x| f64::from(x)).sum::<f64>().sin() * 2.0;
    let reward = move |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(states.rows().map(log_r).collect())
    };
    let frozen = AdamConfig { lr: 0.0, log_z_lr: 0.0, ..AdamConfig::default() };
    let trainer_config = TrainerConfig {
        batch: 64,
        adam: frozen,
        epsilon: Some(Schedule::Constant(0.2)),
        ..TrainerConfig::default()
    };
    let adam = AdamConfig { lr: 0.02, ..AdamConfig::default() };
    let teaching = TeacherConfig { adam, under_sampled: 3.0, alpha: 0.5, epsilon: 0.1 };
    let trainer =
        Trainer::new(env.clone(), reward, table(), TrajectoryBalance, trainer_config, Rng::seeded(0))
            .unwrap();
    let mut trainer = trainer.with_source(0.5, Teacher::new(&env, table(), teaching).unwrap()).unwrap();
    for _ in 0..1_500 {
        trainer.step().unwrap();
    }
    let of =
        |policy: &dyn Policy<VectorEnv>| graph.terminating_distribution(&env, policy, None).unwrap().probs;
    let student = of(trainer.policy());
    let teacher = of(trainer.source::<Teacher<MlpPolicy<ByNumber>>>().unwrap().policy());
    // The student is the trainer's policy. Its log Z stays 0, because the learning rate is 0.
    let mut weights = vec![0.0; graph.len()];
    let mut loss = vec![0.0; graph.len()];
    let ends = graph.ends();
    for (&end, log_r) in ends.iter().zip(reward.log_reward(&graph.states().select(&ends), None).unwrap()) {
        let delta = log_r - student[end].ln();
        loss[end] = delta * delta;
        let weight = if delta > 0.0 { 4.0 } else { 1.0 };
        weights[end] = (0.1 + weight * loss[end]) * (0.5 * log_r).exp();
    }
    let total: f64 = weights.iter().sum();
    let expected: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
    let distances = Distances::between(&teacher, &expected).unwrap();
    assert!(distances.tv < 0.03, "{distances:?}");
    let mean_loss = |probs: &[f64]| probs.iter().zip(&loss).map(|(p, loss)| p * loss).sum::<f64>();
    assert!(
        mean_loss(&teacher) > 1.3 * mean_loss(&student),
        "{} {}",
        mean_loss(&teacher),
        mean_loss(&student)
    );
}

/// A policy that records the largest number of states for which P_B was requested in one call.
struct LargestCall {
    policy: MlpPolicy<KHot>,
    most: Cell<usize>,
}

impl Policy<VectorEnv> for LargestCall {
    fn evaluate(
        &self,
        env: &VectorEnv,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        // Calls that don't request P_B come from forward sampling and aren't counted.
        if wants.has(Quantity::LogPb) {
            self.most.set(self.most.get().max(states.len()));
        }
        self.policy.evaluate(env, states, conditions, wants)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        Policy::<VectorEnv>::log_z(&self.policy, conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(self.policy.parameters())
    }
}

/// Checks that a teacher evaluates states in chunks if its student (the trainer's policy) does, and that the
/// teacher learns the same as without chunks.
#[test]
fn a_teacher_learns_in_chunks() {
    let train_teacher = |chunk: Option<usize>| {
        let env = grid();
        let mut rng = Rng::seeded(1);
        let config = TrainerConfig { chunk, ..TrainerConfig::default() };
        let reward = grid_reward();
        let student = network(1, &mut rng);
        let teacher = LargestCall { policy: network(1, &mut rng), most: Cell::new(0) };
        let mut trainer = Trainer::new(env.clone(), reward, student, TrajectoryBalance, config, rng).unwrap();
        let teacher = Teacher::new(&env, teacher, TeacherConfig::default()).unwrap();
        trainer = trainer.with_source(0.5, teacher).unwrap();
        // The recorded number of states is reset, because the trainer has already evaluated random
        // trajectories to check the policy.
        trainer.source::<Teacher<LargestCall>>().unwrap().policy().most.set(0);
        trainer.step().unwrap();
        let teacher = trainer.source::<Teacher<LargestCall>>().unwrap().policy();
        let weights: Vec<Tensor> =
            teacher.parameters().unwrap().iter().map(|p| p.tensor.detach().copy()).collect();
        (weights, teacher.most.get())
    };
    let ((whole, all), (chunked, most)) = (train_teacher(None), train_teacher(Some(1)));
    // A chunk holds one trajectory. It has at most 12 states: ten moves, the exit and the final object add
    // one each.
    assert!(most <= 12 && all > 12, "{most} states at once in chunks, {all} without");
    assert!(whole.iter().zip(&chunked).all(|(a, b)| (a - b).abs().max().double_value(&[]) < 1e-5));
}

/// Checks that P_B has no influence if the target is relative to a prior. log Z and the losses must be those
/// of `beta log R + log prior - log P_F`.
#[test]
fn relative_objectives_use_their_balance_in_reports_and_draws() {
    let env = grid();
    let beta = 0.5;
    let reward = grid_reward();
    let pair = || WithPrior { policy: network(1, &mut Rng::seeded(7)), prior: UniformPolicy };
    let needs = Quantities::from(Quantity::LogPrior);
    let frozen = AdamConfig { lr: 0.0, log_z_lr: 0.5, ..AdamConfig::default() };
    let variance = RelativeLogPartitionVariance::new(beta).unwrap();
    let config = TrainerConfig { batch: 16, adam: frozen, ..TrainerConfig::default() };
    let mut trainer =
        Trainer::new(env.clone(), reward.clone(), pair(), variance, config.clone(), Rng::seeded(0)).unwrap();
    let log_z = trainer.step().unwrap().log_z;
    let scores = score(&env, &reward, &pair(), trainer.latest().unwrap(), needs).unwrap();
    let weights = scores.relative_log_weights(beta).unwrap();
    let expected = weights.iter().sum::<f64>() / weights.len() as f64;
    assert!((log_z - expected).abs() < 1e-4, "{log_z}, expected {expected}");

    let objectives: [Box<dyn Objective>; 2] = [
        Box::new(RelativeTrajectoryBalance::new(beta).unwrap()),
        Box::new(TrustPcl::new(1.0 / beta).unwrap()),
    ];
    for objective in objectives {
        let config = TrainerConfig {
            source: DataSource::new(0.0, 1.0, 0.0).unwrap(),
            replay_after: 0,
            replay_path: ReplayPath::Stored,
            ..config.clone()
        };
        let walks = Sampler::new(&env, &UniformPolicy).walks(1, &mut Rng::seeded(3)).unwrap();
        let scores = score(&env, &reward, &pair(), &walks.replay(&env).unwrap(), needs).unwrap();
        let weight = scores.relative_log_weights(beta).unwrap()[0];
        let draw = Draw::LossPrioritised { exponent: 1.0 };
        let mut buffer =
            ReplayBuffer::new(ReplayConfig { capacity: 9, eviction: Eviction::Fifo, draw }).unwrap();
        buffer.add(&env, &walks, &[scores.raw_log_reward.double_value(&[0])]).unwrap();
        let reward = reward.clone();
        let trainer = Trainer::new(env.clone(), reward, pair(), objective, config, Rng::seeded(0)).unwrap();
        let mut trainer = trainer.with_replay(buffer);
        for _ in 0..2 {
            let log_z = trainer.step().unwrap().log_z;
            let state = trainer.replay().unwrap().state(&env).unwrap();
            let loss = state.iter().find(|(name, _)| name == "losses").unwrap().1.double_value(&[0]);
            let expected = (log_z - weight).powi(2);
            assert!((loss - expected).abs() < 1e-4 * expected, "{trainer:?}: {loss}, expected {expected}");
        }
    }
}

/// Checks that a teacher is refused if the target is relative to a prior. The teacher's reward is an
/// imbalance between P_F and P_B, and P_B has no meaning for such a target.
#[test]
fn a_teacher_of_a_relative_objective_is_refused() {
    let env = grid();
    let mut rng = Rng::seeded(0);
    let policy = WithPrior { policy: network(1, &mut rng), prior: UniformPolicy };
    let reward = grid_reward();
    let objective = RelativeTrajectoryBalance::new(1.0).unwrap();
    let trainer =
        Trainer::new(env.clone(), reward, policy, objective, TrainerConfig::default(), rng).unwrap();
    let teacher = Teacher::new(&env, network(1, &mut Rng::seeded(1)), TeacherConfig::default()).unwrap();
    let message = trainer.with_source(0.5, teacher).unwrap().step().unwrap_err().to_string();
    assert!(message.contains("adaptive teacher") && message.contains("prior"), "{message}");
}

/// Checks that a prior in another precision works: its log-probabilities are converted to the precision of
/// the policy.
#[test]
fn a_prior_is_scored_in_the_precision_of_the_policy() {
    let env = grid();
    let mut rng = Rng::seeded(0);
    let config = MlpPolicyConfig { backward: BackwardPolicy::Uniform, ..MlpPolicyConfig::default() };
    let prior = MlpPolicy::new(&env, KHot::new(2, 6), config, Device::Cpu, Kind::Double, &mut rng).unwrap();
    let pair = WithPrior { policy: network(1, &mut rng), prior };
    let walks = Sampler::new(&env, &UniformPolicy).forward(4, &mut rng).unwrap();
    let needs = Quantities::from(Quantity::LogPrior);
    let scores = score(&env, &grid_reward(), &pair, &walks, needs).unwrap();
    assert_eq!(
        (scores.log_pf.kind(), scores.get(Quantity::LogPrior).unwrap().kind()),
        (Kind::Float, Kind::Float)
    );
}
