//! Figures that processes work out in shares: those of one, to the bit.

use gfn::collective::Collective;
use gfn::env::{EnumerableEnv, Rows, StateGraph, VectorStates};
use gfn::metrics::Evaluator;
use gfn::objective::TrajectoryBalance;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::testing::Words;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_dist::actors::{Actor, ActorConfig, Learner, LearnerConfig};
use tch::{Device, Kind, Tensor};

/// 9,841 words: several chunks.
fn env() -> Words {
    Words::new(3, 8)
}

fn policy(seed: u64) -> MlpPolicy<KHot> {
    let (config, rng) = (MlpPolicyConfig::default(), &mut Rng::seeded(seed));
    MlpPolicy::new(&env(), KHot::new(8, 4), config, Device::Cpu, Kind::Float, rng).unwrap()
}

fn reward(words: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    Ok(words.rows().map(|word| word.iter().filter(|&&letter| letter == 1).count() as f64 / 3.0).collect())
}

/// Hashes of all figures.
fn figures(group: Option<&dyn Collective>, policy: &MlpPolicy<KHot>) -> Result<Vec<u64>> {
    tch::set_num_threads(1);
    let (env, mut rng) = (env(), Rng::seeded(1));
    let space = StateGraph::build(&env, 10_000)?;
    let evaluator = Evaluator::of(&env).shared_by(group);
    let learned = evaluator.terminating_distribution(&space, policy, None)?;
    let flows = evaluator.exact_flows(&space, (policy, &reward), None)?;
    let log_z = evaluator.estimate_log_z(policy, &reward, 2_100, &mut rng)?;
    let samples = evaluator.sample(policy, 2_100, &mut rng)?;
    let rewards = evaluator.figures(2_100, |range| reward(&samples.select(&range.collect::<Vec<_>>()), None))?;
    let hash = |bits: &mut dyn Iterator<Item = u64>| bits.fold(1, |hash, bits| Rng::mix64(hash ^ bits));
    let of = |values: &[f64]| hash(&mut values.iter().map(|value| value.to_bits()));
    let keys = hash(&mut env.keys(&samples).into_iter());
    Ok(vec![of(&learned.probs), of(&flows.log_flow), of(&[log_z.log_z, log_z.elbo.mean]), keys, of(&rewards)])
}

#[test]
#[ignore = "a part of another test"]
fn part_figures() {
    let Some(group) = crate::group(crate::TIMEOUT) else { return };
    println!("SAYS {:?}", figures(Some(&group), &policy(0)).unwrap());
    // One with another policy: nobody gets figures of both.
    let (env, space) = (env(), StateGraph::build(&env(), 10_000).unwrap());
    let evaluator = Evaluator::of(&env).shared_by(Some(&group));
    let other = evaluator.terminating_distribution(&space, &policy(group.rank() as u64), None);
    assert!(matches!(&other, Err(Error::Contract { .. })), "{other:?}");
    println!("SAYS {}", other.unwrap_err());
}

#[test]
fn what_processes_work_out_together_has_the_bits_of_one() {
    let alone = format!("{:?}", figures(None, &policy(0)).unwrap());
    for size in [2, 3] {
        let said = crate::run("evaluation::part_figures", size);
        assert_eq!(said.len(), size);
        for said in said {
            assert!(said.len() == 2 && said[0] == alone && said[1].contains("another policy"), "{said:?}, not {alone}");
        }
    }
}

/// A learner of a group, with an actor of its own: what it measures with the others, and by itself on the same parameters.
#[test]
#[ignore = "a part of another test"]
fn part_learner() {
    let Some(group) = crate::group(crate::TIMEOUT) else { return };
    tch::set_num_threads(1);
    let learner = Learner::listen("127.0.0.1:0".parse().unwrap(), LearnerConfig::default()).unwrap().sharded();
    let address = learner.address();
    let actor = move || Actor::connect(address, env(), reward, policy(0), ActorConfig::default())?.run();
    let actor = std::thread::spawn(actor);
    let config = TrainerConfig { batch: 32, source: DataSource::HALF_REPLAYED, ..TrainerConfig::default() };
    let replay = ReplayConfig { capacity: 1_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let mut trainer = Trainer::new(env(), reward, policy(0), TrajectoryBalance, config, Rng::seeded(0))
        .unwrap()
        .with_replay(ReplayBuffer::distinct(replay).unwrap())
        .with_fresh(learner)
        .unwrap()
        .with_collective(group)
        .unwrap();
    for _ in 0..30 {
        trainer.step().unwrap();
    }
    // Actors draw on meanwhile.
    let together = figures(trainer.context().replicas(), trainer.policy()).unwrap();
    let alone = figures(None, trainer.policy()).unwrap();
    println!("SAYS {together:?}");
    println!("SAYS {alone:?}");
    drop(trainer);
    actor.join().unwrap().unwrap();
}

#[test]
fn what_learners_with_actors_measure_has_the_bits_of_one() {
    let untrained = format!("{:?}", figures(None, &policy(0)).unwrap());
    for size in [2, 3] {
        let said = crate::run("evaluation::part_learner", size);
        assert_eq!(said.len(), size);
        // On all of them, together as alone, of parameters that were trained.
        let first = said[0][0].clone();
        assert!(said.iter().flatten().all(|said| *said == first) && first != untrained, "{said:?}");
    }
}
