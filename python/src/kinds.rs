//! The types of environments that Python has trainers, trajectories and steps of, and what differs between them.

use std::sync::Arc;

use gfn::env::{EnumerableEnv, Env, Reward, VectorEnv};
use gfn::graph::GraphEnv;
use gfn::policy::{KHot, SequenceLayout};
use gfn::replay::{ReplayBuffer, ReplayConfig};
use gfn::train::TrainEnv;
use gfn::{Error, Result};
use gfn_dags::{AdjacencyFeatures, BayesianStructure};
use gfn_extras::explore::ObjectSearch;
use gfn_gym::boxes::BoxEnv;
use gfn_gym::diffusion::{DiffusionSampling, Mala, MalaConfig, Target};
use gfn_gym::graph_problems::Problem;
use gfn_gym::line::Line;
use pyo3::prelude::*;
use serde_json::Value;

use crate::border::{Border, DiffusionBorder, GraphBorder, PointBorder, StructureBorder, VectorBorder};
use crate::env::VectorSpec;
use crate::molecules::Reading;
use crate::parts::PyPriority;
use crate::policy::{self, BuiltPolicy, Plan};
use crate::reward;
use crate::settings::over_defaults;

/// A reward of an environment's states.
pub(crate) type AnyReward<E> = Box<dyn Reward<<E as Env>::States>>;

/// One value for each type of environment: graphs, vectors, and three of points.
#[derive(Clone)]
pub(crate) enum ByKind<G, V, B, L, D> {
    Graphs(G),
    Vectors(V),
    Box(B),
    Line(L),
    Diffusion(D),
}

/// Evaluates an expression for the value of a [`ByKind`], whatever its type.
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

/// Evaluates an expression for the value of a [`ByKind`], and makes a [`ByKind`] of the results.
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

/// Evaluates an expression if the states can be listed, and another one for environments of points.
macro_rules! listed {
    ($of:expr, $one:ident => $value:expr, $points:expr) => {
        match $of {
            $crate::kinds::ByKind::Graphs($one) => $value,
            $crate::kinds::ByKind::Vectors($one) => $value,
            _ => $points,
        }
    };
}

/// An environment, how its states go to Python and come from there, and what rewards and policies must know of it.
pub(crate) struct Space<E: PyEnv> {
    pub(crate) env: E,
    pub(crate) border: Arc<dyn Border<E::States>>,
    pub(crate) facts: E::Facts,
}

impl<E: PyEnv> Clone for Space<E> {
    fn clone(&self) -> Self {
        Self { env: self.env.clone(), border: self.border.clone(), facts: self.facts.clone() }
    }
}

/// An environment of any type.
pub(crate) type AnySpace =
    ByKind<Space<GraphEnv>, Space<VectorEnv>, Space<BoxEnv>, Space<Line>, Space<DiffusionSampling>>;

/// A type of environment that Python has, with what differs between these types.
pub(crate) trait PyEnv: TrainEnv<States: 'static> + Clone {
    /// What rewards and policies must know of the environment.
    type Facts: Clone + Send + Sync;

    /// The density of a diffusion, by the settings of the reward, if that is one of the library's.
    fn target(_reward: Option<&Value>) -> PyResult<Option<Arc<dyn Target>>> {
        Ok(None)
    }

    /// A reward of the library's.
    fn reward(space: &Space<Self>, settings: &Value, target: Option<Arc<dyn Target>>) -> PyResult<AnyReward<Self>>;

    /// A policy.
    fn policy(space: &Space<Self>, plan: Plan<'_>) -> PyResult<BuiltPolicy<Self>>;

    /// A search by Langevin steps.
    fn langevin(
        _env: &Self,
        _target: Option<Arc<dyn Target>>,
        _settings: &Value,
    ) -> Result<Box<dyn ObjectSearch<Self>>> {
        let expected = "a function of objects; `Mala` is for diffusions with a target of the library's";
        Err(Error::config("search", "Mala", expected))
    }

    /// What there is if states can be told apart.
    fn discrete() -> Option<Discrete<Self>> {
        None
    }
}

/// What an environment has whose states can be told apart by keys.
pub(crate) struct Discrete<E: PyEnv> {
    /// The place of the first state that is the same object, for each state.
    pub(crate) first_of_object: fn(&E, &E::States) -> Result<Vec<usize>>,
    /// A buffer that holds each object once.
    pub(crate) distinct: fn(ReplayConfig, Option<PyPriority>) -> Result<ReplayBuffer<E>>,
    /// A reward that keeps so many of its answers.
    pub(crate) cached: fn(&E, AnyReward<E>, usize) -> Result<AnyReward<E>>,
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
                Some(priority) => ReplayBuffer::distinct_by_priority(config, priority),
            },
            cached: |env, reward, capacity| {
                let env = env.clone();
                let reward = reward::Locked::new(reward);
                Ok(Box::new(gfn::env::Cached::new(reward, move |states: &E::States| env.keys(states), capacity)?))
            },
        }
    }
}

/// What graphs of an environment are.
#[derive(Clone)]
pub(crate) enum GraphFacts {
    Plain,
    Molecules(Reading),
    Problem(Problem),
    Structures(BayesianStructure),
}

impl GraphFacts {
    /// How graphs are read as molecules, if they stand for some.
    pub(crate) fn reading(&self) -> Option<&Reading> {
        match self {
            Self::Molecules(reading) => Some(reading),
            _ => None,
        }
    }
}

