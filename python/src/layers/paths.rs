//! Trajectories that Python has: of any environment, with what was scored of them.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use gfn::env::Env;
use gfn::rollout::{Container, Trajectories};
use gfn::train::Batch;
use gfn::train::TrainEnv;
use gfn::{Error, Result};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use tch::Tensor;

use crate::errors::raised;
use crate::inside::Inside;
use crate::objects::Border;
use crate::session::unbroken;
use crate::states::Show;
use crate::tensors;

/// Log-probabilities of each transition under the policy that drew it, without exploration, `[T]`.
pub(crate) struct Scored {
    pub(crate) log_pf: Tensor,
    pub(crate) log_pb: Tensor,
}

impl Scored {
    /// The same tensors.
    fn share(&self) -> Self {
        Self { log_pf: self.log_pf.shallow_clone(), log_pb: self.log_pb.shallow_clone() }
    }
}

/// A batch of trajectories of one environment.
pub(crate) struct Held<E: Env> {
    pub(crate) batch: Batch<E>,
    pub(crate) scored: Option<Scored>,
    env: E,
    show: Show<E::States>,
}

/// Trajectories, whatever their environment.
pub(crate) trait HeldPaths: Send {
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn offsets(&self) -> &[usize];
    fn n_fresh(&self) -> usize;
    fn is_exit(&self) -> &[bool];
    /// Forward actions, or those that undo them: slots `[T]`, or rows of numbers.
    fn actions(&self, reverse: bool) -> Tensor;
    /// The forward actions as they can be taken again from the initial state.
    fn walked(&self) -> Result<Tensor>;
    fn conditions(&self) -> Option<Tensor>;
    fn log_rewards(&self) -> Option<&[f64]>;
    fn scored(&self) -> Option<&Scored>;
    fn instances(&self) -> Vec<u32>;
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
    fn next_states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
    fn terminal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
    fn select(&self, rows: &[usize]) -> Result<Box<dyn HeldPaths>>;
    fn join(&self, other: &dyn HeldPaths) -> Result<Box<dyn HeldPaths>>;
    fn rewarded(&self, log_rewards: Vec<f64>) -> Result<Box<dyn HeldPaths>>;
}

impl<E: TrainEnv + Clone + 'static> Held<E>
where
    E::States: 'static,
{
    pub(crate) fn new(env: &E, border: &Border<E::States>, batch: impl Into<Batch<E>>, scored: Option<Scored>) -> Self {
        Self { batch: batch.into(), scored, env: env.clone(), show: border.show.clone() }
    }

    pub(crate) fn env(&self) -> &E {
        &self.env
    }

    fn with(&self, trajectories: Trajectories<E>, scored: Option<Scored>) -> Box<dyn HeldPaths> {
        Box::new(Self { batch: trajectories.into(), scored, env: self.env.clone(), show: self.show.clone() })
    }
}

