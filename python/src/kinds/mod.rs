//! The types of environments that Python can use, and the functions that differ between these types.

mod graphs;
mod points;
mod vectors;

pub(crate) use graphs::{GraphDetails, NamedStructures};

use std::sync::Arc;

use gfn::env::{EnumerableEnv, Env, Reward, VectorEnv};
use gfn::graph::GraphEnv;
use gfn::replay::{ReplayBuffer, ReplayConfig};
use gfn::train::{TrainEnv, Trainer};
use gfn::{Error, Result};
use gfn_extras::chains::{ChainSource, ChainSourceConfig};
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

/// A boxed reward of an environment's states.
pub(crate) type AnyReward<E> = Box<dyn Reward<<E as Env>::States>>;

/// A value whose Rust type depends on the type of environment: graphs, vectors, or one of three types of
/// points (the unit box, the line, and diffusions).
#[derive(Clone)]
pub(crate) enum ByKind<G, V, B, L, D> {
    Graphs(G),
    Vectors(V),
    Box(B),
    Line(L),
    Diffusion(D),
}

/// Evaluates an expression for the value in a [`ByKind`]. The expression must have the same type for all
/// variants.
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

/// Evaluates an expression for the value in a [`ByKind`], and returns a [`ByKind`] with the result in the
/// same variant.
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

/// Evaluates an expression for the value in a [`ByKind`] if the environment's states can be listed. Returns
/// an error for environments of points.
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

/// An environment, the conversion of its states to Python, and the details of the environment that rewards
/// and policies need.
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

/// A batch of trajectories of any type of environment.
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

/// The end of the error message for a Langevin search whose reward isn't a density of the library: the text
/// after "expected".
const NO_LANGEVIN: &str =
    "a function of objects, because `Mala` needs a diffusion whose reward is a target of the library";

/// A type of environment that Python can use, with the functions that differ between these types.
pub(crate) trait PyEnv: TrainEnv<States: 'static> + Clone {
    /// The details of the environment that rewards and policies need, such as the number of values that an
    /// entry of a vector can have.
    type Details: Clone + Send + Sync;

    /// Builds the density that a diffusion samples, from the settings of the reward. Returns `None` if the
    /// reward isn't a density of the library.
    fn target(_reward: Option<&Value>) -> Outcome<Option<Arc<dyn Target>>> {
        Ok(None)
    }

    /// Builds a reward of the library from its settings.
    fn reward(
        space: &Space<Self>,
        settings: &Value,
        target: Option<Arc<dyn Target>>,
    ) -> Outcome<AnyReward<Self>>;

    /// Builds a policy from its settings, which are in `plan`.
    fn policy(space: &Space<Self>, plan: Plan<'_>) -> Outcome<BuiltPolicy<Self>>;

    /// Builds a search by Langevin steps. Returns an error for all environments but diffusions.
    fn langevin(
        _env: &Self,
        _target: Option<Arc<dyn Target>>,
        _config: MalaConfig,
    ) -> Result<Box<dyn ObjectSearch<Self>>> {
        Err(Error::config("search", "Mala", NO_LANGEVIN))
    }

    /// Returns the functions for environments whose states can be compared by keys; `None` for points.
    fn discrete() -> Option<Discrete<Self>> {
        None
    }
}

/// The functions for environments whose states can be compared by keys.
pub(crate) struct Discrete<E: PyEnv> {
    /// A function that returns, for each state, the index of the first state that is the same object.
    pub(crate) first_of_object: fn(&E, &E::States) -> Result<Vec<usize>>,
    /// A function that builds a replay buffer in which each object is at most once.
    pub(crate) distinct: fn(ReplayConfig, Option<PyPriority>) -> Result<ReplayBuffer<E>>,
    /// A function that wraps a reward in a cache of at most this number of results.
    pub(crate) cache_reward: fn(&E, AnyReward<E>, usize) -> Result<AnyReward<E>>,
    /// A function that gives a trainer Markov chains, which supply this share of each batch.
    pub(crate) with_chains: fn(Trainer<E>, f64, ChainSourceConfig) -> Result<Trainer<E>>,
}

impl<E: PyEnv + EnumerableEnv<Key: 'static>> Discrete<E> {
    fn new() -> Self {
        Self {
            first_of_object: |env, states| {
                let objects = env.objects(states)?;
                Ok(objects.group_of.into_iter().map(|object| objects.first[object]).collect())
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
            with_chains: |trainer, share, config| trainer.with_source(share, ChainSource::new(config)?),
        }
    }
}

/// Reads the settings of one of the library's rewards. Returns an error if the reward isn't for environments
/// of `states`, a noun such as "graphs".
fn reward_spec<T: DeserializeOwned>(settings: &Value, states: &str) -> Outcome<T> {
    serde_json::from_value(settings.clone()).or_else(|_| wrong_states(settings, states))
}

/// Returns the error for one of the library's rewards that is made for other states than `states`.
fn wrong_states<T>(settings: &Value, states: &str) -> Outcome<T> {
    let expected = "expected a reward for this environment, or a function of a batch of states";
    let refusal = format!("the reward {} isn't a reward for {states}: {expected}", class_name(settings));
    Err(PyTypeError::new_err(refusal).into())
}
