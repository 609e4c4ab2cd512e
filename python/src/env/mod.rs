//! Environments.

mod erased;
mod graphs;
mod vectors;

use gfn_dags::{BayesianStructure, StructureConfig};
use gfn_gym::boxes::BoxEnv;
use gfn_gym::diffusion::{DiffusionSampling, Process, ProcessKind};
use gfn_gym::line::Line;
use gfn_molecules::MoleculeCodec;
use pyo3::prelude::*;
use serde::Deserialize;

pub(crate) use erased::{AnyGraphEnv, AnyVectorEnv};
pub(crate) use graphs::GraphSpec;
pub(crate) use vectors::{VectorSpec, Vectors};

use crate::errors::raised;
use crate::settings::read;

/// The settings of an environment, by the states that it has.
#[derive(Clone, Debug)]
pub(crate) enum EnvSpec {
    Graphs(GraphSpec),
    Vectors(VectorSpec),
    Other(OtherSpec),
}

/// Environments of states of their own.
#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) enum OtherSpec {
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
}

/// The names of classes and what reads them; serde's own message for an untagged enum names neither.
fn spec(text: &str) -> PyResult<EnvSpec> {
    const OTHERS: [&str; 4] = ["BayesianStructure", "Box", "Line", "Diffusion"];
    let value: serde_json::Value = read("an environment", text)?;
    let name = value.as_object().and_then(|object| object.keys().next()).cloned().unwrap_or_default();
    if OTHERS.contains(&name.as_str()) {
        return Ok(EnvSpec::Other(read(&name, text)?));
    }
    if GraphSpec::NAMES.contains(&name.as_str()) {
        return Ok(EnvSpec::Graphs(read(&name, text)?));
    }
    Ok(EnvSpec::Vectors(read(&name, text)?))
}

#[pymethods]
impl Env {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let spec = spec(text)?;
        let kind = match &spec {
            EnvSpec::Graphs(spec) => spec.build(),
            EnvSpec::Vectors(spec) => spec.build().map(EnvKind::Vectors),
            EnvSpec::Other(spec) => spec.build(),
        };
        Ok(Self { kind: kind.map_err(raised)?, spec })
    }
}

impl OtherSpec {
    fn build(&self) -> gfn::Result<EnvKind> {
        Ok(match self {
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
