//! A [gfn](https://docs.rs/gfn) training run in several processes, on one machine or many: replicas that train as one.
//!
//! A [`ProcessGroup`] is a [`Group`](gfn::group::Group) over TCP by c10d, the core of torch.distributed, which every libtorch ships.
//! Nothing else has to be installed; torchrun, Slurm, mpirun or `gfn-dist local` starts the processes ([`Launch`] reads what they
//! say). Trainers train as one in them as on threads:
//!
//! ```
//! use gfn::{env::{Rows, VectorStates}, objective::TrajectoryBalance, examples::word_env, Rng};
//! use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
//! use gfn::run::Fit;
//! use gfn::train::{Trainer, TrainerConfig};
//! use gfn_dist::Launch;
//! let env = word_env(2, 2);
//! let config = MlpPolicyConfig::default();
//! let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), config, tch::Device::Cpu, tch::Kind::Float)?;
//! let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
//! // The same in every process, from the same seed.
//! let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, TrainerConfig::default(), Rng::seeded(0))?;
//! // `None` for a program that was started by itself.
//! if let Some(launch) = Launch::from_env()? {
//!     trainer = trainer.with_group(launch.connect(std::time::Duration::from_secs(300))?)?;
//! }
//! Fit::new(5).run(&mut trainer)?;
//! # Ok::<(), gfn::Error>(())
//! ```
//!
//! # Safety of a network
//! c10d knows neither encryption nor passwords: whoever reaches its ports can read and disturb a run. Sockets bind to the loopback unless
//! the launcher names another address (the store then binds to all addresses of the first machine); do that in networks that you trust alone.

mod ffi;
mod group;
mod header;
mod launch;

pub use group::{ProcessGroup, Store};
pub use launch::Launch;
