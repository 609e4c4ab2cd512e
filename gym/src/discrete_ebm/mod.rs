//! Spins that are set one by one, with an Ising energy: a discrete energy-based model (Zhang et al.,
//! *Generative Flow Networks for Discrete Probabilistic Modeling*, 2022).

mod env;
mod lattice;
mod policy;
mod reward;

pub use env::DiscreteEbm;
pub use policy::{EbmBackward, EbmPolicy};
pub use reward::IsingReward;
