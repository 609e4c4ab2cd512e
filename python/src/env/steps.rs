//! The steps that Python itself takes in an environment: the methods that `gfn_rs.Environment` calls.

use gfn::env::{Direction, DiscreteEnv, EnumerableEnv, Env as _, Masks, Rows, Slots, VectorEnv, VectorStates};
use gfn::graph::{GraphEnv, GraphStates};
use gfn::{Error, Result};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;

use super::Env;
use crate::border::Shown;
use crate::kinds::{PyEnv, Space};
use crate::paths::{Paths, Scored, Walk, replay_walk};
use crate::tensors;

/// Moves of a batch of states: columns of one length.
#[derive(Default)]
struct MoveColumns {
    state: Vec<i64>,
    slot: Vec<i64>,
    kind: Vec<i64>,
    a: Vec<i64>,
    b: Vec<i64>,
    column: Vec<i64>,
}

impl MoveColumns {
    fn into_arrays(self, py: Python<'_>) -> Vec<Bound<'_, PyAny>> {
        let Self { state, slot, kind, a, b, column } = self;
        [state, slot, kind, a, b, column].map(|values| values.into_pyarray(py).into_any()).into()
    }
}

/// The place of a move's type, its nodes, and its number among the type's moves there.
pub(crate) struct MoveName {
    kind: usize,
    a: u32,
    b: u32,
    column: u32,
}

/// The result of one step.
struct StepOutcome {
    states: Shown,
    reverse: Vec<i64>,
    exit: Vec<bool>,
    done: Vec<bool>,
}

/// An environment in which Python takes steps.
pub(crate) trait SteppedByPython: EnumerableEnv {
    /// The names of the types of moves; an exit is the last.
    fn move_types(&self) -> Vec<String>;
    fn name(&self, direction: Direction, states: &Self::States, row: usize, slot: u32) -> Result<MoveName>;
    fn key_bytes(&self, states: &Self::States) -> Vec<Vec<u8>>;
    fn log_automorphisms_of(&self, states: &Self::States) -> Result<Vec<f64>>;
}

impl SteppedByPython for GraphEnv {
    fn move_types(&self) -> Vec<String> {
        self.actions().types().map(|(_, action_type)| action_type.name().to_owned()).collect()
    }

    fn name(&self, direction: Direction, states: &GraphStates, row: usize, slot: u32) -> Result<MoveName> {
        let (kind, _, action) = self.actions().decode(direction, &states.graphs()[row], slot)?;
        Ok(MoveName { kind: kind.0, a: action.a, b: action.b, column: action.class })
    }

    fn key_bytes(&self, states: &GraphStates) -> Vec<Vec<u8>> {
        let keys = self.keys(states);
        keys.iter().map(|key| key.words().iter().flat_map(|word| word.to_le_bytes()).collect()).collect()
    }

    fn log_automorphisms_of(&self, states: &GraphStates) -> Result<Vec<f64>> {
        if !self.merges_isomorphic() {
            return Ok(vec![0.0; states.len()]);
        }
        states.graphs().iter().map(|graph| self.log_automorphisms(graph)).collect()
    }
}

impl SteppedByPython for VectorEnv {
    fn move_types(&self) -> Vec<String> {
        vec!["move".to_owned(), "exit".to_owned()]
    }

    fn name(&self, direction: Direction, states: &VectorStates, row: usize, slot: u32) -> Result<MoveName> {
        let exits = direction == Direction::Forward
            && self.exit_actions(&states.select(&[row])).is_some_and(|exit| exit.0 == [slot]);
        Ok(MoveName { kind: usize::from(exits), a: 0, b: 0, column: slot })
    }

    fn key_bytes(&self, states: &VectorStates) -> Vec<Vec<u8>> {
        self.keys(states).iter().map(|key| key.iter().flat_map(|entry| entry.to_le_bytes()).collect()).collect()
    }

