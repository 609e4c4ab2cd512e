//! Environments.

mod answers;
mod asked;
mod called;
mod checked;
mod declared;
mod declared_vectors;
mod graphs;
mod vectors;
mod walked;

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;

use called::CalledSettings;
use declared::{Declared, under_rules};
use declared_vectors::DeclaredVectors;
use gfn::graph::{GraphEnv, GraphState};
use gfn_dags::{BayesianStructure, StructureConfig};
use gfn_gym::boxes::BoxEnv;
use gfn_gym::diffusion::{DiffusionSampling, Process, ProcessKind};
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem};
use gfn_gym::line::Line;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use serde::Deserialize;

pub(crate) use asked::Failures;
pub(crate) use declared_vectors::VectorMoves;
pub(crate) use graphs::GraphSpec;
pub(crate) use vectors::{VectorSpec, Vectors};

use crate::errors::raised;
use crate::inside::Inside;
use crate::kept::Kept;
use crate::molecules::{Encoding, Reading, lines, refusals, states_of};
use crate::session::unbroken;
use crate::settings::read;
use crate::states::Graphs;

/// The settings of an environment, where its rewards must know them.
#[derive(Clone, Debug)]
pub(crate) enum EnvSpec {
    Vectors(VectorSpec),
    Problem(Problem),
    Other,
}

/// Environments of states of their own.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
enum OtherSpec {
    GraphEnv(Declared),
    VectorEnv(DeclaredVectors),
    Env(CalledSettings),
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
    Ruled(GraphSpec),
}

/// An environment, by the states that it has.
#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "there is one for each environment, and it isn't moved")]
pub(crate) enum EnvKind {
    Graphs { env: GraphEnv, reading: Option<Reading> },
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
    made: Made,
    /// The environment that is walked by hand, made when it is first asked for.
    walked: OnceLock<Walked>,
}

/// An environment that is walked by hand, and what its rules raise.
pub(crate) struct Walked {
    pub(crate) kind: EnvKind,
    failures: Failures,
    /// Holds the rules as long as it is there.
    kept: Kept,
    /// The thread that asks rules in Python: what they raise is its own.
    busy: Mutex<Option<ThreadId>>,
}

/// An environment, or what one is made of that asks rules of Python: each trainer has one of its own, so that what its rules raise is
/// raised by it and no other.
#[allow(clippy::large_enum_variant, reason = "there is one for each environment, and it isn't moved")]
enum Made {
    Once(EnvKind),
    Anew(OtherSpec, Own),
}

/// What an environment that is declared in Python has of its own.
struct Own {
    rules: Option<Py<PyAny>>,
    /// Graphs to start from, where some are given.
    initial: Option<Vec<GraphState>>,
}

#[pymethods]
impl Env {
    /// Reads `{class: settings}`; the rest is for environments that are declared in Python.
    #[new]
    #[pyo3(signature = (text, rules=None, initial=None))]
    fn new(py: Python<'_>, text: &str, rules: Option<Py<PyAny>>, initial: Option<PyRef<'_, Graphs>>) -> PyResult<Self> {
        let _inside = Inside::enter(py)?;
        let value: serde_json::Value = read("an environment", text)?;
        let name = value.as_object().and_then(|object| object.keys().next()).cloned().unwrap_or_default();
        let own = Own { rules, initial: initial.map(|graphs| graphs.states().graphs().to_vec()) };
        let (spec, made) = if GraphSpec::NAMES.contains(&name.as_str()) {
            let spec: GraphSpec = read(&name, text)?;
            let made = spec.build().map_err(raised)?;
            if let EnvKind::Graphs { reading: Some(reading), .. } = &made {
                reading.warn_of_fragments(py)?;
            }
            let ruled = own.rules.is_some();
            (EnvSpec::Other, if ruled { Made::Anew(OtherSpec::Ruled(spec), own) } else { Made::Once(made) })
        } else if OtherSpec::NAMES.contains(&name.as_str()) {
            let spec: OtherSpec = read(&name, text)?;
            let problem = if let OtherSpec::GraphProblem { problem, .. } = spec { Some(problem) } else { None };
            (problem.map_or(EnvSpec::Other, EnvSpec::Problem), Made::Anew(spec, own))
        } else {
            let spec: VectorSpec = read(&name, text)?;
            let made = spec.build().map(EnvKind::Vectors).map_err(raised)?;
            (EnvSpec::Vectors(spec), Made::Once(made))
        };
        let env = Self { spec, made, walked: OnceLock::new() };
        // Moves back that lead nowhere would train a wrong distribution without a word. Graph environments are looked at by each trainer.
        match &env.made {
            Made::Anew(OtherSpec::VectorEnv(_) | OtherSpec::Env(_), _) => drop(env.checked(CHECKED, 0)?),
            // What can't be built is refused here.
            _ => drop(env.fresh(&Kept::default())?),
        }
        Ok(env)
    }

