//! Replicas on threads: one gradient for every objective, equal parameters, the same bits again, and errors in place of waits.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::words::{count, fresh, policy, says, with_flow, words};
use gfn::collective::{Collective, Replica, replicate};
use gfn::env::{Reward, StateGraph, VectorStates};
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, EstimatorsConfig};
use gfn::objective::{
    Advantage, DetailedBalance, FlowMatching, LogPartitionVariance, MaximumEntropyBackward, MaximumLikelihood,
    ModifiedDetailedBalance, NextExit, Objective, PolicyGradient, ProximalPolicy, RegressionLoss,
    RelativeLogPartitionVariance, RelativeTrajectoryBalance, Scores, StateFlow, SubTrajectoryBalance,
    TrajectoryBalance, TrajectoryLikelihood, TrustPcl, Weighting, WithBackward,
};
use gfn::optim::{Sgd, SgdConfig};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy, WithPrior};
use gfn::quantity::Quantities;
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Container, Sampler, Trajectories};
use gfn::testing::Words;
use gfn::train::{
    AverageFor, BatchSource, Context, CountModes, Ended, Fit, Observer, Persist, Record, Trainer, TrainerConfig,
};
use gfn::{Error, Result, Rng};
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

fn parameters<P: Policy<Words>>(trainer: &Trainer<Words, P>) -> Vec<f64> {
    let parameters = trainer.policy().parameters().unwrap();
    let all: Vec<Tensor> = parameters.iter().map(|p| p.tensor.detach().to_kind(Kind::Double).reshape([-1])).collect();
    Vec::try_from(Tensor::cat(&all, 0)).unwrap()
}

fn furthest(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
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

fn trainer(replica: Replica) -> Result<Trainer<Words, MlpPolicy<KHot>>> {
    let make = Trainer::new(words(), count, with_flow(), TrajectoryBalance, fresh(16), Rng::seeded(1))?;
    make.with_average(0.9, AverageFor::Sampling)?.with_collective(replica)
}

#[test]
fn replicas_stay_equal_learn_the_target_and_do_it_again_bit_for_bit() {
    let run = || {
        let ends = Mutex::new(Vec::new());
        let (states, drawn) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let tv = replicate(3, |replica| {
            let mut trainer = trainer(replica)?;
            trainer.step()?;
            drawn.lock().unwrap().push(format!("{:?}", trainer.latest().unwrap().actions()));
            assert_eq!(Fit::new(1_500).run(&mut trainer)?, Ended::Done);
            ends.lock().unwrap().push(parameters(&trainer));
            states.lock().unwrap().push(trainer.latest().unwrap().len());
            let space = StateGraph::build(trainer.env(), 100)?;
            let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None)?;
            let tv = Distances::between(&learned.probs, &space.target_distribution(&count, None)?.probs)?.tv;
            Ok(tv)
        })
        .unwrap();
        assert!(tv < 0.05, "{tv}");
        let ends = ends.into_inner().unwrap();
        assert!(ends[0] == ends[1] && ends[1] == ends[2], "replicas drift apart");
        let (mut shares, drawn) = (states.into_inner().unwrap(), drawn.into_inner().unwrap());
        shares.sort_unstable();
        assert_eq!(shares, [5, 5, 6]);
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2], "each draws its own");
        ends.into_iter().next().unwrap()
    };
    assert!(run() == run(), "the same bits again");
}