    fn log_automorphisms_of(&self, states: &VectorStates) -> Result<Vec<f64>> {
        Ok(vec![0.0; states.len()])
    }
}

impl<E: PyEnv + SteppedByPython> Space<E> {
    fn states(&self, states: &Py<PyAny>) -> Result<E::States> {
        self.border.read_detached(states, "states")
    }

    fn initial_states(&self, instances: &[u32]) -> Result<Shown> {
        let n = self.env.n_instances();
        match instances.iter().find(|&&instance| instance >= n) {
            Some(&instance) => Err(Error::out_of_range(instance as usize, n as usize)),
            None => Ok(self.border.defer(self.env.initial(instances))),
        }
    }

    /// Names moves, slots of states: these, or all legal ones.
    fn name_moves(
        &self,
        states: &Py<PyAny>,
        direction: Direction,
        moves: Option<(Vec<u32>, Vec<u32>)>,
    ) -> Result<MoveColumns> {
        let states = self.states(states)?;
        let (rows, slots) = moves.unwrap_or_else(|| {
            let masks = self.env.masks(direction, &states);
            let mut all = (Vec::new(), Vec::new());
            for row in 0..masks.len() {
                for slot in masks.legal_slots(row) {
                    all.0.push(row as u32);
                    all.1.push(slot);
                }
            }
            all
        });
        let mut out = MoveColumns::default();
        for (&row, &slot) in rows.iter().zip(&slots) {
            let place = row as usize;
            if place >= states.len() {
                return Err(Error::out_of_range(place, states.len()));
            }
            let MoveName { kind, a, b, column } = self.env.name(direction, &states, place, slot)?;
            out.state.push(row.into());
            out.slot.push(slot.into());
            out.kind.push(kind as i64);
            out.a.push(a.into());
            out.b.push(b.into());
            out.column.push(column.into());
        }
        Ok(out)
    }

    fn take_step(&self, states: &Py<PyAny>, direction: Direction, slots: Vec<u32>) -> Result<StepOutcome> {
        let mut states = self.states(states)?;
        if slots.len() != states.len() {
            let (expected, got) = ([states.len() as i64], [slots.len() as i64]);
            return Err(Error::shape("moves", expected, got, "give one move for each state"));
        }
        let masks = self.env.masks(direction, &states);
        for (row, &slot) in slots.iter().enumerate() {
            masks.check(row, slot, || self.env.describe(direction, &states, row, slot))?;
        }
        let step = self.env.step(direction, &mut states, &Slots(slots))?;
        Ok(StepOutcome {
            states: self.border.defer(states),
            reverse: step.reverse.0.into_iter().map(i64::from).collect(),
            exit: step.exit,
            done: step.done,
        })
    }
}

fn direction(backward: bool) -> Direction {
    if backward { Direction::Backward } else { Direction::Forward }
}

/// Places and slots from numbers that Python has checked; a number that is too large stands for no place.
fn small(values: &PyReadonlyArray1<'_, i64>) -> Vec<u32> {
    values.as_array().iter().map(|&value| u32::try_from(value).unwrap_or(Slots::NONE)).collect()
}

/// The error of environments whose moves can't be listed.
fn points<T>() -> Result<T> {
    let expected = "one whose moves can be listed (graphs, vectors, acyclic graphs); of points, walk by a `Sampler`";
    Err(Error::config("an environment to be walked by hand", "one of points", expected))
}

#[pymethods]
impl Env {
    /// The names of the types of moves.
    fn types(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with_space(py, |space| listed!(space, space => Ok(space.env.move_types()), points()))
    }

    fn n_instances(&self, py: Python<'_>) -> PyResult<u32> {
        self.with_space(py, |space| listed!(space, space => Ok(space.env.n_instances()), points()))
    }

    fn initial<'py>(&self, py: Python<'py>, instances: PyReadonlyArray1<'_, i64>) -> PyResult<Bound<'py, PyAny>> {
        let instances = small(&instances);
        self.with_space(py, |space| listed!(space, space => space.initial_states(&instances), points()))?(py)
    }

