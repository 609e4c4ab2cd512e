//! Rewards: those of the library by their settings, and Python's own.

mod called;
mod graphs;
mod other;
mod vectors;

pub(crate) use called::{Called, numbers};
pub(crate) use graphs::graph_reward;
pub(crate) use other::{box_reward, diffusion_target, line_reward, structure_reward};
pub(crate) use vectors::vector_reward;

use std::sync::{Arc, Mutex, PoisonError};

use gfn::env::{Cached, EnumerableEnv, Reward, Rows};
use gfn::{Error, Result};
use gfn_extras::condition::{ConditionedReward, Conditioning};
use pyo3::prelude::*;
use tch::Tensor;

use crate::conditions::{Conditions, check_native};
use crate::errors::raised;
use crate::kept::Object;
use crate::settings::read;
use crate::states::Show;

/// What Python gave for a reward.
enum RewardSettings {
    /// The settings of one of the library's, as JSON.
    Native(serde_json::Value),
    /// A callable.
    Called(Object),
    /// One of them, so many of whose answers are kept.
    Cached(Box<RewardSettings>, usize),
}

/// A reward as Python hands it over: settings or a callable, and how many answers are kept.
pub(crate) type Handed<O> = (Option<String>, Option<O>, Option<usize>);

/// A reward of which so many answers are kept.
type Caching<S> = Box<dyn Fn(Box<dyn Reward<S>>, usize) -> Result<Box<dyn Reward<S>>>>;

/// How a reward of this environment's states keeps its answers: by their keys.
pub(crate) fn by_keys<E>(env: &E) -> Option<Caching<E::States>>
where
    E: EnumerableEnv + Clone + 'static,
    E::States: 'static,
    E::Key: 'static,
{
    let env = env.clone();
    Some(Box::new(move |reward, capacity| {
        let env = env.clone();
        Ok(Box::new(Cached::new(Shared(Mutex::new(reward)), move |states: &E::States| env.keys(states), capacity)?))
    }))
}

impl RewardSettings {
    /// Reads text or callable, one of which is there.
    fn new(settings: Option<String>, callable: Option<Object>, kept: Option<usize>) -> PyResult<Self> {
        let asked = match (settings, callable) {
            (_, Some(callable)) => Self::Called(callable),
            (settings, None) => Self::Native(read("a reward", settings.as_deref().unwrap_or("null"))?),
        };
        Ok(kept.into_iter().fold(asked, |asked, kept| Self::Cached(Box::new(asked), kept)))
    }

    /// The reward: Python's own is shown the states, `native` makes the library's.
    fn build<S: Rows + 'static>(
        self,
        show: &Show<S>,
        caching: Option<&Caching<S>>,
        native: &impl Fn(serde_json::Value) -> PyResult<Box<dyn Reward<S>>>,
    ) -> PyResult<Box<dyn Reward<S>>> {
        match self {
            Self::Native(settings) => native(settings),
            Self::Called(callable) => Python::attach(|py| Ok(Box::new(Called::new(py, callable, show.clone())?) as _)),
            Self::Cached(asked, capacity) => {
                let reward = asked.build(show, caching, native)?;
                let Some(caching) = caching else {
                    let expected = "the reward as it is, as states are points: none comes twice";
                    return Err(raised(Error::config("the reward of this environment", "CachedReward", expected)));
                };
                caching(reward, capacity).map_err(raised)
            }
        }
    }
}

/// What Python gave for the reward of a trainer: one, or those that conditions weigh.
pub(crate) struct Rewards {
    all: Vec<RewardSettings>,
    conditioning: Option<Conditioning>,
}

/// A trainer's reward.
pub(crate) struct Built<S> {
    pub(crate) reward: Box<dyn Reward<S>>,
    /// The same where conditions are temperatures, preferences and directions of focus.
    pub(crate) conditioned: Option<ConditionedReward<S>>,
}

impl Rewards {
    /// Reads them; a reward of the library's that stands alone must take the conditions that there are.
    pub(crate) fn read(given: Vec<Handed<Object>>, conditions: Option<&Conditions>) -> PyResult<Self> {
        let asked = given.into_iter().map(|(settings, callable, kept)| RewardSettings::new(settings, callable, kept));
        let all = asked.collect::<PyResult<Vec<_>>>()?;
        let conditioning = conditions.and_then(Conditions::conditioning).cloned();
        if let (Some(_), None, [RewardSettings::Native(settings)]) = (conditions, &conditioning, &all[..]) {
            check_native(settings).map_err(raised)?;
        }
        if let (Some(_), None, [RewardSettings::Cached(..)]) = (conditions, &conditioning, &all[..]) {
            let expected =
                "the reward as it is, as answers are kept by object; or a `Conditioning`, which weighs cached rewards";
            return Err(raised(Error::config("the reward under conditions", "CachedReward", expected)));
        }
        Ok(Self { all, conditioning })
    }

    /// The settings of the library's reward, if that is all there is.
    pub(crate) fn native(&self) -> Option<&serde_json::Value> {
        match (&self.all[..], &self.conditioning) {
            ([RewardSettings::Native(settings)], None) => Some(settings),
            _ => None,
        }
    }

    /// The reward: Python's own is shown the states, `native` makes the library's.
    pub(crate) fn build<S: Rows + 'static>(
        self,
        show: &Show<S>,
        caching: Option<Caching<S>>,
        native: impl Fn(serde_json::Value) -> PyResult<Box<dyn Reward<S>>>,
    ) -> PyResult<Built<S>> {
        let one = |asked: RewardSettings| asked.build(show, caching.as_ref(), &native);
        let mut built = self.all.into_iter().map(one).collect::<PyResult<Vec<_>>>()?;
        if let Some(conditioning) = self.conditioning {
            let shared = built.into_iter().map(|reward| Arc::new(Shared(Mutex::new(reward))) as _).collect();
            let conditioned = ConditionedReward::new(conditioning, shared).map_err(raised)?;
            return Ok(Built { reward: Box::new(conditioned.clone()), conditioned: Some(conditioned) });
        }
        match (built.pop(), built.is_empty()) {
            (Some(reward), true) => Ok(Built { reward, conditioned: None }),
            (last, _) => {
                let n = built.len() + usize::from(last.is_some());
                let expected = "one, or a `Conditioning` that says how several are weighed";
                Err(raised(Error::config("the rewards of a trainer", n, expected)))
            }
        }
    }
}

/// A reward that several have a share in.
struct Shared<S>(Mutex<Box<dyn Reward<S>>>);

impl<S> Reward<S> for Shared<S> {
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).log_reward(states, conditions)
    }

    fn partial_log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).partial_log_reward(states, conditions)
    }
}

/// What a reward of the library's for other states than these says.
pub(crate) fn wrong_states(settings: &serde_json::Value, states: &'static str) -> PyErr {
    let name = settings.as_object().and_then(|object| object.keys().next()).cloned().unwrap_or_else(|| "none".into());
    pyo3::exceptions::PyTypeError::new_err(format!(
        "the reward {name} isn't one of {states}: expected one that is made for this environment, or a function of a batch of states"
    ))
}
