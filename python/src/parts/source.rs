//! Objects that a function of Python gives anew for each batch.

use std::sync::Arc;

use gfn::env::Rows;
use gfn::rollout::{Sampler, Trajectories};
use gfn::train::{BatchRequest, Context, Persist, Source, TrainEnv};
use gfn::{Error, Result, Rng};
use pyo3::prelude::*;

use super::search::numpy_rng;
use crate::border::{Border, check_finished};
use crate::errors::python_error;
use crate::references::Object;

/// A function from a number n and a random generator of numpy to n objects; paths to them are drawn backwards by P_B.
pub(super) struct PySource<S> {
    pub(super) function: Object,
    pub(super) border: Arc<dyn Border<S>>,
}

impl<E: TrainEnv> Persist<E> for PySource<E::States> {
    fn name(&self) -> &str {
        "source"
    }
}

impl<E: TrainEnv<States: 'static>> Source<E> for PySource<E::States> {
    fn draw(&mut self, request: BatchRequest, context: &Context<E>, rng: &mut Rng) -> Result<Option<Trajectories<E>>> {
        let n = request.max;
        let seed = rng.below(1 << 53) as u64;
        let call = |py: Python<'_>| {
            let answer = self.function.bind(py).call1((n, numpy_rng(py, seed)?))?;
            self.border.read(&answer, "what the source gave")
        };
        let objects = tch::no_grad(|| Python::attach(call)).map_err(python_error("the source"))?;
        if objects.len() != n {
            let remedy = "give as many objects as are asked for";
            return Err(Error::shape("the source's objects", [n as i64], [objects.len() as i64], remedy));
        }
        // With a stream of its own, so that a second check changes nothing.
        check_finished(&context.env, &objects, &mut Rng::seeded(seed))?;
        let sampler = Sampler::new(&context.env, context.policy()).max_steps(context.config.max_steps);
        sampler.backward(&objects, rng).map(Some)
    }
}
