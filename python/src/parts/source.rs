//! Objects that a function of Python gives anew for each batch.

use gfn::env::Rows;
use gfn::rollout::{Sampler, Trajectories};
use gfn::train::TrainEnv;
use gfn::train::{BatchRequest, Context, Persist, Source};
use gfn::{Error, Result, Rng};
use pyo3::prelude::*;

use crate::errors::passed_on;
use crate::kept::Object;
use crate::objects::{Border, finished};

/// A function from a number and a random generator of numpy to so many objects; paths to them are drawn back by P_B.
pub(super) struct CalledSource<S> {
    pub(super) function: Object,
    pub(super) border: Border<S>,
}

impl<E: TrainEnv> Persist<E> for CalledSource<E::States> {
    fn name(&self) -> &str {
        "source"
    }
}

impl<E: TrainEnv> Source<E> for CalledSource<E::States> {
    fn draw(&mut self, request: BatchRequest, context: &Context<E>, rng: &mut Rng) -> Result<Option<Trajectories<E>>> {
        let n = request.max;
        let seed = rng.below(1 << 53) as u64;
        let asked = |py: Python<'_>| {
            let generator = py.import("numpy")?.getattr("random")?.call_method1("default_rng", (seed,))?;
            (self.border.read)(&self.function.bind(py).call1((n, generator))?, "what the source gave")
        };
        let objects = tch::no_grad(|| Python::attach(asked)).map_err(passed_on("the source"))?;
        if objects.len() != n {
            let remedy = "give as many objects as are asked for";
            return Err(Error::shape("the source's objects", [n as i64], [objects.len() as i64], remedy));
        }
        // With draws of its own, so that what is looked at twice is drawn once.
        finished(&context.env, &objects, &mut Rng::seeded(seed))?;
        Sampler::new(&context.env, context.policy())
            .max_steps(context.config.max_steps)
            .backward(&objects, rng)
            .map(Some)
    }
}