impl Space<GraphEnv> {
    pub(crate) fn graphs(env: GraphEnv, facts: GraphFacts) -> AnySpace {
        let border: Arc<dyn Border<_>> = match &facts {
            GraphFacts::Structures(structures) => {
                let n_nodes = structures.n_nodes();
                Arc::new(StructureBorder { n_nodes, features: AdjacencyFeatures::new(n_nodes) })
            }
            facts => Arc::new(GraphBorder { reading: facts.reading().cloned(), schema: env.schema().clone() }),
        };
        ByKind::Graphs(Self { env, border, facts })
    }
}

impl PyEnv for GraphEnv {
    type Facts = GraphFacts;

    fn reward(space: &Space<Self>, settings: &Value, _: Option<Arc<dyn Target>>) -> PyResult<AnyReward<Self>> {
        match &space.facts {
            GraphFacts::Structures(structures) => reward::structure_reward(settings, structures),
            facts => reward::graph_reward(settings, facts),
        }
    }

    fn policy(space: &Space<Self>, plan: Plan<'_>) -> PyResult<BuiltPolicy<Self>> {
        match &space.facts {
            GraphFacts::Structures(structures) => policy::structure_policy(plan, &space.env, structures.n_nodes()),
            _ => policy::graph_policy(plan, &space.env),
        }
    }

    fn discrete() -> Option<Discrete<Self>> {
        Some(Discrete::new())
    }
}

/// What networks and rewards must know of an environment of vectors.
#[derive(Clone)]
pub(crate) struct VectorFacts {
    /// The number of values of an entry.
    pub(crate) values: usize,
    /// The layout of states that are written from left to right.
    pub(crate) sequence: Option<SequenceLayout>,
    /// The settings of an environment of the library's.
    pub(crate) spec: Option<VectorSpec>,
}

impl Space<VectorEnv> {
    pub(crate) fn vectors(env: VectorEnv, values: usize) -> Self {
        let border = Arc::new(VectorBorder { values, features: KHot::new(env.width(), values), width: env.width() });
        Self { env, border, facts: VectorFacts { values, sequence: None, spec: None } }
    }

    /// One-hot entries.
    pub(crate) fn features(&self) -> KHot {
        KHot::new(self.env.width(), self.facts.values)
    }
}

impl PyEnv for VectorEnv {
    type Facts = VectorFacts;

    fn reward(space: &Space<Self>, settings: &Value, _: Option<Arc<dyn Target>>) -> PyResult<AnyReward<Self>> {
        match &space.facts.spec {
            Some(spec) => reward::vector_reward(settings, spec),
            None => Err(reward::wrong_states(settings, "the vectors of an environment of your own")),
        }
    }

    fn policy(space: &Space<Self>, plan: Plan<'_>) -> PyResult<BuiltPolicy<Self>> {
        policy::vector_policy(plan, space)
    }

    fn discrete() -> Option<Discrete<Self>> {
        Some(Discrete::new())
    }
}

impl Space<BoxEnv> {
    pub(crate) fn unit_box(env: BoxEnv) -> AnySpace {
        ByKind::Box(Self { border: Arc::new(PointBorder(env.ndim())), env, facts: () })
    }
}

impl PyEnv for BoxEnv {
    type Facts = ();

    fn reward(_: &Space<Self>, settings: &Value, _: Option<Arc<dyn Target>>) -> PyResult<AnyReward<Self>> {
        reward::box_reward(settings)
    }

    fn policy(space: &Space<Self>, plan: Plan<'_>) -> PyResult<BuiltPolicy<Self>> {
        policy::box_policy(plan, &space.env)
    }
}

impl Space<Line> {
    pub(crate) fn line(env: Line) -> AnySpace {
        ByKind::Line(Self { env, border: Arc::new(PointBorder(2)), facts: () })
    }
}

impl PyEnv for Line {
    type Facts = ();

    fn reward(_: &Space<Self>, settings: &Value, _: Option<Arc<dyn Target>>) -> PyResult<AnyReward<Self>> {
        reward::line_reward(settings)
    }

    fn policy(space: &Space<Self>, plan: Plan<'_>) -> PyResult<BuiltPolicy<Self>> {
        policy::line_policy(plan, &space.env)
    }
}

impl Space<DiffusionSampling> {
    pub(crate) fn diffusion(env: DiffusionSampling) -> AnySpace {
        ByKind::Diffusion(Self { border: Arc::new(DiffusionBorder(env.clone())), env, facts: () })
    }
}

impl PyEnv for DiffusionSampling {
    type Facts = ();

    fn target(reward: Option<&Value>) -> PyResult<Option<Arc<dyn Target>>> {
        reward.map(reward::diffusion_target).transpose()
    }

    fn reward(space: &Space<Self>, settings: &Value, target: Option<Arc<dyn Target>>) -> PyResult<AnyReward<Self>> {
        reward::diffusion_reward(settings, target, &space.env)
    }

    fn policy(space: &Space<Self>, plan: Plan<'_>) -> PyResult<BuiltPolicy<Self>> {
        policy::diffusion_policy(plan, &space.env)
    }

    fn langevin(env: &Self, target: Option<Arc<dyn Target>>, settings: &Value) -> Result<Box<dyn ObjectSearch<Self>>> {
        let Some(target) = target else {
            let expected = "a function of objects; `Mala` is for diffusions with a target of the library's";
            return Err(Error::config("search", "Mala", expected));
        };
        let config: MalaConfig = over_defaults("the settings of Mala", settings, &[])?;
        Ok(Box::new(Mala::new(env, target, config)?))
    }
}
