//! A trainer, whatever its states: what `gfn_rs.Trainer` is made of.

mod build;
mod custom_loop;
mod exact;
mod judging;
mod sampled;
mod shared;
mod trained;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, TryLockError};

use gfn::Error;
use gfn::replay::ReplayBuffer;
use gfn_judge::Budget;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};

use crate::env::{Env, Failures};
use crate::errors::raised;
use crate::inside::Inside;
use crate::references::References;
use crate::{tensors, threads};
use build::TrainerArguments;
use trained::{AnyTrained, StepRecord};

/// A trainer. It works for one caller at a time; any other, a callback of its own among them, gets an error instead of a deadlock.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Session {
    /// None once the library has broken off in the middle of its work.
    trained: Mutex<Option<Box<AnyTrained>>>,
    /// Exceptions of rules of the environment, which the library can't return.
    failures: Failures,
    references: References,
    n_steps: Arc<AtomicUsize>,
}

impl Session {
    /// Works without the interpreter, which other threads of Python can have meanwhile, and in a clean state of torch.
    ///
    /// A panic is a defect of the library, or of a tensor that was changed from outside. It must not pass into Python as something that no
    /// `except Exception` catches: it becomes an error, and the trainer, which may be in the middle of a step, can't be used again.
    fn work<T: Send>(&self, py: Python<'_>, job: impl FnOnce(&mut AnyTrained) -> T + Send) -> PyResult<T> {
        let _inside = Inside::enter(py)?;
        py.detach(|| {
            let mut slot = match self.trained.try_lock() {
                Ok(slot) => slot,
                Err(TryLockError::WouldBlock) => {
                    return Err(PyRuntimeError::new_err(
                        "the trainer is at work, in another thread or in the call that asked its reward: wait until that returns",
                    ));
                }
                Err(TryLockError::Poisoned(broken)) => broken.into_inner(),
            };
            let Some(trained) = slot.as_mut() else {
                return Err(PyRuntimeError::new_err("the trainer broke off in the middle of its work: make a new one"));
            };
            let done = catch_panic(|| job(trained));
            if done.is_err() {
                *slot = None;
            }
            done
        })
    }

    /// Does a job that can fail, also by an exception of rules.
    fn ask<T: Send>(&self, py: Python<'_>, job: impl FnOnce(&mut AnyTrained) -> gfn::Result<T> + Send) -> PyResult<T> {
        let done = self.work(py, |trained| {
            each!(&*trained, trained => trained.check_shared())?;
            job(trained)
        })?;
        self.failures.raise()?;
        done.map_err(raised)
    }

    /// Reads a property of a trainer.
    fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&AnyTrained) -> T + Send) -> PyResult<T> {
        self.work(py, |trained| read(trained))
    }

    /// Takes the policy for a trainer that continues with it, and ends this session.
    fn take_policy(&self) -> PyResult<Box<dyn Any + Send>> {
        let trained = self.trained.try_lock().ok().and_then(|mut slot| slot.take());
        let none =
            || PyRuntimeError::new_err("the policy is at work, or gone: wait until its call returns, or build another");
        Ok(each!(*trained.ok_or_else(none)?, trained => trained.into_policy()))
    }
}

/// Turns a panic of a job into an error.
pub(crate) fn catch_panic<T>(job: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(job)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        PyRuntimeError::new_err(format!("the library broke off: {}", text.unwrap_or("for no reason that it tells")))
    })
}

/// Records of steps, as lists by name.
fn table<'py>(py: Python<'py>, records: &[StepRecord]) -> PyResult<Bound<'py, PyDict>> {
    let table = PyDict::new(py);
    let column = |value: fn(&StepRecord) -> f64| records.iter().map(value).collect::<Vec<f64>>();
    table.set_item("step", records.iter().map(|record| record.step).collect::<Vec<_>>())?;
    table.set_item("loss", column(|record| record.stats.loss))?;
    table.set_item("log_z", column(|record| record.stats.log_z))?;
    table.set_item("mean_len", column(|record| record.stats.mean_len))?;
    table.set_item("grad_norm", column(|record| record.stats.grad_norm))?;
    table.set_item("seconds", column(|record| record.stats.seconds.iter().sum()))?;
    table.set_item("reward_calls", records.iter().map(|record| record.reward_calls).collect::<Vec<_>>())?;
    Ok(table)
}

/// The note that a run left in a checkpoint.
#[pyfunction]
pub(crate) fn note_of(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let _inside = Inside::enter(py)?;
    let checkpoint = py.detach(|| catch_panic(|| gfn::train::Checkpoint::load(&path)))?;
    Ok(pythonize::pythonize(py, checkpoint.map_err(raised)?.note())?)
}

/// The error of an evaluation that needs a list of all states.
fn unlisted<T>() -> gfn::Result<T> {
    let expected = "one whose states can be listed; of others, compare samples";
    Err(Error::config("the environment of an exact evaluation", "continuous", expected))
}

#[pymethods]
impl Session {
    /// Builds a trainer of an environment, or continues with the policy of another one.
    #[new]
    #[pyo3(signature = (env, settings, built=None))]
    fn new(
        py: Python<'_>,
        env: &Env,
        settings: TrainerArguments<'_>,
        built: Option<PyRef<'_, Session>>,
    ) -> PyResult<Self> {
        let _inside = Inside::enter(py)?;
        let built = built.map(|session| session.take_policy()).transpose()?;
        let references = References::default();
        let settings = settings.read(py, &references)?;
        threads::prepare();
        let (space, failures) = env.build(&references)?;
        let build =
            || PyResult::Ok(map_each!(space, space => build::build(space, settings, built, &references, &failures)?));
        let trained = py.detach(|| catch_panic(build));
        failures.raise()?;
        let trained: AnyTrained = trained??;
        let n_steps = each!(&trained, trained => trained.n_steps.clone());
        Ok(Self { n_steps, trained: Mutex::new(Some(Box::new(trained))), failures, references })
    }

