//! Searches among objects by a function of Python.

use std::sync::Arc;

use gfn::env::{Reward, Rows, log_rewards};
use gfn::train::TrainEnv;
use gfn::{Result, Rng};
use gfn_extras::explore::{ObjectSearch, SearchResults};
use pyo3::prelude::*;

use crate::border::{Border, check_finished};
use crate::errors::python_error;
use crate::references::Object;

/// A function from objects and a random generator of numpy to any number of other objects.
pub(super) struct PySearch<S> {
    pub(super) function: Object,
    pub(super) border: Arc<dyn Border<S>>,
}

impl<E: TrainEnv<States: 'static>> ObjectSearch<E> for PySearch<E::States> {
    fn search(
        &self,
        env: &E,
        objects: &E::States,
        reward: &dyn Reward<E::States>,
        rng: &mut Rng,
    ) -> Result<SearchResults<E::States>> {
        let seed = rng.below(1 << 53) as u64;
        let call = |py: Python<'_>| {
            let arguments = (self.border.show(py, objects)?, numpy_rng(py, seed)?);
            self.border.read(&self.function.bind(py).call1(arguments)?, "what the search found")
        };
        let results = Python::attach(call).map_err(python_error("the search"))?;
        if results.is_empty() {
            return Ok(SearchResults { objects: results, log_rewards: Vec::new(), reward_calls: 0 });
        }
        // With a stream of its own, so that a second check changes nothing.
        check_finished(env, &results, &mut Rng::seeded(seed))?;
        let log_rewards = log_rewards(reward, &results, None)?;
        Ok(SearchResults { reward_calls: results.len(), objects: results, log_rewards })
    }
}

/// A random generator of numpy.
pub(super) fn numpy_rng(py: Python<'_>, seed: u64) -> PyResult<Bound<'_, PyAny>> {
    py.import("numpy")?.getattr("random")?.call_method1("default_rng", (seed,))
}
