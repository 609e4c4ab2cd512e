//! An environment as Python walks it by hand: the methods that `gfn_rs.Environment` calls.

use gfn::env::Direction;
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;

use super::{Env, EnvKind};
use crate::layers::{Named, Paths, Scored, Stepped, Walked, by_hand, replayed};
use crate::states::{show_diffusion, show_graphs, show_points, show_structures, show_vectors};
use crate::tensors;

fn direction(backward: bool) -> Direction {
    if backward { Direction::Backward } else { Direction::Forward }
}

/// Places and slots from numbers that Python has checked; one that is too large names nothing there is.
fn small(values: &PyReadonlyArray1<'_, i64>) -> Vec<u32> {
    values.as_array().iter().map(|&value| u32::try_from(value).unwrap_or(gfn::env::Slots::NONE)).collect()
}

fn columns<'py>(py: Python<'py>, named: Named) -> Vec<Bound<'py, PyAny>> {
    let Named { state, slot, kind, a, b, column } = named;
    [state, slot, kind, a, b, column].map(|values| values.into_pyarray(py).into_any()).into()
}

#[pymethods]
impl Env {
    /// The names of the types of moves.
    fn types(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.by_hand(py, |kind| Ok(by_hand(kind)?.types().to_vec()))
    }

    fn n_instances(&self, py: Python<'_>) -> PyResult<u32> {
        self.by_hand(py, |kind| Ok(by_hand(kind)?.n_instances()))
    }

    fn initial<'py>(&self, py: Python<'py>, instances: PyReadonlyArray1<'_, i64>) -> PyResult<Bound<'py, PyAny>> {
        let instances = small(&instances);
        self.by_hand(py, |kind| by_hand(kind)?.initial(&instances))?(py)
    }

    /// Where the slots of each state begin, and which are legal.
    fn masks<'py>(
        &self,
        py: Python<'py>,
        states: Py<PyAny>,
        backward: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, bool)> {
        let masks = self.by_hand(py, |kind| by_hand(kind)?.masks(&states, direction(backward)))?;
        let ptr: Vec<i64> = masks.slot_ptr.iter().map(|&start| start as i64).collect();
        Ok((ptr.into_pyarray(py).into_any(), masks.legal.into_pyarray(py).into_any(), masks.has_exit))
    }

    /// All legal moves of states, as columns.
    fn moves<'py>(&self, py: Python<'py>, states: Py<PyAny>, backward: bool) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let named = self.by_hand(py, |kind| by_hand(kind)?.named(&states, direction(backward), None))?;
        Ok(columns(py, named))
    }

    /// The same of these slots of these states.
    fn named<'py>(
        &self,
        py: Python<'py>,
        states: Py<PyAny>,
        rows: PyReadonlyArray1<'_, i64>,
        slots: PyReadonlyArray1<'_, i64>,
        backward: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let moves = (small(&rows).into_iter().map(|row| row as usize).collect(), small(&slots));
        let named = self.by_hand(py, |kind| by_hand(kind)?.named(&states, direction(backward), Some(moves)))?;
        Ok(columns(py, named))
    }

    /// The states after a step, what undoes it, whether it was the exit, and whether no step follows.
    fn step<'py>(
        &self,
        py: Python<'py>,
        states: Py<PyAny>,
        slots: PyReadonlyArray1<'_, i64>,
        backward: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let slots = small(&slots);
        let Stepped { states, reverse, exit, done } =
            self.by_hand(py, |kind| by_hand(kind)?.step(&states, direction(backward), slots))?;
        let flags = |values: Vec<bool>| values.into_pyarray(py).into_any();
        Ok(vec![states(py)?, reverse.into_pyarray(py).into_any(), flags(exit), flags(done)])
    }

    fn is_initial<'py>(&self, py: Python<'py>, states: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let initial = self.by_hand(py, |kind| by_hand(kind)?.is_initial(&states))?;
        Ok(initial.into_pyarray(py).into_any())
    }

    fn keys(&self, py: Python<'_>, states: Py<PyAny>) -> PyResult<Vec<Vec<u8>>> {
        self.by_hand(py, |kind| by_hand(kind)?.keys(&states))
    }

    fn log_automorphisms<'py>(&self, py: Python<'py>, states: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let logs = self.by_hand(py, |kind| by_hand(kind)?.log_automorphisms(&states))?;
        Ok(logs.into_pyarray(py).into_any())
    }

    /// Trajectories of actions from anywhere, each of which is checked.
    #[expect(clippy::too_many_arguments, reason = "one class of Python calls it")]
    fn replay(
        &self,
        py: Python<'_>,
        actions: &Bound<'_, PyAny>,
        offsets: PyReadonlyArray1<'_, i64>,
        instances: PyReadonlyArray1<'_, i64>,
        log_rewards: Option<Vec<f64>>,
        conditions: Option<&Bound<'_, PyAny>>,
        scored: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    ) -> PyResult<Paths> {
        let place = |&offset: &i64| usize::try_from(offset).unwrap_or(usize::MAX);
        let both = |(log_pf, log_pb): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            PyResult::Ok(Scored { log_pf: tensors::from_python(&log_pf)?, log_pb: tensors::from_python(&log_pb)? })
        };
        let walked = Walked {
            actions: tensors::from_python(actions)?,
            offsets: offsets.as_array().iter().map(place).collect(),
            instances: small(&instances),
            log_rewards,
            conditions: conditions.map(tensors::from_python).transpose()?,
            scored: scored.map(both).transpose()?,
        };
        let held = self.by_hand(py, move |kind| match kind {
            EnvKind::Graphs { env, reading } => replayed(env, show_graphs(reading.clone()), walked),
            EnvKind::Vectors(vectors) => replayed(&vectors.env, show_vectors(), walked),
            EnvKind::Structures(of) => replayed(of.env(), show_structures(of.n_nodes()), walked),
            EnvKind::Box(env) => replayed(env, show_points(), walked),
            EnvKind::Line(env) => replayed(env, show_points(), walked),
            EnvKind::Diffusion(env) => replayed(env, show_diffusion(), walked),
        })?;
        Ok(Paths::new(held))
    }
}
