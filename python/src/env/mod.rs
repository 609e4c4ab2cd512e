//! Environments.

mod asked;
mod declared;
mod declared_vectors;
mod erased;
mod graphs;
mod vectors;

use declared::Declared;
use declared_vectors::DeclaredVectors;
use gfn::graph::GraphState;
use gfn_dags::{BayesianStructure, StructureConfig};
use gfn_gym::boxes::BoxEnv;
use gfn_gym::diffusion::{DiffusionSampling, Process, ProcessKind};
use gfn_gym::line::Line;
use gfn_molecules::MoleculeCodec;
use pyo3::prelude::*;
use serde::Deserialize;

pub(crate) use asked::Failures;
pub(crate) use declared::Moves;
pub(crate) use declared_vectors::VectorMoves;
pub(crate) use erased::{AnyGraphEnv, AnyVectorEnv};
pub(crate) use graphs::GraphSpec;
pub(crate) use vectors::{VectorSpec, Vectors};

use crate::errors::raised;
use crate::settings::read;
use crate::states::Graphs;

/// The settings of an environment, where its rewards must know them.
#[derive(Clone, Debug)]
pub(crate) enum EnvSpec {
    Vectors(VectorSpec),
    Other,
}

/// Environments of states of their own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum OtherSpec {
    GraphEnv(Declared),
    VectorEnv(DeclaredVectors),
    BayesianStructure(StructureConfig),
    Box { ndim: usize, delta: f64, polar: bool },
    Line { n_steps: usize },
    Diffusion { dim: usize, steps: usize, sigma: f64, process: ProcessKind },
}

/// An environment, by the states that it has.
#[derive(Clone)]
pub(crate) enum EnvKind {
    Graphs { env: AnyGraphEnv, codec: Option<MoleculeCodec> },
    Vectors(Vectors),
    Structures(BayesianStructure),
    Box(BoxEnv),
    Line(Line),
    Diffusion(DiffusionSampling),
}

/// What the classes of `gfn_rs.envs` are made of.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Env {
    pub(crate) spec: EnvSpec,
    pub(crate) kind: EnvKind,
    /// What rules in Python raised.
    pub(crate) failures: Failures,
}

/// What an environment that is declared in Python has of its own.
struct Own {
    rules: Option<Py<PyAny>>,
    initial: Option<GraphState>,
}

#[pymethods]
impl Env {
    /// Reads `{class: settings}`; the rest is for environments that are declared in Python.
    #[new]
    #[pyo3(signature = (text, rules=None, initial=None))]
    fn new(text: &str, rules: Option<Py<PyAny>>, initial: Option<PyRef<'_, Graphs>>) -> PyResult<Self> {
        let value: serde_json::Value = read("an environment", text)?;
        let name = value.as_object().and_then(|object| object.keys().next()).cloned().unwrap_or_default();
        let failures = Failures::default();
        let initial = initial.map(|graphs| graphs.only()).transpose()?;
        let (spec, kind) = if GraphSpec::NAMES.contains(&name.as_str()) {
            let spec: GraphSpec = read(&name, text)?;
            let kind = spec.build();
            (EnvSpec::Other, kind)
        } else if OtherSpec::NAMES.contains(&name.as_str()) {
            let spec: OtherSpec = read(&name, text)?;
            (EnvSpec::Other, spec.build(Own { rules, initial }, &failures))
        } else {
            let spec: VectorSpec = read(&name, text)?;
            let kind = spec.build().map(EnvKind::Vectors);
            (EnvSpec::Vectors(spec), kind)
        };
        match (kind, failures.take()) {
            (_, Some(raised)) => Err(raised),
            (kind, None) => Ok(Self { kind: kind.map_err(raised)?, spec, failures }),
        }
    }
}

impl OtherSpec {
    const NAMES: [&str; 6] = ["GraphEnv", "VectorEnv", "BayesianStructure", "Box", "Line", "Diffusion"];

    fn build(&self, own: Own, failures: &Failures) -> gfn::Result<EnvKind> {
        Ok(match self {
            Self::GraphEnv(declared) => {
                EnvKind::Graphs { env: declared.build(own.rules, own.initial, failures)?, codec: None }
            }
            Self::VectorEnv(declared) => EnvKind::Vectors(declared.build(own.rules, failures)?),
            Self::BayesianStructure(config) => EnvKind::Structures(BayesianStructure::new(config.clone())?),
            Self::Box { ndim, delta, polar: false } => EnvKind::Box(BoxEnv::cartesian(*ndim, *delta)?),
            Self::Box { ndim: 2, delta, polar: true } => EnvKind::Box(BoxEnv::polar(*delta)?),
            Self::Box { ndim, polar: true, .. } => {
                return Err(gfn::Error::config("ndim of a polar box", ndim, "2"));
            }
            Self::Line { n_steps } => EnvKind::Line(Line::new(*n_steps)?),
            Self::Diffusion { dim, steps, sigma, process } => {
                EnvKind::Diffusion(DiffusionSampling::new(*dim, Process::new(*process, *sigma, *steps)?)?)
            }
        })
    }
}
