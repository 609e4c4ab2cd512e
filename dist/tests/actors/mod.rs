//! A learner, actors in processes of their own, and what goes wrong between them.

mod conditions;
mod faults;
mod settings;
mod shards;
mod training;
mod wire;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gfn::env::{EnumerableEnv, StateGraph, VectorStates};
use gfn::metrics::Distances;
use gfn::nn::MlpConfig;
use gfn::objective::TrajectoryBalance;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::testing::Words;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_dist::actors::{Actor, ActorConfig, Learner, LearnerConfig};
use tch::{Device, Kind, Tensor};

type WordTrainer = Trainer<Words, MlpPolicy<KHot>>;

/// 121 words.
fn env() -> Words {
    Words::new(3, 4)
}

fn policy_of(width: i64) -> Result<MlpPolicy<KHot>> {
    let mlp = MlpConfig { hidden: vec![width, width], ..MlpConfig::default() };
    let config = MlpPolicyConfig { mlp, ..MlpPolicyConfig::default() };
    MlpPolicy::new(&env(), KHot::new(4, 4), config, Device::Cpu, Kind::Float, &mut Rng::seeded(0))
}

fn policy() -> MlpPolicy<KHot> {
    policy_of(32).unwrap()
}

/// log R: the number of a word's letters that are the first one.
fn reward(states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    Ok(states.rows().map(|row| row.iter().filter(|&&x| x == 1).count() as f64).collect())
}

fn learner(config: LearnerConfig) -> Learner<Words> {
    tch::set_num_threads(1);
    Learner::listen("127.0.0.1:0".parse().unwrap(), config).unwrap()
}

fn trainer(learner: Learner<Words>, batch: usize) -> WordTrainer {
    trainer_of(learner, TrainerConfig { batch, source: DataSource::HALF_REPLAYED, ..TrainerConfig::default() })
}

/// One that never asks the reward itself.
fn trainer_of(learner: Learner<Words>, config: TrainerConfig) -> WordTrainer {
    let never =
        |_: &VectorStates, _: Option<&Tensor>| Err(Error::contract("actors alone ask the reward", "the learner did"));
    let replay = ReplayConfig { capacity: 1_000_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    Trainer::new(env(), never, policy(), TrajectoryBalance, config, Rng::seeded(0))
        .unwrap()
        .with_replay(ReplayBuffer::new(replay).unwrap())
        .with_fresh(learner)
        .unwrap()
}

/// The exact total variation between what a trainer's policy samples and its target.
fn total_variation(trainer: &WordTrainer) -> f64 {
    let space = StateGraph::build(trainer.env(), 1_000).unwrap();
    let target = space.target_distribution(&reward, None).unwrap();
    let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap();
    Distances::between(&learned.probs, &target.probs).unwrap().tv
}

/// Steps until something is so; how long that took.
fn step_until(trainer: &mut WordTrainer, mut so: impl FnMut(&WordTrainer) -> bool) -> Duration {
    let started = Instant::now();
    while !so(trainer) {
        trainer.step().unwrap();
    }
    started.elapsed()
}

/// How often each key is there.
fn counted(keys: impl IntoIterator<Item = u64>) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    keys.into_iter().for_each(|key| *counts.entry(key).or_default() += 1);
    counts
}

/// The processes of one test are enough for a small machine.
static ALONE: Mutex<()> = Mutex::new(());

/// Ends this program where a test takes longer than it may.
struct Limit(Arc<AtomicBool>, #[allow(dead_code, reason = "held while the test runs")] MutexGuard<'static, ()>);

impl Limit {
    fn seconds(seconds: u64) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let done = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&done);
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        std::thread::spawn(move || {
            let until = Instant::now() + Duration::from_secs(seconds);
            while !theirs.load(Ordering::Relaxed) {
                if Instant::now() > until {
                    eprintln!("{test} takes more than {seconds} seconds");
                    std::process::exit(1);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        Self(done, alone)
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A process of a part of these tests, and what it has said so far; killed when it is dropped.
struct Process {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
}

impl Process {
    fn start(part: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let part = format!("actors::{part}");
        command
            .args(["--exact", &part, "--ignored", "--nocapture", "--test-threads=1"])
            .envs(variables.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (output, said) = (child.stdout.take().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let theirs = Arc::clone(&said);
        std::thread::spawn(move || {
            BufReader::new(output)
                .lines()
                .map_while(std::io::Result::ok)
                .for_each(|line| theirs.lock().unwrap().push(line));
        });
        Self { child, said }
    }

    /// An actor whose reward takes so many milliseconds an object.
    fn actor(address: SocketAddr, milliseconds: u64) -> Self {
        let (address, milliseconds) = (address.to_string(), milliseconds.to_string());
        Self::start("part_actor", &[("GFN_TEST_ADDRESS", &address), ("GFN_TEST_SLEEP", &milliseconds)])
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// What follows this word in what it says, once it has said it.
    fn says(&self, word: &str) -> String {
        loop {
            let found = self.said.lock().unwrap().iter().find_map(|line| Some(line.split_once(word)?.1.to_owned()));
            if let Some(found) = found {
                return found;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The keys of all objects that the learner has acknowledged, as far as the actor lived to tell.
    fn acknowledged(&self) -> Vec<u64> {
        let said = self.said.lock().unwrap();
        let keys = said.iter().filter_map(|line| line.split_once("TOOK ")).flat_map(|(_, keys)| keys.split(' '));
        keys.map(|key| key.parse().unwrap()).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "a part of another test"]
fn part_actor() {
    let Ok(address) = std::env::var("GFN_TEST_ADDRESS") else { return };
    let milliseconds: u64 = std::env::var("GFN_TEST_SLEEP").unwrap().parse().unwrap();
    tch::set_num_threads(1);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let keys = Arc::clone(&asked);
    let slow = move |states: &VectorStates, conditions: Option<&Tensor>| {
        let rewards = reward(states, conditions)?;
        std::thread::sleep(Duration::from_millis(milliseconds * rewards.len() as u64));
        *keys.lock().unwrap() = env().keys(states);
        Ok(rewards)
    };
    let config = ActorConfig { batch: 8, timeout: Duration::from_secs(5), ..ActorConfig::default() };
    let mut actor = Actor::connect(&address, env(), slow, policy(), config).unwrap();
    println!("CONNECTED ");
    loop {
        match actor.submit() {
            Ok(ControlFlow::Continue(())) => {
                let keys: Vec<String> = asked.lock().unwrap().iter().map(u64::to_string).collect();
                println!("TOOK {}", keys.join(" "));
            }
            Ok(ControlFlow::Break(())) => break println!("DONE {}", actor.acknowledged()),
            Err(Error::Peer { problem, .. }) => break println!("LOST {problem}"),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
#[ignore = "a part of another test"]
fn part_learner() {
    if std::env::var_os("GFN_TEST_LEARNER").is_none() {
        return;
    }
    let learner = learner(LearnerConfig { timeout: Duration::from_secs(1), ..LearnerConfig::default() });
    println!("ADDRESS {}", learner.address());
    let mut trainer = trainer(learner, 16);
    loop {
        trainer.step().unwrap();
    }
}
