//! Sources of training objects from Python: a data set, and functions that are called for each batch.

use std::sync::Arc;

use gfn::env::{Rows, log_rewards};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Container, Trajectories};
use gfn::train::{BatchRequest, Context, Persist, Source, TrainEnv, Trainer};
use gfn::{Error, Result, Rng};
use pyo3::prelude::*;
use tch::Tensor;

use super::functions::{StateFunction, draw_seed, numpy_rng};
use crate::border::{Border, check_finished, draw_backward, walks_to};
use crate::conditions::check_conditions;
use crate::errors::call_python;
use crate::kinds::PyEnv;
use crate::paths::Paths;
use crate::references::Object;
use crate::reward::numbers;
use crate::tensors::PyTensor;

/// The largest number of objects whose rewards are computed in one call.
const MAX_BATCH: usize = 4096;

/// Builds a buffer with the objects of a data set. The trainer's reward computes log R of these objects,
/// under their conditions if there are any.
pub(super) fn data_buffer<E: TrainEnv<States: 'static>>(
    trainer: &Trainer<E>,
    objects: &Py<PyAny>,
    conditions: Option<&Tensor>,
    border: &Arc<dyn Border<E::States>>,
    rng: &mut Rng,
) -> Result<ReplayBuffer<E>> {
    let objects = border.read_some(objects, "Data.objects")?;
    if let Some(conditions) = conditions {
        let expected = [objects.len() as i64];
        let got = [conditions.size()[0]];
        if expected != got {
            let remedy = "give one row of conditions for each object";
            return Err(Error::shape("the conditions of objects", expected, got, remedy));
        }
    }
    check_conditions(trainer.context(), conditions)?;
    let config = ReplayConfig { capacity: objects.len(), eviction: Eviction::Fifo, draw: Draw::Uniform };
    let mut buffer = ReplayBuffer::new(config)?.terminal_only();
    let rows: Vec<usize> = (0..objects.len()).collect();
    for rows in rows.chunks(MAX_BATCH) {
        let mut walks = walks_to(trainer.env(), &objects.select(rows), rng)?;
        if let Some(conditions) = conditions {
            walks = walks.with_conditions(conditions.narrow(0, rows[0] as i64, rows.len() as i64))?;
        }
        let rewards = log_rewards(trainer.reward(), &walks.terminal, walks.conditions())?;
        buffer.add(trainer.env(), &walks, &rewards)?;
    }
    Ok(buffer)
}

/// Checks objects from Python, and draws a path to each object by backward steps of P_B.
fn paths_to<E: TrainEnv>(
    context: &Context<E>,
    objects: &E::States,
    conditions: Option<&Tensor>,
    check_seed: u64,
    rng: &mut Rng,
) -> Result<Trajectories<E>> {
    // The check uses a separate random stream, so that it doesn't change any other random numbers.
    check_finished(&context.env, objects, &mut Rng::seeded(check_seed))?;
    let sampler = context.sampler(&context.env, context.policy());
    draw_backward(&sampler, objects, conditions, rng)
}

impl<E: TrainEnv> Persist<E> for StateFunction<E::States> {
    fn name(&self) -> &str {
        "source"
    }
}

/// The source whose Python function gets a number n and a random generator of numpy, and returns n objects.
/// Paths to these objects are drawn by backward steps of P_B.
impl<E: TrainEnv<States: 'static>> Source<E> for StateFunction<E::States> {
    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<E>,
        rng: &mut Rng,
    ) -> Result<Option<Trajectories<E>>> {
        let n = request.max;
        let seed = draw_seed(rng);
        let call = |py: Python<'_>| {
            let answer = self.function.bind(py).call1((n, numpy_rng(py, seed)?))?;
            self.border.read(&answer, "the result of the source")
        };
        let objects = tch::no_grad(|| call_python("the source", call))?;
        if objects.len() != n {
            let remedy = "return as many objects as the function's argument n says";
            return Err(Error::shape("the source's objects", [n as i64], [objects.len() as i64], remedy));
        }
        paths_to(context, &objects, None, seed, rng).map(Some)
    }
}

