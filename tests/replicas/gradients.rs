//! One gradient for every objective, whoever drew the trajectories.

use super::{furthest, parameters};
use crate::words::{count, fresh, policy, words};
use gfn::collective::{Collective, Replica, replicate};
use gfn::env::{Reward, VectorStates};
use gfn::nn::{BackwardPolicy, EstimatorsConfig};
use gfn::objective::{
    Advantage, DetailedBalance, FlowMatching, LogPartitionVariance, MaximumEntropyBackward, MaximumLikelihood,
    ModifiedDetailedBalance, NextExit, Objective, PolicyGradient, ProximalPolicy, RegressionLoss,
    RelativeLogPartitionVariance, RelativeTrajectoryBalance, Scores, StateFlow, SubTrajectoryBalance,
    TrajectoryBalance, TrajectoryLikelihood, TrustPcl, Weighting, WithBackward,
};
use gfn::optim::{Sgd, SgdConfig};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, UniformPolicy, WithPrior};
use gfn::quantity::Quantities;
use gfn::rollout::{Container, Sampler, Trajectories};
use gfn::testing::Words;
use gfn::train::{BatchSource, Context, Persist, Trainer, TrainerConfig};
use gfn::{Result, Rng};
use tch::{Kind, Tensor};

type Make = fn() -> Box<dyn Objective>;

/// Each objective, and PPO, whose later updates on a batch look back at the first.
const OBJECTIVES: [Make; 17] = [
    || Box::new(TrajectoryBalance),
    || Box::new(LogPartitionVariance),
    || Box::new(RelativeTrajectoryBalance::new(0.5).unwrap()),
    || Box::new(RelativeLogPartitionVariance::new(0.5).unwrap()),
    || Box::new(TrustPcl::new(0.5).unwrap()),
    || Box::new(DetailedBalance::default()),
    || Box::new(DetailedBalance { flow: StateFlow::ForwardLooking }),
    || Box::new(ModifiedDetailedBalance { next_exit: NextExit::Own }),
    || Box::new(SubTrajectoryBalance::new(Weighting::Geometric { lambda: 0.9 }).unwrap()),
    || Box::new(FlowMatching::default()),
    || Box::new(MaximumLikelihood),
    || Box::new(WithBackward::new(TrajectoryBalance, TrajectoryLikelihood)),
    || Box::new(WithBackward::new(TrajectoryBalance, MaximumEntropyBackward)),
    || Box::new(Anywhere(Box::new(PolicyGradient::new(Advantage::Total).unwrap()))),
    || Box::new(Anywhere(Box::new(PolicyGradient::new(Advantage::RewardToGo).unwrap()))),
    || Box::new(Anywhere(Box::new(PolicyGradient::new(Advantage::Gae { lambda: 0.7 }).unwrap()))),
    || Box::new(Anywhere(Box::new(ProximalPolicy::default()))),
];

/// An objective that takes given trajectories for the policy's own.
#[derive(Debug)]
struct Anywhere(Box<dyn Objective>);

impl Objective for Anywhere {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn needs(&self) -> Quantities {
        self.0.needs()
    }
    fn epochs(&self) -> usize {
        self.0.epochs()
    }
    fn loss(&self, scores: &Scores, regression: RegressionLoss) -> Result<Tensor> {
        self.0.loss(scores, regression)
    }
}

/// log R is the number of first letters, of unfinished words, too.
#[derive(Debug)]
struct Counted;

impl Reward<VectorStates> for Counted {
    fn log_reward(&self, states: &VectorStates, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        count(states, conditions)
    }
    fn partial_log_reward(&self, states: &VectorStates, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        count(states, conditions).map(Some)
    }
}

/// A share of the same trajectories for each replica.
struct Dealt {
    all: Trajectories<Words>,
    start: usize,
}

impl Persist<Words> for Dealt {
    fn name(&self) -> &str {
        "dealt"
    }
}

impl<P> BatchSource<Words, P> for Dealt {
    fn draw(&mut self, n: usize, _: &Context<Words, P>, _: &mut Rng) -> Result<Trajectories<Words>> {
        self.all.select(self.start..self.start + n)
    }
}

const BATCH: usize = 11;

type Trained = Trainer<Words, WithPrior<MlpPolicy<KHot>, UniformPolicy>>;

/// A trainer by plain descent on a share of eleven words, whose parameters after a step are what they were minus the gradient.
fn descending(make: Make, chunk: Option<usize>, rows: std::ops::Range<usize>) -> Trained {
    let config = MlpPolicyConfig {
        paths: true,
        estimators: EstimatorsConfig::with_flow(true),
        backward: BackwardPolicy::SharedTorso,
        ..MlpPolicyConfig::default()
    };
    let all = Sampler::new(&words(), &UniformPolicy).forward(BATCH, &mut Rng::seeded(5)).unwrap();
    let config_of_trainer = TrainerConfig { chunk, ..fresh(rows.len()) };
    let policy = WithPrior { policy: policy(config), prior: UniformPolicy };
    let sgd = SgdConfig { lr: 1.0, ..SgdConfig::default() };
    Trainer::boxed(words(), Box::new(Counted), policy, make(), config_of_trainer, Rng::seeded(1))
        .and_then(|trainer| trainer.with_source(1.0, Dealt { all, start: rows.start }))
        .and_then(|trainer| trainer.with_optimizer(|parameters| Sgd::new(parameters, sgd)))
        .unwrap()
}

