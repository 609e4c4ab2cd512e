//! Learners that train as one.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gfn::Rng;
use gfn::env::{EnumerableEnv, VectorStates};
use gfn::group::{Group, replicate};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn_dist::actors::{Actor, ActorConfig, LearnerConfig};
use tch::Tensor;

use super::{Limit, Process, env, learner, policy, reward, total_variation, trainer};

#[test]
fn each_object_is_kept_by_one_of_two_learners_wherever_its_actor_is() {
    let _limit = Limit::seconds(120);
    let (held, counts) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let tv = replicate(2, |replica| {
        let (rank, learner) = (replica.rank(), learner(LearnerConfig::default()).sharded());
        let (address, monitor) = (learner.address(), learner.monitor());
        // All actors are the first one's.
        let _actors = (rank == 0).then(|| [Process::actor(address, 0), Process::actor(address, 0)]);
        let distinct = ReplayConfig { capacity: 1_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
        let trainer = trainer(learner, 32).with_replay(ReplayBuffer::distinct(distinct)?);
        let mut trainer = trainer.with_group(replica)?;
        for _ in 0..600 {
            trainer.step()?;
        }
        let walks = trainer.replay().and_then(ReplayBuffer::walks).unwrap();
        held.lock().unwrap().push(env().keys(&walks.terminal));
        counts.lock().unwrap().push((rank, monitor.counts()));
        Ok(total_variation(&trainer))
    });
    let (held, tv) = (held.into_inner().unwrap(), tv.unwrap());
    println!("TV {tv:.4}, {:?}", counts.lock().unwrap());
    let all: BTreeSet<u64> = held.iter().flatten().copied().collect();
    assert!(held.iter().all(|keys| keys.len() > 30), "{:?}", held.iter().map(Vec::len).collect::<Vec<_>>());
    assert_eq!(all.len(), held.iter().map(Vec::len).sum::<usize>(), "no object is on both");
    assert_eq!(all.len(), 121, "every word has been found");
    assert!(tv < 0.05, "{tv}");
    let idle = counts.into_inner().unwrap().into_iter().find(|(rank, _)| *rank == 1).unwrap().1;
    assert!(idle.received == 0 && idle.used >= 600 * 16 / 8, "{idle:?}");
}

/// One learner's actors feed both: the other waits for as long as they send.
#[test]
fn a_learner_without_actors_is_as_patient_as_those_that_have_some() {
    let _limit = Limit::seconds(60);
    let seconds = replicate(2, |replica| {
        let rank = replica.rank();
        let learner = learner(LearnerConfig { patience: Duration::from_secs(2), ..LearnerConfig::default() }).sharded();
        let address = learner.address();
        // Four walks in 0.4 seconds, where 32 are needed.
        let slow = |states: &VectorStates, conditions: Option<&Tensor>| {
            std::thread::sleep(Duration::from_millis(400));
            reward(states, conditions)
        };
        let config = ActorConfig { batch: 4, ..ActorConfig::default() };
        let actor = move || Actor::connect(address, env(), slow, policy(), config)?.run();
        let actor = (rank == 0).then(|| std::thread::spawn(actor));
        let mut trainer = trainer(learner, 32).with_group(replica)?;
        let started = Instant::now();
        trainer.step()?;
        let seconds = started.elapsed().as_secs_f64();
        drop(trainer);
        actor.map_or(Ok(0), |actor| actor.join().unwrap())?;
        Ok(seconds)
    });
    let seconds = seconds.unwrap();
    assert!(seconds > 2.5, "{seconds} s: nobody had to wait for longer than the patience");
}

#[test]
fn actors_of_two_learners_draw_by_different_streams() {
    let _limit = Limit::seconds(60);
    let first = Mutex::new(Vec::new());
    replicate(2, |replica| {
        let learner = learner(LearnerConfig::default());
        let address = learner.address();
        let actor =
            std::thread::spawn(move || Actor::connect(address, env(), reward, policy(), ActorConfig::default())?.run());
        let mut trainer = trainer(learner, 32).with_group(replica)?;
        trainer.step()?;
        first.lock().unwrap().push(env().keys(trainer.latest().unwrap().terminal_states()));
        drop(trainer);
        actor.join().unwrap()
    })
    .unwrap();
    let first = first.into_inner().unwrap();
    assert!(first.iter().all(|keys| keys.len() == 16) && first[0] != first[1], "{first:?}");
}

#[test]
#[ignore = "a part of another test"]
fn part_shard() {
    let Some(group) = crate::group(crate::TIMEOUT) else { return };
    let learner = learner(LearnerConfig::default()).sharded();
    println!("ADDRESS {}", learner.address());
    let distinct = ReplayConfig { capacity: 1_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let trainer = trainer(learner, 16).with_replay(ReplayBuffer::distinct(distinct).unwrap());
    let mut trainer = trainer.with_group(group).unwrap();
    for _ in 0..200 {
        trainer.step().unwrap();
    }
    let keys = env().keys(&trainer.replay().unwrap().walks().unwrap().terminal);
    println!("HELD {}", keys.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
    println!("BITS {}", crate::bits(&trainer).into_iter().fold(0u64, |hash, bits| Rng::mix64(hash ^ u64::from(bits))));
}

#[test]
fn learners_in_processes_keep_their_own_objects_and_stay_equal() {
    let _limit = Limit::seconds(120);
    let file = std::env::temp_dir().join(format!("gfn-dist-shards-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let start = |rank: &str| {
        let variables = [("GFN_TEST_RANK", rank), ("GFN_TEST_SIZE", "2"), ("GFN_TEST_FILE", file.to_str().unwrap())];
        Process::start("shards::part_shard", &variables)
    };
    let learners = [start("0"), start("1")];
    let _actor = Process::actor(learners[1].says("ADDRESS ").parse().unwrap(), 0);
    let held = learners.each_ref().map(|learner| learner.says("HELD "));
    let sets = held.map(|keys| keys.split(' ').map(|key| key.parse().unwrap()).collect::<BTreeSet<u64>>());
    assert!(sets.iter().all(|keys| keys.len() > 20) && sets[0].is_disjoint(&sets[1]), "{sets:?}");
    assert_eq!(learners[0].says("BITS "), learners[1].says("BITS "), "replicas stay equal");
    let _ = std::fs::remove_file(file);
}