    /// Looks at the states of `walks` random walks, and at all ways back from them: how many were visited, and how many in all were
    /// seen, None where those are too many.
    fn check(&self, py: Python<'_>, walks: usize, seed: u64) -> PyResult<(usize, Option<usize>)> {
        let _inside = Inside::enter(py)?;
        py.detach(|| self.checked(walks, seed))
    }

    /// Why each of these isn't a molecule that the environment builds; None for those that are.
    fn refusals(&self, py: Python<'_>, molecules: &Bound<'_, PyAny>) -> PyResult<Vec<Option<String>>> {
        let (lines, reading) = (lines(molecules, "molecules")?, self.reading()?.0);
        let _inside = Inside::enter(py)?;
        Ok(py.detach(|| refusals(&reading, &lines)))
    }

    /// All states that each of these molecules is, `most` of each at most, and the row that each state is of.
    fn trees(&self, py: Python<'_>, molecules: &Bound<'_, PyAny>, most: usize) -> PyResult<(Graphs, Vec<usize>)> {
        let (lines, reading) = (lines(molecules, "molecules")?, self.reading()?.0);
        let _inside = Inside::enter(py)?;
        let states = states_of(py, &reading, &lines, most, "molecules")?;
        let rows = states.iter().enumerate().flat_map(|(row, states)| vec![row; states.len()]).collect();
        Ok((Graphs::new(states.concat().into(), Some(reading)), rows))
    }

    /// The names of what stands for what in graphs of molecules: classes of nodes, values of their attributes, the same of edges.
    fn encoding(&self) -> PyResult<Encoding> {
        let (reading, env) = self.reading()?;
        Ok(reading.encoding(env.schema()))
    }

    /// Tells Python's collector of the rules, which may refer to the environment. They break the cycle, so there is no `__clear__`.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(walked) = self.walked.get() {
            walked.kept.visit(&visit)?;
        }
        match &self.made {
            Made::Anew(_, Own { rules: Some(rules), .. }) => visit.call(rules),
            _ => Ok(()),
        }
    }
}

