//! The types of environments that Python can use, and the differences between them.

mod graphs;
mod points;
mod vectors;

pub(crate) use graphs::GraphDetails;

use std::sync::Arc;

use gfn::env::{EnumerableEnv, Env, Reward, VectorEnv};
use gfn::graph::GraphEnv;
use gfn::replay::{ReplayBuffer, ReplayConfig};
use gfn::train::TrainEnv;
use gfn::{Error, Result};
use gfn_extras::explore::ObjectSearch;
use gfn_gym::boxes::BoxEnv;
use gfn_gym::diffusion::{DiffusionSampling, MalaConfig, Target};
use gfn_gym::line::Line;
use pyo3::exceptions::PyTypeError;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::border::Border;
use crate::errors::Outcome;
use crate::parts::PyPriority;
use crate::paths::PathBatch;
use crate::policy::{BuiltPolicy, Plan};
use crate::reward::{Locked, class_name};
use crate::session::Trained;

/// A reward of an environment's states.
pub(crate) type AnyReward<E> = Box<dyn Reward<<E as Env>::States>>;

/// A value whose type depends on the type of environment: graphs, vectors, or one of three types of points.
#[derive(Clone)]
pub(crate) enum ByKind<G, V, B, L, D> {
    Graphs(G),
    Vectors(V),
    Box(B),
    Line(L),
    Diffusion(D),
}

/// Evaluates an expression for the value in a [`ByKind`]. All variants must give the same type.
macro_rules! each {
    ($of:expr, $one:ident => $value:expr) => {
        match $of {
            $crate::kinds::ByKind::Graphs($one) => $value,
            $crate::kinds::ByKind::Vectors($one) => $value,
            $crate::kinds::ByKind::Box($one) => $value,
            $crate::kinds::ByKind::Line($one) => $value,
            $crate::kinds::ByKind::Diffusion($one) => $value,
        }
    };
}

/// Evaluates an expression for the value in a [`ByKind`], and returns the result in the same variant.
macro_rules! map_each {
    ($of:expr, $one:ident => $value:expr) => {
        match $of {
            $crate::kinds::ByKind::Graphs($one) => $crate::kinds::ByKind::Graphs($value),
            $crate::kinds::ByKind::Vectors($one) => $crate::kinds::ByKind::Vectors($value),
            $crate::kinds::ByKind::Box($one) => $crate::kinds::ByKind::Box($value),
            $crate::kinds::ByKind::Line($one) => $crate::kinds::ByKind::Line($value),
            $crate::kinds::ByKind::Diffusion($one) => $crate::kinds::ByKind::Diffusion($value),
        }
    };
}

/// Evaluates an expression for an environment whose states can be listed, and returns an error for points.
macro_rules! listed {
    ($of:expr, $one:ident => $value:expr) => {
        match $of {
            $crate::kinds::ByKind::Graphs($one) => $value,
            $crate::kinds::ByKind::Vectors($one) => $value,
            _ => Err($crate::kinds::points()),
        }
    };
}

/// Returns the error for environments of points, whose moves and states can't be listed.
pub(crate) fn points() -> Error {
    let expected = "an environment whose moves and states can be listed (graphs, vectors, acyclic graphs); \
        for points, draw trajectories by a `Sampler`, and compare samples";
    Error::config("the environment", "continuous", expected)
}

/// An environment, its conversion to Python, and the details that rewards and policies need.
pub(crate) struct Space<E: PyEnv> {
    pub(crate) env: E,
    pub(crate) border: Arc<dyn Border<E::States>>,
    pub(crate) details: E::Details,
}

impl<E: PyEnv> Clone for Space<E> {
    fn clone(&self) -> Self {
        Self { env: self.env.clone(), border: self.border.clone(), details: self.details.clone() }
    }
}

/// Trajectories of any type of environment.
pub(crate) type AnyPaths = ByKind<
    PathBatch<GraphEnv>,
    PathBatch<VectorEnv>,
    PathBatch<BoxEnv>,
    PathBatch<Line>,
    PathBatch<DiffusionSampling>,
