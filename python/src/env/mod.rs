//! Environments.

mod answers;
mod batch_env;
mod declared;
mod declared_vectors;
mod graphs;
mod rules;
mod steps;

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;

use batch_env::BatchEnvSettings;
use declared::{GraphDeclaration, restrict_by_rules};
use declared_vectors::VectorDeclaration;
use gfn::contract::{Budget, Coverage, WaysBack, check_env, check_graph_env};
use gfn::graph::GraphState;
use gfn::{Error, Rng};
use gfn_dags::{BayesianStructure, StructureConfig};
use gfn_gym::boxes::BoxEnv;
use gfn_gym::diffusion::{DiffusionSampling, Process, ProcessKind};
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem};
use gfn_gym::line::Line;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use serde::Deserialize;

pub(crate) use declared_vectors::VectorMoves;
pub(crate) use graphs::GraphSpec;
pub(crate) use rules::{FailureCheck, Failures};

use crate::errors::raised;
use crate::inside::Inside;
use crate::kinds::{AnySpace, ByKind, GraphFacts, Space, VectorSpec};
use crate::molecules::{Encoding, Reading, lines, refusals, states_of};
use crate::references::References;
use crate::session::catch_panic;
use crate::settings::read;
use crate::states::Graphs;
use crate::watch::Watch;

/// Settings of environments that each trainer builds anew.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
enum OtherSpec {
    GraphEnv(GraphDeclaration),
    VectorEnv(VectorDeclaration),
    Env(BatchEnvSettings),
    BayesianStructure(StructureConfig),
    Box {
        ndim: usize,
        delta: f64,
        polar: bool,
    },
    Line {
        n_steps: usize,
    },
    Diffusion {
        dim: usize,
        steps: usize,
        sigma: f64,
        process: ProcessKind,
    },
    GraphProblem {
        problem: Problem,
        for_size: bool,
    },
    /// Molecules, under rules.
    #[serde(skip)]
    Restricted(GraphSpec),
}

/// The environment inside of the classes of `gfn_rs.envs`.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Env {
    source: EnvSource,
    /// The environment that Python itself takes steps in, made at the first call.
    stepped: OnceLock<SteppedEnv>,
}

/// An environment that Python itself takes steps in, and what its rules raise.
struct SteppedEnv {
    space: AnySpace,
    failures: Failures,
    /// Holds the rules as long as the environment.
    references: References,
    /// The thread that asks rules in Python: it raises what they raise.
    busy: Mutex<Option<ThreadId>>,
}

/// An environment, or the settings of one that asks rules of Python: each trainer builds its own, so that an exception of its rules is
/// raised by this trainer alone.
#[allow(clippy::large_enum_variant, reason = "there is one for each environment, and it isn't moved")]
enum EnvSource {
    Built(AnySpace),
    Settings(OtherSpec, Declared),
}

/// The objects of an environment that is declared in Python.
struct Declared {
    rules: Option<Py<PyAny>>,
    /// Graphs to start from.
    initial: Option<Vec<GraphState>>,
}

#[pymethods]
impl Env {
    /// Reads `{class: settings}`; the rest is for environments that are declared in Python.
    #[new]
    #[pyo3(signature = (settings, rules=None, initial=None))]
    fn new(
        py: Python<'_>,
        settings: &Bound<'_, PyAny>,
        rules: Option<Py<PyAny>>,
        initial: Option<PyRef<'_, Graphs>>,
    ) -> PyResult<Self> {
        let _inside = Inside::enter(py)?;
        let by_class: std::collections::BTreeMap<String, serde::de::IgnoredAny> = read("an environment", settings)?;
        let name = by_class.into_keys().next().unwrap_or_default();
        let initial = initial.map(|graphs| graphs.states().graphs().to_vec());
        let source = if GraphSpec::NAMES.contains(&name.as_str()) {
            let spec: GraphSpec = read(&name, settings)?;
            let space = spec.build().map_err(raised)?;
            if let ByKind::Graphs(Space { facts: GraphFacts::Molecules(reading), .. }) = &space {
                reading.warn_of_fragments(py)?;
            }
            match rules {
                Some(_) => EnvSource::Settings(OtherSpec::Restricted(spec), Declared { rules, initial }),
                None => EnvSource::Built(space),
            }
        } else if OtherSpec::NAMES.contains(&name.as_str()) {
            EnvSource::Settings(read(&name, settings)?, Declared { rules, initial })
        } else {
            let spec: VectorSpec = read(&name, settings)?;
            EnvSource::Built(spec.build().map_err(raised)?)
        };
        let env = Self { source, stepped: OnceLock::new() };
        // Backward moves that lead nowhere would train a wrong distribution without an error. Each trainer checks graph environments itself.
        match &env.source {
            EnvSource::Settings(OtherSpec::VectorEnv(_) | OtherSpec::Env(_), _) => {
                env.check_walks(N_WALKS, 0)?;
            }
            // Refuses settings that can't be built.
            _ => {
                env.build(&References::default())?;
            }
        }
        Ok(env)
    }

