//! The methods of environments by which Python lists moves and takes steps.

use gfn::env::{
    Direction, DiscreteEnv, EnumerableEnv, Env as _, Masks, Rows, Slots, VectorEnv, VectorStates,
};
use gfn::graph::{GraphEnv, GraphStates};
use gfn::{Error, Result};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use super::Env;
use crate::border::DeferredObject;
use crate::kinds::{AnySpace, PyEnv, Space};
use crate::paths::{Paths, replay};
use crate::states::{Array, whole};
use crate::tensors::PyTensor;
use crate::wording::in_python;

/// The moves of a batch of states, as six columns of equal length: the index of each move's state, its slot,
/// and the four numbers that [`SteppedByPython::name`] returns.
type MoveColumns = Vec<Array<i64>>;

/// The result of a step: the states after the step, the slot of the move that undoes each move, a flag that
/// is `true` for each exit, and a flag that is `true` for each state from which no further step is possible.
type StepOutcome = (DeferredObject, Array<i64>, Array<bool>, Array<bool>);

/// An environment in which Python can take steps.
pub(crate) trait SteppedByPython: EnumerableEnv {
    /// Returns the names of the move types. The exit is the last type.
    fn move_types(&self) -> Vec<String>;
    /// Returns four numbers for a move: the index of its type, its two nodes, and its index among the moves
    /// of this type at these nodes.
    fn name(&self, direction: Direction, states: &Self::States, row: usize, slot: u32) -> Result<[i64; 4]>;
    fn key_bytes(&self, states: &Self::States) -> Vec<Vec<u8>>;
    fn log_automorphisms_of(&self, states: &Self::States) -> Result<Vec<f64>>;
}

impl SteppedByPython for GraphEnv {
    fn move_types(&self) -> Vec<String> {
        self.actions().types().map(|(_, action_type)| in_python(action_type.name())).collect()
    }

    fn name(&self, direction: Direction, states: &GraphStates, row: usize, slot: u32) -> Result<[i64; 4]> {
        let (kind, _, action) = self.actions().decode(direction, &states.graphs()[row], slot)?;
        Ok([kind.0 as i64, action.a.into(), action.b.into(), action.class.into()])
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

    fn name(&self, direction: Direction, states: &VectorStates, row: usize, slot: u32) -> Result<[i64; 4]> {
        let exits = direction == Direction::Forward
            && self.exit_actions(&states.select(&[row])).is_some_and(|exit| exit.0 == [slot]);
        Ok([exits.into(), 0, 0, slot.into()])
    }

    fn key_bytes(&self, states: &VectorStates) -> Vec<Vec<u8>> {
        self.keys(states)
            .iter()
            .map(|key| key.iter().flat_map(|entry| entry.to_le_bytes()).collect())
            .collect()
    }

    fn log_automorphisms_of(&self, states: &VectorStates) -> Result<Vec<f64>> {
        Ok(vec![0.0; states.len()])
    }
}

impl<E: PyEnv + SteppedByPython> Space<E> {
    fn states(&self, states: &Py<PyAny>) -> Result<E::States> {
        self.border.read_detached(states, "states")
    }

    fn initial_states(&self, instances: &[u32]) -> Result<DeferredObject> {
        let n = self.env.n_instances();
        match instances.iter().find(|&&instance| instance >= n) {
            Some(&instance) => Err(Error::out_of_range(instance as usize, n as usize)),
            None => Ok(self.border.defer(self.env.initial(instances))),
        }
    }

    /// Describes moves of a batch of states: the moves with the given slots, or all legal moves.
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
        let mut columns = vec![Vec::new(); 6];
        for (&row, &slot) in rows.iter().zip(&slots) {
            let place = row as usize;
            if place >= states.len() {
                return Err(Error::out_of_range(place, states.len()));
            }
            let [kind, a, b, column] = self.env.name(direction, &states, place, slot)?;
            for (values, value) in columns.iter_mut().zip([row.into(), slot.into(), kind, a, b, column]) {
                values.push(value);
            }
        }
        Ok(columns.into_iter().map(Array).collect())
    }

    fn take_step(&self, states: &Py<PyAny>, direction: Direction, slots: Vec<u32>) -> Result<StepOutcome> {
        let mut states = self.states(states)?;
        if slots.len() != states.len() {
            let expected = [states.len() as i64];
            let got = [slots.len() as i64];
            return Err(Error::shape("moves", expected, got, "give one move for each state"));
        }
        let masks = self.env.masks(direction, &states);
        for (row, &slot) in slots.iter().enumerate() {
            masks.check(row, slot, || self.env.describe(direction, &states, row, slot))?;
        }
        let step = self.env.step(direction, &mut states, &Slots(slots))?;
        let reverse = whole(step.reverse.0.into_iter().map(|slot| slot as usize));
        Ok((self.border.defer(states), reverse, Array(step.exit), Array(step.done)))
    }
}

