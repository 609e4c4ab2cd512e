//! Tests that replicas compute the gradient of the joined batch, for every objective. Gradients are recorded
//! after they are summed over replicas, before the optimizer uses them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{FixedShare, largest_distance, share};
use crate::recorded_gradients::RecordedGradients;
use crate::trainers::colour_reward;
use crate::words::{count, fresh, policy, words};
use gfn::env::{Reward, VectorEnv, VectorStates};
use gfn::group::{Group, Replica, replicate};
use gfn::nn::{BackwardPolicy, EstimatorsConfig, GraphNet, GraphNetConfig, MlpConfig};
use gfn::objective::{
    Advantage, AugmentedDetailedBalance, AugmentedTrajectoryBalance, Critic, DetailedBalance, FlowMatching,
    LogPartitionDeviation, LogPartitionVariance, MaximumEntropyBackward, MaximumLikelihood,
    ModifiedDetailedBalance, NextExit, Objective, PolicyGradient, ProximalPolicy, RegressionLoss,
    RelativeLogPartitionVariance, RelativeTrajectoryBalance, Scores, StateFlow, SubTrajectoryBalance,
    TrajectoryBalance, TrajectoryLikelihood, TrustPcl, Weighting, WithBackward,
};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, UniformPolicy, WithPrior};
use gfn::rollout::Sampler;
use gfn::train::{StepStats, Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::colored_graphs::ColoredGraphs;
use gfn_gym::hypergrid::HyperGrid;
use tch::{Device, Kind, Tensor};

type MakeObjective = fn() -> Box<dyn Objective>;

/// All objectives in the table of `gfn::objective`, and variants of them that need other quantities.
const OBJECTIVES: [MakeObjective; 24] = [
    || Box::new(TrajectoryBalance),
    || Box::new(LogPartitionVariance),
    || Box::new(RelativeTrajectoryBalance::new(0.5).unwrap()),
    || Box::new(RelativeLogPartitionVariance::new(0.5).unwrap()),
    || Box::new(TrustPcl::new(0.5).unwrap()),
    || Box::new(DetailedBalance::default()),
    || Box::new(DetailedBalance { flow: StateFlow::ForwardLooking }),
    || Box::new(ModifiedDetailedBalance { next_exit: NextExit::TrainedPolicy }),
    || Box::new(ModifiedDetailedBalance { next_exit: NextExit::TargetNetwork }),
    || Box::new(SubTrajectoryBalance::new(Weighting::Geometric { lambda: 0.9 }).unwrap()),
    || Box::new(FlowMatching::default()),
    || Box::new(MaximumLikelihood),
    || Box::new(WithBackward::new(TrajectoryBalance, TrajectoryLikelihood)),
    || Box::new(WithBackward::new(TrajectoryBalance, MaximumEntropyBackward)),
    || Box::new(AcceptsAnySource(Box::new(PolicyGradient::new(Advantage::Total).unwrap()))),
    || Box::new(AcceptsAnySource(Box::new(PolicyGradient::new(Advantage::RewardToGo).unwrap()))),
    || Box::new(AcceptsAnySource(Box::new(PolicyGradient::new(Advantage::Gae { lambda: 0.7 }).unwrap()))),
    || Box::new(AcceptsAnySource(Box::new(ProximalPolicy::default()))),
    || Box::new(AcceptsAnySource(Box::new(ProximalPolicy::entropic()))),
    || Box::new(AcceptsAnySource(Box::new(evaluation_balance()))),
    || Box::new(LogPartitionDeviation),
    || Box::new(ConstantNovelty(Box::new(AugmentedTrajectoryBalance))),
    || Box::new(ConstantNovelty(Box::new(AugmentedDetailedBalance))),
    || Box::new(WithBackward::new(LogPartitionVariance, TrajectoryLikelihood)),
];

fn evaluation_balance() -> PolicyGradient {
    let critic = Critic::EvaluationBalance(Weighting::Equal);
    PolicyGradient { critic, ..PolicyGradient::new(Advantage::Baseline).unwrap() }
}

/// A wrapper with which an on-policy objective accepts user-supplied trajectories.
#[derive(Debug)]
struct AcceptsAnySource(Box<dyn Objective>);

impl Objective for AcceptsAnySource {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn needs(&self) -> Quantities {
        self.0.needs()
    }
    fn epochs(&self) -> usize {
        self.0.epochs()
    }
    fn loss(&self, scores: &Scores, regression: &dyn RegressionLoss) -> Result<Tensor> {
        self.0.loss(scores, regression)
    }
}

/// A wrapper that gives an objective a constant intrinsic reward. Replicas refuse real intrinsic rewards,
/// because each replica would see only its own share of the batch.
#[derive(Debug)]
struct ConstantNovelty(Box<dyn Objective>);

impl Objective for ConstantNovelty {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn needs(&self) -> Quantities {
        Quantities::PF | Quantity::LogPb | Quantity::LogFlow | Quantity::LogZ
    }
    fn loss(&self, scores: &Scores, regression: &dyn RegressionLoss) -> Result<Tensor> {
        let mut own = Scores::new(
            scores.offsets.clone(),
            scores.log_pf.shallow_clone(),
            scores.log_pb.shallow_clone(),
            scores.log_reward.shallow_clone(),
        );
        for quantity in [Quantity::LogFlow, Quantity::LogZ] {
            own.set(quantity, scores.need(quantity, self.name())?.shallow_clone())?;
        }
        own.set(Quantity::IntrinsicEdge, scores.log_pf.full_like(0.3).detach())?;
        own.set(Quantity::IntrinsicTerminal, scores.log_reward.full_like(0.2).detach())?;
        self.0.loss(&own, regression)
    }
}

/// A reward for points of a grid: log R is half the sum of the coordinates. Unfinished points have partial
/// log-rewards by the same formula.
#[derive(Debug)]
struct HalfSum;

impl Reward<VectorStates> for HalfSum {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(states.rows().map(|row| row.iter().map(|&x| f64::from(x)).sum::<f64>() / 2.0).collect())
    }
    fn partial_log_reward(
        &self,
        states: &VectorStates,
        conditions: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, conditions).map(Some)
    }
}

