//! expected: is not a policy of `VectorEnv`
//!
//! The text after `expected:` is a part of the compiler's error message. This program must not compile,
//! because it trains the policy of a graph environment on a grid.
use gfn::env::{Rows, VectorStates};
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::policy::GraphPolicy;
use gfn::tch::{Device, Kind, Tensor};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::hypergrid::HyperGrid;
use gfn_gym::ring::Ring;

fn main() -> Result<()> {
    let mut rng = Rng::seeded(0);
    let ring = Ring::new(4, gfn::graph::GraphKind::Directed)?;
    let net = GraphNet::new(ring.env(), GraphNetConfig::default(), Device::Cpu, Kind::Float, &mut rng)?;
    let reward =
        |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; states.len()]) };
    let env = HyperGrid::new(2, 8)?.env();
    Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, TrainerConfig::default(), rng)?;
    Ok(())
}