impl<E: TrainEnv + Clone + 'static> HeldPaths for Held<E>
where
    E::States: 'static,
{
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn offsets(&self) -> &[usize] {
        self.batch.trajectories.offsets()
    }

    fn n_fresh(&self) -> usize {
        self.batch.fresh
    }

    fn is_exit(&self) -> &[bool] {
        self.batch.trajectories.is_exit()
    }

    fn actions(&self, reverse: bool) -> Tensor {
        let all = &self.batch.trajectories;
        self.env.write_actions(if reverse { all.reverse_actions() } else { all.actions() })
    }

    fn walked(&self) -> Result<Tensor> {
        Ok(self.env.write_actions(&self.batch.trajectories.walks(&self.env)?.actions))
    }

    fn conditions(&self) -> Option<Tensor> {
        self.batch.trajectories.conditions().map(Tensor::shallow_clone)
    }

    fn log_rewards(&self) -> Option<&[f64]> {
        self.batch.trajectories.recorded_log_rewards()
    }

    fn scored(&self) -> Option<&Scored> {
        self.scored.as_ref()
    }

    fn instances(&self) -> Vec<u32> {
        self.env.instances(self.batch.trajectories.terminal_states())
    }

    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        (self.show)(py, self.batch.trajectories.states())
    }

    fn next_states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        (self.show)(py, &self.batch.trajectories.transitions().next_states())
    }

    fn terminal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        (self.show)(py, self.batch.trajectories.terminal_states())
    }

    fn select(&self, rows: &[usize]) -> Result<Box<dyn HeldPaths>> {
        let some = self.batch.trajectories.select(rows.iter().copied())?;
        let offsets = self.offsets();
        let of: Vec<i64> = rows.iter().flat_map(|&row| (offsets[row] as i64)..(offsets[row + 1] as i64)).collect();
        let of = Tensor::from_slice(&of);
        let picked = |tensor: &Tensor| tensor.index_select(0, &of.to_device(tensor.device()));
        let scored = self
            .scored
            .as_ref()
            .map(|Scored { log_pf, log_pb }| Scored { log_pf: picked(log_pf), log_pb: picked(log_pb) });
        Ok(self.with(some, scored))
    }

    fn rewarded(&self, log_rewards: Vec<f64>) -> Result<Box<dyn HeldPaths>> {
        let scored = self
            .scored
            .as_ref()
            .map(|Scored { log_pf, log_pb }| Scored { log_pf: log_pf.shallow_clone(), log_pb: log_pb.shallow_clone() });
        Ok(self.with(self.batch.trajectories.clone().with_log_rewards(log_rewards)?, scored))
    }

    fn join(&self, other: &dyn HeldPaths) -> Result<Box<dyn HeldPaths>> {
        let Some(other) = other.as_any().downcast_ref::<Self>() else { return Err(other_states()) };
        if self.env.fingerprint()? != other.env.fingerprint()? {
            return Err(other_states());
        }
        let mut all = self.batch.trajectories.clone();
        all.extend([other.batch.trajectories.clone()])?;
        let both = self.scored.as_ref().zip(other.scored.as_ref());
        let joined = |of: fn(&Scored) -> &Tensor| both.map(|(a, b)| Tensor::cat(&[of(a), of(b)], 0));
        let scored = joined(|s| &s.log_pf).zip(joined(|s| &s.log_pb)).map(|(log_pf, log_pb)| Scored { log_pf, log_pb });
        Ok(self.with(all, scored))
    }
}

/// The error of trajectories that are of another environment.
pub(crate) fn other_states() -> Error {
    let expected = "those of an environment of the same class and settings";
    Error::config("trajectories", "trajectories of another environment", expected)
}

/// Walks from anywhere, and what is known of them.
pub(crate) struct Walked {
    pub(crate) actions: Tensor,
    pub(crate) offsets: Vec<usize>,
    pub(crate) instances: Vec<u32>,
    pub(crate) log_rewards: Option<Vec<f64>>,
    pub(crate) conditions: Option<Tensor>,
    pub(crate) scored: Option<Scored>,
}

/// Trajectories of walks from anywhere: each is checked by being taken again from the initial state.
pub(crate) fn replayed<E: TrainEnv + Clone + 'static>(
    env: &E,
    show: Show<E::States>,
    walked: Walked,
) -> Result<Box<dyn HeldPaths>>
where
    E::States: 'static,
{
    let Walked { actions, offsets, instances, log_rewards, conditions, scored } = walked;
    let actions = env.read_actions(&actions)?;
    let mut all = Trajectories::replay_of(env, &instances, &actions, &offsets)?;
    if let Some(log_rewards) = log_rewards {
        all = all.with_log_rewards(log_rewards)?;
    }
    if let Some(conditions) = conditions {
        all = all.with_conditions(conditions)?;
    }
    for tensor in scored.iter().flat_map(|scored| [&scored.log_pf, &scored.log_pb]) {
        if tensor.size() != [all.n_transitions() as i64] {
            let expected = [all.n_transitions() as i64];
            return Err(Error::shape(
                "log-probabilities of trajectories",
                expected,
                tensor.size(),
                "give one for each transition",
            ));
        }
    }
    Ok(Box::new(Held { batch: all.into(), scored, env: env.clone(), show }))
}

/// A batch of trajectories, as `gfn_rs.Trajectories` reads it.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Paths(Mutex<Box<dyn HeldPaths>>);

impl Paths {
    pub(crate) fn new(held: Box<dyn HeldPaths>) -> Self {
        Self(Mutex::new(held))
    }

