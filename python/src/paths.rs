//! The class `gfn_rs.Trajectories`: trajectories of any environment, with the log-probabilities of their
//! transitions.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use gfn::env::Env;
use gfn::rollout::{Container, ReplayEnv, Trajectories};
use gfn::train::Batch;
use gfn::{Error, Result};
use pyo3::prelude::*;
use tch::Tensor;

use crate::border::{Border, DeferredObject};
use crate::errors::to_exception;
use crate::inside::Inside;
use crate::kinds::{AnyPaths, PyEnv, Space};
use crate::session::catch_panic;
use crate::states::{Array, whole};
use crate::tensors::PyTensor;

/// A batch of trajectories of one environment, with the log-probabilities of their transitions if they were
/// computed.
pub(crate) struct PathBatch<E: PyEnv> {
    pub(crate) batch: Batch<E>,
    /// log P_F and log P_B of each transition under the policy that sampled it, without exploration,
    /// `[2, T]`.
    log_probs: Option<Tensor>,
    env: E,
    border: Arc<dyn Border<E::States>>,
}

impl AnyPaths {
    /// Returns the trajectories if they belong to this environment, otherwise an error.
    pub(crate) fn for_env<E: PyEnv>(&mut self, env: &E) -> Result<&mut PathBatch<E>> {
        let paths: Option<&mut PathBatch<E>> = each!(self, paths => (paths as &mut dyn Any).downcast_mut());
        match paths {
            Some(paths) if paths.env.fingerprint()? == env.fingerprint()? => Ok(paths),
            _ => {
                let expected = "trajectories of an environment of the same class with the same settings";
                Err(Error::config("trajectories", "trajectories of another environment", expected))
            }
        }
    }
}

impl<E: PyEnv> PathBatch<E> {
    pub(crate) fn new(space: &Space<E>, batch: impl Into<Batch<E>>, log_probs: Option<Tensor>) -> Self {
        Self { batch: batch.into(), log_probs, env: space.env.clone(), border: space.border.clone() }
    }

    fn trajectories(&self) -> &Trajectories<E> {
        &self.batch.trajectories
    }

    fn with(&self, trajectories: Trajectories<E>, log_probs: Option<Tensor>) -> Self {
        Self { batch: trajectories.into(), log_probs, env: self.env.clone(), border: self.border.clone() }
    }

    fn select(&self, rows: &[usize]) -> Result<Self> {
        let some = self.trajectories().select(rows.iter().copied())?;
        let offsets = self.trajectories().offsets();
        let mut transitions = Vec::new();
        for &row in rows {
            transitions.extend((offsets[row] as i64)..(offsets[row + 1] as i64));
        }
        let transitions = Tensor::from_slice(&transitions);
        let select =
            |log_probs: &Tensor| log_probs.index_select(1, &transitions.to_device(log_probs.device()));
        Ok(self.with(some, self.log_probs.as_ref().map(select)))
    }

    pub(crate) fn with_log_rewards(&self, log_rewards: Vec<f64>) -> Result<Self> {
        let trajectories = self.trajectories().clone().with_log_rewards(log_rewards)?;
        Ok(self.with(trajectories, self.log_probs.as_ref().map(Tensor::shallow_clone)))
    }

    fn join(&self, other: &mut AnyPaths) -> Result<Self> {
        let other = other.for_env(&self.env)?;
        let mut all = self.trajectories().clone();
        all.extend([other.trajectories().clone()])?;
        let both = self.log_probs.as_ref().zip(other.log_probs.as_ref());
        Ok(self.with(all, both.map(|(first, second)| Tensor::cat(&[first, second], 1))))
    }
}

/// log P_F and log P_B of each transition, as torch tensors for Python.
type PyScored = (PyTensor, PyTensor);

/// Builds trajectories from actions that Python passes. The actions are replayed from the initial states, and
/// an illegal action is an error.
pub(crate) fn replay<E: PyEnv>(
    space: &Space<E>,
    actions: &Tensor,
    offsets: &[usize],
    instances: &[u32],
    log_rewards: Option<Vec<f64>>,
    conditions: Option<PyTensor>,
    log_probs: Option<PyScored>,
) -> Result<PathBatch<E>> {
    let actions = space.env.read_actions(actions)?;
    let mut all = Trajectories::replay_of(&space.env, instances, &actions, offsets)?;
    if let Some(log_rewards) = log_rewards {
        all = all.with_log_rewards(log_rewards)?;
    }
    if let Some(PyTensor(conditions)) = conditions {
        all = all.with_conditions(conditions)?;
    }
    let expected = [all.n_transitions() as i64];
    for PyTensor(tensor) in log_probs.iter().flat_map(|(log_pf, log_pb)| [log_pf, log_pb]) {
        if tensor.size() != expected {
            let what = "log-probabilities of trajectories";
            return Err(Error::shape(what, expected, tensor.size(), "give one number for each transition"));
        }
    }
    let log_probs = log_probs.map(|(log_pf, log_pb)| Tensor::stack(&[log_pf.0, log_pb.0], 0));
    Ok(PathBatch::new(space, all, log_probs))
}

/// The class that `gfn_rs.Trajectories` wraps: a batch of trajectories of any type of environment.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Paths(Mutex<AnyPaths>);

impl Paths {
    pub(crate) fn new(paths: AnyPaths) -> Self {
        Self(Mutex::new(paths))
    }