    /// Checks the states of `walks` random walks, and all backward paths from them. Returns the number of states that were visited, and of
    /// all that were seen, None for too many.
    fn check(&self, py: Python<'_>, walks: usize, seed: u64) -> PyResult<(usize, Option<usize>)> {
        let _inside = Inside::enter(py)?;
        py.detach(|| self.check_walks(walks, seed))
    }

    /// The reason why each of these isn't a molecule that the environment builds; None for those that are.
    fn refusals(&self, py: Python<'_>, molecules: &Bound<'_, PyAny>) -> PyResult<Vec<Option<String>>> {
        let (lines, (reading, _)) = (lines(molecules, "molecules")?, self.molecules()?);
        let _inside = Inside::enter(py)?;
        Ok(py.detach(|| refusals(&reading, &lines)))
    }

    /// All states that each of these molecules is, at most `most` of each, and the row of the molecule of each state.
    fn trees(&self, py: Python<'_>, molecules: &Bound<'_, PyAny>, most: usize) -> PyResult<(Graphs, Vec<usize>)> {
        let (lines, (reading, _)) = (lines(molecules, "molecules")?, self.molecules()?);
        let _inside = Inside::enter(py)?;
        let states = states_of(py, &reading, &lines, most, "molecules")?;
        let rows = states.iter().enumerate().flat_map(|(row, states)| vec![row; states.len()]).collect();
        Ok((Graphs::new(states.concat().into(), Some(reading)), rows))
    }

    /// The names of classes of nodes, of values of their attributes, and the same of edges, in graphs of molecules.
    fn encoding(&self) -> PyResult<Encoding> {
        let (reading, space) = self.molecules()?;
        Ok(reading.encoding(space.env.schema()))
    }

    /// Tells Python's collector of the rules, which may refer to the environment. They break the cycle, so there is no `__clear__`.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(stepped) = self.stepped.get() {
            stepped.references.visit(&visit)?;
        }
        match &self.source {
            EnvSource::Settings(_, Declared { rules: Some(rules), .. }) => visit.call(rules),
            _ => Ok(()),
        }
    }
}