    /// They are used by one caller at a time; any other waits a moment, and gets an error in place of a wait for itself. To be called
    /// without the interpreter.
    pub(crate) fn hold(&self) -> Result<MutexGuard<'_, Box<dyn HeldPaths>>> {
        for _ in 0..PATIENCE {
            if let Some(held) = self.try_hold() {
                return Ok(held);
            }
            std::thread::sleep(MOMENT);
        }
        Err(at_work())
    }

    fn try_hold(&self) -> Option<MutexGuard<'_, Box<dyn HeldPaths>>> {
        match self.0.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(broken)) => Some(broken.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The same by a caller that has the interpreter, which others get while it waits; a panic is an error.
    fn with<T>(&self, py: Python<'_>, read: impl FnOnce(&dyn HeldPaths) -> PyResult<T>) -> PyResult<T> {
        let _inside = Inside::enter(py)?;
        for _ in 0..PATIENCE {
            if let Some(held) = self.try_hold() {
                return unbroken(|| read(held.as_ref()))?;
            }
            py.detach(|| std::thread::sleep(MOMENT));
        }
        Err(raised(at_work()))
    }
}

/// Looks at trajectories that are at work, and the time between two.
const PATIENCE: usize = 100;
const MOMENT: Duration = Duration::from_millis(1);

fn at_work() -> Error {
    Error::contract(
        "trajectories are used by one call at a time",
        "these are at work, in another thread or in the call that asked its reward: wait until that returns",
    )
}

#[pymethods]
impl Paths {
    /// Where the transitions of each trajectory begin, `[n + 1]`, int64.
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let offsets = |held: &dyn HeldPaths| Ok(held.offsets().iter().map(|&offset| offset as i64).collect::<Vec<_>>());
        Ok(self.with(py, offsets)?.into_pyarray(py).into_any())
    }

    fn n_fresh(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |held| Ok(held.n_fresh()))
    }

    fn is_exit<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.with(py, |held| Ok(held.is_exit().to_vec()))?.into_pyarray(py).into_any())
    }

    /// Forward actions, or those that undo them, as a tensor.
    fn actions<'py>(&self, py: Python<'py>, reverse: bool) -> PyResult<Bound<'py, PyAny>> {
        tensors::to_python(py, &self.with(py, |held| Ok(held.actions(reverse)))?)
    }

    /// Forward actions as they can be taken again from the initial state.
    fn walked<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        tensors::to_python(py, &self.with(py, |held| held.walked().map_err(raised))?)
    }

    fn conditions<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let conditions = self.with(py, |held| Ok(held.conditions()))?;
        conditions.map(|tensor| tensors::to_python(py, &tensor)).transpose()
    }

    fn log_rewards<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let known = self.with(py, |held| Ok(held.log_rewards().map(<[f64]>::to_vec)))?;
        Ok(known.map(|known| known.into_pyarray(py).into_any()))
    }

    /// log P_F and log P_B of each transition, where they were scored.
    fn scored<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let scored = self.with(py, |held| Ok(held.scored().map(Scored::share)))?;
        let pair = |Scored { log_pf, log_pb }| Ok((tensors::to_python(py, &log_pf)?, tensors::to_python(py, &log_pb)?));
        scored.map(pair).transpose()
    }

    fn instances<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let instances = |held: &dyn HeldPaths| Ok(held.instances().into_iter().map(i64::from).collect::<Vec<_>>());
        Ok(self.with(py, instances)?.into_pyarray(py).into_any())
    }

    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.with(py, |held| held.states(py))
    }

    fn next_states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.with(py, |held| held.next_states(py))
    }

    fn terminal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.with(py, |held| held.terminal(py))
    }

    /// Some of them; rows are below their number.
    fn select(&self, py: Python<'_>, rows: Vec<usize>) -> PyResult<Self> {
        Ok(Self::new(self.with(py, |held| held.select(&rows).map_err(raised))?))
    }

    /// The same with log R of each.
    fn with_log_rewards(&self, py: Python<'_>, log_rewards: Vec<f64>) -> PyResult<Self> {
        Ok(Self::new(self.with(py, |held| held.rewarded(log_rewards).map_err(raised))?))
    }

    /// These, and then others of the same environment.
    fn join(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        // Both may be one, which can't be held twice.
        let all = |held: &dyn HeldPaths| (0..held.offsets().len() - 1).collect::<Vec<_>>();
        let others = other.with(py, |held| held.select(&all(held)).map_err(raised))?;
        Ok(Self::new(self.with(py, |held| held.join(others.as_ref()).map_err(raised))?))
    }
}
