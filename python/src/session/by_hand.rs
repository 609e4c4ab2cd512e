//! The methods of a session that a policy, a sampler and a loop of one's own are made of.

use gfn::distribution::Exploration;
use numpy::IntoPyArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::own_loop::{Actions, Drawing, Evaluated, From, Stored};
use super::{Session, table};
use crate::errors::raised;
use crate::layers::Paths;
use crate::objective::Scores;
use crate::tensors;

/// How actions are drawn, as Python names it.
#[derive(FromPyObject)]
struct Explored {
    epsilon: f64,
    temperature: f64,
    exit_bias: f64,
    noise: f64,
}

impl Explored {
    fn read(&self) -> PyResult<Exploration> {
        let Self { epsilon, temperature, exit_bias, noise } = *self;
        let read = || {
            Exploration::epsilon(epsilon)?.with_temperature(temperature)?.with_exit_bias(exit_bias)?.with_noise(noise)
        };
        read().map_err(raised)
    }
}

/// Where the actions of each state begin, their slots, and log P of each.
type Listed<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

fn listed<'py>(py: Python<'py>, Actions { ptr, slots, log_probs }: Actions) -> PyResult<Listed<'py>> {
    let ptr: Vec<i64> = ptr.into_iter().map(|start| start as i64).collect();
    Ok((ptr.into_pyarray(py).into_any(), tensors::to_python(py, &slots)?, tensors::to_python(py, &log_probs)?))
}

#[pymethods]
impl Session {
    /// The policy's word on states: P_F, P_B, log F if it is wanted, log Z; with gradients where `grad`.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        states: Py<PyAny>,
        conditions: Option<&Bound<'py, PyAny>>,
        flow: bool,
        grad: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let conditions = conditions.map(tensors::from_python).transpose()?;
        let Evaluated { forward, backward, log_flow, log_z } = self.ask(py, move |engine| {
            let evaluate = || engine.evaluate(&states, conditions.as_ref(), flow);
            if grad { tch::with_grad(evaluate) } else { tch::no_grad(evaluate) }
        })?;
        let out = PyDict::new(py);
        out.set_item("forward", forward.map(|actions| listed(py, actions)).transpose()?)?;
        out.set_item("backward", backward.map(|actions| listed(py, actions)).transpose()?)?;
        out.set_item("log_flow", log_flow.map(|tensor| tensors::to_python(py, &tensor)).transpose()?)?;
        // A view of a parameter, made without gradients, couldn't be read after an update.
        let log_z = log_z.map(|tensor| if grad { tensor } else { tensor.detach().copy() });
        out.set_item("log_z", log_z.map(|tensor| tensors::to_python(py, &tensor)).transpose()?)?;
        Ok(out)
    }

    /// Draws `n` trajectories, from given instances if there are any.
    fn draw_paths(
        &self,
        py: Python<'_>,
        n: usize,
        instances: Option<Vec<u32>>,
        conditions: Option<&Bound<'_, PyAny>>,
        explored: Explored,
        seed: Option<u64>,
    ) -> PyResult<Paths> {
        let conditions = conditions.map(tensors::from_python).transpose()?;
        let exploration = explored.read()?;
        let drawn = self.ask(py, move |engine| {
            let from = From::Start { n, instances: instances.as_deref() };
            engine.draw_paths(Drawing { from, conditions: conditions.as_ref(), exploration, seed })
        })?;
        Ok(Paths::new(drawn))
    }

    /// Draws a trajectory backwards from each of these objects.
    fn draw_back(
        &self,
        py: Python<'_>,
        objects: Py<PyAny>,
        conditions: Option<&Bound<'_, PyAny>>,
        seed: Option<u64>,
    ) -> PyResult<Paths> {
        let conditions = conditions.map(tensors::from_python).transpose()?;
        let drawn = self.ask(py, move |engine| {
            let (from, exploration) = (From::Objects(&objects), Exploration::none());
            engine.draw_paths(Drawing { from, conditions: conditions.as_ref(), exploration, seed })
        })?;
        Ok(Paths::new(drawn))
    }

    /// The batch of the next step.
    fn draw_batch(&self, py: Python<'_>) -> PyResult<Paths> {
        Ok(Paths::new(self.ask(py, |engine| engine.draw_batch())?))
    }

    /// The scores of trajectories, with gradients where `grad`.
    fn score(&self, py: Python<'_>, batch: &Paths, grad: bool) -> PyResult<Scores> {
        let scores = self.ask(py, |engine| {
            let mut held = batch.hold()?;
            if grad {
                return tch::with_grad(|| engine.score(held.as_mut()));
            }
            Ok(tch::no_grad(|| engine.score(held.as_mut()))?.without_gradients())
        })?;
        Scores::held(py, scores)
    }

    /// The loss of scores by the objective.
    fn loss<'py>(&self, py: Python<'py>, scores: &Scores) -> PyResult<Bound<'py, PyAny>> {
        let loss = self.ask(py, |engine| match scores.batch() {
            Some(held) => engine.loss_of(&held).map(Some),
            None => Ok(None),
        })?;
        let loss = loss.ok_or_else(nobodys)?;
        tensors::to_python(py, &loss)
    }

    /// Ends a step that was made outside: what it was like, as lists by name, and an error.
    fn end_step<'py>(
        &self,
        py: Python<'py>,
        batch: &Paths,
        scores: &Scores,
        loss: f64,
    ) -> PyResult<(Bound<'py, PyDict>, Option<PyErr>)> {
        let ended = self.work(py, |engine| {
            let scores = scores.batch()?;
            Some(match batch.hold() {
                Ok(batch) => engine.end_step(batch.as_ref(), &scores, loss),
                Err(error) => (Vec::new(), Some(error)),
            })
        })?;
        let (made, failed) = ended.ok_or_else(nobodys)?;
        Ok((table(py, &made)?, self.failures.take().or(failed.map(raised))))
    }

    /// Objects of the buffer, log R of each, and their conditions; None without a buffer.
    #[expect(clippy::type_complexity, reason = "one class of Python reads it")]
    fn stored<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)>> {
        let Some(Stored { objects, log_rewards, conditions }) = self.read(py, |engine| engine.stored())? else {
            return Ok(None);
        };
        let conditions = conditions.map(|tensor| tensors::to_python(py, &tensor)).transpose()?;
        Ok(Some((objects(py)?, log_rewards.into_pyarray(py).into_any(), conditions)))
    }

    /// Offers trajectories to the buffer; how many stayed.
    fn remember(&self, py: Python<'_>, paths: &Paths) -> PyResult<usize> {
        self.ask(py, |engine| engine.remember(paths.hold()?.as_ref()))
    }

    /// Trajectories with what the reward says of their objects.
    fn rewarded(&self, py: Python<'_>, paths: &Paths) -> PyResult<Paths> {
        Ok(Paths::new(self.ask(py, |engine| engine.rewarded(paths.hold()?.as_ref()))?))
    }

    /// The heads that the objective asks for.
    fn heads<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (flow, paths) = self.read(py, |engine| engine.heads())?;
        let heads = PyDict::new(py);
        heads.set_item("flow", flow)?;
        heads.set_item("paths", paths)?;
        Ok(heads)
    }

    /// The factor on learning rates at the next step.
    fn lr_factor(&self, py: Python<'_>) -> PyResult<f64> {
        self.read(py, |engine| engine.lr_factor())
    }
}

fn nobodys() -> PyErr {
    PyTypeError::new_err("the scores are those of an objective's call: expected what `Trainer.score(batch)` gave")
}
