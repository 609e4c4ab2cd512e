//! expected: closure is expected to take 2 arguments, but it takes 1 argument
//! expected: to implement `gfn::env::Reward<Vectors<u16>>`
//!
//! The texts after `expected:` are parts of the compiler's error message. This program must not compile,
//! because its reward takes no conditions.
use gfn::env::VectorStates;
use gfn::objective::TrajectoryBalance;
use gfn::policy::UniformPolicy;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::hypergrid::HyperGrid;

fn main() -> Result<()> {
    let env = HyperGrid::new(2, 8)?.env();
    let reward = |states: &VectorStates| -> Result<Vec<f64>> { Ok(vec![0.0; states.values().len()]) };
    Trainer::new(env, reward, UniformPolicy, TrajectoryBalance, TrainerConfig::default(), Rng::seeded(0))?;
    Ok(())
}
