//! Fresh objects that a function of Python finds, instead of the policy.

use std::sync::Arc;

use gfn::env::Rows;
use gfn::rollout::{Sampler, Trajectories};
use gfn::train::{BatchRequest, Context, Persist, Source, TrainEnv};
use gfn::{Error, Result, Rng};
use pyo3::prelude::*;
use tch::Tensor;

use crate::border::{Border, check_finished};
use crate::errors::python_error;
use crate::kinds::PyEnv;
use crate::paths::Paths;
use crate::references::Object;
use crate::reward::numbers;
use crate::tensors;

/// A function from a request and a random generator of numpy to objects; paths to them are drawn backwards by P_B.
pub(super) struct PyFreshSource<S> {
    pub(super) function: Object,
    pub(super) border: Arc<dyn Border<S>>,
    /// The width of a condition; 0 without.
    pub(super) width: usize,
    /// The seed of its streams: each step has its own, so that a resumed run draws what it would have drawn.
    pub(super) seed: u64,
}

/// The answer of the function.
enum Answer<S> {
    /// Objects, log R of each if it is known, and their conditions if there are any.
    Objects { objects: S, log_rewards: Option<Vec<f64>>, conditions: Option<Tensor> },
    /// Whole trajectories, with the same.
    Paths(Py<Paths>),
}

impl<S: Rows + 'static> PyFreshSource<S> {
    fn call(&self, request: BatchRequest, seed: u64, py: Python<'_>) -> PyResult<Option<Answer<S>>> {
        let bounds = (request.min, request.max, request.allow_more);
        let arguments = (self.function.as_ref(), bounds, self.width, seed);
        let answer = py.import("gfn_rs._fresh")?.call_method1("asked", arguments)?;
        let Some((objects, log_rewards, conditions)) =
            answer.extract::<Option<(Bound<'_, PyAny>, Option<Bound<'_, PyAny>>, Option<Bound<'_, PyAny>>)>>()?
        else {
            return Ok(None);
        };
        if let Ok(paths) = objects.cast::<Paths>() {
            return Ok(Some(Answer::Paths(paths.clone().unbind())));
        }
        let objects = self.border.read(&objects, "what the fresh source gave")?;
        let n = objects.len();
        let log_rewards = match log_rewards {
            None => None,
            Some(log_rewards) => Some(numbers(&log_rewards, n, "the fresh source", "log R")?),
        };
        let conditions = match conditions {
            None => None,
            Some(conditions) => {
                let arguments = (conditions, n, self.width, "the conditions of the fresh source are");
                let checked = py.import("gfn_rs._conditions")?.call_method1("checked", arguments)?;
                Some(tensors::from_python(&checked)?)
            }
        };
        Ok(Some(Answer::Objects { objects, log_rewards, conditions }))
    }
}

impl<E: TrainEnv> Persist<E> for PyFreshSource<E::States> {
    fn name(&self) -> &str {
        "fresh"
    }
}

/// Refuses conditions that the trainer can't have drawn.
fn check_conditions<E: TrainEnv>(context: &Context<E>, conditions: Option<&Tensor>) -> Result<()> {
    match (&context.conditions, conditions) {
        (Some(source), Some(conditions)) => source.check(conditions),
        _ => Ok(()),
    }
}

impl<E: PyEnv> Source<E> for PyFreshSource<E::States> {
    fn draw(&mut self, request: BatchRequest, context: &Context<E>, _: &mut Rng) -> Result<Option<Trajectories<E>>> {
        let mut rng = Rng::seeded(Rng::mix64(self.seed ^ context.step as u64));
        let seed = rng.below(1 << 53) as u64;
        let min = request.min;
        let answer = tch::no_grad(|| Python::attach(|py| self.call(request, seed, py)));
        let (objects, log_rewards, conditions) = match answer.map_err(python_error("the fresh source"))? {
            None if min == 0 => return Ok(None),
            None => {
                return Err(Error::missing(
                    "the fresh source",
                    "objects: it gave None, for none yet, and nothing stands in for them",
                    "give at least `request.min` objects, or a trainer a buffer (`sources=[.., Replay()]`) that fills a batch in \
                     their place",
                ));
            }
            Some(Answer::Paths(paths)) => {
                // This process built each of them from the start.
                let mut paths = paths.get().lock()?;
                let trajectories = &paths.of_env(&context.env)?.batch.trajectories;
                check_conditions(context, trajectories.conditions())?;
                return Ok(Some(trajectories.clone()));
            }
            Some(Answer::Objects { objects, log_rewards, conditions }) => (objects, log_rewards, conditions),
        };
        check_conditions(context, conditions.as_ref())?;
        // With a stream of its own, so that a second check changes nothing.
        check_finished(&context.env, &objects, &mut Rng::seeded(seed))?;
        let sampler = Sampler::new(&context.env, context.policy()).max_steps(context.config.max_steps);
        let trajectories = match &conditions {
            None => sampler.backward(&objects, &mut rng)?,
            Some(conditions) => sampler.backward_conditional(&objects, conditions, &mut rng)?,
        };
        match log_rewards {
            None => Ok(Some(trajectories)),
            Some(log_rewards) => trajectories.with_log_rewards(log_rewards).map(Some),
        }
    }
}
