//! A trainer, whatever its states: what `gfn_rs.Trainer` is made of.

mod build;
mod by_hand;
mod engine;
mod exact;
mod judging;
mod own_loop;
mod replay;
mod sampled;
mod shared;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, TryLockError};

use gfn_judge::Budget;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};

use crate::conditions::Conditions;
use crate::env::{Env, Failures};
use crate::errors::raised;
use crate::evaluation::Tested;
use crate::inside::Inside;
use crate::kept::Kept;
use crate::parts::PyParts;
use crate::reward::Handed;
use crate::{tensors, threads};
pub(crate) use engine::later;
use engine::{Engine, Made};

/// A trainer. It is at work for one caller at a time; any other, a callback of its own among them, gets an error in place of a wait.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Session {
    /// None once the library has broken off in the middle of something.
    engine: Mutex<Option<Box<dyn Engine>>>,
    /// The exceptions that rules of the environment raised, which the library has no place for.
    failures: Failures,
    kept: Kept,
    steps: Arc<AtomicUsize>,
}

impl Session {
    /// Works without the interpreter, which other threads of Python can have meanwhile, and in a clean state of torch.
    ///
    /// A panic is a defect of the library's, or of what a tensor was made to be from outside. It must not pass into Python as something
    /// that no `except Exception` catches: it is an error, and the trainer, which may be half way through a step, can't be used again.
    fn work<T: Send>(&self, py: Python<'_>, job: impl FnOnce(&mut dyn Engine) -> T + Send) -> PyResult<T> {
        let _inside = Inside::enter(py)?;
        py.detach(|| {
            let mut held = match self.engine.try_lock() {
                Ok(held) => held,
                Err(TryLockError::WouldBlock) => {
                    return Err(PyRuntimeError::new_err(
                        "the trainer is at work, in another thread or in the call that asked its reward: wait until that returns",
                    ));
                }
                Err(TryLockError::Poisoned(broken)) => broken.into_inner(),
            };
            let Some(engine) = held.as_mut() else {
                return Err(PyRuntimeError::new_err("the trainer broke off in the middle of its work: make a new one"));
            };
            let done = unbroken(|| job(engine.as_mut()));
            if done.is_err() {
                *held = None;
            }
            done
        })
    }
}

impl Session {
    /// The same for what can fail.
    fn ask<T: Send>(&self, py: Python<'_>, job: impl FnOnce(&mut dyn Engine) -> gfn::Result<T> + Send) -> PyResult<T> {
        let done = self.work(py, |engine| engine.check_shared().and_then(|()| job(engine)))?;
        self.failures.take().map_or_else(|| done.map_err(raised), Err)
    }

    /// The policy, for a trainer that goes on with it: this session is over.
    fn give_policy(&self) -> PyResult<Box<dyn Any + Send>> {
        let given = self.engine.try_lock().ok().and_then(|mut held| held.take());
        let none =
            || PyRuntimeError::new_err("the policy is at work, or gone: wait until its call returns, or build another");
        Ok(given.ok_or_else(none)?.into_policy())
    }

    /// The result of reading something off a trainer.
    fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&dyn Engine) -> T + Send) -> PyResult<T> {
        self.work(py, |engine| read(engine))
    }
}

/// The result of a job; an error where the library broke off.
pub(crate) fn unbroken<T>(job: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(job)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        PyRuntimeError::new_err(format!("the library broke off: {}", text.unwrap_or("for no reason that it tells")))
    })
}

