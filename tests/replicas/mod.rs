//! Replicas on threads.

mod checkpoints;
mod evaluation;
mod gradients;
mod runs;

use crate::words::{count, fresh, with_flow, words};
use gfn::collective::Replica;
use gfn::objective::TrajectoryBalance;
use gfn::policy::{KHot, MlpPolicy, Policy};
use gfn::testing::Words;
use gfn::train::{AverageFor, Trainer};
use gfn::{Result, Rng};
use tch::{Kind, Tensor};

pub(crate) fn parameters<P: Policy<Words>>(trainer: &Trainer<Words, P>) -> Vec<f64> {
    let parameters = trainer.policy().parameters().unwrap();
    let all: Vec<Tensor> = parameters.iter().map(|p| p.tensor.detach().to_kind(Kind::Double).reshape([-1])).collect();
    Vec::try_from(Tensor::cat(&all, 0)).unwrap()
}

pub(crate) fn furthest(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

pub(crate) fn trainer(replica: Replica) -> Result<Trainer<Words, MlpPolicy<KHot>>> {
    let make = Trainer::new(words(), count, with_flow(), TrajectoryBalance, fresh(16), Rng::seeded(1))?;
    make.with_average(0.9, AverageFor::Sampling)?.with_collective(replica)
}
