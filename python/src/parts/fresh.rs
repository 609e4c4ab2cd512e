//! Fresh objects that a function of Python finds in the policy's place.

use gfn::env::Rows;
use gfn::rollout::{Sampler, Trajectories};
use gfn::train::TrainEnv;
use gfn::train::{BatchRequest, Context, Persist, Source};
use gfn::{Error, Result, Rng};
use pyo3::prelude::*;
use tch::Tensor;

use crate::errors::passed_on;
use crate::kept::Object;
use crate::layers::{Held, Paths, other_states};
use crate::objects::{Border, finished};
use crate::reward::numbers;
use crate::tensors;

/// A function from what is wanted and a random generator of numpy to objects that somebody found; paths to them are drawn back by P_B.
pub(super) struct CalledFresh<S> {
    pub(super) function: Object,
    pub(super) border: Border<S>,
    /// Numbers of a condition; 0 without.
    pub(super) width: usize,
    /// Where its streams begin: each step has its own, so that a run that goes on draws what it would have drawn.
    pub(super) seed: u64,
}

/// What the function gave.
enum Given<S> {
    /// Objects, log R of each where it is known, and their conditions where there are any.
    Objects { objects: S, log_rewards: Option<Vec<f64>>, conditions: Option<Tensor> },
    /// Whole trajectories, which know the same.
    Paths(Py<Paths>),
}

const WHO: &str = "what the fresh source gave";

impl<S: Rows> CalledFresh<S> {
    fn ask(&self, request: BatchRequest, seed: u64, py: Python<'_>) -> PyResult<Option<Given<S>>> {
        let asked = (self.function.as_ref(), (request.min, request.max, request.allow_more), self.width, seed);
        let answer = py.import("gfn_rs._fresh")?.call_method1("asked", asked)?;
        if answer.is_none() {
            return Ok(None);
        }
        let (objects, log_rewards, conditions): (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>) =
            answer.extract()?;
        if let Ok(paths) = objects.cast::<Paths>() {
            return Ok(Some(Given::Paths(paths.clone().unbind())));
        }
        let objects = (self.border.read)(&objects, WHO)?;
        let log_rewards = (!log_rewards.is_none())
            .then(|| numbers(&log_rewards, objects.len(), "the fresh source", "log R"))
            .transpose()?;
        let conditions = (!conditions.is_none())
            .then(|| {
                let checked = (conditions, objects.len(), self.width, "the conditions of the fresh source are");
                tensors::from_python(&py.import("gfn_rs._conditions")?.call_method1("checked", checked)?)
            })
            .transpose()?;
        Ok(Some(Given::Objects { objects, log_rewards, conditions }))
    }
}

impl<E: TrainEnv> Persist<E> for CalledFresh<E::States> {
    fn name(&self) -> &str {
        "fresh"
    }
}

impl<E: TrainEnv + Clone + 'static> Source<E> for CalledFresh<E::States>
where
    E::States: 'static,
{
    fn draw(&mut self, request: BatchRequest, context: &Context<E>, _: &mut Rng) -> Result<Option<Trajectories<E>>> {
        let mut rng = Rng::seeded(Rng::mix64(self.seed ^ context.step as u64));
        let seed = rng.below(1 << 53) as u64;
        let asked = tch::no_grad(|| Python::attach(|py| self.ask(request, seed, py)));
        let Some(given) = asked.map_err(passed_on("the fresh source"))? else {
            if request.min > 0 {
                let remedy = "give at least `request.min` objects, or a trainer a buffer (`sources=[.., Replay()]`) that fills a batch in their place";
                return Err(Error::missing(
                    "the fresh source",
                    "objects: it gave None, for none yet, and nothing stands in for them",
                    remedy,
                ));
            }
            return Ok(None);
        };
        let check = |conditions: Option<&Tensor>| match (&context.conditions, conditions) {
            (Some(source), Some(conditions)) => source.check(conditions),
            _ => Ok(()),
        };
        let (objects, log_rewards, conditions) = match given {
            Given::Objects { objects, log_rewards, conditions } => (objects, log_rewards, conditions),
            Given::Paths(paths) => {
                let held = paths.get().hold()?;
                // Each was walked from the start by this process.
                let held: &Held<E> = held.as_any().downcast_ref().ok_or_else(other_states)?;
                if held.env().fingerprint()? != context.env.fingerprint()? {
                    return Err(other_states());
                }
                check(held.batch.trajectories.conditions())?;
                return Ok(Some(held.batch.trajectories.clone()));
            }
        };
        check(conditions.as_ref())?;
        // With draws of its own, so that what is looked at twice is drawn once.
        finished(&context.env, &objects, &mut Rng::seeded(seed))?;
        let sampler = Sampler::new(&context.env, context.policy()).max_steps(context.config.max_steps);
        let drawn = match &conditions {
            None => sampler.backward(&objects, &mut rng)?,
            Some(conditions) => sampler.backward_conditional(&objects, conditions, &mut rng)?,
        };
        match log_rewards {
            None => Ok(Some(drawn)),
            Some(log_rewards) => drawn.with_log_rewards(log_rewards).map(Some),
        }
    }
}
