//! The reward of a trainer: one of the library's rewards or a Python function. The reward may be cached, and
//! conditions may change it.

use std::sync::{Arc, Mutex, PoisonError};

use gfn::env::{Reward, Rows, TensorReward};
use gfn::{Error, Result};
use gfn_extras::condition::ConditionedReward;
use gfn_gym::diffusion::Target;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde_json::Value;
use tch::{Kind, Tensor};

use crate::border::Border;
use crate::conditions::{Conditions, check_takes_conditions};
use crate::errors::{Outcome, call_python};
use crate::kinds::{AnyReward, PyEnv, Space};
use crate::references::{Object, References};
use crate::settings::Settings;
use crate::tensors::{self, PyTensor};

/// A reward in the form that Python passes: the settings `{class: settings}` of one of the library's rewards,
/// or a function; and the number of results to cache, if the reward is cached.
#[derive(FromPyObject)]
pub(crate) struct RewardSettings(Option<Settings<Value>>, Option<Py<PyAny>>, Option<usize>);

impl RewardSettings {
    fn build<E: PyEnv>(
        &self,
        space: &Space<E>,
        target: Option<Arc<dyn Target>>,
        references: &References,
    ) -> Outcome<AnyReward<E>> {
        let reward = match self {
            Self(Some(Settings(settings)), ..) => E::reward(space, settings, target)?,
            Self(None, function, _) => Python::attach(|py| {
                let function =
                    references.add(function.as_ref().map_or_else(|| py.None(), |one| one.clone_ref(py)));
                PyReward::new(py, function, space.border.clone())
                    .map(|reward| Box::new(reward) as AnyReward<E>)
            })?,
        };
        let Some(capacity) = self.2 else { return Ok(reward) };
        let Some(discrete) = E::discrete() else {
            let expected = "the reward without CachedReward, because states are points, which don't recur";
            return Err(Error::config("the reward of this environment", "CachedReward", expected).into());
        };
        Ok((discrete.cache_reward)(&space.env, reward, capacity)?)
    }
}

/// A trainer's reward. Parts of the trainer also need it as a function of conditions, or as a density.
pub(crate) struct BuiltReward<S> {
    pub(crate) reward: Box<dyn Reward<S>>,
    /// The reward as a function of states and conditions, if conditions are temperatures, preferences and
    /// directions of focus.
    pub(crate) conditioned: Option<ConditionedReward<S>>,
    /// The target of a diffusion environment, if the reward is one of the library's densities.
    pub(crate) target: Option<Arc<dyn Target>>,
}

/// Builds a trainer's reward from a single reward, or from several rewards whose weights are part of the
/// conditions.
pub(crate) fn build<E: PyEnv>(
    space: &Space<E>,
    all: &[RewardSettings],
    conditions: Option<&Conditions>,
    references: &References,
) -> Outcome<BuiltReward<E::States>> {
    let conditioning = conditions.and_then(Conditions::conditioning);
    let mut native = None;
    match (conditioning, all) {
        (None, [RewardSettings(Some(Settings(settings)), _, None)]) => {
            if conditions.is_some() {
                check_takes_conditions(settings)?;
            }
            native = Some(settings);
        }
        (None, [RewardSettings(.., Some(_))]) if conditions.is_some() => {
            let expected = "the reward without CachedReward, because a cached value doesn't depend on the \
                condition; or a `Conditioning`, which weights cached rewards";
            return Err(Error::config("the reward under conditions", "CachedReward", expected).into());
        }
        (None, [_]) | (Some(_), _) => {}
        (None, _) => {
            let expected = "one reward, or a `Conditioning` that weights several rewards";
            return Err(Error::config("the number of rewards of a trainer", all.len(), expected).into());
        }
    }
    let target = E::target(native)?;
    let mut rewards = Vec::new();
    for settings in all {
        rewards.push(settings.build(space, target.clone(), references)?);
    }
    if let Some(conditioning) = conditioning {
        let shared = rewards.into_iter().map(|reward| Arc::new(Locked::new(reward)) as _).collect();
        let conditioned = ConditionedReward::new(conditioning.clone(), shared)?;
        return Ok(BuiltReward {
            reward: Box::new(conditioned.clone()),
            conditioned: Some(conditioned),
            target,
        });
    }
    let reward = rewards.remove(0);
    if conditions.is_some() && reward.on_tensors().is_some() {
        let expected = "a function of arrays of states and of conditions, because a TensorReward gets no \
            conditions";
        return Err(Error::config("the reward under conditions", "TensorReward", expected).into());
    }
    Ok(BuiltReward { reward, conditioned: None, target })
}

