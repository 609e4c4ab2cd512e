//! The implementation of `gfn_rs.Trainer`, for all types of environments.

mod build;
mod custom_loop;
mod exact;
mod sampled;
mod shared_state;
mod trained;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, TryLockError};

use gfn::replay::ReplayBuffer;
use gfn_judge::Budget;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};

use crate::border::DeferredObject;
use crate::env::{Env, Failures};
use crate::errors::{Outcome, to_exception};
use crate::inside::{Inside, prepare_threads};
use crate::kinds::AnyTrained;
use crate::references::References;
use crate::states::Array;
use crate::tensors::{PyTensor, optional};
use build::TrainerSettings;
pub(crate) use trained::Trained;
use trained::{StepRecord, Steps};

/// The class that `gfn_rs.Trainer` wraps. Only one caller can use it at a time. Any other caller gets an
/// error instead of a deadlock, even a callback of the trainer itself.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Session {
    /// The trainer. It is None after a panic in the middle of the trainer's work, and after another trainer
    /// has taken the policy.
    trained: Mutex<Option<Box<AnyTrained>>>,
    /// The store for exceptions that the environment's rules in Python raise. The library can't return them
    /// as errors, so they are stored here until the call of the trainer ends.
    failures: Failures,
    references: References,
    n_steps: Arc<AtomicUsize>,
}

impl Session {
    /// Runs a job on the trainer, with torch's global settings as the library needs them. The interpreter is
    /// released, so that other threads of Python can use it meanwhile.
    ///
    /// A panic is a defect of the library, or comes from a tensor that was changed from outside. A panic must
    /// not reach Python as an exception that `except Exception` doesn't catch. A panic therefore becomes an
    /// error. The trainer may be in the middle of a step, so it can't be used again.
    fn work<T: Send>(&self, py: Python<'_>, job: impl FnOnce(&mut AnyTrained) -> T + Send) -> PyResult<T> {
        let _inside = Inside::enter(py)?;
        py.detach(|| {
            let mut slot = match self.trained.try_lock() {
                Ok(slot) => slot,
                Err(TryLockError::WouldBlock) => {
                    return Err(PyRuntimeError::new_err(
                        "the trainer is in use, by another thread or by the call that computes its reward: \
                         wait until that call returns",
                    ));
                }
                Err(TryLockError::Poisoned(broken)) => broken.into_inner(),
            };
            let Some(trained) = slot.as_mut() else {
                return Err(PyRuntimeError::new_err(
                    "the trainer can't be used after an internal error in the middle of a step: make a new \
                     trainer",
                ));
            };
            let done = catch_panic(|| job(trained));
            if done.is_err() {
                *slot = None;
            }
            done
        })
    }

    /// Runs a job on the trainer. If rules in Python raised an exception, this exception is returned instead
    /// of the job's error.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        job: impl FnOnce(&mut AnyTrained) -> gfn::Result<T> + Send,
    ) -> PyResult<T> {
        let done = self.work(py, |trained| {
            each!(&*trained, trained => trained.check_shared())?;
            job(trained)
        })?;
        self.failures.raise()?;
        done.map_err(to_exception)
    }

    /// Returns a property of the trainer, which `read` computes.
    fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&AnyTrained) -> T + Send) -> PyResult<T> {
        self.work(py, |trained| read(trained))
    }

    /// Returns the records of steps, and their error if a step failed. If rules in Python raised an
    /// exception, this exception replaces the error, because it caused the error.
    fn show_steps(&self, steps: Steps) -> PySteps {
        let (records, error) = steps;
        (records, self.failures.take().or(error.map(to_exception)))
    }

    /// Takes the policy out of this trainer for a new trainer. This trainer can't be used afterwards.
    fn take_policy(&self) -> PyResult<Box<dyn Any + Send>> {
        let trained = self.trained.try_lock().ok().and_then(|mut slot| slot.take());
        let none = || {
            PyRuntimeError::new_err(
                "the policy is in use, or was passed to another trainer: wait until its call returns, or \
                 build another policy",
            )
        };
        Ok(each!(*trained.ok_or_else(none)?, trained => trained.into_policy()))
    }
}

/// Runs a job, and converts a panic of the job to an error.
pub(crate) fn catch_panic<T>(job: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(job)).map_err(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        PyRuntimeError::new_err(format!(
            "the library failed with an internal error: {}",
            text.unwrap_or("no reason is known")
        ))
    })
}