const BATCH: usize = 11;

/// The settings in which the trainers of one objective differ.
#[derive(Clone, Copy)]
struct Setup {
    kind: Kind,
    chunk: Option<usize>,
}

type VectorTrainer = Trainer<VectorEnv>;

/// Builds a trainer on the trajectories `rows` of a batch of eleven trajectories on a grid. The trainer
/// records its gradients in `recorded`.
fn recording_trainer(
    make: MakeObjective,
    how: Setup,
    rows: Range<usize>,
    recorded: &RecordedGradients,
) -> VectorTrainer {
    tch::set_num_threads(1);
    let config = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![16], ..MlpConfig::default() },
        paths: true,
        estimators: EstimatorsConfig::with_flow(true),
        backward: BackwardPolicy::SharedTorso,
        ..MlpPolicyConfig::default()
    };
    let env = HyperGrid::new(2, 4).unwrap().env();
    let rng = &mut Rng::seeded(0);
    let policy = MlpPolicy::new(&env, KHot::new(2, 4), config, Device::Cpu, how.kind, rng).unwrap();
    let all = Sampler::new(&env, &UniformPolicy).forward(BATCH, &mut Rng::seeded(5)).unwrap();
    let config = TrainerConfig { chunk: how.chunk, ..fresh(rows.len()) };
    let policy = WithPrior { policy, prior: UniformPolicy };
    Trainer::new(env, HalfSum, policy, make(), config, Rng::seeded(1))
        .and_then(|trainer| trainer.with_target_network(100))
        .and_then(|trainer| trainer.with_source(1.0, FixedShare { all, start: rows.start }))
        .and_then(|trainer| trainer.with_optimizer(|parameters| Ok(recorded.optimizer(parameters, 0.1))))
        .unwrap()
}

fn gradients_of_one(make: MakeObjective, how: Setup) -> (StepStats, Vec<Vec<f64>>) {
    let recorded = RecordedGradients::default();
    let stats = recording_trainer(make, how, 0..BATCH, &recorded).step().unwrap();
    (stats, recorded.take())
}

/// Returns the gradients that the first of `size` replicas records. The closure `end` wraps the group that
/// each replica is given.
fn gradients_of<C: Group + 'static>(
    size: usize,
    make: MakeObjective,
    how: Setup,
    end: impl Fn(Replica) -> C + Sync,
) -> (StepStats, Vec<Vec<f64>>) {
    let together = replicate(size, |replica| {
        let start = share(&replica, BATCH).start;
        let recorded = RecordedGradients::default();
        let trainer = recording_trainer(make, how, start..start + BATCH, &recorded);
        let stats = trainer.with_group(end(replica))?.step()?;
        Ok((stats, recorded.take()))
    });
    together.unwrap()
}

