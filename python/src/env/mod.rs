//! The extension's class of environments, which the environments of `gfn_rs._envs` wrap.

mod answers;
mod batch_env;
mod declared;
mod declared_vectors;
mod rules;
mod spec;
mod steps;
mod tensor_env;

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;

use declared::restrict_by_rules;
use gfn::Rng;
use gfn::contract::{Budget, Coverage, WaysBack, check_env, check_graph_env, check_tensors};
use gfn::env::{Env as _, Rows, VectorEnv, VectorStates};
use gfn::graph::{GraphEnv, GraphState};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use tch::Tensor;

pub(crate) use rules::{FailureCheck, Failures};
pub(crate) use spec::{EnvSpec, token_sequence};

use crate::errors::{Outcome, to_exception};
use crate::inside::Inside;
use crate::kinds::{AnySpace, ByKind, GraphDetails, Space, points};
use crate::molecules::{Encoding, Reading, lines, refusals, states_of};
use crate::references::References;
use crate::session::catch_panic;
use crate::settings::read;
use crate::states::Graphs;
use crate::watch::Watch;

/// The environment that an object of a class of `gfn_rs._envs` contains.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Env {
    spec: EnvSpec,
    /// The environment's rules in Python. Each trainer builds a separate environment with these rules, so
    /// that a trainer raises only the exceptions of its own calls.
    rules: Option<Py<PyAny>>,
    /// The initial graphs of an environment whose initial graphs come from Python; `None` for any other
    /// environment.
    initial: Option<Vec<GraphState>>,
    /// The environment, built in advance. `None` if the environment has rules in Python.
    space: Option<AnySpace>,
    /// The environment in which Python takes steps. This environment is built at the first step.
    stepped: OnceLock<SteppedEnv>,
}

/// An environment in which Python takes steps, and the store for exceptions that its Python rules raise.
struct SteppedEnv {
    space: AnySpace,
    failures: Failures,
    /// The references that keep the rules in Python alive.
    references: References,
    /// The thread whose call currently runs the rules in Python. The exceptions that the rules raise end the
    /// call of this thread.
    busy: Mutex<Option<ThreadId>>,
}

#[pymethods]
impl Env {
    /// Builds an environment from `{class: settings}`. `rules` and `initial` are for environments that are
    /// declared in Python.
    #[new]
    #[pyo3(signature = (settings, rules=None, initial=None))]
    fn new(
        py: Python<'_>,
        settings: &Bound<'_, PyAny>,
        rules: Option<Py<PyAny>>,
        initial: Option<PyRef<'_, Graphs>>,
    ) -> PyResult<Self> {
        let _inside = Inside::enter(py)?;
        let spec = read("an environment", settings)?;
        let initial = initial.map(|graphs| graphs.states().graphs().to_vec());
        let mut env = Self { spec, rules, initial, space: None, stepped: OnceLock::new() };
        let (space, failures) = env.build(&References::default())?;
        if let ByKind::Graphs(Space { details: GraphDetails::Molecules(reading), .. }) = &space {
            reading.warn_of_fragments(py)?;
        }
        // If backward moves led to unreachable states, training would learn a wrong distribution without an
        // error. So backward moves are checked now. Graph environments are checked by each trainer instead.
        if matches!(env.spec, EnvSpec::VectorEnv(_) | EnvSpec::Env(_) | EnvSpec::TensorEnv(_)) {
            check_walks(&space, &failures, N_WALKS, 0)?;
        }
        env.space = env.rules.is_none().then_some(space);
        Ok(env)
    }

    /// Checks the states of `walks` random trajectories, and all backward paths from these states. Returns
    /// the number of visited states, and the number of all states on the backward paths, which include the
    /// visited states. The second number is `None` if these states are too many to list.
    fn check(&self, py: Python<'_>, walks: usize, seed: u64) -> PyResult<(usize, Option<usize>)> {
        let _inside = Inside::enter(py)?;
        let references = References::default();
        let (space, failures) = self.build(&references)?;
        py.detach(|| check_walks(&space, &failures, walks, seed))
    }

    /// Returns the reason why the environment can't build a molecule, for each molecule; `None` if the
    /// environment can build it.
    fn refusals(&self, py: Python<'_>, molecules: &Bound<'_, PyAny>) -> PyResult<Vec<Option<String>>> {
        let (lines, (reading, _)) = (lines(molecules, "molecules")?, self.molecules()?);
        let _inside = Inside::enter(py)?;
        Ok(py.detach(|| refusals(&reading, &lines)))
    }

    /// Lists the states of each molecule, at most `most` per molecule. Returns the states, and the index of
    /// each state's molecule.
    fn trees(
        &self,
        py: Python<'_>,
        molecules: &Bound<'_, PyAny>,
        most: usize,
    ) -> PyResult<(Graphs, Vec<usize>)> {
        let (lines, (reading, _)) = (lines(molecules, "molecules")?, self.molecules()?);
        let _inside = Inside::enter(py)?;
        let states = states_of(py, &reading, &lines, most, "molecules")?;
        let rows = states.iter().enumerate().flat_map(|(row, states)| vec![row; states.len()]).collect();
        Ok((Graphs::new(states.concat().into(), Some(reading)), rows))
    }

