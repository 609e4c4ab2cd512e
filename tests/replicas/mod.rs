//! Tests of replicas that run on threads of one process.

mod checkpoints;
mod gradients;
mod other_runs;
mod rings;
mod runs;

use std::fs;
use std::ops::Range;
use std::path::Path;

use crate::words::{count, fresh, with_flow, words};
use gfn::env::{Env, VectorEnv};
use gfn::group::{Group, Replica};
use gfn::objective::TrajectoryBalance;
use gfn::rollout::{Container, Trajectories};
use gfn::train::{AverageFor, BatchRequest, Context, Persist, Source, Trainer};
use gfn::{Result, Rng};
use tch::{Kind, Tensor};

pub(crate) fn parameters(trainer: &Trainer<VectorEnv>) -> Vec<f64> {
    let parameters = trainer.policy().parameters().unwrap();
    let all: Vec<Tensor> =
        parameters.iter().map(|p| p.tensor.detach().to_kind(Kind::Double).reshape([-1])).collect();
    Vec::try_from(Tensor::cat(&all, 0)).unwrap()
}

pub(crate) fn trainer(replica: Replica) -> Result<Trainer<VectorEnv>> {
    let make = Trainer::new(words(), count, with_flow(), TrajectoryBalance, fresh(16), Rng::seeded(1))?;
    make.with_average(0.9, AverageFor::Sampling)?.with_group(replica)
}

/// Replaces the checkpoint `to` by a copy of the checkpoint `from`.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::remove_dir_all(to).ok();
    fs::create_dir_all(to).unwrap();
    for name in ["manifest.json", "model.safetensors"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// A source that gives each replica a fixed share of the trajectories `all`.
pub(crate) struct FixedShare<E: Env> {
    pub(crate) all: Trajectories<E>,
    pub(crate) start: usize,
}

impl<E: Env> Persist<E> for FixedShare<E> {
    fn name(&self) -> &str {
        "dealt"
    }
}

impl<E: Env + 'static> Source<E> for FixedShare<E> {
    fn draw(
        &mut self,
        request: BatchRequest,
        _: &Context<E>,
        _: &mut Rng,
    ) -> Result<Option<Trajectories<E>>> {
        self.all.select(self.start..self.start + request.max).map(Some)
    }
}

/// Returns the range of a batch's trajectories that belong to a replica, by the rule by which trainers divide
/// batches.
pub(crate) fn share(of: &dyn Group, batch: usize) -> Range<usize> {
    let before = |rank| rank * batch / of.size();
    before(of.rank())..before(of.rank() + 1)
}

fn norm(numbers: &[f64]) -> f64 {
    numbers.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Returns the largest relative distance between corresponding gradients of two lists.
pub(crate) fn largest_distance(whole: &[Vec<f64>], others: &[Vec<f64>]) -> f64 {
    assert!(whole.len() == others.len() && !whole.is_empty());
    let of_one = |(whole, other): (&Vec<f64>, &Vec<f64>)| {
        assert!(whole.len() == other.len() && norm(whole) > 1e-3, "a gradient that says nothing");
        norm(&whole.iter().zip(other).map(|(a, b)| a - b).collect::<Vec<_>>()) / norm(whole)
    };
    whole.iter().zip(others).map(of_one).fold(0.0, f64::max)
}
