//! The hyper-grid of Bengio et al. (*Flow Network based Generative Models*, 2021): the first tensor-state environment.

mod env;
mod features;
mod reward;
mod states;

pub use env::HyperGrid;
pub use features::{Coordinates, OneHot};
pub use reward::OriginalReward;
pub use states::GridStates;
