//! Trains [gfn](https://docs.rs/gfn) models in several processes, on one machine or on many. Each process
//! trains a replica of the model, with a share of each batch.
//!
//! A [`ProcessGroup`] is a [`Group`](gfn::group::Group) over TCP. The group uses c10d, the core of
//! torch.distributed, which is part of every libtorch, so that nothing else has to be installed. Processes
//! are started by torchrun, Slurm, mpirun or `gfn-dist local`. [`Launch`] reads the environment variables of
//! these launchers. A training program is the same as for threads:
//!
//! ```
//! use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
//! use gfn::run::Fit;
//! use gfn::train::{Trainer, TrainerConfig};
//! use gfn::{
//!     Rng,
//!     env::{Rows, VectorStates},
//!     examples::word_env,
//!     objective::TrajectoryBalance,
//! };
//! use gfn_dist::Launch;
//! let env = word_env(2, 2);
//! let config = MlpPolicyConfig::default();
//! let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), config, tch::Device::Cpu, tch::Kind::Float)?;
//! let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
//! // Every process builds the same trainer, from the same seed.
//! let mut trainer =
//!     Trainer::new(env, reward, policy, TrajectoryBalance, TrainerConfig::default(), Rng::seeded(0))?;
//! // `None` if no launcher has started this program.
//! if let Some(launch) = Launch::from_env()? {
//!     trainer = trainer.with_group(launch.connect(std::time::Duration::from_secs(300))?)?;
//! }
//! Fit::new(5).run(&mut trainer)?;
//! # Ok::<(), gfn::Error>(())
//! ```
//!
//! # Safety of a network
//! c10d has no encryption and no passwords: anyone who can reach its ports can read and disturb a run.
//! Sockets bind to the loopback address unless the launcher gives another address (then the store binds to
//! all addresses of the first machine). Use other addresses only in networks that you trust.

mod ffi;
mod group;
mod header;
mod launch;
mod members;

pub use group::{ProcessGroup, Store};
pub use launch::Launch;