/// A source of fresh objects or trajectories. Its Python function gets the smallest and the largest number of
/// objects that the trainer needs, and a random generator of numpy. If the function returns objects, paths to
/// these objects are drawn by backward steps of P_B.
pub(super) struct FreshFunction<S> {
    pub(super) function: Object,
    pub(super) border: Arc<dyn Border<S>>,
    /// The length of a condition's vector; 0 if there are no conditions.
    pub(super) width: usize,
    /// The seed of the function's random generators. Each step has a separate generator, so that a resumed
    /// run draws the same objects as an uninterrupted run.
    pub(super) seed: u64,
}

/// The result of the Python function of a source of new objects or trajectories. The Python module
/// `gfn_rs._fresh` has checked it.
#[derive(FromPyObject)]
enum FreshAnswer {
    /// Whole trajectories, from whose actions the trainer learns.
    Paths(Py<Paths>),
    /// Objects, log R of each object if it is known, and the conditions of the objects if there are any.
    Objects(Py<PyAny>, Option<Py<PyAny>>, Option<Py<PyAny>>),
}

/// Objects, log R of each object if it is known, and the conditions of the objects if there are any.
type FreshObjects<S> = (S, Option<Vec<f64>>, Option<Tensor>);

impl<S: Rows + 'static> FreshFunction<S> {
    fn read_objects(
        &self,
        py: Python<'_>,
        objects: &Py<PyAny>,
        log_rewards: Option<Py<PyAny>>,
        conditions: Option<Py<PyAny>>,
    ) -> PyResult<FreshObjects<S>> {
        let objects = self.border.read(objects.bind(py), "the result of the fresh source")?;
        let n = objects.len();
        let read = |values: Py<PyAny>| numbers(values.bind(py), n, "the fresh source", "log R");
        let log_rewards = log_rewards.map(read).transpose()?;
        let check = |conditions: Py<PyAny>| {
            let arguments = (conditions, n, self.width, "the conditions of the fresh source are");
            py.import("gfn_rs._conditions")?.call_method1("checked", arguments)?.extract::<PyTensor>()
        };
        let conditions = conditions.map(check).transpose()?;
        Ok((objects, log_rewards, conditions.map(|PyTensor(conditions)| conditions)))
    }
}

impl<E: TrainEnv> Persist<E> for FreshFunction<E::States> {
    fn name(&self) -> &str {
        "fresh"
    }
}

impl<E: PyEnv> Source<E> for FreshFunction<E::States> {
    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<E>,
        _: &mut Rng,
    ) -> Result<Option<Trajectories<E>>> {
        let mut rng = Rng::seeded(Rng::mix64(self.seed ^ context.step as u64));
        let seed = draw_seed(&mut rng);
        let bounds = (request.min, request.max, request.allow_more);
        let ask = |py: Python<'_>| {
            let arguments = (self.function.as_ref(), bounds, self.width, seed);
            py.import("gfn_rs._fresh")?.call_method1("asked", arguments)?.extract()
        };
        match tch::no_grad(|| call_python("the fresh source", ask))? {
            Some(FreshAnswer::Paths(paths)) => {
                // Trajectories were built in this process from the initial state, so their moves need no
                // further check.
                let mut paths = paths.get().lock()?;
                let trajectories = &paths.for_env(&context.env)?.batch.trajectories;
                check_conditions(context, trajectories.conditions())?;
                Ok(Some(trajectories.clone()))
            }
            Some(FreshAnswer::Objects(objects, log_rewards, conditions)) => {
                let read = |py: Python<'_>| self.read_objects(py, &objects, log_rewards, conditions);
                let (objects, log_rewards, conditions) =
                    tch::no_grad(|| call_python("the fresh source", read))?;
                check_conditions(context, conditions.as_ref())?;
                let trajectories = paths_to(context, &objects, conditions.as_ref(), seed, &mut rng)?;
                match log_rewards {
                    None => Ok(Some(trajectories)),
                    Some(log_rewards) => trajectories.with_log_rewards(log_rewards).map(Some),
                }
            }
            None if request.min == 0 => Ok(None),
            None => Err(Error::missing(
                "the fresh source",
                "objects, but it returned None, and the trainer has no buffer that could replace them",
                "return at least `request.min` objects, or give the trainer a replay buffer (`sources=[.., \
                 Replay()]`), from which it fills the batch instead",
            )),
        }
    }
}
