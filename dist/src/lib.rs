//! Replicas of a [gfn](https://docs.rs/gfn) training run in several processes, on one machine or many.
//!
//! A [`Group`] is a [`Collective`](gfn::collective::Collective) over TCP by c10d, the core of torch.distributed, which every libtorch ships.
//! Nothing else has to be installed; torchrun, Slurm, mpirun or `gfn-dist local` starts the processes ([`Launch`] reads what they
//! say). Trainers train as one in them as on threads:
//!
//! ```no_run
//! use gfn::train::Fit;
//! # fn trainer() -> gfn::Result<gfn::train::Trainer<gfn::testing::Words, gfn::policy::UniformPolicy>> { unimplemented!() }
//! let timeout = std::time::Duration::from_secs(300);
//! let mut trainer = trainer()?;
//! if let Some(launch) = gfn_dist::Launch::from_env()? {
//!     trainer = trainer.with_collective(launch.connect(timeout)?)?;
//! }
//! Fit::new(1_000).run(&mut trainer)?;
//! # Ok::<(), gfn::Error>(())
//! ```
//!
//! # Safety of a network
//! c10d knows neither encryption nor passwords: whoever reaches its ports can read and disturb a run. Sockets bind to the loopback unless
//! the launcher names another address; do that in networks that you trust alone.

mod ffi;
mod group;
mod launch;

pub use group::{Group, Store};
pub use launch::Launch;
