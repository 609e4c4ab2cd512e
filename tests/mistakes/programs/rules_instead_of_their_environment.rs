//! expected: `HyperGrid` is not an environment
//! expected: `.env()`
//!
//! The texts after `expected:` are parts of the compiler's error message. This program must not compile,
//! because it gives the trainer the rules of a grid instead of the environment of these rules.
use gfn::env::{Rows, VectorStates};
use gfn::objective::TrajectoryBalance;
use gfn::policy::UniformPolicy;
use gfn::tch::Tensor;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::hypergrid::HyperGrid;

fn main() -> Result<()> {
    let reward =
        |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; states.len()]) };
    let config = TrainerConfig::default();
    Trainer::new(HyperGrid::new(2, 8)?, reward, UniformPolicy, TrajectoryBalance, config, Rng::seeded(0))?;
    Ok(())
}
