//! Tests of runs of replicas: equal parameters, results that are reproducible bit for bit, and errors instead
//! of deadlocks.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::{parameters, trainer};
use crate::words::{count, fresh, policy, says, with_flow, words};
use gfn::env::{Rows, StateGraph, VectorEnv, VectorStates};
use gfn::group::{Group, replicate};
use gfn::metrics::Distances;
use gfn::nn::EstimatorsConfig;
use gfn::objective::{AugmentedTrajectoryBalance, Objective, ProximalPolicy, TrajectoryBalance};
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::MlpPolicyConfig;
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::run::{CountModes, Fit, FitOutcome, Observer, Record};
use gfn::train::{StepStats, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_extras::explore::{Intrinsic, IntrinsicConfig, Teacher, TeacherConfig, Thompson, thompson_step};
use tch::Tensor;

#[test]
fn replicas_stay_equal_learn_the_target_and_do_it_again_bit_for_bit() {
    let run = || {
        let ends = Mutex::new(Vec::new());
        let states = Mutex::new(Vec::new());
        let drawn = Mutex::new(Vec::new());
        let tv = replicate(3, |replica| {
            let mut trainer = trainer(replica)?;
            trainer.step()?;
            drawn.lock().unwrap().push(format!("{:?}", trainer.latest().unwrap().actions()));
            assert_eq!(Fit::new(1_500).run_with_outcome(&mut trainer)?, FitOutcome::Done);
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
        let mut shares = states.into_inner().unwrap();
        let drawn = drawn.into_inner().unwrap();
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

/// An observer that stops the run after a number of steps.
struct StopAfter(usize);

impl Observer<VectorEnv> for StopAfter {
    fn name(&self) -> &str {
        "stop"
    }
    fn after_step(&mut self, _: &Trainer<VectorEnv>, record: &mut Record) -> Result<ControlFlow<()>> {
        Ok(if record.step == self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

#[test]
fn all_replicas_end_with_the_first() {
    let calls = replicate(2, |replica| {
        let mut trainer = trainer(replica)?;
        let mut stop = StopAfter(3);
        assert_eq!(Fit::new(50).observe(&mut stop).run_with_outcome(&mut trainer)?, FitOutcome::Stopped);
        assert_eq!((trainer.steps_done(), trainer.context().group.size()), (3, 2));
        Ok(trainer.reward_calls())
    });
    assert_eq!(calls.unwrap(), 3 * 8, "its own");
}

#[test]
fn observers_see_the_first_replica_alone_and_their_errors_end_all() {
    let seen = Mutex::new(Vec::new());
    let run = |fails: bool| {
        replicate(3, |replica| {
            let mut trainer = trainer(replica)?;
            let mut look = |trainer: &Trainer<VectorEnv>, record: &mut Record| {
                seen.lock().unwrap().push((trainer.context().group.rank(), record.step, record.reward_calls));
                match fails && record.step == 2 {
                    true => Err(Error::config("what the observer saw", record.step, "another step")),
                    false => Ok(ControlFlow::Continue(())),
                }
            };
            Fit::new(3).observe(&mut look).run_with_outcome(&mut trainer)
        })
    };
    assert_eq!(run(false).unwrap(), FitOutcome::Done);
    assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), [(0, 1, 5), (0, 2, 10), (0, 3, 15)]);
    says(&run(true).unwrap_err(), &["what the observer saw is 2"]);
}

/// Checks that replicas with separate buffers keep equal parameters: each replica replays its own samples,
/// but an update uses the samples of all replicas.
#[test]
fn replicas_with_separate_buffers_stay_equal() {
    let ends = Mutex::new(Vec::new());
    replicate(2, |replica| {
        let buffer =
            ReplayBuffer::new(ReplayConfig { capacity: 30, eviction: Eviction::Fifo, draw: Draw::Uniform })?;
        let config = TrainerConfig { source: DataSource::new(0.5, 0.5, 0.0)?, replay_after: 0, ..fresh(16) };
        let trainer = Trainer::new(words(), count, with_flow(), TrajectoryBalance, config, Rng::seeded(1))?;
        let mut trainer = trainer.with_replay(buffer).with_group(replica)?;
        assert_eq!(trainer.prefill(20)?, 10, "its share of the walks");
        Fit::new(30).run(&mut trainer)?;
        let held = trainer.replay().map_or(0, ReplayBuffer::len);
        ends.lock().unwrap().push((parameters(&trainer), held, trainer.n_fresh()));
        Ok(())
    })
    .unwrap();
    let ends = ends.into_inner().unwrap();
    assert!(ends[0].0 == ends[1].0, "replicas drift apart");
    assert!(ends.iter().all(|&(_, held, fresh)| (held, fresh) == (30, 4)), "half of each share is replayed");
}

/// Checks that replicas which explore separately keep equal parameters, because an update uses the samples of
/// all replicas. They explore by an adaptive teacher, by Thompson heads, or by a reward for novelty.
#[test]
fn replicas_with_separate_exploration_stay_equal() {
    type Change = fn(Trainer<VectorEnv>) -> Result<Trainer<VectorEnv>>;
    type Step = fn(&mut Trainer<VectorEnv>) -> Result<StepStats>;
    let ends_by = |objective: fn() -> Box<dyn Objective>, heads: usize, change: Change, step: Step| {
        let ends = Mutex::new(Vec::new());
        replicate(2, |replica| {
            let estimators = EstimatorsConfig::with_flow(true);
            let policy = policy(MlpPolicyConfig { estimators, heads, ..MlpPolicyConfig::default() });
            let trainer = crate::words::trainer(policy, objective(), fresh(9))?;
            let mut trainer = change(trainer)?.with_group(replica)?;
            (0..10).try_for_each(|_| step(&mut trainer).map(drop))?;
            ends.lock().unwrap().push((parameters(&trainer), trainer.latest().unwrap().len()));
            Ok(())
        })
        .unwrap();
        let mut ends = ends.into_inner().unwrap();
        ends.sort_by_key(|end| end.1);
        assert!(ends[0].0 == ends[1].0 && (ends[0].1, ends[1].1) == (4, 5), "replicas drift apart");
        ends.swap_remove(0).0
    };
    let ends = |objective, heads, change| ends_by(objective, heads, change, Trainer::step);
    let plain = ends(|| Box::new(TrajectoryBalance), 1, Ok);
    let taught: Change = |trainer| {
        let teacher = Teacher::new(trainer.env(), with_flow(), TeacherConfig::default())?;
        trainer.with_source(0.5, teacher)
    };
    assert!(ends(|| Box::new(TrajectoryBalance), 1, taught) != plain);
    let by_heads: Change = |trainer| {
        let thompson = Thompson::new(trainer.policy(), 0.5)?;
        trainer.with_fresh(thompson)
    };
    assert!(ends_by(|| Box::new(TrajectoryBalance), 2, by_heads, thompson_step) != plain);
    let novelty: Change = |trainer| {
        let novelty = |states: &VectorStates| Ok(states.rows().map(|row| f64::from(row[0])).collect());
        trainer.with_companion(Intrinsic::new(novelty, IntrinsicConfig::joint(Schedule::Constant(0.1)))?)
    };
    assert!(ends(|| Box::new(AugmentedTrajectoryBalance), 1, novelty) != plain);
}

#[test]
fn one_replica_is_a_trainer_by_itself() {
    let alone =
        || Trainer::new(words(), count, with_flow(), TrajectoryBalance, fresh(16), Rng::seeded(1)).unwrap();
    let together = replicate(1, |replica| {
        let mut trainer = alone().with_group(replica)?;
        Fit::new(4).run(&mut trainer)?;
        Ok(parameters(&trainer))
    });
    let mut trainer = alone();
    Fit::new(4).run(&mut trainer).unwrap();
    assert!(together.unwrap() == parameters(&trainer));
}

#[test]
fn no_replica_waits_for_one_that_has_ended() {
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
        // The reported error must be the cause, not the error that it causes in other replicas.
        says(&fails(at).unwrap_err(), &["this replica is"]);
    }
    let left = replicate(2, |replica| {
        if replica.rank() == 1 {
            return Ok(());
        }
        replica.sum(&mut Tensor::from_slice(&[1.0]))
    });
    says(&left.unwrap_err(), &["replica 1: it has ended"]);
    // After an exchange of messages has failed, later exchanges must fail, too. A message that is left over
    // from the failed exchange must not be taken for an answer of the other replica.
    let again = replicate(2, |replica| {
        if replica.rank() == 1 {
            return replica.join(&Tensor::from_slice(&[1.0])).map(|_| true);
        }
        replica.join(&Tensor::from_slice(&[1.0]))?;
        let first = replica.join(&Tensor::from_slice(&[2.0]));
        let second = replica.join(&Tensor::from_slice(&[3.0]));
        Ok(first.is_err() && second.is_err())
    });
    assert!(again.unwrap());
    let panics = std::panic::catch_unwind(|| {
        replicate(2, |replica| {
            assert!(replica.rank() == 0, "a panic of a replica");
            replica.join(&Tensor::from_slice(&[1.0])).map(|all| all.len())
        })
    });
    assert!(panics.is_err());
    assert!(started.elapsed() < Duration::from_secs(30));
    says(&replicate(0, |_| Ok(())).unwrap_err(), &["replicas is 0"]);
}

/// Checks that all replicas fail if they call different operations. The tensor of one operation must not be
/// taken for a tensor of another.
#[test]
fn different_operations_are_an_error_for_all_replicas() {
    let messages = Mutex::new(Vec::new());
    let run = replicate(2, |replica| {
        let mut mine = Tensor::from_slice(&[1.0]);
        let done = match replica.rank() {
            0 => replica.join(&mine).map(drop),
            _ => replica.sum(&mut mine),
        };
        messages.lock().unwrap().push(done.as_ref().unwrap_err().to_string());
        done
    });
    says(&run.unwrap_err(), &["the same operations in the same order", "member 1 calls sum"]);
    assert!(
        messages
            .lock()
            .unwrap()
            .iter()
            .any(|message| message.contains("at operation 0, member 0 calls join, but member 1"))
    );
}

#[test]
fn settings_that_differ_between_replicas_are_refused() {
    let refused = |make: &(dyn Fn(usize) -> Result<Trainer<VectorEnv>> + Sync)| {
        let result = replicate(2, |replica| {
            let mut trainer = make(replica.rank())?.with_group(replica)?;
            trainer.step().map(drop)
        });
        result.unwrap_err()
    };
    let with = |batch, seed| {
        Trainer::new(words(), count, with_flow(), TrajectoryBalance, fresh(batch), Rng::seeded(seed))
    };
    says(&refused(&|_| with(1, 0)), &["batch is 1 trajectories for 2 replicas"]);
    let split = |batch| {
        let objective = ProximalPolicy { n_minibatches: 2, ..ProximalPolicy::default() };
        replicate(2, |replica| {
            Trainer::new(words(), count, with_flow(), objective, fresh(batch), Rng::seeded(0))?
                .with_group(replica)
                .map(drop)
        })
    };
    says(
        &split(3).unwrap_err(),
        &["n_minibatches is 2 for a batch (or a replica's share) of size 1", "each replica"],
    );
    split(4).unwrap();
    says(
        &refused(&|rank| with(8, rank as u64)),
        &["build all replicas in the same way", "another seed", "than replica"],
    );
    says(
        &refused(&|rank| with(8 + 2 * rank, 0)),
        &["build all replicas in the same way", "another set of settings"],
    );
    let learning = |lr| {
        let adam = AdamConfig { lr, ..AdamConfig::default() };
        let config = TrainerConfig { adam, ..fresh(8) };
        Trainer::new(words(), count, with_flow(), TrajectoryBalance, config, Rng::seeded(0))
    };
    says(
        &refused(&|rank| learning(0.1 + rank as f64)),
        &["build all replicas in the same way", "another set of settings"],
    );
    let observed = replicate(2, |replica| {
        let mut trainer = trainer(replica)?;
        let mut modes = CountModes::new(|states: &VectorStates| vec![false; states.len()]);
        Fit::new(2).observe(&mut modes).run(&mut trainer)
    });
    says(&observed.unwrap_err(), &["counting modes while training", "its share"]);
}

/// Checks that replicas compute slow rewards at the same time, not one after another.
#[test]
fn slow_rewards_overlap() {
    let slow = |states: &VectorStates, conditions: Option<&Tensor>| {
        std::thread::sleep(Duration::from_millis(5 * states.len() as u64));
        count(states, conditions)
    };
    let taken = |replicas| {
        let timed = replicate(replicas, |replica| {
            let trainer =
                Trainer::new(words(), slow, with_flow(), TrajectoryBalance, fresh(16), Rng::seeded(1))?;
            let mut trainer = trainer.with_group(replica)?;
            // The first step isn't timed. In this step each replica also computes the rewards of a few more
            // objects, to compare its reward with the rewards of the others.
            trainer.step()?;
            let started = Instant::now();
            Fit::new(7).run(&mut trainer)?;
            Ok(started.elapsed().as_secs_f64())
        });
        timed.unwrap()
    };
    let alone = taken(1);
    let together = taken(4);
    assert!(alone > 0.48 && together < 0.6 * alone, "{alone} s alone, {together} s by four");
}

/// Returns log R of each word: twice the number of its letters 2.
fn other(states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    Ok(states.rows().map(|row| 2.0 * row.iter().filter(|&&x| x == 2).count() as f64).collect())
}

/// Checks that replicas with different rewards, conditions or descriptions are refused. If they were
/// accepted, each would learn a mixture of the rewards without an error.
#[test]
fn replicas_of_other_rewards_conditions_or_descriptions_are_refused() {
    type Reward = fn(&VectorStates, Option<&Tensor>) -> Result<Vec<f64>>;
    let refused = |make: &(dyn Fn(usize) -> Result<Trainer<VectorEnv>> + Sync)| {
        let result = replicate(3, |replica| {
            let trainer = make(replica.rank())?;
            Fit::new(2).run(&mut trainer.with_group(replica)?)
        });
        result.unwrap_err()
    };
    let with = |reward: Reward| {
        Trainer::new(words(), reward, with_flow(), TrajectoryBalance, fresh(9), Rng::seeded(0))
    };
    let error = refused(&|rank| with(if rank == 1 { other } else { count }));
    // All replicas must report the same error, which names the replica that differs.
    says(&error, &["same reward", "replica 1 has another reward: log R of ", "at replica 0"]);
    let noisy: Reward = |states, _| Ok(states.rows().map(|row| f64::from(row[0]) * (1.0 + 1e-6)).collect());
    let plain: Reward = |states, _| Ok(states.rows().map(|row| f64::from(row[0])).collect());
    replicate(2, |replica| {
        let reward = if replica.rank() == 0 { plain } else { noisy };
        with(reward)?.with_group(replica)?.step().map(drop)
    })
    .unwrap();
    let described = |rank: usize| with(count)?.with_description(&serde_json::json!({ "data": rank / 2 }));
    says(&refused(&described), &["replica 2 has another description"]);
    let conditioned = |rank: usize| {
        let source = move |n: usize, _: &mut Rng| {
            Ok(Tensor::full([n as i64, 1], rank as f64, (tch::Kind::Float, tch::Device::Cpu)))
        };
        Ok(with(count)?.with_conditions(source))
    };
    says(&refused(&conditioned), &["replica 1 draws other conditions"]);
}
