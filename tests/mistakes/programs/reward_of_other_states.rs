//! expected: expected closure signature `for<'a, 'b> fn(&'a Vectors<u16>, Option<&'b gfn::prelude::Tensor>)
//!
//! The text after `expected:` is a part of the compiler's error message. This program must not compile,
//! because its reward takes graphs, but the states of the environment are vectors.
use gfn::env::Rows;
use gfn::graph::GraphStates;
use gfn::objective::TrajectoryBalance;
use gfn::policy::UniformPolicy;
use gfn::tch::Tensor;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::hypergrid::HyperGrid;

fn main() -> Result<()> {
    let env = HyperGrid::new(2, 8)?.env();
    let reward =
        |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; states.len()]) };
    Trainer::new(env, reward, UniformPolicy, TrajectoryBalance, TrainerConfig::default(), Rng::seeded(0))?;
    Ok(())
}
