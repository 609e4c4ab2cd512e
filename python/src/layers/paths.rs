//! Trajectories that Python has: of any environment, with what was scored of them.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gfn::env::Env;
use gfn::rollout::{Container, ReplayEnv, Trajectories};
use gfn::train::Batch;
use gfn::{Error, Result};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use tch::Tensor;

use crate::errors::raised;
use crate::objects::Border;
use crate::states::Show;
use crate::tensors;

/// Log-probabilities of each transition under the policy that drew it, without exploration, `[T]`.
pub(crate) struct Scored {
    pub(crate) log_pf: Tensor,
    pub(crate) log_pb: Tensor,
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

impl<E: ReplayEnv + Clone + 'static> Held<E>
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

impl<E: ReplayEnv + Clone + 'static> HeldPaths for Held<E>
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
pub(crate) fn replayed<E: ReplayEnv + Clone + 'static>(
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

    /// They are used by one caller at a time.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Box<dyn HeldPaths>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Paths {
    /// Where the transitions of each trajectory begin, `[n + 1]`, int64.
    fn offsets<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        let offsets: Vec<i64> = self.lock().offsets().iter().map(|&offset| offset as i64).collect();
        offsets.into_pyarray(py).into_any()
    }

    fn n_fresh(&self) -> usize {
        self.lock().n_fresh()
    }

    fn is_exit<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        let exits = self.lock().is_exit().to_vec();
        exits.into_pyarray(py).into_any()
    }

    /// Forward actions, or those that undo them, as a tensor.
    fn actions<'py>(&self, py: Python<'py>, reverse: bool) -> PyResult<Bound<'py, PyAny>> {
        let actions = self.lock().actions(reverse);
        tensors::to_python(py, &actions)
    }

    /// Forward actions as they can be taken again from the initial state.
    fn walked<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let actions = self.lock().walked().map_err(raised)?;
        tensors::to_python(py, &actions)
    }

    fn conditions<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let conditions = self.lock().conditions();
        conditions.map(|tensor| tensors::to_python(py, &tensor)).transpose()
    }

    fn log_rewards<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let known = self.lock().log_rewards().map(<[f64]>::to_vec);
        known.map(|known| known.into_pyarray(py).into_any())
    }

    /// log P_F and log P_B of each transition, where they were scored.
    fn scored<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let held = self.lock();
        let pair =
            |scored: &Scored| Ok((tensors::to_python(py, &scored.log_pf)?, tensors::to_python(py, &scored.log_pb)?));
        held.scored().map(pair).transpose()
    }

    fn instances<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        let instances: Vec<i64> = self.lock().instances().into_iter().map(i64::from).collect();
        instances.into_pyarray(py).into_any()
    }

    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.lock().states(py)
    }

    fn next_states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.lock().next_states(py)
    }

    fn terminal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.lock().terminal(py)
    }

    /// Some of them; rows are below their number.
    fn select(&self, rows: Vec<usize>) -> PyResult<Self> {
        let held = self.lock().select(&rows).map_err(raised)?;
        Ok(Self::new(held))
    }

    /// The same with log R of each.
    fn with_log_rewards(&self, log_rewards: Vec<f64>) -> PyResult<Self> {
        let held = self.lock().rewarded(log_rewards).map_err(raised)?;
        Ok(Self::new(held))
    }

    /// These, and then others of the same environment.
    fn join(&self, other: &Self) -> PyResult<Self> {
        if std::ptr::eq(self, other) {
            // Both are one lock.
            let n = self.lock().offsets().len() - 1;
            return self.select((0..n).chain(0..n).collect());
        }
        let (mine, others) = (self.lock(), other.lock());
        Ok(Self::new(mine.join(others.as_ref()).map_err(raised)?))
    }
}