impl Env {
    /// The result of something that is done by hand; what rules raise meanwhile is raised.
    pub(crate) fn by_hand<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&EnvKind) -> gfn::Result<T> + Send,
    ) -> PyResult<T> {
        let _inside = Inside::enter(py)?;
        let Walked { kind, failures, busy, .. } = match self.walked.get() {
            Some(walked) => walked,
            None => {
                let kept = Kept::default();
                let (kind, failures) = self.fresh(&kept)?;
                self.walked.get_or_init(|| Walked { kind, failures, kept, busy: Mutex::default() })
            }
        };
        if matches!(self.made, Made::Once(_)) {
            // Nobody of Python's is asked.
            return py.detach(|| unbroken(|| work(kind)))?.map_err(raised);
        }
        let me = std::thread::current().id();
        if *busy.lock().unwrap_or_else(PoisonError::into_inner) == Some(me) {
            let asked = "the environment is at work in the call that asked its rules: let them answer first";
            return Err(PyRuntimeError::new_err(asked));
        }
        let taken = || {
            let mut at_work = busy.lock().unwrap_or_else(PoisonError::into_inner);
            at_work.is_none() && at_work.replace(me).is_none()
        };
        let done = py.detach(|| {
            while !taken() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            unbroken(|| work(kind))
        });
        let raised_by_rules = failures.take();
        *busy.lock().unwrap_or_else(PoisonError::into_inner) = None;
        raised_by_rules.map_or_else(|| done?.map_err(raised), Err)
    }

    /// An environment of molecules, without rules on top of its own (whether these lead to a molecule, walks alone can tell), and how its
    /// graphs are read.
    fn reading(&self) -> PyResult<(Reading, GraphEnv)> {
        match self.without_rules()? {
            Some(EnvKind::Graphs { reading: Some(reading), env }) => Ok((reading, env)),
            _ => Err(PyTypeError::new_err("an environment that builds no molecules")),
        }
    }

    /// One of the library's as it would be without rules on top of its own; None of one that is declared in Python.
    fn without_rules(&self) -> PyResult<Option<EnvKind>> {
        Ok(match &self.made {
            Made::Once(kind) => Some(kind.clone()),
            Made::Anew(OtherSpec::Ruled(spec), _) => Some(spec.build().map_err(raised)?),
            Made::Anew(..) => None,
        })
    }

    /// The environment for a trainer, which keeps its rules, and what they raise.
    pub(crate) fn fresh(&self, kept: &Kept) -> PyResult<(EnvKind, Failures)> {
        let failures = Failures::default();
        let kind = match &self.made {
            Made::Once(kind) => Ok(kind.clone()),
            Made::Anew(spec, own) => spec.build(own, kept, &failures),
        };
        match failures.take() {
            Some(raised) => Err(raised),
            None => Ok((kind.map_err(raised)?, failures)),
        }
    }

    fn checked(&self, walks: usize, seed: u64) -> PyResult<(usize, Option<usize>)> {
        let (kind, failures) = self.fresh(&Kept::default())?;
        let seen = checked::check(&kind, walks, seed);
        match failures.take() {
            Some(raised) => Err(raised),
            None => seen.map_err(raised),
        }
    }
}

/// Random walks that an environment of vectors of somebody's own is looked at on.
const CHECKED: usize = 32;

impl OtherSpec {
    const NAMES: [&str; 8] =
        ["GraphEnv", "VectorEnv", "Env", "BayesianStructure", "Box", "Line", "Diffusion", "GraphProblem"];

    fn build(&self, own: &Own, kept: &Kept, failures: &Failures) -> gfn::Result<EnvKind> {
        let rules = || own.rules.as_ref().map(|rules| kept.keep(Python::attach(|py| rules.clone_ref(py))));
        Ok(match self {
            Self::Ruled(spec) => match (spec.build()?, rules()) {
                (EnvKind::Graphs { env, reading }, Some(rules)) => {
                    EnvKind::Graphs { env: under_rules(env, rules, failures, reading.clone()), reading }
                }
                (kind, _) => kind,
            },
            Self::GraphProblem { problem, for_size } => {
                let graphs = Instances::new(own.initial.clone().unwrap_or_default())?;
                let make = if *for_size { GraphProblem::for_size } else { GraphProblem::new };
                EnvKind::Graphs { env: make(*problem, &graphs)?.into_env(), reading: None }
            }
            Self::GraphEnv(declared) => {
                EnvKind::Graphs { env: declared.build(rules(), own.initial.clone(), failures)?, reading: None }
            }
            Self::VectorEnv(declared) => EnvKind::Vectors(declared.build(rules(), failures)?),
            Self::Env(settings) => EnvKind::Vectors(settings.build(rules(), failures)?),
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