#[test]
fn the_gradient_of_replicas_is_that_of_the_whole_batch() {
    for make in OBJECTIVES {
        // Replicas add numbers in another order, which changes rounding. The bound for double precision shows
        // that there is no other difference.
        for (kind, most) in [(Kind::Float, 1e-6), (Kind::Double, 1e-14)] {
            let (one, whole) = gradients_of_one(make, Setup { kind, chunk: None });
            for (size, chunk) in [(2, None), (3, None), (2, Some(4)), (3, Some(4))] {
                let (stats, together) = gradients_of(size, make, Setup { kind, chunk }, |replica| replica);
                let name = format!("{:?}", make());
                let distance = largest_distance(&whole, &together);
                assert!(
                    distance <= most,
                    "{name}, {kind:?}, {size} replicas, chunks {chunk:?}: {distance:e}"
                );
                assert!((stats.loss - one.loss).abs() < 1e-5 * one.loss.abs().max(1.0), "{name}");
                assert_eq!((stats.mean_len, stats.states), (one.mean_len, one.states), "{name}");
                assert!(
                    (stats.log_z - one.log_z).abs() < 1e-5
                        && (stats.grad_norm / one.grad_norm - 1.0).abs() < 1e-6
                );
            }
        }
    }
}

/// Checks the gradient of a graph network. Equal states of a batch are merged only within the share of a
/// replica, which must not change the gradient.
#[test]
fn the_gradient_of_a_graph_network_is_that_of_the_whole_batch() {
    const BATCH: usize = 31;
    let objectives: [MakeObjective; 3] = [
        || Box::new(TrajectoryBalance),
        || Box::new(LogPartitionVariance),
        || Box::new(SubTrajectoryBalance::new(Weighting::Geometric { lambda: 0.9 }).unwrap()),
    ];
    let gradient = |make: MakeObjective, kind: Kind, replica: Option<Replica>| {
        let env = ColoredGraphs::new(4).unwrap().into_env();
        let config = GraphNetConfig {
            embedding: 16,
            backward: BackwardPolicy::SharedTorso,
            estimators: EstimatorsConfig::with_flow(true),
            ..GraphNetConfig::default()
        };
        let policy =
            GraphPolicy(GraphNet::new(&env, config, Device::Cpu, kind, &mut Rng::seeded(0)).unwrap());
        let all = Sampler::new(&env, &UniformPolicy).forward(BATCH, &mut Rng::seeded(5)).unwrap();
        let start = replica.as_ref().map_or(0, |r| share(r, BATCH).start);
        let recorded = RecordedGradients::default();
        let mut trainer = Trainer::new(env, colour_reward(), policy, make(), fresh(BATCH), Rng::seeded(1))?
            .with_source(1.0, FixedShare { all, start })?
            .with_optimizer(|parameters| Ok(recorded.optimizer(parameters, 0.1)))?;
        if let Some(replica) = replica {
            trainer = trainer.with_group(replica)?;
        }
        trainer.step()?;
        Ok(recorded.take())
    };
    for make in objectives {
        for (kind, most) in [(Kind::Float, 1e-6), (Kind::Double, 1e-14)] {
            let whole = gradient(make, kind, None).unwrap();
            for size in [2, 3] {
                let distance = largest_distance(
                    &whole,
                    &replicate(size, |replica| gradient(make, kind, Some(replica))).unwrap(),
                );
                assert!(distance <= most, "{:?}, {kind:?}, {size} replicas: {distance:e}", make());
            }
        }
    }
}

/// A replica that multiplies its part of each sum by a number slightly above 1.
#[derive(Debug)]
struct OverweightReplica(Replica);

impl Group for OverweightReplica {
    fn rank(&self) -> usize {
        self.0.rank()
    }
    fn size(&self) -> usize {
        self.0.size()
    }
    fn join(&self, mine: &Tensor) -> Result<Vec<Tensor>> {
        self.0.join(mine)
    }
    fn sum(&self, tensor: &mut Tensor) -> Result<()> {
        if self.rank() == 1 {
            *tensor *= 1.0 + 1e-5;
        }
        self.0.sum(tensor)
    }
}

