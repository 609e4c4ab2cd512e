//! Python functions that a trainer calls: for searches, for new conditions of replayed objects (hindsight),
//! for the novelty of states, and for replay priorities.

use std::sync::Arc;

use gfn::condition::Hindsight;
use gfn::env::{Reward, Rows, log_rewards};
use gfn::replay::{Priority, StoredObject};
use gfn::train::TrainEnv;
use gfn::{Result, Rng};
use gfn_extras::explore::{Novelty, ObjectSearch, SearchResults};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tch::Tensor;

use crate::border::{Border, check_finished};
use crate::env::Failures;
use crate::errors::call_python;
use crate::references::Object;
use crate::reward::numbers;
use crate::tensors::{self, PyTensor};

/// A Python function whose argument is a batch of states.
pub(super) struct StateFunction<S> {
    pub(super) function: Object,
    pub(super) border: Arc<dyn Border<S>>,
}

/// Draws a seed for a random generator of numpy.
pub(super) fn draw_seed(rng: &mut Rng) -> u64 {
    rng.below(1 << 53) as u64
}

/// Builds a random generator of numpy from a seed.
pub(super) fn numpy_rng(py: Python<'_>, seed: u64) -> PyResult<Bound<'_, PyAny>> {
    py.import("numpy")?.getattr("random")?.call_method1("default_rng", (seed,))
}

/// A search by a Python function of objects and a random generator of numpy, which returns any number of
/// other objects.
impl<E: TrainEnv<States: 'static>> ObjectSearch<E> for StateFunction<E::States> {
    fn search(
        &self,
        env: &E,
        objects: &E::States,
        reward: &dyn Reward<E::States>,
        rng: &mut Rng,
    ) -> Result<SearchResults<E::States>> {
        let seed = draw_seed(rng);
        let results = call_python("the search", |py| {
            let arguments = (self.border.show(py, objects)?, numpy_rng(py, seed)?);
            self.border.read(&self.function.bind(py).call1(arguments)?, "the result of the search")
        })?;
        if results.is_empty() {
            return Ok(SearchResults { objects: results, log_rewards: Vec::new(), reward_calls: 0 });
        }
        // The check uses a separate random stream, so that it doesn't change any other random numbers.
        check_finished(env, &results, &mut Rng::seeded(seed))?;
        let log_rewards = log_rewards(reward, &results, None)?;
        Ok(SearchResults { reward_calls: results.len(), objects: results, log_rewards })
    }
}

/// New conditions for replayed objects (hindsight), from a Python function. Its arguments are the objects,
/// the conditions `[n, C]` under which they were found, and a random generator of numpy.
impl<S: Rows + 'static> Hindsight<S> for StateFunction<S> {
    fn relabel(&self, objects: &S, conditions: &Tensor, rng: &mut Rng) -> Result<Tensor> {
        let seed = draw_seed(rng);
        let call = |py: Python<'_>| {
            let shown = self.border.show(py, objects)?;
            let arguments = (self.function.as_ref(), shown, tensors::to_python(py, conditions)?, seed);
            py.import("gfn_rs._conditions")?.call_method1("relabelled", arguments)?.extract()
        };
        let PyTensor(relabelled) = tch::no_grad(|| call_python("the hindsight", call))?;
        Ok(relabelled.to_kind(conditions.kind()).to_device(conditions.device()))
    }
}

/// The novelty of states, from a Python function that returns a number of at least 0 for each state.
impl<S: Rows + 'static> Novelty<S> for StateFunction<S> {
    fn rewards(&self, states: &S) -> Result<Vec<f64>> {
        let call = |py: Python<'_>| {
            let answer = self.function.bind(py).call1((self.border.show(py, states)?,))?;
            numbers(&answer, states.len(), "the novelty", "a number of at least 0")
        };
        tch::no_grad(|| call_python("the novelty", call))
    }
}

/// A Python function that returns the log of the weight with which an object is drawn from the replay buffer.
/// The function's arguments are the object's log R and its last loss, `None` if no loss was computed.
///
/// If the function raises an exception, the weight is NaN, which ends the trainer's call with an error. The
/// exception is stored, and raised instead of this error.
pub(crate) struct PyPriority {
    pub(crate) function: Object,
    pub(crate) failures: Failures,
}

impl Priority for PyPriority {
    fn log_weight(&self, stored: StoredObject) -> f64 {
        let call = |py: Python<'_>| {
            let answer = self.function.bind(py).call1((stored.log_reward, stored.loss))?;
            answer.extract::<f64>().or_else(|_| {
                let kind = answer.get_type().name()?;
                let expected = "expected a number, the logarithm of an object's weight";
                Err(PyTypeError::new_err(format!("Replay.draw gave a {kind}: {expected}")))
            })
        };
        Python::attach(call).unwrap_or_else(|error| {
            self.failures.keep(error);
            f64::NAN
        })
    }
}