/// A reward behind a lock, so that only one thread at a time calls it.
pub(crate) struct Locked<S>(Mutex<Box<dyn Reward<S>>>);

impl<S> Locked<S> {
    pub(crate) fn new(reward: Box<dyn Reward<S>>) -> Self {
        Self(Mutex::new(reward))
    }
}

impl<S> Reward<S> for Locked<S> {
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).log_reward(states, conditions)
    }

    fn partial_log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).partial_log_reward(states, conditions)
    }
}

/// Returns the name of the class in settings of the form `{class: settings}`.
pub(crate) fn class_name(settings: &Value) -> &str {
    settings.as_object().and_then(|object| object.keys().next()).map_or("none", String::as_str)
}

/// The name of the optional method of a reward that returns log R of unfinished states.
const PARTIAL: &str = "partial_log_reward";

/// A reward that is a Python function of a batch of states, and of their conditions if there are any. The
/// function returns log R of each state.
///
/// If the function is an object with a method `partial_log_reward`, this method returns log R of unfinished
/// states. In an environment whose states can all be finished, the function itself returns it otherwise.
struct PyReward<S> {
    function: Object,
    /// The method that returns log R of unfinished states, if there is one.
    partial: Option<&'static str>,
    /// `true` if the function is a `TensorReward`.
    has_tensors: bool,
    border: Arc<dyn Border<S>>,
}

impl<S: Rows + 'static> PyReward<S> {
    fn new(py: Python<'_>, function: Object, border: Arc<dyn Border<S>>) -> PyResult<Self> {
        let object = function.bind(py);
        if !object.is_callable() {
            let kind = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "the reward is a {kind}: expected a reward of the library, or a function of a batch of \
                 states that returns log R of each state"
            )));
        }
        let partial = match object.getattr_opt(PARTIAL)? {
            Some(_) => Some(PARTIAL),
            None => border.is_always_final().then_some("__call__"),
        };
        let has_tensors = object.is_instance(&py.import("gfn_rs._tensors")?.getattr("TensorReward")?)?;
        if has_tensors && !border.has_tensors() {
            return Err(PyTypeError::new_err(
                "the reward is a TensorReward, but states are no vectors of whole numbers: expected an \
                 environment of vectors, or a function of a batch of states",
            ));
        }
        Ok(Self { function, partial, has_tensors, border })
    }

    /// Calls a method of the Python function with states, and with their conditions if there are any.
    fn call(&self, method: &str, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        let call = |py: Python<'_>| {
            let function = self.function.bind(py);
            let shown = self.border.show(py, states)?;
            let answer = match conditions {
                None => function.call_method1(method, (shown,))?,
                Some(conditions) => {
                    function.call_method1(method, (shown, tensors::to_python(py, conditions)?))?
                }
            };
            numbers(&answer, states.len(), "the reward", "log R")
        };
        // Rewards need no gradients, so autograd is turned off.
        tch::no_grad(|| call_python("the reward", call))
    }
}

/// Converts any object that numpy can convert to `n` numbers, one per state. In error messages, `who` is the
/// function that returned the object, and `what` is the meaning of its numbers.
pub(crate) fn numbers(answer: &Bound<'_, PyAny>, n: usize, who: &str, what: &str) -> PyResult<Vec<f64>> {
    let checks = answer.py().import("gfn_rs._checks")?;
    let values: PyReadonlyArray1<'_, f64> =
        checks.call_method1("numbers", (answer, n, who, what))?.extract()?;
    Ok(values.as_array().to_vec())
}

impl<S: Rows + 'static> Reward<S> for PyReward<S> {
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        self.call("__call__", states, conditions)
    }

    fn partial_log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.partial.map(|method| self.call(method, states, conditions)).transpose()
    }

    fn on_tensors(&self) -> Option<&dyn TensorReward> {
        self.has_tensors.then_some(self)
    }
}

impl<S> TensorReward for PyReward<S> {
    fn log_rewards(&self, states: &Tensor) -> Result<Tensor> {
        let call = |py: Python<'_>| {
            let states = tensors::to_python(py, states)?;
            self.function.bind(py).call_method1("on_tensors", (states,))?.extract()
        };
        let PyTensor(log_rewards) = tch::no_grad(|| call_python("the reward", call))?;
        Ok(log_rewards.detach().to_kind(Kind::Double))
    }
}