    /// Locks the trajectories for one caller. Any other caller waits for 0.1 seconds, and then gets an error
    /// instead of a deadlock. Callers must not hold the interpreter.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, AnyPaths>> {
        for _ in 0..N_TRIES {
            match self.0.try_lock() {
                Ok(paths) => return Ok(paths),
                Err(TryLockError::Poisoned(broken)) => return Ok(broken.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            }
        }
        Err(Error::contract(
            "only one call at a time may use a batch of trajectories",
            "this batch is in use, by another thread or by the call that computes its reward: wait until \
             that call returns",
        ))
    }

    /// Calls a function with the locked trajectories, without holding the interpreter. A panic becomes an
    /// error.
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&mut AnyPaths) -> Result<T> + Send,
    ) -> PyResult<T> {
        let _inside = Inside::enter(py)?;
        py.detach(|| catch_panic(|| read(&mut *self.lock()?)))?.map_err(to_exception)
    }
}

/// The number of attempts to lock trajectories that another caller uses.
const N_TRIES: usize = 100;
/// The time between two attempts to lock trajectories.
const PAUSE: Duration = Duration::from_millis(1);

#[pymethods]
impl Paths {
    /// Returns the index of each trajectory's first transition, followed by the number of all transitions,
    /// `[n + 1]`.
    fn offsets(&self, py: Python<'_>) -> PyResult<Array<i64>> {
        self.read(py, |paths| {
            Ok(each!(paths, paths => whole(paths.trajectories().offsets().iter().copied())))
        })
    }

    fn n_fresh(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |paths| Ok(each!(paths, paths => paths.batch.fresh)))
    }

    fn is_exit(&self, py: Python<'_>) -> PyResult<Array<bool>> {
        self.read(py, |paths| Ok(each!(paths, paths => Array(paths.trajectories().is_exit().to_vec()))))
    }

    /// Returns the forward actions, or the actions that undo them if `reverse`. The actions are slots, `[T]`;
    /// in environments of points, each action is a row of numbers.
    fn actions(&self, py: Python<'_>, reverse: bool) -> PyResult<PyTensor> {
        self.read(py, |paths| {
            Ok(each!(paths, paths => {
                let all = paths.trajectories();
                PyTensor(paths.env.write_actions(if reverse { all.reverse_actions() } else { all.actions() }))
            }))
        })
    }

    /// Returns the forward actions as a tensor from which `replay` builds the same trajectories.
    fn walked(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.read(py, |paths| {
            each!(paths, paths => {
                let walks = paths.trajectories().walks(&paths.env)?;
                Ok(PyTensor(paths.env.write_actions(&walks.actions)))
            })
        })
    }

    fn conditions(&self, py: Python<'_>) -> PyResult<Option<PyTensor>> {
        let copy = |conditions: &Tensor| PyTensor(conditions.shallow_clone());
        self.read(py, |paths| Ok(each!(paths, paths => paths.trajectories().conditions().map(copy))))
    }

    fn log_rewards(&self, py: Python<'_>) -> PyResult<Option<Array<f64>>> {
        let copy = |known: &[f64]| Array(known.to_vec());
        self.read(py, |paths| {
            Ok(each!(paths, paths => paths.trajectories().recorded_log_rewards().map(copy)))
        })
    }

    /// Returns log P_F and log P_B of each transition; `None` if they weren't computed.
    fn log_probs(&self, py: Python<'_>) -> PyResult<Option<PyScored>> {
        let split =
            |log_probs: &Tensor| (PyTensor(log_probs.get(0).copy()), PyTensor(log_probs.get(1).copy()));
        self.read(py, |paths| Ok(each!(paths, paths => paths.log_probs.as_ref().map(split))))
    }

    fn instances(&self, py: Python<'_>) -> PyResult<Array<i64>> {
        self.read(py, |paths| {
            let instances =
                each!(paths, paths => paths.env.instances(paths.trajectories().terminal_states()));
            Ok(whole(instances.into_iter().map(|instance| instance as usize)))
        })
    }

    fn states(&self, py: Python<'_>) -> PyResult<DeferredObject> {
        self.read(py, |paths| {
            Ok(each!(paths, paths => paths.border.defer(paths.trajectories().states().clone())))
        })
    }

    fn next_states(&self, py: Python<'_>) -> PyResult<DeferredObject> {
        self.read(py, |paths| {
            Ok(each!(paths, paths => paths.border.defer(paths.trajectories().transitions().next_states())))
        })
    }

    fn terminal(&self, py: Python<'_>) -> PyResult<DeferredObject> {
        self.read(py, |paths| {
            Ok(each!(paths, paths => paths.border.defer(paths.trajectories().terminal_states().clone())))
        })
    }

    /// Returns the trajectories with these indices. Each index must be below the number of trajectories.
    fn select(&self, py: Python<'_>, rows: Vec<usize>) -> PyResult<Self> {
        self.read(py, |paths| Ok(Self::new(map_each!(paths, paths => paths.select(&rows)?))))
    }

    /// Returns the same trajectories with `log_rewards` as log R of their objects.
    fn with_log_rewards(&self, py: Python<'_>, log_rewards: Vec<f64>) -> PyResult<Self> {
        self.read(py, |paths| Ok(Self::new(map_each!(paths, paths => paths.with_log_rewards(log_rewards)?))))
    }

    /// Returns these trajectories, followed by the trajectories of `other`, which must have the same
    /// environment.
    fn join(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        // `self` and `other` may be the same object, which can't be locked twice. So `other` is copied first.
        let mut copy = other.read(py, |paths| {
            let all = each!(paths, paths => (0..paths.trajectories().len()).collect::<Vec<_>>());
            Ok(map_each!(paths, paths => paths.select(&all)?))
        })?;
        self.read(py, |paths| Ok(Self::new(map_each!(paths, paths => paths.join(&mut copy)?))))
    }
}
