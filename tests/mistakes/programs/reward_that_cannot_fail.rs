//! expected: expected `Result<Vec<f64>, Error>`, found `Vec<{float}>`
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
