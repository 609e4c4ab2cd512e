//! expected: expected `Result<Vec<f64>, Error>`, found `Vec<{float}>`
//!
//! The text after `expected:` is a part of the compiler's error message. This program must not compile,
//! because its reward returns a plain list instead of a `Result`.
use gfn::env::{Rows, VectorStates};
use gfn::objective::TrajectoryBalance;
use gfn::policy::UniformPolicy;
use gfn::tch::Tensor;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::hypergrid::HyperGrid;

fn main() -> Result<()> {
    let env = HyperGrid::new(2, 8)?.env();
    let reward = |states: &VectorStates, _: Option<&Tensor>| vec![0.0; states.len()];
    Trainer::new(env, reward, UniformPolicy, TrajectoryBalance, TrainerConfig::default(), Rng::seeded(0))?;
    Ok(())
}