/// A function that returns the values of an evaluation by name. Python builds an object of `gfn_rs._results`
/// from these values. The function is called when the interpreter is attached again.
type Evaluation = Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyDict>> + Send>;

/// The records of steps, and the exception of the step that failed, if a step failed.
type PySteps = (Vec<StepRecord>, Option<PyErr>);

/// Returns the settings that the Python package has stored in a checkpoint, to build the network again.
#[pyfunction]
pub(crate) fn note_of(py: Python<'_>, path: PathBuf) -> Outcome<Bound<'_, PyAny>> {
    let _inside = Inside::enter(py)?;
    let checkpoint = py.detach(|| catch_panic(|| gfn::train::Checkpoint::load(&path)))?;
    Ok(pythonize::pythonize(py, checkpoint?.note()).map_err(PyErr::from)?)
}

#[pymethods]
impl Session {
    /// Builds a trainer of an environment. If `built` is given, it is another trainer, whose policy the new
    /// trainer takes.
    #[new]
    #[pyo3(signature = (env, settings, built=None))]
    fn new(
        py: Python<'_>,
        env: &Env,
        settings: TrainerSettings,
        built: Option<PyRef<'_, Session>>,
    ) -> PyResult<Self> {
        let _inside = Inside::enter(py)?;
        let built = built.map(|session| session.take_policy()).transpose()?;
        let references = References::default();
        prepare_threads();
        let (space, failures) = env.build(&references)?;
        let build = || {
            Outcome::Ok(
                map_each!(space, space => build::build(space, settings, built, &references, &failures)?),
            )
        };
        let trained = py.detach(|| catch_panic(build));
        failures.raise()?;
        let trained: AnyTrained = trained??;
        let n_steps = each!(&trained, trained => trained.n_steps.clone());
        Ok(Self { n_steps, trained: Mutex::new(Some(Box::new(trained))), failures, references })
    }

    /// Reports the Python objects that the trainer refers to, so that Python's garbage collector finds
    /// reference cycles. `__clear__` isn't needed, because the collector breaks a cycle by clearing its other
    /// objects.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.references.visit(&visit)
    }

    /// Makes up to `n` steps. Returns the steps' records, and the error of the step that failed, if a step
    /// failed.
    fn advance(&self, py: Python<'_>, n: usize) -> PyResult<PySteps> {
        Ok(self.show_steps(self.work(py, |trained| each!(trained, trained => trained.advance(n)))?))
    }

    /// Draws `n` finished objects from the policy, without exploration. If `rewarded`, also returns log R of
    /// each object.
    fn sample(
        &self,
        py: Python<'_>,
        n: usize,
        conditions: Option<PyTensor>,
        rewarded: bool,
    ) -> PyResult<(DeferredObject, Option<Array<f64>>)> {
        self.ask(
            py,
            move |trained| each!(trained, trained => trained.sample(n, optional(&conditions), rewarded)),
        )
    }

    /// Computes the exact distribution of the policy and the target distribution, over at most `limit`
    /// states. If the trainer has conditions, both distributions are for the single condition `condition`,
    /// `[1, C]`. `instance` is the index of the initial state; `None` if there is only one.
    fn exact<'py>(
        &self,
        py: Python<'py>,
        limit: usize,
        conditions: Option<PyTensor>,
        instance: Option<u32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.ask(
            py,
            move |trained| listed!(trained, trained => trained.exact(limit, optional(&conditions), instance)),
        )?(py)
    }

    /// Computes a certificate of the policy. `budget` has the number of samples, the number of subsets of
    /// objects, the size of a subset, and the number of backward paths per object.
    fn certified<'py>(&self, py: Python<'py>, budget: [usize; 4]) -> PyResult<Bound<'py, PyAny>> {
        let [samples, subsets, size, paths] = budget;
        let budget = Budget { samples, subsets, size, paths };
        let figures = self.ask(py, move |trained| listed!(trained, trained => trained.certify(budget)))?;
        Ok(pythonize::pythonize(py, &figures)?)
    }

    /// Compares samples of any sampler with the target. Returns the report, and the states of the objects
    /// that are missing among the samples.
    fn judge_samples<'py>(
        &self,
        py: Python<'py>,
        objects: Py<PyAny>,
        limit: usize,
        instance: Option<u32>,
    ) -> PyResult<(Bound<'py, PyAny>, DeferredObject)> {
        let (figures, states) =
            self.ask(py, |trained| listed!(trained, trained => trained.judge(&objects, limit, instance)))?;
        Ok((pythonize::pythonize(py, &figures)?, states))
    }

    /// Estimates properties of the policy from `n` samples. If the trainer has conditions, all samples are
    /// drawn under the single condition `condition`, `[1, C]`.
    fn sampled<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        conditions: Option<PyTensor>,
        instance: Option<u32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.ask(
            py,
            move |trained| each!(trained, trained => trained.estimate(n, optional(&conditions), instance)),
        )?(py)
    }

    /// Estimates the policy's probabilities of these objects, from `paths` paths to each object. If the
    /// trainer has conditions, the probabilities are for the single condition `condition`, `[1, C]`.
    fn tested<'py>(
        &self,
        py: Python<'py>,
        objects: Py<PyAny>,
        paths: usize,
        conditions: Option<PyTensor>,
        instance: Option<u32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.ask(py, move |trained| {
            each!(trained, trained => trained.test(&objects, paths, optional(&conditions), instance))
        })?(py)
    }

    /// Replaces the policy's parameters permanently by their running average.
    fn take_average(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, |trained| each!(trained, trained => trained.trainer.take_average()))
    }

    /// Fills the replay buffer with `n` uniform random trajectories. Returns the number of objects that the
    /// buffer accepted.
    fn prefill(&self, py: Python<'_>, n: usize) -> PyResult<usize> {
        self.ask(py, |trained| each!(trained, trained => trained.prefill(n)))
    }

    /// Returns `true` if training mixes the policy with uniformly random actions.
    fn explores(&self, py: Python<'_>) -> PyResult<bool> {
        self.read(py, |trained| each!(trained, trained => trained.explores()))
    }

    /// Returns the policy's parameters by name. The tensors are the parameters themselves, not copies.
    fn parameters(&self, py: Python<'_>) -> PyResult<Vec<(String, PyTensor)>> {
        self.read(py, |trained| each!(trained, trained => trained.parameters()))
    }

    /// Writes a checkpoint of the trainer to `path`. `history` is a tensor of whole numbers, which `resume`
    /// returns.
    fn save(&self, py: Python<'_>, path: PathBuf, history: PyTensor) -> PyResult<()> {
        self.ask(py, |trained| each!(trained, trained => trained.save(&path, history.0)))
    }

    /// Resumes training from the checkpoint at `path`. Returns the history that was passed to `save`; `None`
    /// for a checkpoint from Rust.
    fn resume(&self, py: Python<'_>, path: PathBuf) -> PyResult<Option<PyTensor>> {
        self.ask(py, |trained| each!(trained, trained => trained.resume(&path)))
    }

    /// Writes the numbers of all further steps to a new event file in `folder`, for TensorBoard. `None` ends
    /// the file.
    fn write_events(&self, py: Python<'_>, folder: Option<PathBuf>) -> PyResult<()> {
        self.ask(py, |trained| each!(trained, trained => trained.write_events(folder)))
    }

    /// Loads the parameters of the checkpoint at `path`, and no other part of its state.
    fn restore(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.ask(py, |trained| each!(trained, trained => trained.restore(&path)))
    }

    /// The number of training steps made so far. A reward or another Python function may read this number in
    /// the middle of a step.
    fn steps_done(&self) -> usize {
        self.n_steps.load(Relaxed)
    }

    /// The number of objects whose rewards the trainer has computed.
    fn reward_calls(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, |trained| each!(trained, trained => trained.trainer.reward_calls()))
    }

    /// The number of scalar parameters that are trained.
    fn n_parameters(&self, py: Python<'_>) -> PyResult<i64> {
        self.read(py, |trained| each!(trained, trained => trained.trainer.n_parameters()))
    }

    /// Checks the records of the last steps for problems, and adds warnings about them. Called at the end of
    /// training.
    fn look_at_end(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, |trained| each!(trained, trained => trained.check_end()))
    }

    /// Returns the warnings about training so far.
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.read(py, |trained| each!(trained, trained => trained.warnings()))
    }

    /// The number of objects in the replay buffer; None if the trainer has no buffer.
    fn replay_len(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.read(py, |trained| each!(trained, trained => trained.trainer.replay().map(ReplayBuffer::len)))
    }
}