    /// Tells Python's collector of the objects that the trainer refers to. Other members of a cycle break it, so there is no `__clear__`.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.references.visit(&visit)
    }

    /// Makes up to `n` steps: their records, as lists by name, and the error of the step that failed.
    fn advance<'py>(&self, py: Python<'py>, n: usize) -> PyResult<(Bound<'py, PyDict>, Option<PyErr>)> {
        let (records, error) = self.work(py, |trained| each!(trained, trained => trained.advance(n)))?;
        Ok((table(py, &records)?, self.failures.take().or(error.map(raised))))
    }

    /// Draws `n` finished objects from the policy, without exploration; with `rewarded`, gives log R of each, too.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        conditions: Option<&Bound<'py, PyAny>>,
        rewarded: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Vec<f64>>)> {
        let conditions = tensors::optional(conditions)?;
        let (states, log_rewards) =
            self.ask(py, move |trained| each!(trained, trained => trained.sample(n, conditions.as_ref(), rewarded)))?;
        Ok((states(py)?, log_rewards))
    }

    /// The policy's exact distribution over at most `limit` states, and the reward's; under one condition, `[1, C]`.
    fn exact<'py>(
        &self,
        py: Python<'py>,
        limit: usize,
        conditions: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let conditions = tensors::optional(conditions)?;
        let exact = self.ask(
            py,
            move |trained| listed!(trained, trained => trained.exact(limit, conditions.as_ref()), unlisted()),
        )?;
        exact(py)
    }

    /// A certificate of the policy.
    fn certified<'py>(
        &self,
        py: Python<'py>,
        samples: usize,
        subsets: usize,
        size: usize,
        paths: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let budget = Budget { samples, subsets, size, paths };
        let figures = self.ask(py, move |trained| listed!(trained, trained => trained.certify(budget), unlisted()))?;
        Ok(pythonize::pythonize(py, &figures)?)
    }

    /// A judgement of samples of any sampler, and the states of objects that are missing.
    fn judged<'py>(
        &self,
        py: Python<'py>,
        objects: Py<PyAny>,
        limit: usize,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (figures, states) =
            self.ask(py, move |trained| listed!(trained, trained => trained.judge(&objects, limit), unlisted()))?;
        Ok((pythonize::pythonize(py, &figures)?, states(py)?))
    }

    /// Estimates from `n` samples, under one condition, `[1, C]`.
    fn sampled<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        conditions: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let conditions = tensors::optional(conditions)?;
        let sampled =
            self.ask(py, move |trained| each!(trained, trained => trained.estimate(n, conditions.as_ref())))?;
        sampled(py)
    }

    /// Estimates of the policy on these objects, from `paths` paths to each, under one condition, `[1, C]`.
    fn tested<'py>(
        &self,
        py: Python<'py>,
        objects: Py<PyAny>,
        paths: usize,
        conditions: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let conditions = tensors::optional(conditions)?;
        let tested =
            self.ask(py, move |trained| each!(trained, trained => trained.test(&objects, paths, conditions.as_ref())))?;
        tested(py)
    }

    /// Gives the policy the average of its parameters for good.
    fn take_average(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, |trained| each!(trained, trained => trained.trainer.take_average()))
    }

    /// Fills the replay buffer with uniform random walks; returns the number of objects that stayed.
    fn prefill(&self, py: Python<'_>, n: usize) -> PyResult<usize> {
        self.ask(py, |trained| each!(trained, trained => trained.prefill(n)))
    }

    /// `true` if actions are mixed with uniform ones.
    fn explores(&self, py: Python<'_>) -> PyResult<bool> {
        self.read(py, |trained| each!(trained, trained => trained.explores()))
    }

    /// Parameters by name: the tensors themselves.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let parameters = self.read(py, |trained| each!(trained, trained => trained.parameters()))?;
        parameters.into_iter().map(|(name, tensor)| Ok((name, tensors::to_python(py, &tensor)?))).collect()
    }

    /// Writes a checkpoint.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.ask(py, |trained| each!(trained, trained => trained.trainer.save(&path)))
    }

    /// Resumes from a checkpoint.
    fn resume(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.ask(py, |trained| each!(trained, trained => trained.resume(&path)))
    }

    /// Takes the parameters of a checkpoint, and nothing else.
    fn restore(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.ask(py, |trained| each!(trained, trained => trained.restore(&path)))
    }

    /// The number of steps made. Rewards and other parts may ask in the middle of one.
    fn steps_done(&self) -> usize {
        self.n_steps.load(Relaxed)
    }

    /// The number of objects that the reward was asked for.
    fn reward_calls(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, |trained| each!(trained, trained => trained.trainer.reward_calls()))
    }

    /// The number of scalars that are trained.
    fn n_parameters(&self, py: Python<'_>) -> PyResult<i64> {
        self.read(py, |trained| each!(trained, trained => trained.trainer.n_parameters()))
    }

    /// Checks the latest steps for signs of trouble when training has ended.
    fn look_at_end(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, |trained| each!(trained, trained => trained.check_end()))
    }

    /// Signs of trouble so far.
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.read(py, |trained| each!(trained, trained => trained.warnings()))
    }

    /// The number of objects in the replay buffer; None without one.
    fn replay_len(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.read(py, |trained| each!(trained, trained => trained.trainer.replay().map(ReplayBuffer::len)))
    }
}