/// The figures of steps, as lists by name.
fn table<'py>(py: Python<'py>, made: &[Made]) -> PyResult<Bound<'py, PyDict>> {
    let table = PyDict::new(py);
    let column = |of: fn(&Made) -> f64| made.iter().map(of).collect::<Vec<f64>>();
    table.set_item("step", made.iter().map(|made| made.step).collect::<Vec<_>>())?;
    table.set_item("loss", column(|made| made.stats.loss))?;
    table.set_item("log_z", column(|made| made.stats.log_z))?;
    table.set_item("mean_len", column(|made| made.stats.mean_len))?;
    table.set_item("grad_norm", column(|made| made.stats.grad_norm))?;
    table.set_item("seconds", column(|made| made.stats.seconds.iter().sum()))?;
    table.set_item("reward_calls", made.iter().map(|made| made.reward_calls).collect::<Vec<_>>())?;
    Ok(table)
}

/// The note that a run left in a checkpoint, as JSON.
#[pyfunction]
pub(crate) fn note_of(py: Python<'_>, path: std::path::PathBuf) -> PyResult<String> {
    let _inside = Inside::enter(py)?;
    let checkpoint = py.detach(|| unbroken(|| gfn::train::Checkpoint::load(&path)))?;
    Ok(checkpoint.map_err(raised)?.note().to_string())
}

#[pymethods]
impl Session {
    /// A trainer of an environment; the settings come as JSON, written by the classes of `gfn_rs`.
    #[new]
    #[pyo3(signature = (env, *, rewards, policy, module, objective, loss, conditions, n_conditions, training, replay, parts, description, note, seed, device, double, built=None))]
    #[expect(clippy::too_many_arguments, reason = "one class of Python calls it, by name")]
    fn new(
        py: Python<'_>,
        env: &Env,
        rewards: Vec<Handed<Py<PyAny>>>,
        policy: &str,
        module: Option<Py<PyAny>>,
        objective: &str,
        loss: Option<Py<PyAny>>,
        conditions: Option<Py<PyAny>>,
        n_conditions: usize,
        training: &str,
        replay: Option<&str>,
        parts: PyParts,
        description: &str,
        note: &str,
        seed: u64,
        device: &str,
        double: bool,
        built: Option<PyRef<'_, Session>>,
    ) -> PyResult<Self> {
        let _inside = Inside::enter(py)?;
        let built = built.map(|session| session.give_policy()).transpose()?;
        let kept = Kept::default();
        let keep = |object: Option<Py<PyAny>>| object.map(|object| kept.keep(object));
        let asked = build::TrainerSettings {
            rewards: rewards.into_iter().map(|(text, function, kept)| (text, keep(function), kept)).collect(),
            policy: (policy, keep(module)),
            built,
            objective: (objective, keep(loss)),
            conditions: Conditions::read(conditions, n_conditions, py, &kept).map_err(raised)?,
            training,
            replay,
            parts: parts.read(py, &kept)?,
            description,
            note,
        };
        threads::prepare();
        let (kind, failures) = env.fresh(&kept)?;
        let built = py.detach(|| unbroken(|| build::session(&env.spec, kind, asked, seed, device, double, &failures)));
        match failures.take() {
            Some(raised) => Err(raised),
            None => {
                let engine = built??;
                Ok(Self { steps: engine.steps_done(), engine: Mutex::new(Some(engine)), failures, kept })
            }
        }
    }

