//! A trainer, whatever its states: what `gfn_rs.Trainer` is made of.

mod build;
mod engine;
mod exact;

use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::env::{Env, Failures};
use crate::errors::raised;
use crate::{tensors, threads};
use engine::{Engine, Made};
pub(crate) use exact::Exact;

/// A trainer. It is at work for one caller at a time; any other, a callback of its own among them, gets an error in place of a wait.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Session {
    engine: Mutex<Box<dyn Engine>>,
    /// What rules of the environment raised, which the library has no place for.
    failures: Failures,
}

impl Session {
    fn engine(&self) -> PyResult<MutexGuard<'_, Box<dyn Engine>>> {
        match self.engine.try_lock() {
            Ok(engine) => Ok(engine),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "the trainer is at work, in another thread or in the call that asked its reward: wait until that returns",
            )),
            Err(TryLockError::Poisoned(_)) => {
                Err(PyRuntimeError::new_err("the trainer broke off in the middle of a step: make a new one"))
            }
        }
    }

    /// Works without the interpreter, which other threads of Python can have meanwhile.
    fn work<T: Send>(&self, py: Python<'_>, job: impl FnOnce(&mut dyn Engine) -> gfn::Result<T> + Send) -> PyResult<T> {
        py.detach(|| {
            let mut engine = self.engine()?;
            let done = job(engine.as_mut());
            self.failures.take().map_or_else(|| done.map_err(raised), Err)
        })
    }
}

#[pymethods]
impl Session {
    /// A trainer of an environment; the settings come as JSON, written by the classes of `gfn_rs`.
    #[new]
    #[pyo3(signature = (env, *, reward, reward_call, policy, module, objective, loss, conditions, n_conditions, training, replay, description, seed, device, double))]
    #[expect(clippy::too_many_arguments, reason = "one class of Python calls it, by name")]
    fn new(
        env: &Env,
        reward: Option<&str>,
        reward_call: Option<Py<PyAny>>,
        policy: &str,
        module: Option<Py<PyAny>>,
        objective: &str,
        loss: Option<Py<PyAny>>,
        conditions: Option<Py<PyAny>>,
        n_conditions: usize,
        training: &str,
        replay: Option<&str>,
        description: &str,
        seed: u64,
        device: &str,
        double: bool,
    ) -> PyResult<Self> {
        let asked = build::Asked {
            reward: (reward, reward_call),
            policy: (policy, module),
            objective: (objective, loss),
            conditions: (conditions, n_conditions),
            training,
            replay,
            description,
        };
        threads::prepare();
        let built = build::session(env, asked, (seed, device, double));
        match env.failures.take() {
            Some(raised) => Err(raised),
            None => Ok(Self { engine: Mutex::new(built?), failures: env.failures.clone() }),
        }
    }

    /// Makes up to `n` steps and gives what they were like, as lists by name; less than `n` where one failed, with its error.
    fn advance<'py>(&self, py: Python<'py>, n: usize) -> PyResult<(Bound<'py, PyDict>, Option<PyErr>)> {
        let (made, failed) = py.detach(|| self.engine().map(|mut engine| engine.advance(n)))?;
        let table = PyDict::new(py);
        let column = |of: fn(&Made) -> f64| made.iter().map(of).collect::<Vec<f64>>();
        table.set_item("step", made.iter().map(|made| made.step).collect::<Vec<_>>())?;
        table.set_item("loss", column(|made| made.stats.loss))?;
        table.set_item("log_z", column(|made| made.stats.log_z))?;
        table.set_item("mean_len", column(|made| made.stats.mean_len))?;
        table.set_item("grad_norm", column(|made| made.stats.grad_norm))?;
        table.set_item("seconds", column(|made| made.stats.seconds.iter().sum()))?;
        table.set_item("reward_calls", made.iter().map(|made| made.reward_calls).collect::<Vec<_>>())?;
        Ok((table, self.failures.take().or(failed.map(raised))))
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
        let (shown, log_rewards) = self.work(py, move |engine| engine.sample(n, conditions.as_ref(), rewarded))?;
        Ok((shown(py)?, log_rewards))
    }

    /// The policy's exact distribution over at most `limit` states, and the reward's; under one condition, `[1, C]`.
    #[pyo3(signature = (limit, conditions))]
    fn exact(&self, py: Python<'_>, limit: usize, conditions: Option<&Bound<'_, PyAny>>) -> PyResult<Exact> {
        let conditions = conditions.map(tensors::from_python).transpose()?;
        let parts = self.work(py, move |engine| engine.exact(limit, conditions.as_ref()))?;
        parts.shown(py)
    }

    /// Fills the replay buffer with uniform random walks; how many stayed.
    fn prefill(&self, py: Python<'_>, n: usize) -> PyResult<usize> {
        self.work(py, |engine| engine.prefill(n))
    }

    /// Draws a batch and gives its loss, with gradients.
    fn loss<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let loss = self.work(py, |engine| engine.loss())?;
        tensors::to_python(py, &loss)
    }

    /// Parameters by name: the tensors themselves.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let parameters = self.work(py, |engine| Ok(engine.parameters()))?;
        parameters.into_iter().map(|(name, tensor)| Ok((name, tensors::to_python(py, &tensor)?))).collect()
    }

    /// Writes a checkpoint.
    fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        self.work(py, |engine| engine.save(&path))
    }

    /// Goes on from a checkpoint.
    fn resume(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        self.work(py, |engine| engine.resume(&path))
    }

    /// Takes the parameters of a checkpoint over, and nothing else.
    fn restore(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        self.work(py, |engine| engine.restore(&path))
    }

    /// Steps made.
    fn steps_done(&self) -> PyResult<usize> {
        Ok(self.engine()?.steps_done())
    }

    /// Objects that the reward was asked for.
    fn reward_calls(&self) -> PyResult<u64> {
        Ok(self.engine()?.reward_calls())
    }

    /// Numbers that are trained.
    fn n_parameters(&self) -> PyResult<i64> {
        Ok(self.engine()?.n_parameters())
    }

    /// Signs of trouble so far.
    fn warnings(&self) -> PyResult<Vec<String>> {
        Ok(self.engine()?.warnings())
    }

    /// Objects in the replay buffer; None without one.
    fn replay_len(&self) -> PyResult<Option<usize>> {
        Ok(self.engine()?.replay_len())
    }
}