impl Env {
    /// Works on the environment that Python steps in; raises what rules raise meanwhile.
    pub(crate) fn with_space<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&AnySpace) -> gfn::Result<T> + Send,
    ) -> PyResult<T> {
        let _inside = Inside::enter(py)?;
        let SteppedEnv { space, failures, busy, .. } = match self.stepped.get() {
            Some(stepped) => stepped,
            None => {
                let references = References::default();
                let (space, failures) = self.build(&references)?;
                self.stepped.get_or_init(|| SteppedEnv { space, failures, references, busy: Mutex::default() })
            }
        };
        if matches!(self.source, EnvSource::Built(_)) {
            // No code of Python is called.
            return py.detach(|| catch_panic(|| work(space)))?.map_err(raised);
        }
        let this_thread = std::thread::current().id();
        let lock = || busy.lock().unwrap_or_else(PoisonError::into_inner);
        if *lock() == Some(this_thread) {
            let refusal = "the environment is at work in the call that asked its rules: let them answer first";
            return Err(PyRuntimeError::new_err(refusal));
        }
        let try_take = || {
            let mut owner = lock();
            owner.is_none() && owner.replace(this_thread).is_none()
        };
        let done = py.detach(|| {
            while !try_take() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            catch_panic(|| work(space))
        });
        let exception = failures.take();
        *lock() = None;
        match exception {
            Some(exception) => Err(exception),
            None => done?.map_err(raised),
        }
    }

    /// An environment of molecules, and how its graphs are read, without rules of Python: only walks can tell whether these lead to a
    /// molecule.
    fn molecules(&self) -> PyResult<(Reading, Space<gfn::graph::GraphEnv>)> {
        let space = match &self.source {
            EnvSource::Built(space) => Some(space.clone()),
            EnvSource::Settings(OtherSpec::Restricted(spec), _) => Some(spec.build().map_err(raised)?),
            EnvSource::Settings(..) => None,
        };
        if let Some(ByKind::Graphs(space)) = space
            && let Some(reading) = space.facts.reading().cloned()
        {
            return Ok((reading, space));
        }
        Err(PyTypeError::new_err("an environment that builds no molecules"))
    }

    /// The environment for a trainer, which holds its rules, and the place of what they raise.
    pub(crate) fn build(&self, references: &References) -> PyResult<(AnySpace, Failures)> {
        let failures = Failures::default();
        let space = match &self.source {
            EnvSource::Built(space) => Ok(space.clone()),
            EnvSource::Settings(spec, declared) => spec.build(declared, references, &failures),
        };
        failures.raise()?;
        Ok((space.map_err(raised)?, failures))
    }

    fn check_walks(&self, walks: usize, seed: u64) -> PyResult<(usize, Option<usize>)> {
        let (space, failures) = self.build(&References::default())?;
        let (rng, watch) = (&mut Rng::seeded(seed), Watch::new());
        let look = || watch.look();
        let budget = Budget::thorough().with_walks(walks).with_watch(&look);
        let coverage = match &space {
            ByKind::Graphs(Space { env, facts: GraphFacts::Structures(_), .. }) => check_env(env, budget, rng),
            ByKind::Graphs(space) => check_graph_env(&space.env, budget, rng),
            ByKind::Vectors(space) => check_env(&space.env, budget, rng),
            ByKind::Box(_) | ByKind::Line(_) | ByKind::Diffusion(_) => {
                let expected = "one whose moves can be listed: graphs, vectors, acyclic graphs";
                Err(Error::config("an environment to be checked", "one of points", expected))
            }
        };
        failures.raise()?;
        let Coverage { visited, ways_back } = coverage.map_err(raised)?;
        let states = match ways_back {
            WaysBack::All { states } => Some(states),
            WaysBack::Sample { .. } => None,
        };
        Ok((visited, states))
    }
}

/// Random walks that check a custom environment of vectors.
const N_WALKS: usize = 32;

impl OtherSpec {
    const NAMES: [&str; 8] =
        ["GraphEnv", "VectorEnv", "Env", "BayesianStructure", "Box", "Line", "Diffusion", "GraphProblem"];

    fn build(&self, declared: &Declared, references: &References, failures: &Failures) -> gfn::Result<AnySpace> {
        let rules = declared.rules.as_ref();
        let rules = rules.map(|rules| references.add(Python::attach(|py| rules.clone_ref(py))));
        Ok(match self {
            Self::Restricted(spec) => match (spec.build()?, rules) {
                (ByKind::Graphs(Space { env, facts, .. }), Some(rules)) => {
                    let env = restrict_by_rules(env, rules, failures, facts.reading().cloned());
                    Space::graphs(env, facts)
                }
                (space, _) => space,
            },
            Self::GraphProblem { problem, for_size } => {
                let graphs = Instances::new(declared.initial.clone().unwrap_or_default())?;
                let make = if *for_size { GraphProblem::for_size } else { GraphProblem::new };
                Space::graphs(make(*problem, &graphs)?.into_env(), GraphFacts::Problem(*problem))
            }
            Self::GraphEnv(declaration) => {
                let env = declaration.build(rules, declared.initial.clone(), failures)?;
                Space::graphs(env, GraphFacts::Plain)
            }
            Self::VectorEnv(declaration) => ByKind::Vectors(declaration.build(rules, failures)?),
            Self::Env(settings) => ByKind::Vectors(settings.build(rules, failures)?),
            Self::BayesianStructure(config) => {
                let structures = BayesianStructure::new(config.clone())?;
                Space::graphs(structures.env().clone(), GraphFacts::Structures(structures))
            }
            Self::Box { ndim, delta, polar: false } => Space::unit_box(BoxEnv::cartesian(*ndim, *delta)?),
            Self::Box { ndim: 2, delta, polar: true } => Space::unit_box(BoxEnv::polar(*delta)?),
            Self::Box { ndim, polar: true, .. } => return Err(Error::config("ndim of a polar box", ndim, "2")),
            Self::Line { n_steps } => Space::line(Line::new(*n_steps)?),
            Self::Diffusion { dim, steps, sigma, process } => {
                Space::diffusion(DiffusionSampling::new(*dim, Process::new(*process, *sigma, *steps)?)?)
            }
        })
    }
}
