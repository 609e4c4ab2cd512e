//! The reward of a trainer: of the library, or a function of Python; cached, or weighed by conditions.

mod python;

pub(crate) use python::{PyReward, numbers};

use std::sync::{Arc, Mutex, PoisonError};

use gfn::env::Reward;
use gfn::{Error, Result};
use gfn_extras::condition::ConditionedReward;
use gfn_gym::diffusion::Target;
use pyo3::prelude::*;
use serde_json::Value;
use tch::Tensor;

use crate::conditions::{Conditions, check_takes_conditions};
use crate::errors::raised;
use crate::kinds::{PyEnv, Space};
use crate::references::{Object, References};
use crate::settings::read;

/// A reward as Python gives it: `{class: settings}` or a function, and the number of answers that are cached.
#[derive(FromPyObject)]
pub(crate) struct RewardArgument<'py>(Bound<'py, PyAny>, Option<Py<PyAny>>, Option<usize>);

/// The settings of a reward.
pub(crate) struct RewardSettings {
    source: RewardSource,
    /// The number of answers that are cached.
    capacity: Option<usize>,
}

enum RewardSource {
    Native(Value),
    Python(Object),
}

impl RewardArgument<'_> {
    pub(crate) fn read(self, references: &References) -> PyResult<RewardSettings> {
        let Self(settings, function, capacity) = self;
        let source = match function {
            Some(function) => RewardSource::Python(references.add(function)),
            None => RewardSource::Native(read("a reward", &settings)?),
        };
        Ok(RewardSettings { source, capacity })
    }
}

impl RewardSettings {
    fn build<E: PyEnv>(
        &self,
        space: &Space<E>,
        target: Option<Arc<dyn Target>>,
    ) -> PyResult<Box<dyn Reward<E::States>>> {
        let reward = match &self.source {
            RewardSource::Native(settings) => E::reward(space, settings, target)?,
            RewardSource::Python(function) => {
                let build = |py: Python<'_>| PyReward::new(py, function.clone(), space.border.clone());
                Box::new(Python::attach(build)?)
            }
        };
        let Some(capacity) = self.capacity else { return Ok(reward) };
        let Some(discrete) = E::discrete() else {
            let expected = "the reward as it is, as states are points: none comes twice";
            return Err(raised(Error::config("the reward of this environment", "CachedReward", expected)));
        };
        (discrete.cached)(&space.env, reward, capacity).map_err(raised)
    }
}

/// A trainer's reward.
pub(crate) struct BuiltReward<S> {
    pub(crate) reward: Box<dyn Reward<S>>,
    /// The same, if conditions are temperatures, preferences and directions of focus.
    pub(crate) conditioned: Option<ConditionedReward<S>>,
    /// The density of a diffusion, if the reward is one of the library's.
    pub(crate) target: Option<Arc<dyn Target>>,
}

/// Builds a trainer's reward of one, or of several that conditions weigh.
pub(crate) fn build<E: PyEnv>(
    space: &Space<E>,
    all: &[RewardSettings],
    conditions: Option<&Conditions>,
) -> PyResult<BuiltReward<E::States>> {
    let conditioning = conditions.and_then(Conditions::conditioning);
    let mut native = None;
    if let (None, [RewardSettings { source, capacity }]) = (conditioning, all) {
        match (source, capacity) {
            (RewardSource::Native(settings), None) => {
                if conditions.is_some() {
                    check_takes_conditions(settings).map_err(raised)?;
                }
                native = Some(settings);
            }
            (_, Some(_)) if conditions.is_some() => {
                let expected = "the reward as it is, as answers are kept by object; or a `Conditioning`, which weighs \
                                cached rewards";
                return Err(raised(Error::config("the reward under conditions", "CachedReward", expected)));
            }
            _ => {}
        }
    }
    let target = E::target(native)?;
    if conditioning.is_none() && all.len() != 1 {
        let expected = "one, or a `Conditioning` that says how several are weighed";
        return Err(raised(Error::config("the rewards of a trainer", all.len(), expected)));
    }
    let mut rewards = Vec::new();
    for settings in all {
        rewards.push(settings.build(space, target.clone())?);
    }
    if let Some(conditioning) = conditioning {
        let shared = rewards.into_iter().map(|reward| Arc::new(Locked::new(reward)) as _).collect();
        let conditioned = ConditionedReward::new(conditioning.clone(), shared).map_err(raised)?;
        return Ok(BuiltReward { reward: Box::new(conditioned.clone()), conditioned: Some(conditioned), target });
    }
    let reward = rewards.remove(0);
    Ok(BuiltReward { reward, conditioned: None, target })
}

/// A reward that one thread at a time asks.
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

/// The class of settings `{class: settings}`.
pub(crate) fn class_name(settings: &Value) -> &str {
    settings.as_object().and_then(|object| object.keys().next()).map_or("none", String::as_str)
}