fn direction(backward: bool) -> Direction {
    if backward { Direction::Backward } else { Direction::Forward }
}

/// Converts whole numbers from Python to indices or slots. A number that doesn't fit into 32 bits is
/// converted to `Slots::NONE`, which is an invalid index.
fn small(values: &PyReadonlyArray1<'_, i64>) -> Vec<u32> {
    values.as_array().iter().map(|&value| u32::try_from(value).unwrap_or(Slots::NONE)).collect()
}

#[pymethods]
impl Env {
    /// Returns the names of the move types.
    fn types(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with_space(py, |space| listed!(space, space => Ok(space.env.move_types())))
    }

    fn n_instances(&self, py: Python<'_>) -> PyResult<u32> {
        self.with_space(py, |space| listed!(space, space => Ok(space.env.n_instances())))
    }

    fn initial(&self, py: Python<'_>, instances: PyReadonlyArray1<'_, i64>) -> PyResult<DeferredObject> {
        let instances = small(&instances);
        self.with_space(py, |space| listed!(space, space => space.initial_states(&instances)))
    }

    /// Returns the offset of each state's slots, a flag for each slot that is `true` if the slot is legal,
    /// and `true` if the last slot of each state is the exit.
    fn masks(
        &self,
        py: Python<'_>,
        states: Py<PyAny>,
        backward: bool,
    ) -> PyResult<(Array<i64>, Array<bool>, bool)> {
        let ask = |space: &AnySpace| {
            listed!(space, space => Ok(space.env.masks(direction(backward),
            &space.states(&states)?)))
        };
        let masks: Masks = self.with_space(py, ask)?;
        Ok((whole(masks.slot_ptr.iter().copied()), Array(masks.legal), masks.has_exit))
    }

    /// Describes the moves with these slots in the states with these indices, or all legal moves.
    fn moves(
        &self,
        py: Python<'_>,
        states: Py<PyAny>,
        backward: bool,
        chosen: Option<(PyReadonlyArray1<'_, i64>, PyReadonlyArray1<'_, i64>)>,
    ) -> PyResult<MoveColumns> {
        let direction = direction(backward);
        let moves = chosen.map(|(rows, slots)| (small(&rows), small(&slots)));
        self.with_space(py, |space| listed!(space, space => space.name_moves(&states, direction, moves)))
    }

    fn step(
        &self,
        py: Python<'_>,
        states: Py<PyAny>,
        slots: PyReadonlyArray1<'_, i64>,
        backward: bool,
    ) -> PyResult<StepOutcome> {
        let direction = direction(backward);
        let slots = small(&slots);
        self.with_space(py, |space| listed!(space, space => space.take_step(&states, direction, slots)))
    }

    fn is_initial(&self, py: Python<'_>, states: Py<PyAny>) -> PyResult<Array<bool>> {
        let ask =
            |space: &AnySpace| listed!(space, space => Ok(space.env.is_initial(&space.states(&states)?)));
        self.with_space(py, ask).map(Array)
    }

    fn keys(&self, py: Python<'_>, states: Py<PyAny>) -> PyResult<Vec<Vec<u8>>> {
        self.with_space(py, |space| listed!(space, space => Ok(space.env.key_bytes(&space.states(&states)?))))
    }

    fn log_automorphisms(&self, py: Python<'_>, states: Py<PyAny>) -> PyResult<Array<f64>> {
        let ask = |space: &AnySpace| {
            listed!(space, space =>
            space.env.log_automorphisms_of(&space.states(&states)?))
        };
        self.with_space(py, ask).map(Array)
    }

    /// Builds trajectories from actions. An illegal action is an error.
    #[expect(clippy::too_many_arguments, reason = "one class of Python calls it")]
    fn replay(
        &self,
        py: Python<'_>,
        actions: PyTensor,
        offsets: PyReadonlyArray1<'_, i64>,
        instances: PyReadonlyArray1<'_, i64>,
        log_rewards: Option<Vec<f64>>,
        conditions: Option<PyTensor>,
        scored: Option<(PyTensor, PyTensor)>,
    ) -> PyResult<Paths> {
        let place = |&offset: &i64| usize::try_from(offset).unwrap_or(usize::MAX);
        let offsets: Vec<usize> = offsets.as_array().iter().map(place).collect();
        let actions = actions.0;
        let instances = small(&instances);
        self.with_space(py, move |space| {
            Ok(Paths::new(map_each!(space, space => {
                replay(space, &actions, &offsets, &instances, log_rewards, conditions, scored)?
            })))
        })
    }
}