/// Checks as a negative control that the test detects an error of 1 in 100,000 in the part of one replica, in
/// both precisions.
#[test]
fn an_overweight_share_is_detected() {
    for make in OBJECTIVES {
        for kind in [Kind::Float, Kind::Double] {
            let how = Setup { kind, chunk: None };
            let (_, whole) = gradients_of_one(make, how);
            for size in [2, 3] {
                let distance = largest_distance(&whole, &gradients_of(size, make, how, OverweightReplica).1);
                assert!(distance > 1e-6, "{:?}, {kind:?}, {size} replicas: {distance:e}", make());
            }
        }
    }
}

/// Checks that averaging the gradients of separate shares would be wrong: if an objective compares
/// trajectories with the mean of their batch, the average isn't the gradient of the whole batch.
#[test]
fn gradients_of_shares_are_not_the_gradient_of_the_batch() {
    let gradient = |rows| {
        let recorded = RecordedGradients::default();
        let how = Setup { kind: Kind::Double, chunk: None };
        recording_trainer(|| Box::new(LogPartitionVariance), how, rows, &recorded).step().unwrap();
        recorded.take().remove(0)
    };
    let first = gradient(0..3);
    let second = gradient(3..11);
    let whole = gradient(0..11);
    let mean: Vec<f64> = first.iter().zip(&second).map(|(a, b)| (3.0 * a + 8.0 * b) / 11.0).collect();
    let distance = largest_distance(&[whole], &[mean]);
    assert!(distance > 1e-2, "{distance:e}");
}

/// Checks that the list of tested objectives includes every objective of the library.
#[test]
fn every_objective_of_the_table_is_compared() {
    let text = include_str!("../../src/objective/mod.rs");
    let is_name = |c: char| c.is_ascii_alphanumeric();
    let cells =
        text.lines().filter_map(|line| line.strip_prefix("//! |")?.split_once("[`")?.1.split_once("`]"));
    let mut named: BTreeSet<&str> = cells.filter_map(|(name, _)| name.rsplit(':').next()).collect();
    // One row of the table in `gfn::objective` has two objectives. Only the first objective of a row is
    // parsed, so the second is added here.
    named.insert("AugmentedDetailedBalance");
    let compared: Vec<String> = OBJECTIVES.iter().map(|make| format!("{:?}", make())).collect();
    let compared: BTreeSet<&str> = compared.iter().flat_map(|one| one.split(|c| !is_name(c))).collect();
    assert!(named.len() > 15, "{named:?}");
    let missing: Vec<_> = named.difference(&compared).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// An objective that sums the squares of log P_F, weighted by the first condition of each trajectory.
#[derive(Debug)]
struct ConditionWeighted;

impl Objective for ConditionWeighted {
    fn name(&self) -> &'static str {
        "weighed squares"
    }
    fn needs(&self) -> Quantities {
        Quantities::PF
    }
    fn loss(&self, scores: &Scores, _: &dyn RegressionLoss) -> Result<Tensor> {
        let weights = scores.conditions.as_ref().unwrap().select(1, 0);
        Ok((scores.sums(&scores.log_pf).square() * weights).mean(Kind::Float))
    }
}

#[test]
fn conditions_reach_the_loss_of_the_whole_batch() {
    let weighted_trainer = |start: usize, recorded: &RecordedGradients| {
        let numbers: Vec<f32> = (0..2 * BATCH).map(|k| k as f32 * 0.1).collect();
        let conditions = Tensor::from_slice(&numbers).reshape([-1, 2]);
        let all = Sampler::new(&words(), &UniformPolicy)
            .forward_conditional(&conditions, &mut Rng::seeded(5))
            .unwrap();
        let config =
            MlpPolicyConfig { estimators: EstimatorsConfig::conditional(2), ..MlpPolicyConfig::default() };
        Trainer::new(words(), count, policy(config), ConditionWeighted, fresh(BATCH), Rng::seeded(1))
            .and_then(|trainer| trainer.with_source(1.0, FixedShare { all, start }))
            .and_then(|trainer| trainer.with_optimizer(|parameters| Ok(recorded.optimizer(parameters, 0.1))))
            .unwrap()
    };
    let alone = RecordedGradients::default();
    weighted_trainer(0, &alone).step().unwrap();
    let together = replicate(2, |replica| {
        let recorded = RecordedGradients::default();
        weighted_trainer(share(&replica, BATCH).start, &recorded).with_group(replica)?.step()?;
        Ok(recorded.take())
    });
    assert!(largest_distance(&alone.take(), &together.unwrap()) <= 1e-6);
}