/// The share of one of several replicas, as trainers deal batches.
fn share(replica: &Replica) -> std::ops::Range<usize> {
    let before = |rank| rank * BATCH / replica.size();
    before(replica.rank())..before(replica.rank() + 1)
}

#[test]
fn replicas_make_the_update_of_the_whole_batch() {
    for make in OBJECTIVES {
        let name = make().name();
        let mut alone = descending(make, None, 0..BATCH);
        let untrained = parameters(&alone);
        let one = alone.step().unwrap();
        let whole = parameters(&alone);
        assert!(furthest(&whole, &untrained) > 1e-3, "{name} moves nothing");
        for (size, chunk) in [(2, None), (3, None), (2, Some(4))] {
            let (stats, together) = replicate(size, |replica| {
                let rows = share(&replica);
                let mut trainer = descending(make, chunk, rows.start..rows.start + BATCH).with_collective(replica)?;
                Ok((trainer.step()?, parameters(&trainer)))
            })
            .unwrap();
            let off = furthest(&whole, &together) / furthest(&whole, &untrained);
            assert!(off < 1e-6 * 20.0, "{name}, {size} replicas, chunks {chunk:?}: {off:e}");
            assert!((stats.loss - one.loss).abs() < 1e-5 * one.loss.abs().max(1.0), "{name}");
            assert_eq!((stats.mean_len, stats.states), (one.mean_len, one.states), "{name}");
            assert!((stats.log_z - one.log_z).abs() < 1e-5 && (stats.grad_norm / one.grad_norm - 1.0).abs() < 1e-4);
        }
    }
}

/// The check above can fail: the mean of the shares' own updates isn't the batch's where trajectories are compared with its mean.
#[test]
fn updates_of_shares_are_not_the_update_of_the_batch() {
    let updated = |rows| {
        let mut trainer = descending(|| Box::new(LogPartitionVariance), None, rows);
        trainer.step().unwrap();
        parameters(&trainer)
    };
    let (first, second, whole) = (updated(0..5), updated(5..11), updated(0..11));
    let mean: Vec<f64> = first.iter().zip(&second).map(|(a, b)| (5.0 * a + 6.0 * b) / 11.0).collect();
    assert!(furthest(&mean, &whole) > 1e-2);
}

/// The squares of log P_F, weighed by the first condition of each trajectory.
#[derive(Debug)]
struct Weighed;

impl Objective for Weighed {
    fn name(&self) -> &'static str {
        "weighed squares"
    }
    fn needs(&self) -> Quantities {
        Quantities::PF
    }
    fn loss(&self, scores: &Scores, _: RegressionLoss) -> Result<Tensor> {
        let weights = scores.conditions.as_ref().unwrap().select(1, 0);
        Ok((scores.sums(&scores.log_pf).square() * weights).mean(Kind::Float))
    }
}

#[test]
fn conditions_reach_the_loss_of_the_whole_batch() {
    let make = |start: usize, n: usize| {
        let numbers: Vec<f32> = (0..2 * BATCH).map(|k| k as f32 * 0.1).collect();
        let conditions = Tensor::from_slice(&numbers).reshape([-1, 2]);
        let all = Sampler::new(&words(), &UniformPolicy).forward_conditional(&conditions, &mut Rng::seeded(5)).unwrap();
        let config = MlpPolicyConfig { estimators: EstimatorsConfig::conditional(2), ..MlpPolicyConfig::default() };
        let sgd = SgdConfig { lr: 1.0, ..SgdConfig::default() };
        Trainer::new(words(), count, policy(config), Weighed, fresh(n), Rng::seeded(1))
            .and_then(|trainer| trainer.with_source(1.0, Dealt { all, start }))
            .and_then(|trainer| trainer.with_optimizer(|parameters| Sgd::new(parameters, sgd)))
            .unwrap()
    };
    let mut alone = make(0, BATCH);
    let untrained = parameters(&alone);
    alone.step().unwrap();
    let whole = parameters(&alone);
    let together = replicate(2, |replica| {
        let start = share(&replica).start;
        let mut trainer = make(start, BATCH).with_collective(replica)?;
        trainer.step()?;
        Ok(parameters(&trainer))
    });
    assert!(furthest(&whole, &untrained) > 1e-3);
    assert!(furthest(&whole, &together.unwrap()) < 2e-5 * furthest(&whole, &untrained));
}