#[test]
fn a_run_goes_on_bit_for_bit() {
    let folder = std::env::temp_dir().join(format!("gfn-replicas-{}", std::process::id()));
    let run = |from: usize, to: usize| {
        replicate(2, |replica| {
            let mut trainer = trainer(replica)?;
            if from > 0 {
                trainer.resume(&folder)?;
            }
            Fit::new(to).checkpoint(&folder, None)?.run(&mut trainer)?;
            Ok(parameters(&trainer))
        })
        .unwrap()
    };
    let whole = run(0, 12);
    run(0, 7);
    assert!(run(7, 12) == whole);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Stops after some steps.
struct Stop(usize);

impl<P> Observer<Words, P> for Stop {
    fn name(&self) -> &str {
        "stop"
    }
    fn after_step(&mut self, _: &Trainer<Words, P>, record: &mut Record) -> Result<ControlFlow<()>> {
        Ok(if record.step == self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

#[test]
fn all_replicas_end_with_the_first() {
    let calls = replicate(2, |replica| {
        let mut trainer = trainer(replica)?;
        let mut stop = Stop(3);
        assert_eq!(Fit::new(50).observe(&mut stop).run(&mut trainer)?, Ended::Stopped);
        assert_eq!((trainer.steps_done(), trainer.n_replicas()), (3, 2));
        Ok(trainer.reward_calls())
    });
    assert_eq!(calls.unwrap(), 3 * 16, "of both");
}

#[test]
fn one_replica_is_a_trainer_by_itself() {
    let alone = || Trainer::new(words(), count, with_flow(), TrajectoryBalance, fresh(16), Rng::seeded(1)).unwrap();
    let together = replicate(1, |replica| {
        let mut trainer = alone().with_collective(replica)?;
        Fit::new(4).run(&mut trainer)?;
        Ok(parameters(&trainer))
    });
    let mut trainer = alone();
    Fit::new(4).run(&mut trainer).unwrap();
    assert!(together.unwrap() == parameters(&trainer));
}

#[test]
fn nobody_waits_for_a_replica_that_has_ended() {
    let started = Instant::now();
    let fails = |at: usize| {
        replicate(3, move |replica| {
            let rank = replica.rank();
            let mut trainer = trainer(replica)?;
            trainer.step()?;
            if rank == at {
                return Err(Error::config("this replica", rank, "another"));
            }
            Fit::new(1_000_000).run(&mut trainer)
        })
    };
    for at in 0..3 {
        // The cause, not that the others were left alone.
        says(&fails(at).unwrap_err(), &["this replica is"]);
    }
    let left = replicate(2, |replica| {
        if replica.rank() == 1 {
            return Ok(());
        }
        replica.all_reduce(&mut Tensor::from_slice(&[1.0]))
    });
    says(&left.unwrap_err(), &["replica 1: it has ended"]);
    // Not only the call that waited: nothing old is taken for an answer.
    let again = replicate(2, |replica| {
        if replica.rank() == 1 {
            return replica.all_gather(&Tensor::from_slice(&[1.0])).map(|_| true);
        }
        replica.all_gather(&Tensor::from_slice(&[1.0]))?;
        let first = replica.all_gather(&Tensor::from_slice(&[2.0]));
        let second = replica.all_gather(&Tensor::from_slice(&[3.0]));
        Ok(first.is_err() && second.is_err())
    });
    assert!(again.unwrap());
    let panics = std::panic::catch_unwind(|| {
        replicate(2, |replica| {
            assert!(replica.rank() == 0, "a panic of a replica");
            replica.all_gather(&Tensor::from_slice(&[1.0])).map(|all| all.len())
        })
    });
    assert!(panics.is_err());
    assert!(started.elapsed() < Duration::from_secs(30));
    says(&replicate(0, |_| Ok(())).unwrap_err(), &["replicas is 0"]);
}

#[test]
fn what_replicas_can_not_agree_on_is_refused() {
    let refused = |make: &(dyn Fn(usize) -> Result<Trainer<Words, MlpPolicy<KHot>>> + Sync)| {
        let result = replicate(2, |replica| {
            let mut trainer = make(replica.rank())?.with_collective(replica)?;
            trainer.step().map(drop)
        });
        result.unwrap_err()
    };
    let with =
        |batch, seed| Trainer::new(words(), count, with_flow(), TrajectoryBalance, fresh(batch), Rng::seeded(seed));
    says(&refused(&|_| with(1, 0)), &["batch is 1 trajectories for 2 replicas"]);
    says(&refused(&|rank| with(8, rank as u64)), &["build them alike", "another than replica"]);
    says(&refused(&|rank| with(8 + 2 * rank, 0)), &["build them alike", "another than replica"]);
    says(
        &refused(&|_| with(8, 0)?.with_teacher(with_flow(), gfn::train::TeacherConfig::default())),
        &["an adaptive teacher needs one trainer"],
    );
    let observed = replicate(2, |replica| {
        let mut trainer = trainer(replica)?;
        let mut modes = CountModes::new(|states: &VectorStates| vec![false; gfn::env::Rows::len(states)]);
        Fit::new(2).observe(&mut modes).run(&mut trainer)
    });
    says(&observed.unwrap_err(), &["counting modes while training", "its share"]);
    let saved = replicate(2, |replica| {
        let (eviction, draw) = (Eviction::Fifo, Draw::Uniform);
        let buffer = ReplayBuffer::new(ReplayConfig { capacity: 10, eviction, draw })?;
        trainer(replica)?.with_replay(buffer).save(std::env::temp_dir().join("gfn-none"))
    });
    says(&saved.unwrap_err(), &["a checkpoint of several replicas needs sources and companions that keep nothing"]);
}

/// What a reward takes long for, replicas wait for at the same time.
#[test]
fn slow_rewards_overlap() {
    let slow = |states: &VectorStates, conditions: Option<&Tensor>| {
        std::thread::sleep(Duration::from_millis(5 * gfn::env::Rows::len(states) as u64));
        count(states, conditions)
    };
    let taken = |replicas| {
        let started = Instant::now();
        replicate(replicas, |replica| {
            let trainer = Trainer::new(words(), slow, with_flow(), TrajectoryBalance, fresh(16), Rng::seeded(1))?;
            Fit::new(6).run(&mut trainer.with_collective(replica)?)
        })
        .unwrap();
        started.elapsed().as_secs_f64()
    };
    let (alone, together) = (taken(1), taken(4));
    assert!(alone > 0.48 && together < 0.6 * alone, "{alone} s alone, {together} s by four");
}
