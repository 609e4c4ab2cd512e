//! QM9str: molecules as strings of five building blocks, which are joined by their attachment atoms (Shen
//! et al. 2023).
//!
//! A finished string has five blocks. Each block is one of 11 small molecules from QM9. A table has a score
//! for each of the 161,051 finished strings: a proxy of the HOMO-LUMO gap. Blocks are added at either end,
//! so 16 trajectories lead to each string. The distribution of a policy can be computed exactly.
//!
//! ```
//! use gfn::env::{EnumerableEnv, Env, Reward};
//! use gfn_molecules::qm9str::{Qm9Str, Qm9StrReward};
//! let reward = Qm9StrReward::standard();
//! let states = Qm9Str.states_of(&[[0, 1, 2, 3, 4]])?;
//! assert_eq!(reward.log_reward(&states, None)?.len(), 1);
//! assert!((reward.log_z() - 11.9267).abs() < 1e-4);
//! # Ok::<(), gfn::Error>(())
//! ```

mod blocks;
mod env;
mod reward;

pub use blocks::{BLOCKS, Block, molecule};
pub use env::Qm9Str;
pub use reward::Qm9StrReward;
