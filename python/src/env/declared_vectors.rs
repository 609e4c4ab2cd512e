//! Environments of vectors that are declared in Python: moves that set one entry, and rules that are asked about batches.

use gfn::env::{BatchRules, Direction, Rows, VectorEnv, VectorRules, VectorStates};
use gfn::{Error, Result};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use serde::Deserialize;

use super::asked::Rules;
use super::erased::any_vectors;
use super::{Failures, Vectors};
use crate::kept::Object;
use crate::states::entries;

/// What a declared environment is made of.
#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredVectors {
    width: usize,
    values: usize,
    /// Entry, value before, value after.
    moves: Vec<(usize, u16, u16)>,
}

impl DeclaredVectors {
    pub(super) fn build(&self, rules: Option<Object>, failures: &Failures) -> Result<Vectors> {
        let &Self { width, values, .. } = self;
        if width == 0 || !(2..=1 << 16).contains(&values) {
            let got = format!("{width} entries of {values} values");
            return Err(Error::config("width and values", got, "at least 1 entry, and 2 to 65536 values"));
        }
        let fits = |&(entry, before, after): &(usize, u16, u16)| {
            entry < width && before < after && usize::from(after) < values
        };
        if let Some(wrong) = self.moves.iter().find(|each| !fits(each)) {
            let expected = "an entry below `width`, a value before, and a greater one after below `values`, so that no \
                            move leads back";
            return Err(Error::config("a move", format!("{wrong:?}"), expected));
        }
        if self.moves.is_empty() {
            return Err(Error::config("moves", "none", "at least one"));
        }
        let rules = Rules { object: rules, failures: failures.clone() };
        let env = any_vectors(VectorEnv(Steps { width, moves: self.moves.clone(), rules }));
        Ok(Vectors { env, values, sequence: None })
    }
}

/// Forward moves of a batch of vectors, as arrays of one length.
#[pyclass(frozen, get_all, module = "gfn_rs", name = "VectorMoves")]
pub(crate) struct VectorMoves {
    /// The place in the batch of the vector that each is a move of, int64.
    state: Py<PyAny>,
    /// The number of each among the environment's moves, int64.
    number: Py<PyAny>,
}

#[pymethods]
impl VectorMoves {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.state.bind(py).len()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("VectorMoves({})", self.__len__(py)?))
    }
}

/// Moves that set one entry from a value to another; slot k is move k, in both directions.
struct Steps {
    width: usize,
    moves: Vec<(usize, u16, u16)>,
    rules: Rules,
}

impl VectorRules for Steps {
    type Key = Vec<u16>;
    fn width(&self) -> usize {
        self.width
    }
    fn n_moves(&self, _: Direction) -> usize {
        self.moves.len()
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let &(entry, before, after) = self.moves.get(slot)?;
        let (from, to) = if direction == Direction::Forward { (before, after) } else { (after, before) };
        let value = row.get_mut(entry).filter(|value| **value == from)?;
        *value = to;
        Some(slot)
    }
    fn key(&self, row: &[u16]) -> Vec<u16> {
        row.to_vec()
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        for (legal, &(entry, before, after)) in legal.iter_mut().zip(&self.moves) {
            *legal = row[entry] == if direction == Direction::Forward { before } else { after };
        }
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        match self.moves.get(slot) {
            Some((entry, before, after)) => {
                format!("{direction} move of entry {entry} between {before} and {after} of {row:?}")
            }
            None => format!("there is no move {slot}"),
        }
    }
    fn batched(&self) -> Option<&dyn BatchRules<VectorStates, (usize, u32)>> {
        self.rules.object.as_ref().map(|_| self as &dyn BatchRules<VectorStates, (usize, u32)>)
    }
}

impl Steps {
    fn of_states(&self, method: &str, states: &VectorStates) -> Vec<bool> {
        self.rules
            .ask(method, states.len(), |function| Ok(function.call1((entries(function.py(), states)?,))?.unbind()))
    }
}

impl BatchRules<VectorStates, (usize, u32)> for Steps {
    fn permits(&self, states: &VectorStates, moves: &[(usize, u32)]) -> Vec<bool> {
        self.rules.ask("restrict", moves.len(), |function| {
            let py = function.py();
            let column = |values: Vec<i64>| values.into_pyarray(py).into_any().unbind();
            let shown = VectorMoves {
                state: column(moves.iter().map(|&(row, _)| row as i64).collect()),
                number: column(moves.iter().map(|&(_, slot)| i64::from(slot)).collect()),
            };
            Ok(function.call1((entries(py, states)?, Bound::new(py, shown)?))?.unbind())
        })
    }

    fn is_reachable(&self, states: &VectorStates) -> Vec<bool> {
        self.of_states("is_reachable", states)
    }

    fn can_end(&self, states: &VectorStates) -> Vec<bool> {
        self.of_states("can_end", states)
    }
}