    /// Returns the names of node classes, of the values of node attributes, of edge classes, and of the
    /// values of edge attributes in the graphs of an environment of molecules.
    fn encoding(&self) -> PyResult<Encoding> {
        let (reading, space) = self.molecules()?;
        Ok(reading.encoding(space.env.schema()))
    }

    /// Reports the rules in Python, which may refer to the environment, so that Python's garbage collector
    /// finds reference cycles. `__clear__` isn't needed, because the collector breaks such a cycle by
    /// clearing the rules.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(stepped) = self.stepped.get() {
            stepped.references.visit(&visit)?;
        }
        self.rules.as_ref().map_or(Ok(()), |rules| visit.call(rules))
    }
}

impl Env {
    /// Runs `work` on the environment in which Python takes steps, and then raises the exception that the
    /// environment's rules have raised, if there is one.
    pub(crate) fn with_space<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&AnySpace) -> gfn::Result<T> + Send,
    ) -> PyResult<T> {
        let _inside = Inside::enter(py)?;
        if let Some(space) = &self.space {
            // The environment has no rules in Python that could have raised an exception.
            return py.detach(|| catch_panic(|| work(space)))?.map_err(to_exception);
        }
        let SteppedEnv { space, failures, busy, .. } = match self.stepped.get() {
            Some(stepped) => stepped,
            None => {
                let references = References::default();
                let (space, failures) = self.build(&references)?;
                self.stepped.get_or_init(|| SteppedEnv {
                    space,
                    failures,
                    references,
                    busy: Mutex::default(),
                })
            }
        };
        let this_thread = std::thread::current().id();
        let lock = || busy.lock().unwrap_or_else(PoisonError::into_inner);
        if *lock() == Some(this_thread) {
            let refusal = "the environment was called by one of its own rules, while it waits for the result \
                of that rule: call the environment outside of the rules";
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
            None => done?.map_err(to_exception),
        }
    }

    /// Returns an environment of molecules, and the conversion of its graphs to molecules. The returned
    /// environment ignores rules in Python, because only complete trajectories could show if the rules allow
    /// a molecule.
    fn molecules(&self) -> Outcome<(Reading, Space<GraphEnv>)> {
        let space = match &self.space {
            Some(space) => space.clone(),
            None => self.spec.build(None, None, &Failures::default())?,
        };
        if let ByKind::Graphs(space) = space
            && let Some(reading) = space.details.reading().cloned()
        {
            return Ok((reading, space));
        }
        Err(PyTypeError::new_err(
            "the environment doesn't build molecules: expected an environment of molecules, such as \
             Molecules or Fragments",
        )
        .into())
    }

    /// Builds the environment for a trainer, and the store for exceptions that its Python rules raise. The
    /// rules are added to `references`, which keeps them alive.
    pub(crate) fn build(&self, references: &References) -> PyResult<(AnySpace, Failures)> {
        let failures = Failures::default();
        if let Some(space) = &self.space {
            return Ok((space.clone(), failures));
        }
        let rules = self.rules.as_ref();
        let rules = rules.map(|rules| references.add(Python::attach(|py| rules.clone_ref(py))));
        let space = match (self.spec.build(rules.clone(), self.initial.as_deref(), &failures), rules) {
            (Ok(ByKind::Graphs(Space { env, details, .. })), Some(rules)) => Ok(Space::graphs(
                restrict_by_rules(env, rules, &failures, details.reading().cloned()),
                details,
            )),
            (space, _) => space,
        };
        failures.raise()?;
        Ok((space.map_err(to_exception)?, failures))
    }
}

/// The number of random trajectories by which a custom environment of vectors is checked.
const N_WALKS: usize = 32;

fn check_walks(
    space: &AnySpace,
    failures: &Failures,
    walks: usize,
    seed: u64,
) -> PyResult<(usize, Option<usize>)> {
    let rng = &mut Rng::seeded(seed);
    let watch = Watch::new();
    let look = || watch.look();
    let budget = Budget::thorough().with_walks(walks).with_watch(&look);
    let coverage = match space {
        ByKind::Graphs(Space { env, details: GraphDetails::Structures(_), .. }) => {
            check_env(env, budget, rng)
        }
        ByKind::Graphs(space) => check_graph_env(&space.env, budget, rng),
        ByKind::Vectors(space) => check_vectors(&space.env, budget, walks, rng),
        ByKind::Box(_) | ByKind::Line(_) | ByKind::Diffusion(_) => Err(points()),
    };
    failures.raise()?;
    let Coverage { n_visited, ways_back } = coverage.map_err(to_exception)?;
    let states = match ways_back {
        WaysBack::All { states } => Some(states),
        WaysBack::Sample { .. } => None,
    };
    Ok((n_visited, states))
}

/// Checks an environment of vectors and, if it has a form whose states are a tensor, this form.
fn check_vectors(env: &VectorEnv, budget: Budget<'_>, walks: usize, rng: &mut Rng) -> gfn::Result<Coverage> {
    let coverage = check_env(env, budget, rng)?;
    if env.tensor_form().is_some() {
        let zero = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
        check_tensors(env, &zero, walks, rng)?;
    }
    Ok(coverage)
}