    /// Tells Python's collector what the engine refers to. What was found to be in a cycle breaks it, so there is no `__clear__`.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.kept.visit(&visit)
    }

    /// Makes up to `n` steps and gives what they were like, as lists by name; less than `n` where one failed, with its error.
    fn advance<'py>(&self, py: Python<'py>, n: usize) -> PyResult<(Bound<'py, PyDict>, Option<PyErr>)> {
        let (made, failed) = self.work(py, |engine| engine.advance(n))?;
        Ok((table(py, &made)?, self.failures.take().or(failed.map(raised))))
    }

    /// Draws `n` finished objects from the policy, without exploration; with `rewarded`, gives log R of each, too.
    #[pyo3(signature = (n, conditions, rewarded))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        conditions: Option<&Bound<'py, PyAny>>,
        rewarded: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Vec<f64>>)> {
        let conditions = conditions.map(tensors::from_python).transpose()?;
        let (shown, log_rewards) = self.ask(py, move |engine| engine.sample(n, conditions.as_ref(), rewarded))?;
        Ok((shown(py)?, log_rewards))
    }

    /// The policy's exact distribution over at most `limit` states, and the reward's; under one condition, `[1, C]`.
    #[pyo3(signature = (limit, conditions))]
    fn exact<'py>(
        &self,
        py: Python<'py>,
        limit: usize,
        conditions: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let conditions = conditions.map(tensors::from_python).transpose()?;
        self.ask(py, move |engine| engine.exact(limit, conditions.as_ref()))?.shown(py)
    }

    /// A certificate of the policy, as JSON.
    fn certified(&self, py: Python<'_>, samples: usize, subsets: usize, size: usize, paths: usize) -> PyResult<String> {
        self.ask(py, move |engine| engine.certified(Budget { samples, subsets, size, paths }))
    }

    /// A judgement of given samples, as JSON, and the states of objects that are missing.
    fn judged<'py>(&self, py: Python<'py>, objects: Py<PyAny>, limit: usize) -> PyResult<Bound<'py, PyDict>> {
        self.ask(py, move |engine| engine.judged(&objects, limit))?.shown(py)
    }

    /// Estimates from `n` samples, under one condition, `[1, C]`.
    #[pyo3(signature = (n, conditions))]
    fn sampled<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        conditions: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let conditions = conditions.map(tensors::from_python).transpose()?;
        self.ask(py, move |engine| engine.sampled(n, conditions.as_ref()))?.shown(py)
    }

    /// The figures of the policy on given objects, from so many paths to each, under one condition, `[1, C]`.
    #[pyo3(signature = (objects, paths, conditions))]
    fn tested(
        &self,
        py: Python<'_>,
        objects: Py<PyAny>,
        paths: usize,
        conditions: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Tested> {
        let conditions = conditions.map(tensors::from_python).transpose()?;
        self.ask(py, move |engine| engine.tested(&objects, paths, conditions.as_ref()))
    }

    /// Gives the policy the average of its parameters for good.
    fn take_average(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, |engine| engine.take_average())
    }

    /// Fills the replay buffer with uniform random walks; how many stayed.
    fn prefill(&self, py: Python<'_>, n: usize) -> PyResult<usize> {
        self.ask(py, |engine| engine.prefill(n))
    }

    /// `true` if actions are mixed with uniform ones.
    fn explores(&self, py: Python<'_>) -> PyResult<bool> {
        self.read(py, |engine| engine.explores())
    }

    /// Parameters by name: the tensors themselves.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let parameters = self.read(py, |engine| engine.parameters())?;
        parameters.into_iter().map(|(name, tensor)| Ok((name, tensors::to_python(py, &tensor)?))).collect()
    }

    /// Writes a checkpoint.
    fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        self.ask(py, |engine| engine.save(&path))
    }

    /// Goes on from a checkpoint.
    fn resume(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        self.ask(py, |engine| engine.resume(&path))
    }

    /// Takes the parameters of a checkpoint over, and nothing else.
    fn restore(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        self.ask(py, |engine| engine.restore(&path))
    }

    /// Steps made; rewards and other parts may ask in the middle of one.
    fn steps_done(&self) -> usize {
        self.steps.load(Relaxed)
    }

    /// Objects that the reward was asked for.
    fn reward_calls(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, |engine| engine.reward_calls())
    }

    /// Numbers that are trained.
    fn n_parameters(&self, py: Python<'_>) -> PyResult<i64> {
        self.read(py, |engine| engine.n_parameters())
    }

    /// Looks at the latest steps when training has ended, for signs of trouble.
    fn look_at_end(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, |engine| engine.look_at_end())
    }

    /// Signs of trouble so far.
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.read(py, |engine| engine.warnings())
    }

    /// Objects in the replay buffer; None without one.
    fn replay_len(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.read(py, |engine| engine.replay_len())
    }
}
