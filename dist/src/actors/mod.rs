//! Actors that sample, and a learner that trains on what they send: for rewards that take longer than training.
//!
//! An [`Actor`] samples with the learner's parameters, asks the reward, and sends walks: actions, log-rewards, some 60 to 100 bytes an
//! object. The [`Learner`] replays them in its own environment, which checks every action, and gives them to its trainer as fresh
//! trajectories. Actors may come and go at any time; what is lost with one is the batch that it hadn't sent.
//!
//! ```
//! use gfn::{env::{Rows, VectorStates}, objective::TrajectoryBalance, testing::Words, Result, Rng};
//! use gfn::policy::{ByKey, MlpPolicy, MlpPolicyConfig};
//! use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
//! use gfn::train::{Fit, Trainer, TrainerConfig};
//! use gfn_dist::actors::{Actor, ActorConfig, Learner, LearnerConfig};
//! use tch::{Device, Kind, Tensor};
//!
//! // The same in all processes.
//! let env = Words::new(2, 2);
//! let policy = || MlpPolicy::tabular(&env, ByKey::new(env, 9), MlpPolicyConfig::default(), Device::Cpu, Kind::Float);
//! let reward = |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; states.len()]) };
//!
//! let learner = Learner::listen("127.0.0.1:0".parse().unwrap(), LearnerConfig::default())?;
//! let (address, mut monitor) = (learner.address(), learner.monitor());
//! # let policy_of_actor = policy()?;
//! // A process of its own, on this machine or another one.
//! let actor = std::thread::spawn(move || {
//! #   let policy = || Ok::<_, gfn::Error>(policy_of_actor);
//!     Actor::connect(address, env, reward, policy()?, ActorConfig::default())?.run()
//! });
//! let buffer = ReplayBuffer::new(ReplayConfig { capacity: 1_000, eviction: Eviction::Fifo, draw: Draw::Uniform })?;
//! let config = TrainerConfig { batch: 16, ..TrainerConfig::default() };
//! let mut trainer = Trainer::new(env, reward, policy()?, TrajectoryBalance, config, Rng::seeded(0))?
//!     .with_replay(buffer)
//!     .with_fresh(learner)?;
//! Fit::new(20).observe(&mut monitor).run(&mut trainer)?;
//! drop(trainer);
//! assert!(actor.join().unwrap()? >= 160 && monitor.counts().used >= 160);
//! # Ok::<(), gfn::Error>(())
//! ```
//!
//! # How far they may be apart
//!
//! | what | bound |
//! |---|---|
//! | walks that wait | [`LearnerConfig::queue`]: an actor waits for the answer to its last message |
//! | age of the parameters that drew a walk, in steps | [`LearnerConfig::max_staleness`]: what is older is dropped and counted |
//! | use of each walk | [`LearnerConfig::max_reuse`]: the learner waits |
//!
//! Where fewer fresh trajectories have come than [`TrainerConfig::source`](gfn::train::TrainerConfig::source) asks for, replayed ones fill the
//! batch, and training goes on; where more have come, the rest goes into the replay buffer alone, and actors needn't wait. Runs aren't reproducible: what comes when depends on the machines. Objectives must learn from any trajectory;
//! the first step refuses others.
//!
//! # Conditions
//!
//! Where the trainer has conditions ([`Trainer::with_conditions`](gfn::train::Trainer::with_conditions)), actors draw them from the same source
//! ([`Actor::connect_conditional`]), and send them with their walks. An actor whose conditions have another width or precision is refused at
//! its greeting, walks under numbers that aren't finite or that the source would not give ([`ConditionSource::check`](gfn::condition::ConditionSource::check)) with
//! their message.
//!
//! # Several learners
//!
//! Learners of trainers that train as one ([`Trainer::with_group`](gfn::train::Trainer::with_group)) each have actors of their own. Made
//! [`sharded`](Learner::sharded), they pass walks on, so that each buffer holds the objects whose keys fall to it; each trainer draws from its own. Actors draw on while the first of
//! them measures, until the queue is full.
//!
//! # What goes wrong
//!
//! An actor that dies is cut off at once, one that is stopped after [`LearnerConfig::timeout`]; nobody waits for either. An actor gets
//! [`Error::Peer`](gfn::Error::Peer) where the learner has died or is stopped, and may connect again. A peer of another model, environment or version, walks
//! that can't be replayed and bytes that mean nothing are refused and counted ([`Counts::refused`], [`Monitor::last_refusal`]); sizes are checked before
//! memory is taken.
//!
//! # Safety of a network
//! Connections are plain TCP, without encryption or passwords: whoever reaches the learner's port can send it walks with log-rewards of
//! their own. Listen at a loopback address, or in a network that you trust.
//!
//! They aren't c10d's: gloo ends the process that gets a message of another length than it expects.

mod actor;
mod conditions;
mod config;
mod connection;
mod frame;
mod heartbeat;
mod learner;
mod message;
mod monitor;
mod shards;
mod shared;
mod weights;

pub use actor::{Actor, ActorConfig};
pub use config::LearnerConfig;
pub use learner::Learner;
pub use monitor::{Counts, Monitor};
