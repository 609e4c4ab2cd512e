//! Searches among objects: a function of Python, or Langevin steps.

use std::sync::Arc;

use gfn::env::{Env, Reward, Rows, log_rewards};
use gfn::train::TrainEnv;
use gfn::{Result, Rng};
use gfn_extras::explore::{Found, ObjectSearch};
use gfn_gym::diffusion::{DiffusionSampling, Mala, MalaConfig, Target};
use pyo3::prelude::*;
use serde_json::Value;

use crate::errors::passed_on;
use crate::kept::Object;
use crate::objects::{Border, finished};
use crate::settings::over_defaults;

/// Any search.
pub(crate) struct AnySearch<E: Env>(Box<dyn ObjectSearch<E>>);

impl<E: Env> AnySearch<E> {
    pub(super) fn new(search: impl ObjectSearch<E> + 'static) -> Self {
        Self(Box::new(search))
    }
}

impl<E: Env> ObjectSearch<E> for AnySearch<E> {
    fn search(
        &self,
        env: &E,
        objects: &E::States,
        reward: &dyn Reward<E::States>,
        rng: &mut Rng,
    ) -> Result<Found<E::States>> {
        self.0.search(env, objects, reward, rng)
    }
}

/// Langevin steps on the target of a diffusion.
pub(crate) fn mala(
    env: &DiffusionSampling,
    target: Arc<dyn Target>,
    given: &Value,
) -> Result<AnySearch<DiffusionSampling>> {
    let config: MalaConfig = over_defaults("the settings of Mala", given, &[])?;
    Mala::new(env, target, config).map(AnySearch::new)
}

/// A function from objects and a random generator of numpy to other objects, as many as it likes.
pub(super) struct CalledSearch<S> {
    pub(super) function: Object,
    pub(super) border: Border<S>,
}

impl<E: TrainEnv> ObjectSearch<E> for CalledSearch<E::States>
where
    E::States: 'static,
{
    fn search(
        &self,
        env: &E,
        objects: &E::States,
        reward: &dyn Reward<E::States>,
        rng: &mut Rng,
    ) -> Result<Found<E::States>> {
        let seed = rng.below(1 << 53) as u64;
        let asked = |py: Python<'_>| {
            let generator = py.import("numpy")?.getattr("random")?.call_method1("default_rng", (seed,))?;
            let found = self.function.bind(py).call1(((self.border.show)(py, objects)?, generator))?;
            (self.border.read)(&found, "what the search found")
        };
        let found = Python::attach(asked).map_err(passed_on("the search"))?;
        if found.is_empty() {
            return Ok(Found { objects: found, log_rewards: Vec::new(), reward_calls: 0 });
        }
        // With draws of its own, so that what is looked at twice is drawn once.
        finished(env, &found, &mut Rng::seeded(seed))?;
        let log_rewards = log_rewards(reward, &found, None)?;
        Ok(Found { reward_calls: found.len(), objects: found, log_rewards })
    }
}