    /// The beginning of the slots of each state, and which slots are legal.
    fn masks<'py>(
        &self,
        py: Python<'py>,
        states: Py<PyAny>,
        backward: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, bool)> {
        let masks: Masks = self.with_space(py, |space| {
            listed!(space, space => Ok(space.env.masks(direction(backward), &space.states(&states)?)), points())
        })?;
        let ptr: Vec<i64> = masks.slot_ptr.iter().map(|&start| start as i64).collect();
        Ok((ptr.into_pyarray(py).into_any(), masks.legal.into_pyarray(py).into_any(), masks.has_exit))
    }

    /// All legal moves of states, as columns.
    fn moves<'py>(&self, py: Python<'py>, states: Py<PyAny>, backward: bool) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let moves = self.with_space(
            py,
            |space| listed!(space, space => space.name_moves(&states, direction(backward), None), points()),
        )?;
        Ok(moves.into_arrays(py))
    }

    /// The moves that these slots of these states are, as columns.
    fn named<'py>(
        &self,
        py: Python<'py>,
        states: Py<PyAny>,
        rows: PyReadonlyArray1<'_, i64>,
        slots: PyReadonlyArray1<'_, i64>,
        backward: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let moves = (small(&rows), small(&slots));
        let named = self.with_space(
            py,
            |space| listed!(space, space => space.name_moves(&states, direction(backward), Some(moves)), points()),
        )?;
        Ok(named.into_arrays(py))
    }

    /// The states after a step, the moves that undo it, whether it was the exit, and whether no step follows.
    fn step<'py>(
        &self,
        py: Python<'py>,
        states: Py<PyAny>,
        slots: PyReadonlyArray1<'_, i64>,
        backward: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let slots = small(&slots);
        let StepOutcome { states, reverse, exit, done } = self.with_space(
            py,
            |space| listed!(space, space => space.take_step(&states, direction(backward), slots), points()),
        )?;
        let flags = |values: Vec<bool>| values.into_pyarray(py).into_any();
        Ok(vec![states(py)?, reverse.into_pyarray(py).into_any(), flags(exit), flags(done)])
    }

    fn is_initial<'py>(&self, py: Python<'py>, states: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let initial = self.with_space(
            py,
            |space| listed!(space, space => Ok(space.env.is_initial(&space.states(&states)?)), points()),
        )?;
        Ok(initial.into_pyarray(py).into_any())
    }

    fn keys(&self, py: Python<'_>, states: Py<PyAny>) -> PyResult<Vec<Vec<u8>>> {
        self.with_space(py, |space| listed!(space, space => Ok(space.env.key_bytes(&space.states(&states)?)), points()))
    }

    fn log_automorphisms<'py>(&self, py: Python<'py>, states: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let logs = self.with_space(
            py,
            |space| listed!(space, space => space.env.log_automorphisms_of(&space.states(&states)?), points()),
        )?;
        Ok(logs.into_pyarray(py).into_any())
    }

    /// Trajectories of actions from outside, each of which is checked.
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
        let scored = match scored {
            None => None,
            Some((log_pf, log_pb)) => {
                Some(Scored { log_pf: tensors::from_python(&log_pf)?, log_pb: tensors::from_python(&log_pb)? })
            }
        };
        let place = |&offset: &i64| usize::try_from(offset).unwrap_or(usize::MAX);
        let walk = Walk {
            actions: tensors::from_python(actions)?,
            offsets: offsets.as_array().iter().map(place).collect(),
            instances: small(&instances),
            log_rewards,
            conditions: conditions.map(tensors::from_python).transpose()?,
            scored,
        };
        let paths = self.with_space(py, move |space| Ok(map_each!(space, space => replay_walk(space, walk)?)))?;
        Ok(Paths::new(paths))
    }
}