>;

/// A trainer of any type of environment.
pub(crate) type AnyTrained =
    ByKind<Trained<GraphEnv>, Trained<VectorEnv>, Trained<BoxEnv>, Trained<Line>, Trained<DiffusionSampling>>;

/// An environment of any type.
pub(crate) type AnySpace =
    ByKind<Space<GraphEnv>, Space<VectorEnv>, Space<BoxEnv>, Space<Line>, Space<DiffusionSampling>>;

/// The expected value that an error names if a Langevin search has no density to follow.
const NO_LANGEVIN: &str =
    "a function of objects, because `Mala` needs a diffusion whose reward is a target of the library";

/// A type of environment that Python supports, with the functions that differ between these types.
pub(crate) trait PyEnv: TrainEnv<States: 'static> + Clone {
    /// The details of the environment that rewards and policies need.
    type Details: Clone + Send + Sync;

    /// Returns the density that a diffusion samples, from the reward's settings; None if the reward isn't a
    /// density of the library.
    fn target(_reward: Option<&Value>) -> Outcome<Option<Arc<dyn Target>>> {
        Ok(None)
    }

    /// Builds a reward of the library from its settings.
    fn reward(
        space: &Space<Self>,
        settings: &Value,
        target: Option<Arc<dyn Target>>,
    ) -> Outcome<AnyReward<Self>>;

    /// Builds a policy from its plan.
    fn policy(space: &Space<Self>, plan: Plan<'_>) -> Outcome<BuiltPolicy<Self>>;

    /// Builds a search by Langevin steps. Only diffusions have one.
    fn langevin(
        _env: &Self,
        _target: Option<Arc<dyn Target>>,
        _config: MalaConfig,
    ) -> Result<Box<dyn ObjectSearch<Self>>> {
        Err(Error::config("search", "Mala", NO_LANGEVIN))
    }

    /// Returns the functions for environments whose states have keys; None for points.
    fn discrete() -> Option<Discrete<Self>> {
        None
    }
}

/// The functions for environments whose states have keys.
pub(crate) struct Discrete<E: PyEnv> {
    /// Returns, for each state, the index of the first state that stands for the same object.
    pub(crate) first_of_object: fn(&E, &E::States) -> Result<Vec<usize>>,
    /// Builds a replay buffer that stores each object once.
    pub(crate) distinct: fn(ReplayConfig, Option<PyPriority>) -> Result<ReplayBuffer<E>>,
    /// Wraps a reward in a cache of this number of results.
    pub(crate) cache_reward: fn(&E, AnyReward<E>, usize) -> Result<AnyReward<E>>,
}

impl<E: PyEnv + EnumerableEnv<Key: 'static>> Discrete<E> {
    fn new() -> Self {
        Self {
            first_of_object: |env, states| {
                let objects = env.objects(states)?;
                Ok(objects.of.into_iter().map(|object| objects.first[object]).collect())
            },
            distinct: |config, priority| match priority {
                None => ReplayBuffer::distinct(config),
                Some(priority) => Ok(ReplayBuffer::by_priority(config, priority)?.without_duplicates()),
            },
            cache_reward: |env, reward, capacity| {
                let env = env.clone();
                let reward = Locked::new(reward);
                Ok(Box::new(gfn::env::CachedReward::new(
                    reward,
                    move |states: &E::States| env.keys(states),
                    capacity,
                )?))
            },
        }
    }
}

/// Reads the settings of a reward of the library for these states.
fn reward_spec<T: DeserializeOwned>(settings: &Value, states: &str) -> Outcome<T> {
    serde_json::from_value(settings.clone()).or_else(|_| wrong_states(settings, states))
}

/// Returns the error for a reward of the library that is made for other states.
fn wrong_states<T>(settings: &Value, states: &str) -> Outcome<T> {
    let expected = "expected a reward for this environment, or a function of a batch of states";
    let refusal = format!("the reward {} isn't a reward for {states}: {expected}", class_name(settings));
    Err(PyTypeError::new_err(refusal).into())
}
