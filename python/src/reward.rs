//! The reward of a trainer: a reward of the library or a function of Python, optionally cached or weighted by
//! conditions.

use std::sync::{Arc, Mutex, PoisonError};

use gfn::env::{Reward, Rows};
use gfn::{Error, Result};
use gfn_extras::condition::ConditionedReward;
use gfn_gym::diffusion::Target;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde_json::Value;
use tch::Tensor;

use crate::border::Border;
use crate::conditions::{Conditions, check_takes_conditions};
use crate::errors::{Outcome, call_python};
use crate::kinds::{AnyReward, PyEnv, Space};
use crate::references::{Object, References};
use crate::settings::Settings;
use crate::tensors;

/// A reward as Python passes it: the settings `{class: settings}` or a function, and the number of results
/// that are cached.
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

/// A trainer's reward, with what other parts of the trainer need of it.
pub(crate) struct BuiltReward<S> {
    pub(crate) reward: Box<dyn Reward<S>>,
    /// The reward as a function of conditions, if conditions are temperatures, preferences and directions of
    /// focus.
    pub(crate) conditioned: Option<ConditionedReward<S>>,
    /// The density that a diffusion samples, if the reward is a density of the library.
    pub(crate) target: Option<Arc<dyn Target>>,
}

/// Builds a trainer's reward from one reward, or from several rewards that conditions weight.
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
            return Err(Error::config("the rewards of a trainer", all.len(), expected).into());
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
    Ok(BuiltReward { reward: rewards.remove(0), conditioned: None, target })
}

/// A reward that is called by one thread at a time.
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

/// Returns the class name in `{class: settings}`.
pub(crate) fn class_name(settings: &Value) -> &str {
    settings.as_object().and_then(|object| object.keys().next()).map_or("none", String::as_str)
}

/// The name of the optional method for states that aren't finished.
const PARTIAL: &str = "partial_log_reward";

/// A function of a batch of states, and of conditions if there are any, that returns log R of each state.
///
/// The method `partial_log_reward` of an object returns the log-rewards of states that aren't finished.
struct PyReward<S> {
    function: Object,
    has_partial: bool,
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
        let has_partial = object.getattr_opt(PARTIAL)?.is_some();
        Ok(Self { function, has_partial, border })
    }

    /// Calls a method of the Python object with states, and with conditions if there are any.
    fn call(&self, method: &str, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        let call = |py: Python<'_>| {
            let (function, shown) = (self.function.bind(py), self.border.show(py, states)?);
            let answer = match conditions {
                None => function.call_method1(method, (shown,))?,
                Some(conditions) => {
                    function.call_method1(method, (shown, tensors::to_python(py, conditions)?))?
                }
            };
            numbers(&answer, states.len(), "the reward", "log R")
        };
        // Rewards need no gradients, so autograd is off.
        tch::no_grad(|| call_python("the reward", call))
    }
}

/// Reads a float64 for each of `n` states from any object that numpy converts to an array. In errors, `who`
/// names the caller and `what` the numbers.
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
        self.has_partial.then(|| self.call(PARTIAL, states, conditions)).transpose()
    }
}
